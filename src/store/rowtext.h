/* rowtext.h - rows in the text forms of PostgreSQL: for COPY, and as arrays */
#ifndef STORE_ROWTEXT_H
#define STORE_ROWTEXT_H

#include "base/buffer.h"
#include "store/cell.h"

/* Appends a cell of a row for COPY; cells are separated by tabs, rows by newlines. */
void copy_put(struct buffer *rows, const struct record_field *field, struct cell cell);

/* Takes a row of COPY, without its newline, apart into cells, undoing the
 * escapes in place. False if there are not `count` of them, or one is NULL. */
bool copy_split(char *row, size_t size, const struct record_field *const *fields, int count,
                struct cell *cells);

/* Appends an element of an array: '{' before the first, ',' before others; the
 * caller adds the '}'. */
void array_put(struct buffer *array, const struct record_field *field, struct cell cell);

#endif
