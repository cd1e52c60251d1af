/* resource_json.h - resources as JSON, read and written by their tables */
#ifndef API_TEXT_RESOURCE_JSON_H
#define API_TEXT_RESOURCE_JSON_H

#include "base/memory.h"
#include "resource/resource.h"
#include "wire/text/json_scan.h"
#include "wire/text/json_writer.h"

enum { RESOURCE_FIELDS_MAX = 128 };

/* A resource that is being read. A field with a function in `special` is read by it, one that
 * is kept in the payload by `payload`. Others are checked by their row and stored in `record`, or
 * ignored where a request merely repeats what an answer said. null counts as left out. */
struct resource_reader {
	const struct resource *resource;
	struct json_scan *scan;
	struct error *error;
	struct arena *arena; /* of the record's texts */
	void *record;
	bool (*const *special)(struct resource_reader *reader); /* by the field's place */
	bool (*payload)(struct resource_reader *reader);
	bool administrator; /* asks: fields that only administrators may set are accepted */
	void *context;      /* of these functions */
	const struct resource_field *field;       /* that is being read */
	uint64_t given[RESOURCE_FIELDS_MAX / 64]; /* fields seen, by place */
};

/* Reads all members of the object at the scan's place. False with a sentence that names the
 * field; the record is then half filled. */
bool resource_read(struct resource_reader *reader);

/* True if the request gave the field at that place, and not as null. */
static inline bool resource_gave(const struct resource_reader *reader, int place)
{
	return reader->given[place / 64] >> place % 64 & 1;
}

/* Says what is wrong with the field that is being read. Returns false. */
bool resource_fail(struct resource_reader *reader, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Like field_refuse(), for the field that is being read. */
bool resource_refuse(struct resource_reader *reader);

/* The value of the field that is being read, for special functions. Numbers are times
 * 10^digits. */
bool resource_get_number(struct resource_reader *reader, int64_t *value);
bool resource_get_flag(struct resource_reader *reader, bool *value);
/* Lives as long as the scan. */
bool resource_get_text(struct resource_reader *reader, struct text *value);
/* A copy in the reader's arena with a NUL behind it. */
const char *resource_own(struct resource_reader *reader, struct text value);

/* A value that was computed for a field. */
enum given { GIVEN_NOTHING, GIVEN_NUMBER, GIVEN_TEXT, GIVEN_NONE, GIVEN_NULL };
struct field_value {
	enum given given;
	int64_t number; /* as in field_put() */
	const char *text;
};

/* This number, even where it is what the row means by none. */
#define FIELD_NUMBER(value)                                                                        \
	{                                                                                          \
		.given = GIVEN_NUMBER, .number = (value)                                           \
	}
/* None unless the condition holds. */
#define FIELD_NUMBER_IF(condition, value)                                                          \
	{                                                                                          \
		.given = (condition) ? GIVEN_NUMBER : GIVEN_NONE, .number = (value)                \
	}
/* NULL is none. */
#define FIELD_STRING(value)                                                                        \
	{                                                                                          \
		.given = GIVEN_TEXT, .text = (value)                                               \
	}
/* null instead of an id of 0, and instead of NULL, whatever the row's form of none is. */
#define FIELD_ID(id)                                                                               \
	{                                                                                          \
		.given = (id) > 0 ? GIVEN_NUMBER : GIVEN_NULL, .number = (id)                      \
	}
#define FIELD_STRING_OR_NULL(value)                                                                \
	{                                                                                          \
		.given = (value) ? GIVEN_TEXT : GIVEN_NULL, .text = (value)                        \
	}

/* A resource that is being written. A field with a function in `special` is written by it, one
 * with a value in `values` has that, and others are written from the record that they are stored
 * in. With `values`, only fields that may be left out have nothing of the three; without, such
 * fields are left to the function of another one. */
struct resource_writer {
	const struct resource *resource;
	struct json_writer *json;
	const void *const *records; /* by enum record_kind; NULL: its fields are left out */
	void (*const *special)(struct resource_writer *writer); /* by the field's place; or NULL */
	const struct field_value *values;                       /* by the field's place; or NULL */
	bool is_stranger; /* fields that only owners see are left out */
	const void *context;
	struct arena *arena; /* to work in */
	const struct resource_field *field;
};

/* Writes the fields, in the order of the table, into the object that is open. */
void resource_write(struct resource_writer *writer);
/* Writes an object of the field's nested resource: an element of the list that is open. The
 * resource, `json` and `arena` of `element` are filled in. */
void resource_write_element(const struct resource_writer *writer, struct resource_writer element);

/* A value as its row has it: a number times 10^digits, a time or a duration in ms, an id, a
 * flag or a word's place. `none` of the row is shown as the row says. */
void field_put(struct json_writer *json, const struct resource_field *field, int64_t value);
/* Like field_put(), for a value that may be none whatever its number. */
void field_put_value(struct json_writer *json, const struct resource_field *field,
                     const struct field_value *value);
void field_put_text(struct json_writer *json, const struct resource_field *field, const char *text);

#endif
