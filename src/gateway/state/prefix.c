/* prefix.c - which slots have seen the beginning of a prompt before */
#include "gateway/state/prefix.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"

enum { BANK = 64, CAPACITY_LEAST = 64, AHEAD = 16, NOBODY = -1 };

/* The slots of one bank that have a block. */
struct prefix_entry {
	uint64_t key;
	uint64_t slots; /* bits; 0: an empty place */
};

/* A block of a slot. */
struct prefix_node {
	uint64_t block;
	int32_t before, after; /* in the order of use; NOBODY at the ends */
	int32_t next;          /* with the same hash, or the next one that is free */
};

struct prefix_slot {
	bool used;
	struct prefix_node *nodes; /* a list from `newest` to `oldest` */
	int32_t *heads;            /* by hash: lists of nodes */
	int32_t capacity, count;   /* of nodes; there are as many heads */
	int32_t newest, oldest, spare;
};

struct prefixes {
	int blocks_each;
	struct prefix_slot *slots;
	int *matched; /* by slot */
	size_t slot_count, slot_capacity, matched_capacity;
	struct prefix_entry *entries; /* open addressing, at most half full */
	size_t entry_count, entry_capacity;
};

struct prefixes *prefixes_new(int blocks_each)
{
	struct prefixes *prefixes = NEW(struct prefixes);

	INVARIANT(blocks_each > 0);
	prefixes->blocks_each = blocks_each;
	prefixes->entry_capacity = CAPACITY_LEAST;
	prefixes->entries = memory_zero(CAPACITY_LEAST, sizeof(*prefixes->entries));
	return prefixes;
}

void prefixes_free(struct prefixes *prefixes)
{
	if (!prefixes)
		return;
	for (size_t i = 0; i < prefixes->slot_count; i++) {
		free(prefixes->slots[i].nodes);
		free(prefixes->slots[i].heads);
	}
	free(prefixes->slots);
	free(prefixes->matched);
	free(prefixes->entries);
	free(prefixes);
}

static uint64_t key_of(int bank, uint64_t block)
{
	return bank == 0 ? block : hash_combine(block, (uint64_t)bank);
}

/* Where the key is, or where it would be put. */
static size_t entry_find(const struct prefixes *prefixes, uint64_t key)
{
	size_t last = prefixes->entry_capacity - 1, at = hash_number(key) & last;

	while (prefixes->entries[at].slots && prefixes->entries[at].key != key)
		at = (at + 1) & last;
	return at;
}

static void entries_grow(struct prefixes *prefixes)
{
	struct prefix_entry *old = prefixes->entries;
	size_t count = prefixes->entry_capacity;

	prefixes->entry_capacity = count * 2;
	prefixes->entries = memory_zero(count * 2, sizeof(*old));
	for (size_t i = 0; i < count; i++)
		if (old[i].slots)
			prefixes->entries[entry_find(prefixes, old[i].key)] = old[i];
	free(old);
}

static void entry_add(struct prefixes *prefixes, int slot, uint64_t block)
{
	uint64_t key = key_of(slot / BANK, block);

	if ((prefixes->entry_count + 1) * 2 > prefixes->entry_capacity)
		entries_grow(prefixes);
	struct prefix_entry *entry = &prefixes->entries[entry_find(prefixes, key)];
	prefixes->entry_count += !entry->slots;
	entry->key = key;
	entry->slots |= UINT64_C(1) << (slot % BANK);
}

/* Closes the gap, so that what was put behind it is found. */
static void entry_empty(struct prefixes *prefixes, size_t gap)
{
	size_t last = prefixes->entry_capacity - 1;

	prefixes->entries[gap].slots = 0;
	for (size_t at = (gap + 1) & last; prefixes->entries[at].slots; at = (at + 1) & last) {
		size_t home = hash_number(prefixes->entries[at].key) & last;
		if (((at - home) & last) < ((at - gap) & last))
			continue;
		prefixes->entries[gap] = prefixes->entries[at];
		prefixes->entries[at].slots = 0;
		gap = at;
	}
	prefixes->entry_count--;
}

static void entry_remove(struct prefixes *prefixes, int slot, uint64_t block)
{
	size_t at = entry_find(prefixes, key_of(slot / BANK, block));
	struct prefix_entry *entry = &prefixes->entries[at];
	uint64_t bit = UINT64_C(1) << (slot % BANK);

	INVARIANT(entry->slots & bit);
	entry->slots &= ~bit;
	if (!entry->slots)
		entry_empty(prefixes, at);
}

int prefixes_add(struct prefixes *prefixes)
{
	size_t at = 0;

	while (at < prefixes->slot_count && prefixes->slots[at].used)
		at++;
	if (at == prefixes->slot_count) {
		array_reserve(prefixes->slots, prefixes->slot_capacity, at + 1);
		array_reserve(prefixes->matched, prefixes->matched_capacity, at + 1);
		prefixes->slot_count++;
	}
	prefixes->slots[at] = (struct prefix_slot){
		.used = true, .newest = NOBODY, .oldest = NOBODY, .spare = NOBODY
	};
	return (int)at;
}

void prefixes_remove(struct prefixes *prefixes, int slot)
{
	struct prefix_slot *had = &prefixes->slots[slot];

	INVARIANT(slot >= 0 && (size_t)slot < prefixes->slot_count && had->used);
	for (int32_t at = had->newest; at != NOBODY; at = had->nodes[at].after)
		entry_remove(prefixes, slot, had->nodes[at].block);
	free(had->nodes);
	free(had->heads);
	*had = (struct prefix_slot){ 0 };
}

static int32_t *head_of(const struct prefix_slot *slot, uint64_t block)
{
	return &slot->heads[hash_number(block) & (uint64_t)(slot->capacity - 1)];
}

static int32_t node_find(const struct prefix_slot *slot, uint64_t block)
{
	int32_t at = slot->capacity > 0 ? *head_of(slot, block) : NOBODY;

	while (at != NOBODY && slot->nodes[at].block != block)
		at = slot->nodes[at].next;
	return at;
}

static void nodes_grow(struct prefix_slot *slot)
{
	int32_t old = slot->capacity;

	slot->capacity = old > 0 ? old * 2 : CAPACITY_LEAST;
	slot->nodes = memory_resize(slot->nodes, (size_t)slot->capacity * sizeof(*slot->nodes));
	free(slot->heads);
	slot->heads = memory_alloc((size_t)slot->capacity * sizeof(*slot->heads));
	for (int32_t i = 0; i < slot->capacity; i++)
		slot->heads[i] = NOBODY;
	for (int32_t at = slot->newest; at != NOBODY; at = slot->nodes[at].after) {
		int32_t *head = head_of(slot, slot->nodes[at].block);
		slot->nodes[at].next = *head;
		*head = at;
	}
	for (int32_t i = old; i < slot->capacity; i++) {
		slot->nodes[i].next = slot->spare;
		slot->spare = i;
	}
}

static void node_unlink(struct prefix_slot *slot, int32_t at)
{
	const struct prefix_node *node = &slot->nodes[at];

	*(node->before == NOBODY ? &slot->newest : &slot->nodes[node->before].after) = node->after;
	*(node->after == NOBODY ? &slot->oldest : &slot->nodes[node->after].before) = node->before;
}

static void node_front(struct prefix_slot *slot, int32_t at)
{
	slot->nodes[at].before = NOBODY;
	slot->nodes[at].after = slot->newest;
	*(slot->newest == NOBODY ? &slot->oldest : &slot->nodes[slot->newest].before) = at;
	slot->newest = at;
}

static void forget_oldest(struct prefixes *prefixes, int number)
{
	struct prefix_slot *slot = &prefixes->slots[number];
	int32_t at = slot->oldest;
	int32_t *link = head_of(slot, slot->nodes[at].block);

	entry_remove(prefixes, number, slot->nodes[at].block);
	node_unlink(slot, at);
	while (*link != at)
		link = &slot->nodes[*link].next;
	*link = slot->nodes[at].next;
	slot->nodes[at].next = slot->spare;
	slot->spare = at;
	slot->count--;
}

static void note_block(struct prefixes *prefixes, int number, uint64_t block)
{
	struct prefix_slot *slot = &prefixes->slots[number];
	int32_t at = node_find(slot, block);

	if (at != NOBODY) {
		node_unlink(slot, at);
		node_front(slot, at);
		return;
	}
	if (slot->count == prefixes->blocks_each)
		forget_oldest(prefixes, number);
	if (slot->spare == NOBODY)
		nodes_grow(slot);
	at = slot->spare;
	slot->spare = slot->nodes[at].next;
	int32_t *head = head_of(slot, block);
	slot->nodes[at] = (struct prefix_node){ .block = block, .next = *head };
	*head = at;
	node_front(slot, at);
	slot->count++;
	entry_add(prefixes, number, block);
}

void prefixes_note(struct prefixes *prefixes, int slot, const uint64_t *blocks, int count)
{
	INVARIANT(slot >= 0 && (size_t)slot < prefixes->slot_count && prefixes->slots[slot].used);
	if (count > prefixes->blocks_each)
		count = prefixes->blocks_each;
	/* From the end, as servers free them: the end of a prompt is forgotten before its
	 * beginning. */
	while (count-- > 0)
		note_block(prefixes, slot, blocks[count]);
}

/* Those of one bank. All places are asked of memory before the first is needed. */
static void match_bank(struct prefixes *prefixes, int bank, uint64_t slots, const uint64_t *blocks,
                       int count)
{
	const struct prefix_entry *entries = prefixes->entries;
	size_t last = prefixes->entry_capacity - 1;

	for (int i = 0; slots && i < count; i++) {
		if (i + AHEAD < count) {
			uint64_t ahead = key_of(bank, blocks[i + AHEAD]);
			__builtin_prefetch(&entries[hash_number(ahead) & last]);
		}
		uint64_t have = entries[entry_find(prefixes, key_of(bank, blocks[i]))].slots;
		for (uint64_t gone = slots & ~have; gone; gone &= gone - 1)
			prefixes->matched[bank * BANK + __builtin_ctzll(gone)] = i;
		slots &= have;
	}
	for (; slots; slots &= slots - 1)
		prefixes->matched[bank * BANK + __builtin_ctzll(slots)] = count;
}

const int *prefixes_match(struct prefixes *prefixes, const uint64_t *blocks, int count)
{
	size_t slots = prefixes->slot_count;

	for (size_t bank = 0; bank * BANK < slots; bank++) {
		size_t left = slots - bank * BANK;
		uint64_t all = left >= BANK ? ~UINT64_C(0) : (UINT64_C(1) << left) - 1;
		match_bank(prefixes, (int)bank, all, blocks, count);
	}
	return prefixes->matched;
}
