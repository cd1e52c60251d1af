/* hash.h - mixing numbers and bytes into 64 bits; the same on every machine */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t hash_number(uint64_t x)
{
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93U;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93U;
	return x ^ (x >> 32);
}

/* Order matters: hash_combine(a, b) differs from hash_combine(b, a). */
static inline uint64_t hash_combine(uint64_t seed, uint64_t value)
{
	return hash_number(seed * 0x9e3779b97f4a7c15U + value + 1);
}

uint64_t hash_bytes(const void *data, size_t size);
uint64_t hash_text(const char *text);

#endif
