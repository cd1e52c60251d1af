/* array_range.h - which jobs an array has: "1-100%8", "0-90:10", "1,3,7" */
#ifndef API_TEXT_ARRAY_RANGE_H
#define API_TEXT_ARRAY_RANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"

enum { ARRAY_JOBS_MAX = 10000 };

/* From `from` to `to`, both in; at most `limit` of them at a time, 0: any number. */
struct array_range {
	int64_t from, to, limit;
	const int64_t *indices; /* all of them, ascending; NULL: every one from `from` to `to` */
	int64_t count;
};

/* False with a sentence that says what is right. Indices are in the arena. */
bool array_range_read(struct text text, struct arena *arena, struct array_range *range,
                      struct error *error);

#endif
