/* bitset.h - sets of small numbers as words of 64 bits */
#ifndef BASE_BITSET_H
#define BASE_BITSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Members are 0 .. 64 * words - 1. Zero-initialised is empty. */
struct bitset {
	uint64_t *word;
	size_t words, capacity;
};

/* Makes room for members below `size`; new ones are not in the set. */
void bitset_grow(struct bitset *set, size_t size);
void bitset_free(struct bitset *set);

static inline void bitset_add(struct bitset *set, size_t member)
{
	set->word[member / 64] |= UINT64_C(1) << (member % 64);
}
static inline void bitset_drop(struct bitset *set, size_t member)
{
	set->word[member / 64] &= ~(UINT64_C(1) << (member % 64));
}
static inline bool bitset_has(const struct bitset *set, size_t member)
{
	return member / 64 < set->words && (set->word[member / 64] >> (member % 64) & 1);
}
static inline void bitset_assign(struct bitset *set, size_t member, bool in)
{
	uint64_t *word = &set->word[member / 64], bit = UINT64_C(1) << (member % 64);

	*word = (*word & ~bit) | (in ? bit : 0);
}

/* Takes the lowest bit out of `*word`, which is not 0, and returns its number. A walk over bits:
 * while (left) { int bit = bits_take(&left); ... } */
static inline int bits_take(uint64_t *word)
{
	int lowest = __builtin_ctzll(*word);

	*word &= *word - 1;
	return lowest;
}
/* The lowest member of word `at` of a set whose bits there are `*left`, taken out of them. */
static inline size_t bitset_take(uint64_t *left, size_t at)
{
	return at * 64 + (size_t)bits_take(left);
}

#endif
