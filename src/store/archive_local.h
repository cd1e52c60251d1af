/* archive_local.h - what the files that read the store for people share */
#ifndef STORE_ARCHIVE_LOCAL_H
#define STORE_ARCHIVE_LOCAL_H

#include "store/archive.h"

/* Connects again where that is needed. */
bool archive_is_ready(struct store *store, struct error *error);
/* `done`; a connection that failed is not used again. */
bool archive_finish(struct store *store, bool done, const struct error *error);

/* What a query answered where a number is due. */
bool archive_number(const char *text, int64_t *number, struct error *error);

/* Where counts by tenant and state go, and a row of a query that has these three. */
struct tallying {
	archive_tally each;
	void *context;
};
bool archive_take_tally(void *context, const char *const *values, struct error *error);

#endif
