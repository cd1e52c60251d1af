/* memory_test.c - tests of allocation, growing arrays and arenas */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "../memory.h"
#include "../number.h"

static void a_size_of_zero_gives_null(void **state)
{
	(void)state;
	assert_null(memory_alloc(0));
	assert_null(memory_zero(0, 8));
	assert_null(memory_zero(8, 0));
	assert_null(memory_resize(memory_alloc(8), 0));
}

static void a_new_object_is_zeroed(void **state)
{
	(void)state;
	struct arena *object = NEW(struct arena);
	assert_null(object->first);
	assert_int_equal(object->used, 0);
	free(object);
}

static void resizing_keeps_the_content(void **state)
{
	(void)state;
	char *text = memory_alloc(4);
	memcpy(text, "abc", 4);
	text = memory_resize(text, 1000);
	assert_string_equal(text, "abc");
	free(text);
}

static void an_array_grows_by_doubling_and_keeps_its_elements(void **state)
{
	(void)state;
	int64_t *array = NULL;
	size_t capacity = 0;
	int grown = 0;
	for (size_t i = 0; i < 10000; i++) {
		size_t before = capacity;
		array_reserve(array, capacity, i + 1);
		if (capacity != before) {
			assert_true(capacity >= 2 * before);
			grown++;
		}
		array[i] = (int64_t)i;
	}
	for (size_t i = 0; i < 10000; i++)
		assert_int_equal(array[i], i);
	assert_true(grown < 15);
	free(array);
}

static void an_array_that_is_large_enough_stays_where_it_is(void **state)
{
	(void)state;
	char *array = NULL;
	size_t capacity = 0;
	array_reserve(array, capacity, 100);
	char *before = array;
	array_reserve(array, capacity, 50);
	assert_ptr_equal(array, before);
	free(array);
}

static void arena_memory_is_aligned_and_does_not_overlap(void **state)
{
	(void)state;
	enum { PIECES = 2000 };
	struct arena arena = { 0 };
	unsigned char *piece[PIECES];
	size_t size[PIECES];
	uint64_t seed = 1;

	for (int i = 0; i < PIECES; i++) {
		size[i] = 1 + random_below(&seed, i % 50 == 0 ? 20000 : 100);
		piece[i] = arena_alloc(&arena, size[i]);
		assert_int_equal((uintptr_t)piece[i] % _Alignof(max_align_t), 0);
		memset(piece[i], i % 251, size[i]);
	}
	for (int i = 0; i < PIECES; i++) {
		for (size_t j = 0; j < size[i]; j++)
			assert_int_equal(piece[i][j], i % 251);
	}
	arena_free(&arena);
}

static void arena_copies_are_equal_and_apart(void **state)
{
	(void)state;
	struct arena arena = { 0 };
	char text[] = "model";
	char *copy = arena_string(&arena, text);
	text[0] = 'M';
	assert_string_equal(copy, "model");
	assert_null(arena_string(&arena, NULL));
	assert_memory_equal(arena_copy(&arena, "a\0b", 3), "a\0b", 3);
	assert_null(arena_copy(&arena, NULL, 0));
	arena_free(&arena);
}

static void a_reset_arena_gives_out_the_same_memory_again(void **state)
{
	(void)state;
	enum { PIECES = 300 };
	struct arena arena = { 0 };
	void *piece[PIECES];

	for (size_t i = 0; i < PIECES; i++)
		piece[i] = arena_alloc(&arena, i * 37 % 5000 + 1);
	arena_reset(&arena);
	for (size_t i = 0; i < PIECES; i++)
		assert_ptr_equal(piece[i], arena_alloc(&arena, i * 37 % 5000 + 1));
	arena_free(&arena);
}

static void an_arena_can_be_used_after_it_was_freed(void **state)
{
	(void)state;
	struct arena arena = { 0 };
	arena_reset(&arena);
	arena_alloc(&arena, 10);
	arena_free(&arena);
	assert_null(arena.first);
	assert_non_null(arena_alloc(&arena, 10));
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_size_of_zero_gives_null),
		cmocka_unit_test(a_new_object_is_zeroed),
		cmocka_unit_test(resizing_keeps_the_content),
		cmocka_unit_test(an_array_grows_by_doubling_and_keeps_its_elements),
		cmocka_unit_test(an_array_that_is_large_enough_stays_where_it_is),
		cmocka_unit_test(arena_memory_is_aligned_and_does_not_overlap),
		cmocka_unit_test(arena_copies_are_equal_and_apart),
		cmocka_unit_test(a_reset_arena_gives_out_the_same_memory_again),
		cmocka_unit_test(an_arena_can_be_used_after_it_was_freed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
