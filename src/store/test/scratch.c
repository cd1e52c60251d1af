/* scratch.c - a directory for one test, and a database's path in it */
#include "store/test/scratch.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

void scratch_begin(struct scratch *scratch)
{
	const char *parent = getenv("TMPDIR");
	snprintf(scratch->directory, sizeof(scratch->directory), "%s/store-test-XXXXXX",
	         parent ? parent : "/tmp");
	if (!mkdtemp(scratch->directory))
		panic("%s cannot be made", scratch->directory);
	snprintf(scratch->path, sizeof(scratch->path), "%s/store.db", scratch->directory);
}

static void remove_all(const char *directory)
{
	DIR *open_directory = opendir(directory);
	struct dirent *entry;
	while (open_directory && (entry = readdir(open_directory))) {
		char path[PATH_MAX * 2];
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
		if (unlink(path) != 0)
			remove_all(path);
	}
	if (open_directory)
		closedir(open_directory);
	rmdir(directory);
}

void scratch_end(struct scratch *scratch)
{
	remove_all(scratch->directory);
}
