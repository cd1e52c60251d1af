/* csv.h - tables of comma-separated values, read strictly */
#ifndef SIM_WORLD_CSV_H
#define SIM_WORLD_CSV_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { CSV_COLUMNS_MAX = 64 };

/* A table whose first line names its columns; every line has as many cells. No
 * quotes, no NUL, no empty lines but at the end; lines end with a newline, with or without a
 * carriage return. Cells of a row are valid until the next. Errors name the
 * table, the line and the column. */
struct csv {
	char *text; /* a copy, cut into cells as it is read */
	size_t size, at;
	char name[96];
	int64_t line; /* of the row at hand, from 1 */
	int columns;
	const char *names[CSV_COLUMNS_MAX];
	const char *cells[CSV_COLUMNS_MAX];
};

/* Begins with bytes, or with a file, which may be compressed with gzip, and reads the
 * names. To be freed in any case. */
bool csv_begin(struct csv *csv, const char *name, const void *data, size_t size,
               struct error *error);
bool csv_open(struct csv *csv, const char *path, struct error *error);
void csv_free(struct csv *csv);

/* The column of that name; -1 if there is none, which csv_need reports. */
int csv_column(const struct csv *csv, const char *name);
bool csv_need(const struct csv *csv, const char *name, int *column, struct error *error);

/* The next row: 1, or 0 at the end, or -1 with a reason. */
int csv_next(struct csv *csv, struct error *error);

/* The cell as a whole number from `least` to `most`, in decimal digits alone. */
bool csv_number(const struct csv *csv, int column, int64_t least, int64_t most, int64_t *number,
                struct error *error);
/* The cell, which may not be empty. */
bool csv_text(const struct csv *csv, int column, const char **text, struct error *error);

#endif
