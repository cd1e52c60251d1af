/* map.c - hash maps from numbers and from byte strings to pointers */
#include "map.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "hash.h"
#include "memory.h"

enum { FIRST_CAPACITY = 16 };

static bool is_too_full(size_t count, size_t capacity)
{
	return count > capacity / 4 * 3;
}

/* Backward shift: an entry that wants place `home` and sits at `at` may move
 * into the hole exactly when the hole lies on its way from home to at. */
static bool may_fill(size_t hole, size_t home, size_t at, size_t mask)
{
	return ((at - home) & mask) >= ((at - hole) & mask);
}

/* Where `key` is, or the empty place where it would go. */
static size_t map_find(const struct map *map, int64_t key)
{
	size_t mask = map->capacity - 1;
	size_t at = hash_number((uint64_t)key) & mask;
	while (map->entries[at].value && map->entries[at].key != key)
		at = (at + 1) & mask;
	return at;
}

static void grow(struct map *map)
{
	struct map old = *map;
	map->capacity = old.capacity ? old.capacity * 2 : FIRST_CAPACITY;
	map->entries = memory_zero(map->capacity, sizeof(*map->entries));
	for (size_t i = 0; i < old.capacity; i++) {
		if (old.entries[i].value)
			map->entries[map_find(map, old.entries[i].key)] = old.entries[i];
	}
	free(old.entries);
}

void *map_get(const struct map *map, int64_t key)
{
	return map->count ? map->entries[map_find(map, key)].value : NULL;
}

void map_put(struct map *map, int64_t key, void *value)
{
	INVARIANT(value != NULL);
	if (is_too_full(map->count + 1, map->capacity))
		grow(map);
	struct map_entry *entry = &map->entries[map_find(map, key)];
	map->count += entry->value == NULL;
	*entry = (struct map_entry){ .key = key, .value = value };
}

void *map_remove(struct map *map, int64_t key)
{
	if (map->count == 0)
		return NULL;
	size_t mask = map->capacity - 1;
	size_t hole = map_find(map, key);
	void *value = map->entries[hole].value;
	if (!value)
		return NULL;
	for (size_t at = (hole + 1) & mask; map->entries[at].value; at = (at + 1) & mask) {
		size_t home = hash_number((uint64_t)map->entries[at].key) & mask;
		if (may_fill(hole, home, at, mask)) {
			map->entries[hole] = map->entries[at];
			hole = at;
		}
	}
	map->entries[hole].value = NULL;
	map->count--;
	return value;
}

void map_free(struct map *map)
{
	free(map->entries);
	*map = (struct map){ 0 };
}

static size_t find_text(const struct text_map *map, const char *key, uint64_t hash)
{
	size_t mask = map->capacity - 1;
	size_t at = hash & mask;
	while (map->entries[at].value &&
	       (map->entries[at].hash != hash || strcmp(map->entries[at].key, key) != 0))
		at = (at + 1) & mask;
	return at;
}

static void grow_text(struct text_map *map)
{
	struct text_map old = *map;
	map->capacity = old.capacity ? old.capacity * 2 : FIRST_CAPACITY;
	map->entries = memory_zero(map->capacity, sizeof(*map->entries));
	for (size_t i = 0; i < old.capacity; i++) {
		const struct text_map_entry *entry = &old.entries[i];
		if (entry->value)
			map->entries[find_text(map, entry->key, entry->hash)] = *entry;
	}
	free(old.entries);
}

void *text_map_get(const struct text_map *map, const char *key)
{
	return map->count ? map->entries[find_text(map, key, hash_text(key))].value : NULL;
}

void text_map_put(struct text_map *map, const char *key, void *value)
{
	INVARIANT(value != NULL);
	if (is_too_full(map->count + 1, map->capacity))
		grow_text(map);
	uint64_t hash = hash_text(key);
	struct text_map_entry *entry = &map->entries[find_text(map, key, hash)];
	if (!entry->value) {
		size_t size = strlen(key) + 1;
		entry->key = memcpy(memory_alloc(size), key, size);
		entry->hash = hash;
		map->count++;
	}
	entry->value = value;
}

void *text_map_remove(struct text_map *map, const char *key)
{
	if (map->count == 0)
		return NULL;
	size_t mask = map->capacity - 1;
	size_t hole = find_text(map, key, hash_text(key));
	void *value = map->entries[hole].value;
	if (!value)
		return NULL;
	free(map->entries[hole].key);
	for (size_t at = (hole + 1) & mask; map->entries[at].value; at = (at + 1) & mask) {
		if (may_fill(hole, map->entries[at].hash & mask, at, mask)) {
			map->entries[hole] = map->entries[at];
			hole = at;
		}
	}
	map->entries[hole] = (struct text_map_entry){ 0 };
	map->count--;
	return value;
}

void text_map_free(struct text_map *map)
{
	for (size_t i = 0; i < map->capacity; i++)
		free(map->entries[i].key);
	free(map->entries);
	*map = (struct text_map){ 0 };
}
