/* place.c - a directory of its own for a test */
#include "agent/test/place.h"

#define _XOPEN_SOURCE 700 /* nftw */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"

const char *place_make(void)
{
	const char *parent = getenv("TMPDIR");
	char path[512];

	snprintf(path, sizeof(path), "%s/agent-test-XXXXXX", parent ? parent : "/tmp");
	INVARIANT(mkdtemp(path));
	return memory_text(path);
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
	(void)status, (void)kind, (void)walk;
	return remove(path);
}

void place_remove(const char *path)
{
	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free((char *)path);
}
