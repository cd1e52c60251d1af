/* scratch.h - a directory for one test, and a database that is empty */
#ifndef STORE_TEST_SCRATCH_H
#define STORE_TEST_SCRATCH_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/* `database` is a file in the directory; or, where the environment has
 * STORE_TEST_POSTGRES, that connection, emptied. */
struct scratch {
	char directory[PATH_MAX / 2], database[PATH_MAX];
};

/* Makes it; removes it with everything in it. */
void scratch_begin(struct scratch *scratch);
void scratch_end(struct scratch *scratch);

bool scratch_is_postgres(void);
/* Runs statements on the database from outside, as a person could. */
void scratch_execute(const struct scratch *scratch, const char *sql);
/* The first value of the first row of a query, as a number. */
int64_t scratch_number(const struct scratch *scratch, const char *sql);

#endif
