/* cell_fuzz.c - whatever a row holds, it is refused or comes back as it was */
#include <stdlib.h>
#include <string.h>

#include "store/cell.h"
#include "store/rowtext.h"

/* Writes the record in COPY's form. */
static void write_row(const struct record_type *type, const void *record, struct buffer *row)
{
	struct buffer scratch = { 0 };
	for (int i = 0; i < type->field_count; i++) {
		if (i > 0)
			buffer_bytes(row, "\t", 1);
		copy_put(row, &type->fields[i], cell_of(&type->fields[i], record, &scratch));
	}
	buffer_free(&scratch);
}

static void *read_row(const struct record_type *type, char *row, size_t size, struct arena *arena)
{
	const struct record_field *fields[TABLE_COLUMNS_MAX];
	struct cell cells[TABLE_COLUMNS_MAX];
	struct error error;
	char *record = arena_alloc(arena, type->size);
	memset(record, 0, type->size);
	for (int i = 0; i < type->field_count; i++)
		fields[i] = &type->fields[i];
	if (!copy_split(row, size, fields, type->field_count, cells))
		return NULL;
	for (int i = 0; i < type->field_count; i++)
		if (!cell_read(fields[i], record, cells[i], arena, &error))
			return NULL;
	return record;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena arena = { 0 };
	struct buffer row = { 0 };
	if (size == 0)
		return 0;
	const struct record_type *type = record_type((enum record_kind)(data[0] % RECORD_KINDS));
	char *copy = malloc(size);
	memcpy(copy, data + 1, size - 1);
	void *record = read_row(type, copy, size - 1, &arena);
	if (record) {
		write_row(type, record, &row);
		void *again = read_row(type, row.data, row.size, &arena);
		if (!again || !fields_equal(type, record, again))
			abort();
	}
	free(copy);
	buffer_free(&row);
	arena_free(&arena);
	return 0;
}
