/* base64.c - bytes as text: base64url as tokens have it, base64 as mail does */
#include "api/text/base64.h"

#define DIGITS_AND_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

static void write_with(const char *alphabet, struct buffer *text, const uint8_t *at, size_t size)
{
	char four[4];

	for (; size >= 3; at += 3, size -= 3) {
		four[0] = alphabet[at[0] >> 2];
		four[1] = alphabet[(at[0] & 3) << 4 | at[1] >> 4];
		four[2] = alphabet[(at[1] & 15) << 2 | at[2] >> 6];
		four[3] = alphabet[at[2] & 63];
		buffer_bytes(text, four, 4);
	}
	if (size == 0)
		return;
	uint8_t second = size == 2 ? at[1] : 0;
	four[0] = alphabet[at[0] >> 2];
	four[1] = alphabet[(at[0] & 3) << 4 | second >> 4];
	four[2] = alphabet[(second & 15) << 2];
	buffer_bytes(text, four, size + 1);
}

void base64url_write(struct buffer *text, const void *data, size_t size)
{
	write_with(DIGITS_AND_LETTERS "-_", text, data, size);
}

void base64_write(struct buffer *text, const void *data, size_t size)
{
	write_with(DIGITS_AND_LETTERS "+/", text, data, size);
	if (size % 3 > 0)
		buffer_bytes(text, "==", 3 - size % 3);
}

/* The six bits of a character, or -1. */
static int value_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == '-')
		return 62;
	return c == '_' ? 63 : -1;
}

bool base64url_read(struct text text, struct buffer *data)
{
	uint32_t bits = 0;
	int count = 0;

	for (size_t i = 0; i < text.size; i++) {
		int value = value_of(text.data[i]);
		if (value < 0)
			return false;
		bits = bits << 6 | (uint32_t)value;
		count += 6;
		if (count >= 8) {
			count -= 8;
			uint8_t byte = (uint8_t)(bits >> count);
			buffer_bytes(data, &byte, 1);
			bits &= (1U << count) - 1;
		}
	}
	return count < 6 && bits == 0;
}
