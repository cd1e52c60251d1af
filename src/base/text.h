/* text.h - a piece of text that belongs to someone else */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

/* `data` is NULL where there is nothing at all, as opposed to a text that is empty. */
struct text {
	const char *data;
	size_t size;
};

#define TEXT(literal) ((struct text){ (literal), sizeof(literal) - 1 })

static inline struct text text_of(const char *string)
{
	return (struct text){ string, string ? strlen(string) : 0 };
}
/* Like memcmp() == 0, without a call where at most 16 bytes are compared: of 8 and more, the first
 * 8 and the last 8, which may overlap. */
static inline bool bytes_equal(const char *a, const char *b, size_t size)
{
	uint64_t first[2], last[2];

	if (size > 16)
		return memcmp(a, b, size) == 0;
	if (size >= 8) {
		memcpy(&first[0], a, 8);
		memcpy(&first[1], b, 8);
		memcpy(&last[0], a + size - 8, 8);
		memcpy(&last[1], b + size - 8, 8);
		return first[0] == first[1] && last[0] == last[1];
	}
	for (size_t i = 0; i < size; i++)
		if (a[i] != b[i])
			return false;
	return true;
}
static inline bool text_equal(struct text a, struct text b)
{
	return a.size == b.size && bytes_equal(a.data, b.data, a.size);
}
static inline bool text_is(struct text text, const char *string)
{
	return text_equal(text, text_of(string));
}
static inline bool text_is_any_case(struct text text, const char *string)
{
	return text.size == strlen(string) && strncasecmp(text.data, string, text.size) == 0;
}
static inline bool text_starts(struct text text, const char *prefix)
{
	size_t size = strlen(prefix);
	return text.size >= size && memcmp(text.data, prefix, size) == 0;
}
static inline struct text text_from(struct text text, size_t start)
{
	return (struct text){ text.data + start, text.size - start };
}
/* True if UTF-8 text has a control character (U+0000 to 1F, 7F to 9F): one that a terminal
 * would obey and a line of a log cannot hold. */
static inline bool text_has_control(struct text text)
{
	for (size_t i = 0; i < text.size; i++) {
		unsigned char byte = (unsigned char)text.data[i];
		if (byte < ' ' || byte == 0x7f ||
		    (byte == 0xc2 && i + 1 < text.size && (unsigned char)text.data[i + 1] < 0xa0))
			return true;
	}
	return false;
}
/* Without the spaces and tabs at both ends. */
static inline struct text text_trim(struct text text)
{
	while (text.size > 0 && (*text.data == ' ' || *text.data == '\t'))
		text = text_from(text, 1);
	while (text.size > 0 &&
	       (text.data[text.size - 1] == ' ' || text.data[text.size - 1] == '\t'))
		text.size--;
	return text;
}
/* Takes the first item, trimmed, off a list such as 'gzip, br'; false at its end. */
static inline bool text_next(struct text *list, char separator, struct text *item)
{
	if (list->size == 0)
		return false;
	const char *end = memchr(list->data, separator, list->size);
	size_t size = end ? (size_t)(end - list->data) : list->size;
	*item = text_trim((struct text){ list->data, size });
	*list = text_from(*list, end ? size + 1 : size);
	return true;
}

#endif
