/* hash.c - mixing bytes into 64 bits; the same on every machine */
#include "hash.h"

#include <string.h>

/* Least significant byte first whatever the machine; compilers make it one load. */
static uint64_t hash_read_word(const unsigned char *bytes)
{
	return (uint64_t)bytes[0] | (uint64_t)bytes[1] << 8 | (uint64_t)bytes[2] << 16 |
	       (uint64_t)bytes[3] << 24 | (uint64_t)bytes[4] << 32 | (uint64_t)bytes[5] << 40 |
	       (uint64_t)bytes[6] << 48 | (uint64_t)bytes[7] << 56;
}

uint64_t hash_bytes(const void *data, size_t size)
{
	const unsigned char *bytes = data;
	/* The size goes in first, so that trailing zero bytes count. */
	uint64_t hash = hash_number(size);
	size_t left = size;

	for (; left >= 8; left -= 8, bytes += 8)
		hash = hash_combine(hash, hash_read_word(bytes));
	if (left > 0) {
		unsigned char tail[8] = { 0 };
		memcpy(tail, bytes, left);
		hash = hash_combine(hash, hash_read_word(tail));
	}
	return hash;
}

uint64_t hash_text(const char *text)
{
	return hash_bytes(text, strlen(text));
}
