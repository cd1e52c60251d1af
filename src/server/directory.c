/* directory.c - the directory that the scheduler keeps its files in */
#include "server/directory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"

static bool make_one(const char *path, struct error *error)
{
	struct stat found;
	if (mkdir(path, 0700) == 0)
		return true;
	int reason = errno;
	if (reason == EEXIST && stat(path, &found) == 0 && S_ISDIR(found.st_mode))
		return true;
	return error_set(error, ERROR_UNAVAILABLE, "%s: %s", path, strerror(reason));
}

bool directory_make(const char *path, struct error *error)
{
	char *copy = memory_text(path);
	bool done = true;
	for (char *slash = strchr(copy + 1, '/'); done && slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		done = make_one(copy, error);
		*slash = '/';
	}
	done = done && make_one(copy, error);
	free(copy);
	return done;
}
