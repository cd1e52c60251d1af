/* json_reader.h - JSON that strangers sent, read strictly */
#ifndef JSON_JSON_READER_H
#define JSON_JSON_READER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

struct json_limits {
	size_t bytes, depth, values; /* values: members and elements, all levels together */
};
struct json_limits json_limits_default(void);

/* The document, an object or an array, or NULL with a reason that names line and column.
 * Refused: what is not RFC 8259, a key twice in one object, text that is not UTF-8 or has
 * \u0000 in it, numbers that do not fit 64 bits, more than the limits (NULL: default).
 * Given back with json_decref. */
json_t *json_read(struct text text, const struct json_limits *limits, struct error *error);

/* Reads the fields of one object. The first thing that is wrong is kept in `error`, with
 * its field, what is wrong and what would be right; from then on everything reads as if
 * it was missing. `where` is what stands before a field's name: "" or "tasks[3].". */
enum { JSON_WHERE_MAX = 128 };
struct json_reader {
	const json_t *object;
	char where[JSON_WHERE_MAX]; /* cut off where it is longer */
	struct error *error;
	bool failed;
};

/* `value` must be an object; otherwise the reader has failed. */
struct json_reader json_reader_of(const json_t *value, const char *where, struct error *error);
/* Continues with another object: json_reader_enter(&reader, task, "tasks[%d].", i). A reader that
 * has failed stays where it is. */
void json_reader_enter(struct json_reader *reader, const json_t *value, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Each gives `otherwise` for a field that is missing or null. */
int64_t json_get_integer(struct json_reader *reader, const char *name, int64_t least, int64_t most,
                         int64_t otherwise);
bool json_get_flag(struct json_reader *reader, const char *name, bool otherwise);
/* At most `most_bytes`; data is NULL if it is missing. Valid as long as the document. */
struct text json_get_text(struct json_reader *reader, const char *name, size_t most_bytes);
/* A number with at most `digits` decimals, times 10^digits, from `least` to `most` of
 * those: 0.5 with 3 digits is 500. */
int64_t json_get_decimal(struct json_reader *reader, const char *name, int digits, int64_t least,
                         int64_t most, int64_t otherwise);
/* One of `words` (ends with NULL) by its place, or `otherwise`. */
int json_get_word(struct json_reader *reader, const char *name, const char *const *words,
                  int otherwise);
/* Like json_get_text(), with a NUL at its end; not empty, and of any length. */
const char *json_get_string(struct json_reader *reader, const char *name, const char *otherwise);
/* NULL if missing. The array has at most `most` elements; SIZE_MAX: any number. */
const json_t *json_get_object(struct json_reader *reader, const char *name);
const json_t *json_get_array(struct json_reader *reader, const char *name, size_t most);
/* Fields that must be there. What is wrong reads as `least`, "" or NULL. */
int64_t json_need_integer(struct json_reader *reader, const char *name, int64_t least,
                          int64_t most);
const char *json_need_string(struct json_reader *reader, const char *name);
const json_t *json_need_object(struct json_reader *reader, const char *name);
const json_t *json_need_array(struct json_reader *reader, const char *name, size_t most);
/* True if it is there and not null. */
bool json_has(const struct json_reader *reader, const char *name);

/* Says that a field is wrong: 'where''name' and the sentence. Returns false. */
bool json_fail(struct json_reader *reader, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* True if all went well and no member is there whose name is not in `known` (ends with
 * NULL; may be NULL for any). */
bool json_reader_end(struct json_reader *reader, const char *const *known);

#endif
