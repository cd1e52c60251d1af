/* array_range.h - which jobs an array has: "1-100%8" */
#ifndef API_TEXT_ARRAY_RANGE_H
#define API_TEXT_ARRAY_RANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

/* From `from` to `to`, both in; at most `limit` of them at a time, 0: any number. */
struct array_range {
	int64_t from, to, limit;
};

/* False with a sentence that says what is right. */
bool array_range_read(struct text text, struct array_range *range, struct error *error);

#endif
