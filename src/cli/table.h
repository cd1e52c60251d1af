/* table.h - rows of text whose columns line up */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include <stdio.h>

#include "base/memory.h"

enum { TABLE_COLUMNS_MAX = 16 };

/* Cells are added row by row; a row that is not full ends with table_end_row.
 * Zero-initialised but for `columns` and `right` it is empty. */
struct table {
	int columns;
	unsigned right; /* bit i: column i is aligned to the right */
	const char **cells;
	size_t count, capacity;
	struct arena arena;
};

void table_cell(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
void table_end_row(struct table *table);
/* Two spaces between columns, none at the end of lines. */
void table_print(const struct table *table, FILE *to);
void table_free(struct table *table);

#endif
