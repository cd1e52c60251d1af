/* table.h - rows of text whose columns line up, within the width of a terminal */
#ifndef CLI_TEXT_TABLE_H
#define CLI_TEXT_TABLE_H

#include <stdio.h>

#include "base/memory.h"
#include "cli/text/terminal.h"

enum { TABLE_COLUMNS_MAX = 24 };

struct table_cell {
	const char *text;
	enum colour colour;
};

/* Cells are added row by row; a row that is not full ends with table_end_row. Zero-initialised
 * but for `columns` and `right` it is empty and as wide as it likes. Where it is wider than
 * `terminal` has columns, those of `drops` are left out from the last on, then those of
 * `shrinks` are cut, the widest first, and at last any but the first are left out, again from
 * the last on. */
struct table {
	int columns;
	unsigned right;   /* bit i: column i is aligned to the right */
	unsigned shrinks; /* bit i: column i may be cut, down to TABLE_LEAST columns */
	unsigned drops;   /* bit i: column i may be left out */
	struct terminal terminal;
	struct table_cell *cells;
	size_t count, capacity;
	struct arena arena;
};

enum { TABLE_LEAST = 8 };

void table_cell(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Like table_cell(), in a color if the terminal has colors. */
void table_coloured(struct table *table, enum colour colour, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void table_end_row(struct table *table);
/* Two spaces between columns, none at the end of lines. */
void table_print(const struct table *table, FILE *to);
void table_free(struct table *table);

#endif
