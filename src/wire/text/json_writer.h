/* json_writer.h - JSON that is only ever appended to */
#ifndef WIRE_TEXT_JSON_WRITER_H
#define WIRE_TEXT_JSON_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/text.h"

enum { JSON_WRITER_DEPTH_MAX = 64 };

/* Writes compact JSON to the end of a buffer. Every call takes the key that the value
 * goes under; in arrays and at the top it is NULL. Calls that do not make JSON (a key in
 * an array, a close too many) break an invariant. Keys and texts are escaped as
 * needed; what is not UTF-8 in them becomes U+FFFD. */
struct json_writer {
	struct buffer *buffer;
	int depth;
	bool has_items;    /* at this depth already */
	bool has_key;      /* was written by json_put_key: the next call has NULL for it */
	uint64_t is_array; /* by depth, one bit each */
};

struct json_writer json_writer_to(struct buffer *buffer);

/* Writes the key of the next value, one or more plain bytes (json_plain.h). For tables of names:
 * nothing is looked for in it. */
void json_put_key(struct json_writer *json, struct text key);

void json_open_object(struct json_writer *json, const char *key);
void json_open_array(struct json_writer *json, const char *key);
/* Closes what was opened last. */
void json_close(struct json_writer *json);

void json_put_text(struct json_writer *json, const char *key, struct text value);
/* A NUL-terminated string; NULL writes null. */
void json_put_string(struct json_writer *json, const char *key, const char *value);
void json_put_integer(struct json_writer *json, const char *key, int64_t value);
void json_put_unsigned(struct json_writer *json, const char *key, uint64_t value);
/* value / 10^digits, exactly: thousandths with 3 digits. Zeros at the end are left out. */
void json_put_decimal(struct json_writer *json, const char *key, int64_t value, int digits);
/* The shortest that reads back as the same; null for what is not a number. */
void json_put_real(struct json_writer *json, const char *key, double value);
void json_put_flag(struct json_writer *json, const char *key, bool value);
void json_put_null(struct json_writer *json, const char *key);
/* Microseconds since 1970 as "2026-01-31T12:00:00.250Z"; years 1970 to 9999. Where all are whole
 * milliseconds, the order of the texts is that of the times. */
void json_put_time(struct json_writer *json, const char *key, int64_t unix_us);
/* Text that is JSON already. */
void json_put_raw(struct json_writer *json, const char *key, struct text value);

/* Only the escaped text between the quotes, for those who write their own. */
void json_escape(struct buffer *buffer, struct text value);

#endif
