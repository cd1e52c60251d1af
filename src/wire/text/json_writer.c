/* json_writer.c - JSON that is only ever appended to */
#include "wire/text/json_writer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/calendar.h"
#include "base/error.h"
#include "base/memory.h"
#include "wire/text/json_plain.h"
#include "wire/text/utf8.h"

static char *reserve(struct buffer *buffer, size_t size)
{
	array_reserve(buffer->data, buffer->capacity, buffer->size + size);
	return buffer->data + buffer->size;
}

static void put_byte(struct buffer *buffer, char byte)
{
	*reserve(buffer, 1) = byte;
	buffer->size++;
}

/* What follows the backslash, or 0 where the byte stands for itself; 'u' for \u00XX. */
static char escape_of(unsigned char byte)
{
	switch (byte) {
	case '"':
		return '"';
	case '\\':
		return '\\';
	case '\b':
		return 'b';
	case '\f':
		return 'f';
	case '\n':
		return 'n';
	case '\r':
		return 'r';
	case '\t':
		return 't';
	default:
		return byte < ' ' || byte == 0x7f ? 'u' : 0;
	}
}

/* Valid UTF-8. */
static void escape_valid(struct buffer *buffer, struct text value)
{
	static const char digits[] = "0123456789abcdef";
	size_t plain = 0;
	for (size_t i = 0; i < value.size; i++) {
		unsigned char byte = (unsigned char)value.data[i];
		char escape = byte >= 0x80 ? 0 : escape_of(byte);
		if (escape == 0)
			continue;
		buffer_bytes(buffer, value.data + plain, i - plain);
		plain = i + 1;
		char text[6] = { '\\', escape, '0', '0', digits[byte >> 4], digits[byte & 15] };
		buffer_bytes(buffer, text, escape == 'u' ? 6 : 2);
	}
	buffer_bytes(buffer, value.data + plain, value.size - plain);
}

void json_escape(struct buffer *buffer, struct text value)
{
	if (json_plain_prefix(value.data, value.size) == value.size) {
		buffer_bytes(buffer, value.data, value.size);
		return;
	}
	while (value.size > 0) {
		size_t valid = utf8_valid_prefix(value);
		escape_valid(buffer, (struct text){ value.data, valid });
		value = text_from(value, valid);
		if (value.size > 0) {
			buffer_bytes(buffer, "\xef\xbf\xbd", 3);
			value = text_from(value, 1);
		}
	}
}

/* Bytes that stand for themselves, in quotes, and one byte behind them unless it is 0. */
static void put_plain(struct buffer *buffer, struct text value, char behind)
{
	char *at = reserve(buffer, value.size + 3);
	*at++ = '"';
	memcpy(at, value.data, value.size);
	at += value.size;
	*at++ = '"';
	*at = behind;
	buffer->size += value.size + 2 + (behind != 0);
}

static void put_quoted(struct buffer *buffer, struct text value)
{
	if (value.size > 0 && json_plain_prefix(value.data, value.size) == value.size) {
		put_plain(buffer, value, 0);
		return;
	}
	put_byte(buffer, '"');
	json_escape(buffer, value);
	put_byte(buffer, '"');
}

struct json_writer json_writer_to(struct buffer *buffer)
{
	return (struct json_writer){ .buffer = buffer };
}

static bool in_array(const struct json_writer *json)
{
	return json->depth > 0 && (json->is_array >> (json->depth - 1) & 1);
}

/* Comma and key before a value. */
static void begin_value(struct json_writer *json, const char *key)
{
	if (json->has_key) {
		INVARIANT(!key);
		json->has_key = false;
		return;
	}
	INVARIANT((key != NULL) == (json->depth > 0 && !in_array(json)));
	INVARIANT(json->depth > 0 || !json->has_items);
	if (json->has_items)
		put_byte(json->buffer, ',');
	json->has_items = true;
	if (key) {
		put_quoted(json->buffer, text_of(key));
		put_byte(json->buffer, ':');
	}
}

void json_put_key(struct json_writer *json, struct text key)
{
	INVARIANT(json->depth > 0 && !in_array(json) && !json->has_key);
	if (json->has_items)
		put_byte(json->buffer, ',');
	put_plain(json->buffer, key, ':');
	json->has_items = json->has_key = true;
}

static void open_level(struct json_writer *json, const char *key, bool is_array)
{
	begin_value(json, key);
	INVARIANT(json->depth < JSON_WRITER_DEPTH_MAX);
	put_byte(json->buffer, is_array ? '[' : '{');
	uint64_t bit = UINT64_C(1) << json->depth;
	json->is_array = is_array ? json->is_array | bit : json->is_array & ~bit;
	json->depth++;
	json->has_items = false;
}

void json_open_object(struct json_writer *json, const char *key)
{
	open_level(json, key, false);
}

void json_open_array(struct json_writer *json, const char *key)
{
	open_level(json, key, true);
}

void json_close(struct json_writer *json)
{
	INVARIANT(json->depth > 0 && !json->has_key);
	put_byte(json->buffer, in_array(json) ? ']' : '}');
	json->depth--;
	json->has_items = true;
}

void json_put_text(struct json_writer *json, const char *key, struct text value)
{
	begin_value(json, key);
	put_quoted(json->buffer, value);
}

void json_put_string(struct json_writer *json, const char *key, const char *value)
{
	if (value)
		json_put_text(json, key, text_of(value));
	else
		json_put_null(json, key);
}

/* Decimal digits of a number, to the end of the buffer. */
static void put_digits(struct buffer *buffer, uint64_t value)
{
	char digits[20];
	size_t at = sizeof(digits);
	do {
		digits[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value > 0);
	buffer_bytes(buffer, digits + at, sizeof(digits) - at);
}

static uint64_t magnitude(int64_t value)
{
	return value < 0 ? UINT64_C(0) - (uint64_t)value : (uint64_t)value;
}

void json_put_integer(struct json_writer *json, const char *key, int64_t value)
{
	begin_value(json, key);
	if (value < 0)
		put_byte(json->buffer, '-');
	put_digits(json->buffer, magnitude(value));
}

void json_put_unsigned(struct json_writer *json, const char *key, uint64_t value)
{
	begin_value(json, key);
	put_digits(json->buffer, value);
}

void json_put_decimal(struct json_writer *json, const char *key, int64_t value, int digits)
{
	INVARIANT(digits >= 0 && digits <= 18);
	begin_value(json, key);
	uint64_t unit = 1;
	for (int i = 0; i < digits; i++)
		unit *= 10;
	uint64_t size = magnitude(value), rest = size % unit;
	if (value < 0)
		put_byte(json->buffer, '-');
	put_digits(json->buffer, size / unit);
	if (rest == 0)
		return;
	put_byte(json->buffer, '.');
	while (rest > 0) {
		unit /= 10;
		put_byte(json->buffer, (char)('0' + rest / unit));
		rest %= unit;
	}
}

void json_put_real(struct json_writer *json, const char *key, double value)
{
	if (!isfinite(value)) {
		json_put_null(json, key);
		return;
	}
	begin_value(json, key);
	char text[32];
	int size = 0;
	/* 15 digits are always what was meant, 17 always enough. */
	for (int digits = 15; digits <= 17; digits++) {
		size = snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	buffer_bytes(json->buffer, text, (size_t)size);
}

void json_put_flag(struct json_writer *json, const char *key, bool value)
{
	begin_value(json, key);
	if (value)
		buffer_bytes(json->buffer, "true", 4);
	else
		buffer_bytes(json->buffer, "false", 5);
}

void json_put_null(struct json_writer *json, const char *key)
{
	begin_value(json, key);
	buffer_bytes(json->buffer, "null", 4);
}

void json_put_time(struct json_writer *json, const char *key, int64_t unix_us)
{
	char text[CALENDAR_TEXT_MAX + 2] = "\"";
	size_t size = calendar_write(unix_us, unix_us > 0 && unix_us % 1000 ? 6 : 3, text + 1);

	begin_value(json, key);
	text[size + 1] = '"';
	buffer_bytes(json->buffer, text, size + 2);
}

void json_put_raw(struct json_writer *json, const char *key, struct text value)
{
	begin_value(json, key);
	buffer_bytes(json->buffer, value.data, value.size);
}
