/* cell.c - fields of records as the values of a database's columns, and back */
#include "store/cell.h"

#include <string.h>

#include "base/number_text.h"

/* U+E000: a character for private use, which no text of ours begins with. */
static const char escape[] = "\xee\x80\x80";
#define ESCAPE_SIZE (sizeof(escape) - 1)

void number_put(struct buffer *buffer, int64_t number)
{
	char digits[24];
	char *end = digits + sizeof(digits), *at = end;
	uint64_t left = number < 0 ? -(uint64_t)number : (uint64_t)number;
	do {
		*--at = (char)('0' + left % 10);
		left /= 10;
	} while (left);
	if (number < 0)
		*--at = '-';
	buffer_bytes(buffer, at, (size_t)(end - at));
}

static struct cell cell_text(const char *text, size_t length)
{
	return (struct cell){ .is_text = true, .text = text, .length = length };
}

static struct cell cell_rows(const struct rows *rows, int width, struct buffer *scratch)
{
	if (rows->count == 0)
		return cell_text("[]", 2);
	buffer_clear(scratch);
	for (int64_t i = 0; i < rows->count; i++) {
		buffer_bytes(scratch, i == 0 ? "[" : ",", 1);
		for (int j = 0; j < width; j++) {
			if (width > 1)
				buffer_bytes(scratch, j == 0 ? "[" : ",", 1);
			number_put(scratch, rows->at[i * width + j]);
		}
		if (width > 1)
			buffer_bytes(scratch, "]", 1);
	}
	buffer_text(scratch, "]");
	return cell_text(scratch->data, scratch->size);
}

/* How many bytes a character has that begins with this byte; 0: none does. */
static int character_size(unsigned char byte)
{
	if (byte < 0x80)
		return 1;
	if (byte >= 0xc2 && byte < 0xe0)
		return 2;
	if (byte >= 0xe0 && byte < 0xf0)
		return 3;
	return byte >= 0xf0 && byte < 0xf5 ? 4 : 0;
}

/* True if the second byte makes it a character that there is: not a surrogate,
 * not beyond the last, not longer than needed. */
static bool second_suits(unsigned char first, unsigned char second)
{
	switch (first) {
	case 0xe0:
		return second >= 0xa0;
	case 0xed:
		return second < 0xa0;
	case 0xf0:
		return second >= 0x90;
	case 0xf4:
		return second < 0x90;
	default:
		return true;
	}
}

static bool is_utf8(const char *text, size_t length)
{
	size_t i = 0;
	while (i < length) {
		unsigned char first = (unsigned char)text[i];
		int size = character_size(first);
		if (size == 0 || length - i < (size_t)size)
			return false;
		for (int j = 1; j < size; j++) {
			unsigned char byte = (unsigned char)text[i + (size_t)j];
			if ((byte & 0xc0) != 0x80 || (j == 1 && !second_suits(first, byte)))
				return false;
		}
		i += (size_t)size;
	}
	return true;
}

static bool is_ascii(const char *text, size_t length)
{
	unsigned char all = 0;
	for (size_t i = 0; i < length; i++)
		all |= (unsigned char)text[i];
	return all < 0x80;
}

static struct cell cell_string(const char *text, struct buffer *scratch)
{
	static const char hex[] = "0123456789abcdef";
	size_t length = text ? strlen(text) : 0;
	if (length == 0)
		return cell_text("", 0);
	bool plain = is_ascii(text, length) ||
	             (is_utf8(text, length) &&
	              (length < ESCAPE_SIZE || memcmp(text, escape, ESCAPE_SIZE) != 0));
	if (plain)
		return cell_text(text, length);
	buffer_clear(scratch);
	buffer_bytes(scratch, escape, ESCAPE_SIZE);
	for (size_t i = 0; i < length; i++) {
		unsigned char byte = (unsigned char)text[i];
		char digits[2] = { hex[byte >> 4], hex[byte & 15] };
		buffer_bytes(scratch, digits, 2);
	}
	buffer_text(scratch, "");
	return cell_text(scratch->data, scratch->size);
}

struct cell cell_of(const struct record_field *field, const void *record, struct buffer *scratch)
{
	const void *at = (const char *)record + field->offset;
	if (field->kind == FIELD_TEXT)
		return cell_string(*(const char *const *)at, scratch);
	if (field->kind == FIELD_ROWS)
		return cell_rows(at, field->width, scratch);
	int64_t number = field_number(field, record);
	if (!field->words)
		return (struct cell){ .number = number };
	const char *word = word_of(field->words, number);
	if (word)
		return cell_text(word, strlen(word));
	buffer_clear(scratch);
	number_put(scratch, number);
	buffer_text(scratch, "");
	return cell_text(scratch->data, scratch->size);
}

static bool cell_refuse(const struct record_field *field, struct cell cell, struct error *error)
{
	if (cell.is_text)
		return error_set(error, ERROR_CORRUPT, "the column %s is stored as '%.*s'",
		                 field->name, (int)(cell.length < 60 ? cell.length : 60),
		                 cell.text);
	return error_set(error, ERROR_CORRUPT, "the column %s is stored as %lld", field->name,
	                 (long long)cell.number);
}

static int hex_value(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

static bool read_escaped(struct cell cell, char *copy)
{
	size_t bytes = (cell.length - ESCAPE_SIZE) / 2;
	if ((cell.length - ESCAPE_SIZE) % 2 != 0)
		return false;
	for (size_t i = 0; i < bytes; i++) {
		int high = hex_value(cell.text[ESCAPE_SIZE + 2 * i]);
		int low = hex_value(cell.text[ESCAPE_SIZE + 2 * i + 1]);
		if (high < 0 || low < 0 || high + low == 0)
			return false;
		copy[i] = (char)(high * 16 + low);
	}
	copy[bytes] = '\0';
	return true;
}

static bool read_string(const struct record_field *field, const char **text, struct cell cell,
                        struct arena *arena, struct error *error)
{
	if (!cell.is_text || memchr(cell.text, 0, cell.length))
		return cell_refuse(field, cell, error);
	*text = "";
	if (cell.length == 0)
		return true;
	char *copy = arena_alloc(arena, cell.length + 1);
	*text = copy;
	if (cell.length >= ESCAPE_SIZE && memcmp(cell.text, escape, ESCAPE_SIZE) == 0)
		return read_escaped(cell, copy) || cell_refuse(field, cell, error);
	memcpy(copy, cell.text, cell.length);
	copy[cell.length] = '\0';
	return true;
}

/* Where reading JSON rows is. */
struct scanner {
	const char *at, *end;
};

static bool scan_byte(struct scanner *scanner, char byte)
{
	if (scanner->at == scanner->end || *scanner->at != byte)
		return false;
	scanner->at++;
	return true;
}

static bool scan_number(struct scanner *scanner, int64_t *number)
{
	const char *begin = scanner->at;
	while (scanner->at < scanner->end &&
	       (*scanner->at == '-' || (*scanner->at >= '0' && *scanner->at <= '9')))
		scanner->at++;
	return number_read((struct text){ begin, (size_t)(scanner->at - begin) }, INT64_MIN,
	                   INT64_MAX, number);
}

static bool scan_row(struct scanner *scanner, int width, int64_t *row)
{
	for (int j = 0; j < width; j++) {
		if (width > 1 && !scan_byte(scanner, j == 0 ? '[' : ','))
			return false;
		if (!scan_number(scanner, &row[j]))
			return false;
	}
	return width == 1 || scan_byte(scanner, ']');
}

static bool read_rows(const struct record_field *field, struct rows *rows, struct cell cell,
                      struct arena *arena, struct error *error)
{
	struct scanner scanner = { cell.text, cell.text + cell.length };
	size_t width = (size_t)field->width;

	*rows = (struct rows){ 0 };
	if (!cell.is_text || !scan_byte(&scanner, '['))
		return cell_refuse(field, cell, error);
	if (scan_byte(&scanner, ']'))
		return scanner.at == scanner.end || cell_refuse(field, cell, error);
	/* Each number takes a digit and what follows it, so there are no more than these. */
	int64_t *at = arena_alloc(arena, (cell.length / 2 + width) * sizeof(*at));
	rows->at = at;
	do {
		if (!scan_row(&scanner, (int)width, at + (size_t)rows->count * width))
			return cell_refuse(field, cell, error);
		rows->count++;
	} while (scan_byte(&scanner, ','));
	if (!scan_byte(&scanner, ']') || scanner.at != scanner.end)
		return cell_refuse(field, cell, error);
	return true;
}

static bool cell_read_word(const struct record_field *field, struct cell cell, int64_t *number)
{
	for (int i = 0; i < field->words->count; i++) {
		const char *word = field->words->at[i];
		if (strlen(word) == cell.length && memcmp(word, cell.text, cell.length) == 0) {
			*number = i;
			return true;
		}
	}
	return number_read((struct text){ cell.text, cell.length }, INT64_MIN, INT64_MAX, number);
}

bool cell_read(const struct record_field *field, void *record, struct cell cell,
               struct arena *arena, struct error *error)
{
	void *at = (char *)record + field->offset;
	int64_t number = cell.number;

	if (field->kind == FIELD_TEXT)
		return read_string(field, at, cell, arena, error);
	if (field->kind == FIELD_ROWS)
		return read_rows(field, at, cell, arena, error);
	if (cell.is_text != (field->words != NULL) ||
	    (cell.is_text && !cell_read_word(field, cell, &number)))
		return cell_refuse(field, cell, error);
	if (field->kind == FIELD_INT64) {
		*(int64_t *)at = number;
	} else if (field->kind == FIELD_INT32) {
		if (number < INT32_MIN || number > INT32_MAX)
			return cell_refuse(field, cell, error);
		*(int32_t *)at = (int32_t)number;
	} else {
		if (number != 0 && number != 1)
			return cell_refuse(field, cell, error);
		*(bool *)at = number == 1;
	}
	return true;
}
