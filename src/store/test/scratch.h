/* scratch.h - a directory for one test, and a database's path in it */
#ifndef STORE_TEST_SCRATCH_H
#define STORE_TEST_SCRATCH_H

#include <limits.h>

struct scratch {
	char directory[PATH_MAX / 2], path[PATH_MAX];
};

/* Makes it; removes it with everything in it. */
void scratch_begin(struct scratch *scratch);
void scratch_end(struct scratch *scratch);

#endif
