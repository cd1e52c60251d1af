/* change_log.c - which nodes changed since one last looked */
#include "core/cluster/change_log.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

#define BLOCKS_KEPT (CHANGE_LOG_KEPT / CHANGE_LOG_BLOCK)

void change_log_begin(struct change_log *changes, size_t nodes)
{
	uint64_t after = (changes->count / CHANGE_LOG_KEPT + 2) * CHANGE_LOG_KEPT;

	changes->count = after; /* more than CHANGE_LOG_KEPT from all before, and a new block */
	changes->words = (nodes + 63) / 64;
	changes->sets =
	    memory_resize(changes->sets, BLOCKS_KEPT * changes->words * sizeof(*changes->sets));
	changes->last = memory_resize(changes->last, nodes * sizeof(*changes->last));
}

void change_log_free(struct change_log *changes)
{
	free(changes->sets);
	free(changes->last);
	*changes = (struct change_log){ 0 };
}

static uint64_t *set_of(const struct change_log *changes, uint64_t block)
{
	return changes->sets + block % BLOCKS_KEPT * changes->words;
}

void change_log_note(struct change_log *changes, size_t rank)
{
	uint64_t number = changes->count++;
	uint64_t *set = set_of(changes, number / CHANGE_LOG_BLOCK);

	INVARIANT(rank < changes->words * 64);
	if (number % CHANGE_LOG_BLOCK == 0)
		memset(set, 0, changes->words * sizeof(*set));
	set[rank / 64] |= UINT64_C(1) << rank % 64;
	changes->ranks[number % CHANGE_LOG_KEPT] = (int32_t)rank;
	changes->last[rank] = number;
}

void change_log_since(const struct change_log *changes, uint64_t seen, uint64_t *set)
{
	uint64_t number = seen;

	INVARIANT(change_log_known(changes, seen));
	for (; number < changes->count && number % CHANGE_LOG_BLOCK != 0; number++) {
		size_t rank = (size_t)changes->ranks[number % CHANGE_LOG_KEPT];
		set[rank / 64] |= UINT64_C(1) << rank % 64;
	}
	for (; number < changes->count; number += CHANGE_LOG_BLOCK) {
		const uint64_t *block = set_of(changes, number / CHANGE_LOG_BLOCK);
		for (size_t w = 0; w < changes->words; w++)
			set[w] |= block[w];
	}
}
