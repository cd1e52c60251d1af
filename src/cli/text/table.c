/* table.c - rows of text whose columns line up, within the width of a terminal */
#include "cli/text/table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/text/text_width.h"

enum { GAP = 2 };

static void table_add(struct table *table, enum colour colour, const char *format,
                      va_list arguments)
{
	va_list again;
	va_copy(again, arguments);
	int size = vsnprintf(NULL, 0, format, again);
	va_end(again);
	char *text = memory_alloc((size_t)size + 1);
	vsnprintf(text, (size_t)size + 1, format, arguments);
	struct buffer clean = { 0 };
	text_clean(&clean, text);
	array_reserve(table->cells, table->capacity, table->count + 1);
	table->cells[table->count++] =
	    (struct table_cell){ arena_string(&table->arena, clean.data), colour };
	buffer_free(&clean);
	free(text);
}

void table_cell(struct table *table, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	table_add(table, COLOUR_NONE, format, arguments);
	va_end(arguments);
}

void table_coloured(struct table *table, enum colour colour, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	table_add(table, colour, format, arguments);
	va_end(arguments);
}

void table_end_row(struct table *table)
{
	INVARIANT(table->columns > 0 && table->columns <= TABLE_COLUMNS_MAX);
	while (table->count % (size_t)table->columns != 0)
		table_cell(table, "%s", "");
}

/* Writes the text of a cell in `columns` columns; a cut text ends with a mark. Returns its width.
 */
static int print_cell(const struct table *table, const struct table_cell *cell, int width, FILE *to)
{
	int wants = text_width(cell->text);
	bool coloured = table->terminal.colours && cell->colour != COLOUR_NONE;
	if (coloured)
		fprintf(to, "\033[%dm", (int)cell->colour);
	if (wants <= width) {
		fputs(cell->text, to);
	} else {
		size_t size = text_fits(cell->text, width - 1);
		fprintf(to, "%.*s%s", (int)size, cell->text, table->terminal.pictures ? "…" : "~");
		char front[1024];
		snprintf(front, sizeof(front), "%.*s", (int)size, cell->text);
		wants = text_width(front) + 1;
	}
	if (coloured)
		fputs("\033[0m", to);
	return wants;
}

/* A width of -1 is a column that is left out. */
static void print_row(const struct table *table, const struct table_cell *cells, const int *width,
                      FILE *to)
{
	int last = table->columns - 1, spaces = 0;
	while (last > 0 && (*cells[last].text == '\0' || width[last] < 0))
		last--;
	for (int i = 0; i <= last; i++) {
		if (width[i] < 0)
			continue;
		int wants = text_width(cells[i].text);
		int padding = wants < width[i] ? width[i] - wants : 0;
		int before = table->right >> i & 1 ? padding : 0;
		fprintf(to, "%*s", spaces + before, "");
		int used = print_cell(table, &cells[i], width[i], to);
		spaces = width[i] - before - used + GAP;
	}
	fputc('\n', to);
}

static int total_width(const struct table *table, const int *width)
{
	int total = 0;
	for (int i = 0; i < table->columns; i++)
		if (width[i] >= 0)
			total += width[i] + (total > 0 ? GAP : 0);
	return total;
}

/* The column that can be cut and is the widest; -1: there is none. */
static int widest(const struct table *table, const int *width)
{
	int found = -1;
	for (int i = 0; i < table->columns; i++)
		if ((table->shrinks >> i & 1) && width[i] > TABLE_LEAST &&
		    (found < 0 || width[i] > width[found]))
			found = i;
	return found;
}

/* How wide it is if all that can be cut is as narrow as it should be: a column that may be
 * left out gives way before one that is always there is hard to read. */
static int least_width(const struct table *table, const int *width)
{
	int least[TABLE_COLUMNS_MAX];
	for (int i = 0; i < table->columns; i++) {
		int enough = (table->drops >> i & 1 ? 2 : 6) * TABLE_LEAST;
		bool cut = (table->shrinks >> i & 1) && width[i] > enough;
		least[i] = cut ? enough : width[i];
	}
	return total_width(table, least);
}

static void fit(const struct table *table, int *width)
{
	int most = table->terminal.columns;
	if (most <= 0)
		return;
	for (int i = table->columns - 1; i >= 0 && least_width(table, width) > most; i--)
		if (table->drops >> i & 1)
			width[i] = -1;
	int cut;
	while (total_width(table, width) > most && (cut = widest(table, width)) >= 0)
		width[cut]--;
	for (int i = table->columns - 1; i > 0 && total_width(table, width) > most; i--)
		width[i] = -1;
}

void table_print(const struct table *table, FILE *to)
{
	int width[TABLE_COLUMNS_MAX] = { 0 };
	size_t columns = (size_t)table->columns;
	INVARIANT(table->count % columns == 0);
	for (size_t i = 0; i < table->count; i++) {
		int wants = text_width(table->cells[i].text);
		if (wants > width[i % columns])
			width[i % columns] = wants;
	}
	fit(table, width);
	for (size_t i = 0; i < table->count; i += columns)
		print_row(table, table->cells + i, width, to);
}

void table_free(struct table *table)
{
	free(table->cells);
	arena_free(&table->arena);
	table->cells = NULL;
	table->count = table->capacity = 0;
}
