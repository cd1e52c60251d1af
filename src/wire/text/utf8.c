/* utf8.c - whether bytes are UTF-8 */
#include "wire/text/utf8.h"

#include <stdint.h>

/* The size of the character that starts at `at`, 0 if it is none. */
static size_t character_size(const unsigned char *at, size_t left)
{
	unsigned char first = at[0];
	/* The second byte has a range of its own after some first ones: that is what rules
	 * out overlong forms, surrogates and what is too large. */
	unsigned char least = 0x80, most = 0xbf;
	size_t size;
	if (first < 0x80)
		return 1;
	if (first >= 0xc2 && first <= 0xdf) {
		size = 2;
	} else if (first >= 0xe0 && first <= 0xef) {
		size = 3;
		least = first == 0xe0 ? 0xa0 : least;
		most = first == 0xed ? 0x9f : most;
	} else if (first >= 0xf0 && first <= 0xf4) {
		size = 4;
		least = first == 0xf0 ? 0x90 : least;
		most = first == 0xf4 ? 0x8f : most;
	} else {
		return 0;
	}
	if (left < size || at[1] < least || at[1] > most)
		return 0;
	for (size_t i = 2; i < size; i++)
		if (at[i] < 0x80 || at[i] > 0xbf)
			return 0;
	return size;
}

size_t utf8_valid_prefix(struct text text)
{
	const unsigned char *bytes = (const unsigned char *)text.data;
	size_t at = 0;
	while (at < text.size) {
		uint64_t word;
		if (text.size - at >= sizeof(word)) {
			memcpy(&word, bytes + at, sizeof(word));
			if (!(word & UINT64_C(0x8080808080808080))) {
				at += sizeof(word);
				continue;
			}
		}
		size_t size = character_size(bytes + at, text.size - at);
		if (size == 0)
			break;
		at += size;
	}
	return at;
}
