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

/* A resource that is being written. A field with a function in `special` is written by it,
 * others from the record that they are stored in. What is neither is left to the function of
 * another field. */
struct resource_writer {
	const struct resource *resource;
	struct json_writer *json;
	const void *const *records; /* by enum record_kind; NULL: its fields are left out */
	void (*const *special)(struct resource_writer *writer); /* by the field's place; or NULL */
	bool is_stranger; /* fields that only owners see are left out */
	const void *context;
	struct arena *arena; /* to work in */
	const struct resource_field *field;
};

/* Writes the fields, in the order of the table, into the object that is open. */
void resource_write(struct resource_writer *writer);

/* A value as its row has it: a number times 10^digits, a time or a duration in ms, an id, a
 * flag or a word's place. `none` of the row is shown as the row says. */
void field_put(struct json_writer *json, const struct resource_field *field, int64_t value);
void field_put_text(struct json_writer *json, const struct resource_field *field, const char *text);

#endif
