/* heap.c - a binary heap of pointers whose members know their place */
#include "heap.h"

#include <stdlib.h>

#include "error.h"
#include "memory.h"

static int32_t *heap_place_of(const struct heap *heap, void *item)
{
	return (int32_t *)(void *)((char *)item + heap->place);
}

static void heap_put(struct heap *heap, size_t at, void *item)
{
	heap->items[at] = item;
	*heap_place_of(heap, item) = (int32_t)at;
}

/* Puts `item` at the hole `at` or above it. */
static void rise(struct heap *heap, size_t at, void *item)
{
	while (at > 0) {
		size_t parent = (at - 1) / 2;
		if (!heap->before(item, heap->items[parent]))
			break;
		heap_put(heap, at, heap->items[parent]);
		at = parent;
	}
	heap_put(heap, at, item);
}

/* Puts `item` at the hole `at` or below it. */
static void sink(struct heap *heap, size_t at, void *item)
{
	for (;;) {
		size_t child = 2 * at + 1;
		if (child >= heap->count)
			break;
		if (child + 1 < heap->count &&
		    heap->before(heap->items[child + 1], heap->items[child]))
			child++;
		if (!heap->before(heap->items[child], item))
			break;
		heap_put(heap, at, heap->items[child]);
		at = child;
	}
	heap_put(heap, at, item);
}

static void heap_settle(struct heap *heap, size_t at, void *item)
{
	if (at > 0 && heap->before(item, heap->items[(at - 1) / 2]))
		rise(heap, at, item);
	else
		sink(heap, at, item);
}

void heap_push(struct heap *heap, void *item)
{
	INVARIANT(!heap_has(heap, item));
	INVARIANT(heap->count < INT32_MAX);
	array_reserve(heap->items, heap->capacity, heap->count + 1);
	heap->count++;
	rise(heap, heap->count - 1, item);
}

void *heap_first(const struct heap *heap)
{
	return heap->count ? heap->items[0] : NULL;
}

void *heap_pop(struct heap *heap)
{
	void *item = heap_first(heap);
	if (item)
		heap_remove(heap, item);
	return item;
}

void heap_remove(struct heap *heap, void *item)
{
	INVARIANT(heap_has(heap, item));
	size_t at = (size_t)*heap_place_of(heap, item);
	*heap_place_of(heap, item) = -1;
	void *last = heap->items[--heap->count];
	if (last != item)
		heap_settle(heap, at, last);
}

void heap_update(struct heap *heap, void *item)
{
	INVARIANT(heap_has(heap, item));
	heap_settle(heap, (size_t)*heap_place_of(heap, item), item);
}

bool heap_has(const struct heap *heap, const void *item)
{
	int32_t at = *(const int32_t *)(const void *)((const char *)item + heap->place);
	/* Looked up, not believed: an item that was never in has any place at all. */
	return at >= 0 && (size_t)at < heap->count && heap->items[at] == item;
}

void heap_clear(struct heap *heap)
{
	for (size_t i = 0; i < heap->count; i++)
		*heap_place_of(heap, heap->items[i]) = -1;
	heap->count = 0;
}

void heap_free(struct heap *heap)
{
	free(heap->items);
	heap->items = NULL;
	heap->count = heap->capacity = 0;
}
