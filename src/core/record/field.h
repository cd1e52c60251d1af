/* field.h - structs described by tables: one code copies, encodes, reads and prints them all */
#ifndef CORE_RECORD_FIELD_H
#define CORE_RECORD_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/memory.h"

/* A list of rows of `width` numbers each; the width is in the field's description. */
struct rows {
	const int64_t *at;
	int64_t count; /* rows, not numbers */
};

enum field_kind {
	FIELD_INT64,
	FIELD_INT32, /* or an enum */
	FIELD_FLAG,
	FIELD_TEXT,
	FIELD_ROWS,
	FIELD_LIST, /* of structs: in commands, never in records */
};

/* The names of an enum's values, from 0 on. */
struct words {
	const char *const *at;
	int count;
};

struct record_field {
	const char *name;
	enum field_kind kind;
	size_t offset;
	int width;                    /* FIELD_ROWS: numbers in a row */
	const struct words *words;    /* FIELD_INT32: of an enum; else NULL */
	const struct record_type *of; /* FIELD_LIST: what its elements are */
	size_t count_offset;          /* FIELD_LIST: where the int64_t is that counts them */
};

/* A struct. `texts` and `rows` say again which fields are such, for speed: bit
 * n stands for the field that is n pointers' widths from the start. */
struct record_type {
	const char *name; /* of the kind: "tenant" */
	size_t size;      /* of the struct */
	int keys;         /* the number of leading fields, FIELD_INT64, that identify a record */
	const struct record_field *fields;
	int field_count;
	uint64_t texts, rows;
};

/* Describes a struct in one list of its members, from which all else follows:
 *     #define NODE_FIELDS(F, T) F(T, id) F(T, name) F(T, state, .words = &node_state_words)
 *     const struct record_type node_type = RECORD_TYPE("node", 1, struct node_record, NODE_FIELDS);
 * What the type of a member does not tell (width, words, of) follows its name.
 * Texts and rows must be in the first 64 pointers' widths; else it does not compile. */
#define RECORD_TYPE(label, key_count, T, FIELDS)                                                   \
	{                                                                                          \
		.name = (label), .size = sizeof(T), .keys = (key_count),                           \
		.fields = (const struct record_field[]){ FIELDS(FIELD_ENTRY, T) },                 \
		.field_count = 0 FIELDS(FIELD_ONE, T), .texts = 0 FIELDS(FIELD_TEXT_BIT, T),       \
		.rows = 0 FIELDS(FIELD_ROWS_BIT, T),                                               \
	}
/* clang-format off */
#define FIELD_KIND(T, member)                                                                \
	_Generic(((T *)0)->member,                                                           \
		int64_t: FIELD_INT64,                                                        \
		int32_t: FIELD_INT32,                                                        \
		uint32_t: FIELD_INT32,                                                       \
		bool: FIELD_FLAG,                                                            \
		const char *: FIELD_TEXT,                                                    \
		struct rows: FIELD_ROWS,                                                     \
		default: FIELD_LIST)
/* clang-format on */
#define FIELD_ENTRY(T, member, ...)                                                                \
	{ .name = #member,                                                                         \
	  .kind = FIELD_KIND(T, member),                                                           \
	  .offset = offsetof(T, member),                                                           \
	  __VA_ARGS__ },
#define FIELD_ONE(T, member, ...) +1 /* NOLINT(bugprone-macro-parentheses): they are added up */
#define FIELD_BIT(T, member, wanted)                                                               \
	(FIELD_KIND(T, member) == (wanted) ? UINT64_C(1) << offsetof(T, member) / sizeof(void *)   \
	                                   : 0)
#define FIELD_TEXT_BIT(T, member, ...) | FIELD_BIT(T, member, FIELD_TEXT)
#define FIELD_ROWS_BIT(T, member, ...) | FIELD_BIT(T, member, FIELD_ROWS)

#define WORDS(...)                                                                                 \
	{                                                                                          \
		.at = (const char *const[]){ __VA_ARGS__ },                                        \
		.count = sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(const char *),      \
	}
/* The name of a value, or NULL where it has none. */
const char *word_of(const struct words *words, int64_t value);

/* What a FIELD_INT64, FIELD_INT32 or FIELD_FLAG of `object` holds. */
static inline int64_t field_number(const struct record_field *field, const void *object)
{
	const void *value = (const char *)object + field->offset;
	switch (field->kind) {
	case FIELD_INT64:
		return *(const int64_t *)value;
	case FIELD_INT32:
		return *(const int32_t *)value;
	case FIELD_FLAG:
		return *(const bool *)value;
	default:
		panic("field %s is not a number", field->name);
	}
}

/* All of these read a text that is NULL as an empty one; what they make has none. */

/* A copy with its texts and rows, but not its lists, in the arena. */
void *fields_copy(struct arena *arena, const struct record_type *type, const void *object);
/* Copies the object into one piece of memory, to be freed with free(). */
void *fields_clone(const struct record_type *type, const void *object);
/* Gives the object its own texts and rows, in one piece of memory that is returned, to be freed
 * with free(). */
void *fields_own(const struct record_type *type, void *object);
struct rows rows_copy(struct arena *arena, struct rows rows, int width);

/* Appends an encoding that is the same for equal objects and on every machine:
 * the fields in turn, numbers as zigzag varints, texts after their length, rows
 * and lists after their count. */
void fields_encode(struct buffer *buffer, const struct record_type *type, const void *object);
/* Fills every field of `object` from what fields_encode wrote and moves `*data`
 * on. Bytes that fields_encode would not have written are refused: false with a
 * reason, `*data` as it was, `object` half filled. */
bool fields_decode(struct arena *arena, const struct record_type *type, void *object,
                   const uint8_t **data, const uint8_t *end, struct error *error);
bool fields_equal(const struct record_type *type, const void *a, const void *b);
/* Appends ` name=value` for the keys and for all that is not 0, false or empty. */
void fields_print(struct buffer *buffer, const struct record_type *type, const void *object);

#endif
