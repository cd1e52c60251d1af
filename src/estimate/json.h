/* json.h - JSON from files that others wrote */
#ifndef ESTIMATE_JSON_H
#define ESTIMATE_JSON_H

#include <jansson.h>
#include <stdint.h>

#include "base/error.h"
#include "estimate/reader.h"

/* The object that `size` bytes from `offset` are, or NULL with the reason. A key
 * that is there twice is refused, and so is what is nested too deep. The caller
 * gives it back with json_decref. */
json_t *json_read_object(const struct reader *reader, int64_t offset, int64_t size,
                         struct error *error);

/* The first of several names (a list that ends with NULL) that the object has
 * and that is not null; NULL if none. `used` is then its name, if not NULL. */
const json_t *json_first(const json_t *object, const char *const *names, const char **used);

/* Reads fields of one object. The first thing that is wrong is kept, and what is
 * wrong reads as if it was missing. */
struct json_fields {
	const json_t *object;
	struct error *error;
	bool failed;
};

/* A whole number from 0 to `most` under the first of these names that is there. */
int64_t json_number_or(struct json_fields *fields, const char *const *names, int64_t most,
                       int64_t otherwise);
bool json_flag_or(struct json_fields *fields, const char *name, bool otherwise);

#define NAMES(...) ((const char *const[]){ __VA_ARGS__, NULL })

#endif
