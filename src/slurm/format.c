/* format.c - the formats of squeue, sinfo and sacct: which columns, how wide, on which side */
#include "slurm/format.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/number_text.h"
#include "base/spelling.h"

enum { WIDTH_MOST = 1000 };

static struct slurm_piece *add_piece(struct slurm_format *format, struct error *error)
{
	if (format->count == SLURM_PIECES_MAX) {
		error_set(error, ERROR_INVALID, "a format has at most %d columns",
		          SLURM_PIECES_MAX / 2);
		return NULL;
	}
	struct slurm_piece *piece = &format->pieces[format->count++];
	*piece = (struct slurm_piece){ 0 };
	return piece;
}

static const struct slurm_column *by_letter(const struct slurm_column *columns, char letter)
{
	for (; columns->head; columns++)
		if (letter && columns->letter == letter)
			return columns;
	return NULL;
}

bool slurm_format_read(struct slurm_format *format, const struct slurm_column *columns,
                       const char *text, struct error *error)
{
	format->count = 0;
	while (*text) {
		struct slurm_piece *piece = add_piece(format, error);
		if (!piece)
			return false;
		if (*text != '%' || text[1] == '%') {
			size_t size = *text == '%' ? 1 : strcspn(text, "%");
			*piece = (struct slurm_piece){ .text = text, .text_size = size };
			text += *text == '%' ? 2 : size;
			continue;
		}
		struct text rest = text_of(text + 1);
		int64_t width = 0;
		if (rest.size > 0 && rest.data[0] == '.') {
			piece->right = true;
			rest.data++;
			rest.size--;
		}
		if (number_take(&rest, WIDTH_MOST, &width))
			piece->width = (int)width;
		piece->column = by_letter(columns, rest.size > 0 ? rest.data[0] : 0);
		if (!piece->column)
			return error_set(error, ERROR_INVALID,
			                 "invalid format: %%%c is not known here",
			                 rest.size > 0 ? rest.data[0] : '%');
		text = rest.data + 1;
	}
	return true;
}

static const struct slurm_column *by_name(const struct slurm_column *columns, const char *name,
                                          size_t size)
{
	for (; columns->head; columns++)
		if (columns->name && strlen(columns->name) == size &&
		    strncasecmp(columns->name, name, size) == 0)
			return columns;
	return NULL;
}

static bool refuse_name(const struct slurm_column *columns, const char *name, size_t size,
                        struct error *error)
{
	char word[40];
	snprintf(word, sizeof(word), "%.*s", (int)(size < 39 ? size : 39), name);
	struct spelling spelling = { .word = word };
	for (; columns->head; columns++)
		if (columns->name)
			spelling_consider(&spelling, columns->name);
	if (spelling.nearest)
		return error_set(error, ERROR_INVALID, "invalid field '%s'; did you mean %s?", word,
		                 spelling.nearest);
	return error_set(error, ERROR_INVALID, "invalid field '%s'", word);
}

bool slurm_format_read_names(struct slurm_format *format, const struct slurm_column *columns,
                             const char *text, struct error *error)
{
	format->count = 0;
	while (*text) {
		size_t size = strcspn(text, ","), length = strcspn(text, ",%");
		if (format->count > 0 && !format->separator) {
			struct slurm_piece *blank = add_piece(format, error);
			if (!blank)
				return false;
			*blank = (struct slurm_piece){ .text = " ", .text_size = 1 };
		}
		struct slurm_piece *piece = add_piece(format, error);
		if (!piece)
			return false;
		piece->column = by_name(columns, text, length);
		if (!piece->column)
			return refuse_name(columns, text, length, error);
		piece->right = piece->column->width > 0;
		piece->width = piece->right ? piece->column->width : -piece->column->width;
		if (length < size) {
			bool left = text[length + 1] == '-';
			int64_t width;
			struct text number = { text + length + 1 + left, size - length - 1 - left };
			if (!number_read(number, 1, WIDTH_MOST, &width))
				return error_set(error, ERROR_INVALID, "invalid width in '%.*s'",
				                 (int)size, text);
			piece->width = (int)width;
			piece->right = !left;
		}
		text += size + (text[size] == ',');
	}
	return true;
}

/* Columns of a terminal, counted as characters. */
static size_t columns_of(const struct buffer *value)
{
	size_t count = 0;
	for (size_t i = 0; i < value->size; i++)
		count += (value->data[i] & 0xc0) != 0x80;
	return count;
}

static void cut(struct buffer *value, size_t columns, bool plus)
{
	size_t at = 0, seen = 0;
	while (at < value->size && (seen < columns || (value->data[at] & 0xc0) == 0x80)) {
		seen += (value->data[at] & 0xc0) != 0x80;
		at++;
		if (seen == columns && (at == value->size || (value->data[at] & 0xc0) != 0x80))
			break;
	}
	value->size = at;
	if (plus && at > 0) {
		do
			value->size--;
		while (value->size > 0 && (value->data[value->size] & 0xc0) == 0x80);
		buffer_text(value, "+");
	}
}

static void print_padded(const struct slurm_format *format, const struct slurm_piece *piece,
                         struct buffer *value, struct buffer *to)
{
	size_t columns = columns_of(value), width = (size_t)piece->width;
	if (format->separator || width == 0) {
		buffer_bytes(to, value->data, value->size);
		return;
	}
	if (columns > width) {
		cut(value, width, format->sacct);
		columns = width;
	}
	if (piece->right)
		buffer_print(to, "%*s", (int)(width - columns), "");
	buffer_bytes(to, value->data, value->size);
	if (!piece->right)
		buffer_print(to, "%*s", (int)(width - columns), "");
}

enum what { HEADS, LINES, VALUES };

static void print(const struct slurm_format *format, struct buffer *to, enum what what,
                  const void *row)
{
	struct buffer value = { 0 };
	for (size_t i = 0; i < format->count; i++) {
		const struct slurm_piece *piece = &format->pieces[i];
		if (!piece->column) {
			buffer_bytes(to, piece->text, piece->text_size);
			continue;
		}
		if (format->separator && i > 0)
			buffer_bytes(to, &format->separator, 1);
		buffer_clear(&value);
		if (what == VALUES)
			piece->column->print(&value, row);
		else if (what == HEADS)
			buffer_text(&value, format->sacct && piece->column->name
			                        ? piece->column->name
			                        : piece->column->head);
		else
			for (int width = 0; width < piece->width; width++)
				buffer_text(&value, "-");
		print_padded(format, piece, &value, to);
	}
	if (format->separator && format->trailing)
		buffer_bytes(to, &format->separator, 1);
	buffer_text(to, "\n");
	buffer_free(&value);
}

void slurm_format_print_heads(const struct slurm_format *format, struct buffer *to)
{
	print(format, to, HEADS, NULL);
}

void slurm_format_print_line(const struct slurm_format *format, struct buffer *to)
{
	if (!format->separator)
		print(format, to, LINES, NULL);
}

void slurm_format_print(const struct slurm_format *format, struct buffer *to, const void *row)
{
	print(format, to, VALUES, row);
}
