/* table.c - rows of text whose columns line up */
#include "cli/table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

void table_cell(struct table *table, const char *format, ...)
{
	char text[256];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	array_reserve(table->cells, table->capacity, table->count + 1);
	table->cells[table->count++] = arena_string(&table->arena, text);
}

void table_end_row(struct table *table)
{
	INVARIANT(table->columns > 0 && table->columns <= TABLE_COLUMNS_MAX);
	while (table->count % (size_t)table->columns != 0)
		table_cell(table, "%s", "");
}

static void print_row(const struct table *table, const char *const *cells, const int *width,
                      FILE *to)
{
	int last = table->columns - 1;
	int spaces = 0;
	while (last > 0 && *cells[last] == '\0')
		last--;
	for (int i = 0; i <= last; i++) {
		int padding = width[i] - (int)strlen(cells[i]);
		int before = table->right >> i & 1 ? padding : 0;
		fprintf(to, "%*s%s", spaces + before, "", cells[i]);
		spaces = padding - before + 2;
	}
	fputc('\n', to);
}

void table_print(const struct table *table, FILE *to)
{
	int width[TABLE_COLUMNS_MAX] = { 0 };
	size_t columns = (size_t)table->columns;
	INVARIANT(table->count % columns == 0);
	for (size_t i = 0; i < table->count; i++) {
		int length = (int)strlen(table->cells[i]);
		if (length > width[i % columns])
			width[i % columns] = length;
	}
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
