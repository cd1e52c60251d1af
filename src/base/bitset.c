/* bitset.c - sets of small numbers as words of 64 bits */
#include "bitset.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"

void bitset_grow(struct bitset *set, size_t size)
{
	size_t words = size / 64 + (size % 64 != 0);
	if (words <= set->words)
		return;
	array_reserve(set->word, set->capacity, words);
	memset(set->word + set->words, 0, (words - set->words) * sizeof(*set->word));
	set->words = words;
}

void bitset_free(struct bitset *set)
{
	free(set->word);
	*set = (struct bitset){ 0 };
}
