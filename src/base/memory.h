/* memory.h - allocation that cannot fail, growing arrays, and arenas */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stddef.h>

/* Whether the address sanitizer watches this build. gcc and clang say it differently. */
#if defined(__SANITIZE_ADDRESS__)
#define MEMORY_IS_WATCHED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MEMORY_IS_WATCHED 1
#endif
#endif

/* What lies in a pool, waiting to be used again, must not be touched through a pointer that
 * somebody kept. Whoever pools objects poisons them when they are given back and unpoisons
 * them when they are taken or freed, so that the address sanitizer reports such a use. Both
 * cost nothing in other builds. */
#ifdef MEMORY_IS_WATCHED
void memory_poison(void *memory, size_t size);
void memory_unpoison(void *memory, size_t size);
#else
static inline void memory_poison(void *memory, size_t size)
{
	(void)memory;
	(void)size;
}
static inline void memory_unpoison(void *memory, size_t size)
{
	(void)memory;
	(void)size;
}
#endif

/* malloc, zeroed malloc and realloc that panic instead of returning NULL. A size
 * of 0 gives NULL. */
void *memory_alloc(size_t size);
void *memory_zero(size_t count, size_t size);
void *memory_resize(void *old, size_t size);

/* At least `*size` bytes that begin a cache line, to be freed with free(). More than
 * half of a huge page is given in whole ones, where the system has them. `*size`
 * becomes what was given. */
void *memory_pages(size_t *size);

/* A copy of a NUL-terminated text. */
char *memory_text(const char *text);

/* A zeroed object of the type. */
#define NEW(type) ((type *)memory_zero(1, sizeof(type)))

/* Makes room for at least `need` elements in the array at `*array`, doubling
 * `*capacity`. The new tail is not zeroed. */
void array_reserve_bytes(void *array, size_t *capacity, size_t need, size_t element);
#define array_reserve(array, capacity, need)                                                       \
	((need) <= (capacity)                                                                      \
	     ? (void)0                                                                             \
	     : array_reserve_bytes(&(array), &(capacity), (need), sizeof(*(array))))

/* An arena gives out memory that is freed all at once. Blocks are kept by
 * arena_reset, so a steady state allocates nothing. */
struct arena_block;
struct arena {
	struct arena_block *first, *current;
	size_t used; /* of the current block */
};

/* Never NULL for size > 0; aligned for any type; not zeroed. */
void *arena_alloc(struct arena *arena, size_t size);
/* Copies of bytes and of NUL-terminated strings (NULL stays NULL). */
void *arena_copy(struct arena *arena, const void *data, size_t size);
char *arena_string(struct arena *arena, const char *text);
/* Forgets everything given out and keeps the blocks. In sanitizer builds, using what was
 * given out before is reported. */
void arena_reset(struct arena *arena);
/* Frees the blocks too; the arena is empty and usable again. */
void arena_free(struct arena *arena);

#endif
