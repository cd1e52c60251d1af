/* memory.c - allocation that cannot fail, growing arrays, and arenas */
#include "memory.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "error.h"

#ifdef MEMORY_IS_WATCHED
#include <sanitizer/asan_interface.h>

void memory_poison(void *memory, size_t size)
{
	ASAN_POISON_MEMORY_REGION(memory, size);
}

void memory_unpoison(void *memory, size_t size)
{
	ASAN_UNPOISON_MEMORY_REGION(memory, size);
}

/* A pooled object still owns the memory it points to, so the leak check has to look into
 * poisoned memory as well. */
const char *__lsan_default_options(void); /* NOLINT: the sanitizer's own name */
const char *__lsan_default_options(void)  /* NOLINT */
{
	return "use_poisoned=1";
}
#endif

enum {
	ARRAY_FIRST_CAPACITY = 8,
	ARENA_FIRST_BLOCK = 4096,
	CACHE_LINE = 64,
	HUGE_PAGE = 2 << 20,
};
#ifdef MEMORY_IS_WATCHED
enum { IS_WATCHED = 1 };
#else
enum { IS_WATCHED = 0 };
#endif

struct arena_block {
	struct arena_block *next;
	size_t size; /* of data */
	max_align_t data[];
};

void *memory_alloc(size_t size)
{
	if (size == 0)
		return NULL;
	void *memory = malloc(size);
	if (!memory)
		panic("out of memory: %zu bytes", size);
	return memory;
}

void *memory_pages(size_t *size)
{
	bool huge = *size > HUGE_PAGE / 2;
	size_t unit = huge ? HUGE_PAGE : CACHE_LINE;
	*size = (*size + unit - 1) / unit * unit;
	void *memory = aligned_alloc(unit, *size);
	if (!memory)
		panic("out of memory: %zu bytes", *size);
	if (huge)
		madvise(memory, *size, MADV_HUGEPAGE); /* only ever a hint */
	return memory;
}

void *memory_zero(size_t count, size_t size)
{
	if (count == 0 || size == 0)
		return NULL;
	void *memory = calloc(count, size);
	if (!memory)
		panic("out of memory: %zu times %zu bytes", count, size);
	return memory;
}

void *memory_resize(void *old, size_t size)
{
	if (size == 0) {
		free(old);
		return NULL;
	}
	void *memory = realloc(old, size);
	if (!memory)
		panic("out of memory: %zu bytes", size);
	return memory;
}

char *memory_text(const char *text)
{
	size_t size = strlen(text) + 1;
	return memcpy(memory_alloc(size), text, size);
}

void array_reserve_bytes(void *array, size_t *capacity, size_t need, size_t element)
{
	if (need <= *capacity)
		return;
	size_t grown = *capacity > SIZE_MAX / 2 ? SIZE_MAX : *capacity * 2;
	if (grown < ARRAY_FIRST_CAPACITY)
		grown = ARRAY_FIRST_CAPACITY;
	if (grown < need)
		grown = need;
	size_t bytes;
	if (__builtin_mul_overflow(grown, element, &bytes))
		panic("out of memory: %zu elements of %zu bytes", grown, element);

	/* `array` points to a pointer of a type that is not known here. */
	void *memory;
	memcpy(&memory, array, sizeof(memory));
	memory = memory_resize(memory, bytes);
	memcpy(array, &memory, sizeof(memory));
	*capacity = grown;
}

/* Makes a block of at least `size` bytes the current one. Kept blocks that are
 * too small are passed over: each new block is twice the last, so they do not
 * add up to much. */
static void arena_advance(struct arena *arena, size_t size)
{
	struct arena_block *last = arena->current;
	struct arena_block *block = last ? last->next : arena->first;
	while (block && block->size < size) {
		last = block;
		block = block->next;
	}
	if (!block) {
		size_t room = last ? last->size * 2 : ARENA_FIRST_BLOCK;
		if (room < size)
			room = size;
		block = memory_alloc(sizeof(*block) + room);
		block->next = NULL;
		block->size = room;
		memory_poison(block->data, room);
		if (last)
			last->next = block;
		else
			arena->first = block;
	}
	arena->current = block;
	arena->used = 0;
}

void *arena_alloc(struct arena *arena, size_t size)
{
	const size_t unit = sizeof(max_align_t);

	if (size == 0)
		return NULL;
	if (size > SIZE_MAX / 2)
		panic("out of memory: %zu bytes", size);
	size_t rounded = (size + unit - 1) / unit * unit;
	if (!arena->current || arena->current->size - arena->used < rounded)
		arena_advance(arena, rounded);
	void *memory = (char *)arena->current->data + arena->used;
	arena->used += rounded;
	memory_unpoison(memory, size);
	return memory;
}

void *arena_copy(struct arena *arena, const void *data, size_t size)
{
	void *copy = arena_alloc(arena, size);
	if (size > 0)
		memcpy(copy, data, size);
	return copy;
}

char *arena_string(struct arena *arena, const char *text)
{
	return text ? arena_copy(arena, text, strlen(text) + 1) : NULL;
}

void arena_reset(struct arena *arena)
{
	for (struct arena_block *block = arena->first; block && IS_WATCHED; block = block->next)
		memory_poison(block->data, block->size);
	arena->current = arena->first;
	arena->used = 0;
}

void arena_free(struct arena *arena)
{
	struct arena_block *block = arena->first;
	while (block) {
		struct arena_block *next = block->next;
		free(block);
		block = next;
	}
	*arena = (struct arena){ 0 };
}
