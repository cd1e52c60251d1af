/* text_width.c - how wide text is on a terminal, and what of it fits */
#include "cli/text/text_width.h"

#include <stdbool.h>
#include <stdint.h>

/* Takes one character off the front: its size in bytes. What is not UTF-8 is one byte, and
 * then `*character` is UINT32_MAX. */
static size_t text_width_take(const char *text, uint32_t *character)
{
	const unsigned char *at = (const unsigned char *)text;
	size_t size = at[0] < 0x80 ? 1 : at[0] < 0xc2 ? 0 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
	*character = UINT32_MAX;
	if (size == 0 || at[0] > 0xf4)
		return 1;
	uint32_t value = size == 1 ? at[0] : at[0] & (0x7fU >> size);
	for (size_t i = 1; i < size; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 1;
		value = value << 6 | (at[i] & 0x3f);
	}
	bool overlong = (size == 3 && value < 0x800) || (size == 4 && value < 0x10000);
	if (overlong || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff))
		return 1;
	*character = value;
	return size;
}

struct range {
	uint32_t first, last;
};

static bool text_width_is_within(const struct range *ranges, size_t count, uint32_t character)
{
	for (size_t i = 0; i < count; i++)
		if (character >= ranges[i].first && character <= ranges[i].last)
			return true;
	return false;
}

/* Marks that are written over what is before them, and East Asian letters and pictures that
 * take two columns: the large ranges, which is what names are made of. */
static int width_of(uint32_t character)
{
	static const struct range marks[] = {
		{ 0x300, 0x36f },   { 0x200b, 0x200f }, { 0x202a, 0x202e }, { 0x2060, 0x2069 },
		{ 0x20d0, 0x20ff }, { 0xfe00, 0xfe0f }, { 0xfe20, 0xfe2f }, { 0xfeff, 0xfeff },
	};
	static const struct range wide[] = {
		{ 0x1100, 0x115f },   { 0x2e80, 0xa4cf },   { 0xac00, 0xd7a3 },
		{ 0xf900, 0xfaff },   { 0xfe30, 0xfe6f },   { 0xff00, 0xff60 },
		{ 0xffe0, 0xffe6 },   { 0x1f300, 0x1f64f }, { 0x1f680, 0x1f6ff },
		{ 0x1f900, 0x1f9ff }, { 0x20000, 0x3fffd },
	};
	if (character < 0x300 || character == UINT32_MAX)
		return 1;
	if (text_width_is_within(marks, sizeof(marks) / sizeof(marks[0]), character))
		return 0;
	return text_width_is_within(wide, sizeof(wide) / sizeof(wide[0]), character) ? 2 : 1;
}

size_t text_fits(const char *text, int columns)
{
	size_t size = 0;
	while (text[size]) {
		uint32_t character;
		size_t bytes = text_width_take(text + size, &character);
		columns -= width_of(character);
		if (columns < 0)
			break;
		size += bytes;
	}
	return size;
}

int text_width(const char *text)
{
	int width = 0;
	while (*text) {
		uint32_t character;
		text += text_width_take(text, &character);
		width += width_of(character);
	}
	return width;
}

/* C0 and C1 controls, delete, and what turns the direction of writing. */
static bool is_command(uint32_t character)
{
	return character < 0x20 || (character >= 0x7f && character < 0xa0) ||
	       (character >= 0x200e && character <= 0x200f) ||
	       (character >= 0x2028 && character <= 0x202e) ||
	       (character >= 0x2066 && character <= 0x2069) || character == UINT32_MAX;
}

void text_clean(struct buffer *to, const char *text)
{
	while (*text) {
		uint32_t character;
		size_t bytes = text_width_take(text, &character);
		if (*text == '\n' || *text == '\t')
			buffer_text(to, " ");
		else if (is_command(character))
			buffer_text(to, "?");
		else
			buffer_bytes(to, text, bytes);
		text += bytes;
	}
	buffer_text(to, "");
}
