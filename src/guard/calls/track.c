/* track.c - what this process has allocated, by the handle that frees it */
#include "guard/calls/track.h"

#include <stddef.h>
#include <sys/mman.h>

#include "guard/budget/mutex.h"

enum { FIRST_CAPACITY = 1024 };

/* Open addressing, linear probing, backward shift on removal. `capacity` is 0 or a
 * power of two, and at most three quarters of the places are taken. */
static struct {
	struct mutex mutex;
	struct track_item *items;
	size_t capacity, count;
} table;

static size_t track_place_of(enum track_kind kind, uint64_t key)
{
	uint64_t mixed = (key ^ (uint64_t)kind << 59) * UINT64_C(0x9e3779b97f4a7c15);
	return (size_t)(mixed ^ mixed >> 32) & (table.capacity - 1);
}

static struct track_item *track_lookup(enum track_kind kind, uint64_t key)
{
	if (table.count == 0)
		return NULL;
	for (size_t at = track_place_of(kind, key); table.items[at].kind != TRACK_FREE;
	     at = (at + 1) & (table.capacity - 1)) {
		if (table.items[at].kind == kind && table.items[at].key == key)
			return &table.items[at];
	}
	return NULL;
}

static void track_put(const struct track_item *item)
{
	size_t at = track_place_of((enum track_kind)item->kind, item->key);
	while (table.items[at].kind != TRACK_FREE)
		at = (at + 1) & (table.capacity - 1);
	table.items[at] = *item;
}

static bool grow(void)
{
	size_t capacity = table.capacity > 0 ? table.capacity * 2 : FIRST_CAPACITY;
	struct track_item *items = mmap(NULL, capacity * sizeof *items, PROT_READ | PROT_WRITE,
	                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (items == MAP_FAILED)
		return false;
	struct track_item *before = table.items;
	size_t capacity_before = table.capacity;
	table.items = items;
	table.capacity = capacity;
	for (size_t i = 0; i < capacity_before; i++) {
		if (before[i].kind != TRACK_FREE)
			track_put(&before[i]);
	}
	if (before != NULL)
		munmap(before, capacity_before * sizeof *before);
	return true;
}

/* Removes an item and closes the gap: whoever was pushed past it moves up. */
static void erase(struct track_item *item)
{
	size_t mask = table.capacity - 1;
	size_t gap = (size_t)(item - table.items);
	for (size_t at = (gap + 1) & mask; table.items[at].kind != TRACK_FREE;
	     at = (at + 1) & mask) {
		size_t home =
		    track_place_of((enum track_kind)table.items[at].kind, table.items[at].key);
		if (((at - home) & mask) >= ((at - gap) & mask)) {
			table.items[gap] = table.items[at];
			gap = at;
		}
	}
	table.items[gap].kind = TRACK_FREE;
	table.count--;
}

bool track_add(const struct track_item *item)
{
	mutex_lock(&table.mutex);
	bool room = (table.count + 1) * 4 <= table.capacity * 3 || grow();
	if (room) {
		track_put(item);
		table.count++;
	}
	mutex_unlock(&table.mutex);
	return room;
}

static bool find_or_remove(enum track_kind kind, uint64_t key, struct track_item *item, bool remove)
{
	mutex_lock(&table.mutex);
	struct track_item *found = track_lookup(kind, key);
	if (found != NULL) {
		*item = *found;
		if (remove)
			erase(found);
	}
	mutex_unlock(&table.mutex);
	return found != NULL;
}

bool track_find(enum track_kind kind, uint64_t key, struct track_item *item)
{
	return find_or_remove(kind, key, item, false);
}

bool track_remove(enum track_kind kind, uint64_t key, struct track_item *item)
{
	return find_or_remove(kind, key, item, true);
}

int64_t track_refer(enum track_kind kind, uint64_t key, int change, struct track_item *item)
{
	int64_t references = -1;
	mutex_lock(&table.mutex);
	struct track_item *found = track_lookup(kind, key);
	if (found != NULL) {
		found->references = (uint32_t)((int64_t)found->references + change);
		references = found->references;
		*item = *found;
		if (references == 0)
			erase(found);
	}
	mutex_unlock(&table.mutex);
	return references;
}

bool track_charge(enum track_kind kind, uint64_t key, int before, int64_t bytes, int share)
{
	mutex_lock(&table.mutex);
	struct track_item *found = track_lookup(kind, key);
	bool charged = found != NULL && found->share == before;
	if (charged) {
		found->bytes = bytes;
		found->share = share;
	}
	mutex_unlock(&table.mutex);
	return charged;
}

/* Under the lock: the place of the first such item from there on; the capacity if there
 * is none. */
static size_t find_of_context(uint64_t context, size_t from)
{
	while (from < table.capacity &&
	       (table.items[from].kind == TRACK_FREE || table.items[from].context != context))
		from++;
	return from;
}

bool track_remove_of_context(uint64_t context, size_t *from, struct track_item *item)
{
	mutex_lock(&table.mutex);
	size_t at = find_of_context(context, *from);
	/* The table may have been rebuilt since, with everything elsewhere. */
	if (at >= table.capacity && *from > 0)
		at = find_of_context(context, 0);
	bool found = at < table.capacity;
	if (found) {
		*item = table.items[at];
		erase(&table.items[at]);
	}
	*from = at;
	mutex_unlock(&table.mutex);
	return found;
}

bool track_remove_global(uint64_t module, struct track_item *item)
{
	bool found = false;
	mutex_lock(&table.mutex);
	for (size_t i = 0; i < table.capacity && !found; i++) {
		struct track_item *at = &table.items[i];
		found = at->kind == TRACK_GLOBAL && at->owner == module;
		if (found) {
			*item = *at;
			erase(at);
		}
	}
	mutex_unlock(&table.mutex);
	return found;
}

bool track_find_mapping(uint64_t address, struct track_item *item)
{
	bool found = false;
	mutex_lock(&table.mutex);
	for (size_t i = 0; i < table.capacity && !found; i++) {
		const struct track_item *at = &table.items[i];
		found = at->kind == TRACK_MAPPING && address >= at->key &&
		        address - at->key < (uint64_t)at->bytes;
		if (found)
			*item = *at;
	}
	mutex_unlock(&table.mutex);
	return found;
}

int64_t track_count(void)
{
	mutex_lock(&table.mutex);
	int64_t count = (int64_t)table.count;
	mutex_unlock(&table.mutex);
	return count;
}

void track_reset(void)
{
	/* The memory is left as it is: this runs in a child of a program with threads,
	 * one of which may have been changing it. */
	table.items = NULL;
	table.capacity = 0;
	table.count = 0;
	atomic_store(&table.mutex.word, 0);
}
