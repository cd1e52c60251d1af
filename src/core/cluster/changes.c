/* changes.c - which nodes changed since one last looked */
#include "core/cluster/changes.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define BLOCKS_KEPT (CHANGES_KEPT / CHANGES_BLOCK)

void changes_begin(struct changes *changes, size_t nodes)
{
	uint64_t after = (changes->count / CHANGES_KEPT + 2) * CHANGES_KEPT;

	changes->count = after; /* more than CHANGES_KEPT from all before, and a new block */
	changes->words = (nodes + 63) / 64;
	changes->sets =
	    memory_resize(changes->sets, BLOCKS_KEPT * changes->words * sizeof(*changes->sets));
	changes->last = memory_resize(changes->last, nodes * sizeof(*changes->last));
}

void changes_free(struct changes *changes)
{
	free(changes->sets);
	free(changes->last);
	*changes = (struct changes){ 0 };
}

static uint64_t *set_of(const struct changes *changes, uint64_t block)
{
	return changes->sets + block % BLOCKS_KEPT * changes->words;
}

void changes_note(struct changes *changes, size_t slot)
{
	uint64_t number = changes->count++;
	uint64_t *set = set_of(changes, number / CHANGES_BLOCK);

	if (number % CHANGES_BLOCK == 0)
		memset(set, 0, changes->words * sizeof(*set));
	set[slot / 64] |= UINT64_C(1) << slot % 64;
	changes->slots[number % CHANGES_KEPT] = (int32_t)slot;
	changes->last[slot] = number;
}

void changes_since(const struct changes *changes, uint64_t seen, uint64_t *set)
{
	uint64_t number = seen;

	for (; number < changes->count && number % CHANGES_BLOCK != 0; number++) {
		size_t slot = (size_t)changes->slots[number % CHANGES_KEPT];
		set[slot / 64] |= UINT64_C(1) << slot % 64;
	}
	for (; number < changes->count; number += CHANGES_BLOCK) {
		const uint64_t *block = set_of(changes, number / CHANGES_BLOCK);
		for (size_t w = 0; w < changes->words; w++)
			set[w] |= block[w];
	}
}
