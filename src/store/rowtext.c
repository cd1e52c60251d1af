/* rowtext.c - rows in the text forms of PostgreSQL: for COPY, and as arrays */
#include "store/rowtext.h"

#include <string.h>

#include "base/number_text.h"

static void put_plain(struct buffer *buffer, const struct record_field *field, struct cell cell)
{
	if (field->kind == FIELD_FLAG)
		buffer_bytes(buffer, cell.number ? "t" : "f", 1);
	else
		number_put(buffer, cell.number);
}

/* Appends a text with a backslash before each of the bytes that need one, which
 * are written as `shown`. */
static void put_escaped(struct buffer *buffer, struct cell cell, const char *special,
                        const char *shown)
{
	size_t begin = 0;
	for (size_t i = 0; i < cell.length; i++) {
		const char *found = strchr(special, cell.text[i]);
		if (!found)
			continue;
		char escaped[2] = { '\\', shown[found - special] };
		buffer_bytes(buffer, cell.text + begin, i - begin);
		buffer_bytes(buffer, escaped, 2);
		begin = i + 1;
	}
	buffer_bytes(buffer, cell.text + begin, cell.length - begin);
}

void copy_put(struct buffer *rows, const struct record_field *field, struct cell cell)
{
	if (cell.is_text)
		put_escaped(rows, cell, "\\\t\n\r\b\f\v", "\\tnrbfv");
	else
		put_plain(rows, field, cell);
}

void array_put(struct buffer *array, const struct record_field *field, struct cell cell)
{
	buffer_bytes(array, array->size == 0 ? "{" : ",", 1);
	if (!cell.is_text) {
		put_plain(array, field, cell);
		return;
	}
	buffer_bytes(array, "\"", 1);
	put_escaped(array, cell, "\\\"", "\\\"");
	buffer_bytes(array, "\"", 1);
}

/* Undoes the escapes of a text in place; false for \N, a NULL. */
static bool unescape(char *text, size_t *length)
{
	static const char shown[] = "tnrbfv", special[] = "\t\n\r\b\f\v";
	size_t to = 0;
	if (!memchr(text, '\\', *length))
		return true;
	for (size_t i = 0; i < *length; i++) {
		if (text[i] != '\\' || i + 1 == *length) {
			text[to++] = text[i];
			continue;
		}
		char byte = text[++i];
		if (byte == 'N')
			return false;
		const char *found = strchr(shown, byte);
		text[to++] = found && byte ? special[found - shown] : byte;
	}
	*length = to;
	return true;
}

static bool read_cell(const struct record_field *field, char *text, size_t length,
                      struct cell *cell)
{
	bool is_text = field->kind == FIELD_TEXT || field->kind == FIELD_ROWS || field->words;
	*cell = (struct cell){ .is_text = is_text };
	if (is_text) {
		if (!unescape(text, &length))
			return false;
		cell->text = text;
		cell->length = length;
		return true;
	}
	if (field->kind == FIELD_FLAG) {
		cell->number = length == 1 && text[0] == 't';
		return length == 1 && (text[0] == 't' || text[0] == 'f');
	}
	return number_read((struct text){ text, length }, INT64_MIN, INT64_MAX, &cell->number);
}

bool copy_split(char *row, size_t size, const struct record_field *const *fields, int count,
                struct cell *cells)
{
	char *end = row + size;
	for (int i = 0; i < count; i++) {
		char *tab = memchr(row, '\t', (size_t)(end - row));
		bool last = i + 1 == count;
		if (last != (tab == NULL))
			return false;
		char *stop = tab ? tab : end;
		if (!read_cell(fields[i], row, (size_t)(stop - row), &cells[i]))
			return false;
		row = stop + 1;
	}
	return true;
}
