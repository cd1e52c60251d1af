/* heap.h - a binary heap of pointers whose members know their place */
#ifndef BASE_HEAP_H
#define BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first item is one that `before` puts before all others. Each item keeps
 * its place in an int32_t inside itself, `place` bytes from its start (-1: not
 * in the heap), so that removal and reordering cost O(log n). */
struct heap {
	bool (*before)(const void *a, const void *b);
	size_t place;
	void **items;
	size_t count, capacity;
};

#define HEAP(type, member, order)                                                                  \
	((struct heap){ .before = (order), .place = offsetof(type, member) })

void heap_push(struct heap *heap, void *item);
/* The first item, or NULL. */
void *heap_first(const struct heap *heap);
void *heap_pop(struct heap *heap);
/* Takes `item` out; it must be in. */
void heap_remove(struct heap *heap, void *item);
/* Moves `item` to where it now belongs, after what orders it has changed. */
void heap_update(struct heap *heap, void *item);
bool heap_has(const struct heap *heap, const void *item);
/* Takes all out; keeps the memory. */
void heap_clear(struct heap *heap);
/* Frees the memory. Items are not touched: they may be gone already. */
void heap_free(struct heap *heap);

#endif
