/* query.h - the parameters behind the '?' of a target */
#ifndef WIRE_TEXT_QUERY_H
#define WIRE_TEXT_QUERY_H

#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/text.h"

enum { QUERY_PARAMETERS_MAX = 64 };

/* Names and values are percent-decoded ('+' is a space), valid UTF-8 without control
 * characters, with a NUL behind each. No name is there twice. */
struct query_parameter {
	struct text name, value;
};
struct query {
	const struct query_parameter *of;
	size_t count;
};

/* Reads 'a=1&b=2'. The texts are appended to `storage`, the parameters to `list`
 * (room for QUERY_PARAMETERS_MAX), and point into them: neither may grow while the
 * query is used. */
bool query_parse(struct text text, struct buffer *storage, struct query_parameter *list,
                 struct query *query, struct error *error);

/* The value, or a text whose data is NULL. */
struct text query_get(const struct query *query, const char *name);
/* A whole number from `least` to `most`, or `otherwise` if it is not there. False with
 * a reason that names the parameter if it is something else. */
bool query_integer(const struct query *query, const char *name, int64_t least, int64_t most,
                   int64_t otherwise, int64_t *value, struct error *error);
/* 1, true, yes or nothing at all after the name; 0, false, no. */
bool query_flag(const struct query *query, const char *name, bool otherwise, bool *value,
                struct error *error);

#endif
