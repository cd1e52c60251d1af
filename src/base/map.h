/* map.h - hash maps from numbers and from byte strings to pointers */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

/* Numbers to non-NULL pointers. Open addressing, linear probing, backward
 * shift on removal. Zero-initialised is empty. Iteration order is not defined:
 * nothing that decides may iterate over a map. */
struct map_entry {
	int64_t key;
	void *value; /* NULL: empty place */
};
struct map {
	struct map_entry *entries;
	size_t capacity, count; /* capacity is 0 or a power of two, at most 3/4 full */
};

/* The value, or NULL. */
void *map_get(const struct map *map, int64_t key);
/* Sets or replaces; value is not NULL. */
void map_put(struct map *map, int64_t key, void *value);
/* Removes and returns the value, or NULL if it was not there. */
void *map_remove(struct map *map, int64_t key);
void map_free(struct map *map);

/* Strings to non-NULL pointers, same contract. Keys are copied in. */
struct text_map_entry {
	char *key;
	uint64_t hash;
	void *value;
};
struct text_map {
	struct text_map_entry *entries;
	size_t capacity, count;
};

void *text_map_get(const struct text_map *map, const char *key);
void text_map_put(struct text_map *map, const char *key, void *value);
void *text_map_remove(struct text_map *map, const char *key);
void text_map_free(struct text_map *map);

#endif
