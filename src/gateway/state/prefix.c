/* prefix.c - which slot has seen the beginning of a prompt before */
#include "gateway/state/prefix.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/memory.h"

enum { WAYS = 4 };

struct prefix_entry {
	uint64_t key;
	uint64_t noted; /* number of the note; 0: empty */
};

struct prefixes {
	uint64_t sets; /* a power of two */
	uint64_t notes;
	struct prefix_entry entries[];
};

struct prefixes *prefixes_new(int sets)
{
	uint64_t count = 1;

	while (count < (uint64_t)sets)
		count *= 2;
	struct prefixes *prefixes =
	    memory_zero(1, sizeof(*prefixes) + count * WAYS * sizeof(struct prefix_entry));
	prefixes->sets = count;
	return prefixes;
}

void prefixes_free(struct prefixes *prefixes)
{
	free(prefixes);
}

static uint64_t key_of(int64_t slot_id, uint64_t block)
{
	return hash_combine(block, (uint64_t)slot_id);
}

static bool prefix_has(const struct prefixes *prefixes, uint64_t key)
{
	const struct prefix_entry *set = &prefixes->entries[(key & (prefixes->sets - 1)) * WAYS];

	for (int way = 0; way < WAYS; way++)
		if (set[way].noted > 0 && set[way].key == key)
			return true;
	return false;
}

static void prefix_put(struct prefixes *prefixes, uint64_t key)
{
	struct prefix_entry *set = &prefixes->entries[(key & (prefixes->sets - 1)) * WAYS];
	int oldest = 0;

	for (int way = 0; way < WAYS; way++) {
		if (set[way].noted > 0 && set[way].key == key) {
			oldest = way;
			break;
		}
		if (set[way].noted < set[oldest].noted)
			oldest = way;
	}
	set[oldest] = (struct prefix_entry){ key, prefixes->notes };
}

void prefixes_note(struct prefixes *prefixes, int64_t slot_id, const uint64_t *blocks, int count)
{
	prefixes->notes++;
	for (int i = 0; i < count; i++)
		prefix_put(prefixes, key_of(slot_id, blocks[i]));
}

int prefixes_match(const struct prefixes *prefixes, int64_t slot_id, const uint64_t *blocks,
                   int count)
{
	int matched = 0;

	while (matched < count && prefix_has(prefixes, key_of(slot_id, blocks[matched])))
		matched++;
	return matched;
}
