/* cell.h - fields of records as the values of a database's columns, and back */
#ifndef STORE_CELL_H
#define STORE_CELL_H

#include "core/record/field.h"
#include "store/schema.h"

/* A number, or a text of `length` bytes (with a NUL behind it where it came
 * from cell_of). Flags are 0 and 1, values of enums their names, rows of
 * numbers JSON: [[1,2],[3,4]], or [1,2] where a row is one number. */
struct cell {
	bool is_text;
	int64_t number;
	const char *text;
	size_t length;
};

/* What a field of a record is in its column. Texts point into the record where
 * they can, and else into `scratch`, until it is used again. Databases hold
 * UTF-8: a text that is not is written as U+E000 and its bytes in hexadecimal. */
struct cell cell_of(const struct record_field *field, const void *record, struct buffer *scratch);

/* Fills the field from its column; texts and rows are made in the arena. False
 * with a reason if this cannot have come from cell_of. */
bool cell_read(const struct record_field *field, void *record, struct cell cell,
               struct arena *arena, struct error *error);

/* Appends a number in decimal, without a NUL. */
void number_put(struct buffer *buffer, int64_t number);

#endif
