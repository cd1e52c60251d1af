/* json_plain.h - the bytes of a JSON text that stand for themselves, several at a time */
#ifndef WIRE_TEXT_JSON_PLAIN_H
#define WIRE_TEXT_JSON_PLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the first byte is the lowest");

/* True for printable ASCII other than quotes and backslashes. */
static inline bool json_is_plain(char byte)
{
	return byte >= ' ' && byte <= '~' && byte != '"' && byte != '\\';
}

/* The highest bit of the first byte that is not plain is set, and none before it. Bits behind it
 * mean nothing: the subtractions carry. */
static inline uint64_t json_special_bits(uint64_t word)
{
	const uint64_t ones = UINT64_C(0x0101010101010101), high = ones << 7;
	uint64_t quotes = word ^ ones * '"', slashes = word ^ ones * '\\',
		 deletes = word ^ ones * 0x7f;

	return ((word - ones * ' ') | (quotes - ones) | (slashes - ones) | (deletes - ones) |
	        word) &
	       high;
}

#ifdef __SSE2__
/* One bit for each of 16 bytes that is not plain. As signed numbers, bytes from 0x80 on are less
 * than a space. */
static inline unsigned json_special_of_16(const char *data)
{
	__m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)data);
	__m128i special = _mm_cmplt_epi8(bytes, _mm_set1_epi8(' '));

	special = _mm_or_si128(special, _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')));
	special = _mm_or_si128(special, _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\')));
	special = _mm_or_si128(special, _mm_cmpeq_epi8(bytes, _mm_set1_epi8(0x7f)));
	return (unsigned)_mm_movemask_epi8(special);
}
#endif

/* How many plain bytes are at the start of `size` bytes. */
static inline size_t json_plain_prefix(const char *data, size_t size)
{
	size_t at = 0;
	uint64_t word;

#ifdef __SSE2__
	for (; size - at >= 16; at += 16) {
		unsigned special = json_special_of_16(data + at);
		if (special != 0)
			return at + (size_t)__builtin_ctz(special);
	}
#endif
	for (; size - at >= sizeof(word); at += sizeof(word)) {
		memcpy(&word, data + at, sizeof(word));
		uint64_t special = json_special_bits(word);
		if (special != 0)
			return at + (size_t)__builtin_ctzll(special) / 8;
	}
	while (at < size && json_is_plain(data[at]))
		at++;
	return at;
}

#endif
