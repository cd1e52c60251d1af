/* heap_test.c - tests of the heap */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "../heap.h"
#include "../number.h"

struct item {
	int64_t due;
	int32_t place;
	bool in;
};

static bool is_before(const void *a, const void *b)
{
	return ((const struct item *)a)->due < ((const struct item *)b)->due;
}

static void items_come_out_in_order(void **state)
{
	(void)state;
	enum { COUNT = 1000 };
	static struct item items[COUNT];
	struct heap heap = HEAP(struct item, place, is_before);
	uint64_t seed = 1;
	for (int i = 0; i < COUNT; i++) {
		items[i].due = (int64_t)random_below(&seed, 500);
		heap_push(&heap, &items[i]);
	}
	int64_t last = -1;
	for (int i = 0; i < COUNT; i++) {
		struct item *item = heap_pop(&heap);
		assert_true(item->due >= last);
		assert_int_equal(item->place, -1);
		last = item->due;
	}
	assert_null(heap_pop(&heap));
	heap_free(&heap);
}

static void an_empty_heap_has_no_first(void **state)
{
	(void)state;
	struct heap heap = HEAP(struct item, place, is_before);
	assert_null(heap_first(&heap));
	assert_null(heap_pop(&heap));
	heap_clear(&heap);
	heap_free(&heap);
}

static void an_item_that_was_never_pushed_is_not_in_whatever_its_place_says(void **state)
{
	(void)state;
	struct heap heap = HEAP(struct item, place, is_before);
	struct item in = { .due = 1 };
	struct item zeroed = { 0 };
	struct item marked = { .place = -1 };
	assert_false(heap_has(&heap, &in));
	heap_push(&heap, &in);
	assert_true(heap_has(&heap, &in));
	assert_false(heap_has(&heap, &zeroed));
	assert_false(heap_has(&heap, &marked));
	heap_free(&heap);
}

static void a_cleared_heap_has_nothing_and_can_be_filled_again(void **state)
{
	(void)state;
	struct heap heap = HEAP(struct item, place, is_before);
	struct item a = { .due = 1 };
	struct item b = { .due = 2 };
	heap_push(&heap, &b);
	heap_push(&heap, &a);
	heap_clear(&heap);
	assert_int_equal(a.place, -1);
	assert_false(heap_has(&heap, &b));
	assert_null(heap_first(&heap));
	heap_push(&heap, &b);
	assert_ptr_equal(heap_first(&heap), &b);
	heap_free(&heap);
}

static void a_heap_can_be_freed_after_its_items(void **state)
{
	(void)state;
	struct heap heap = HEAP(struct item, place, is_before);
	struct item *item = calloc(1, sizeof(*item));
	heap_push(&heap, item);
	free(item);
	heap_free(&heap);
	assert_null(heap_first(&heap));
}

/* The least due among the items that are in; INT64_MAX if none is. */
static int64_t least_due(const struct item *items, int count)
{
	int64_t least = INT64_MAX;
	for (int i = 0; i < count; i++) {
		if (items[i].in)
			least = min64(least, items[i].due);
	}
	return least;
}

static void a_heap_agrees_with_a_list_under_random_changes(void **state)
{
	(void)state;
	enum { COUNT = 60 };
	struct item items[COUNT];
	struct heap heap = HEAP(struct item, place, is_before);
	uint64_t seed = 3;
	size_t in = 0;

	for (int i = 0; i < COUNT; i++)
		items[i] = (struct item){ .place = -1 };
	for (int step = 0; step < 100000; step++) {
		struct item *item = &items[random_below(&seed, COUNT)];
		int64_t due = (int64_t)random_below(&seed, 100);
		assert_true(heap_has(&heap, item) == item->in);
		if (!item->in) {
			item->due = due;
			heap_push(&heap, item);
			item->in = true;
			in++;
		} else if (random_below(&seed, 2)) {
			item->due = due;
			heap_update(&heap, item);
		} else {
			if (random_below(&seed, 2))
				item = heap_pop(&heap);
			else
				heap_remove(&heap, item);
			item->in = false;
			in--;
		}
		assert_int_equal(heap.count, in);
		const struct item *first = heap_first(&heap);
		assert_int_equal(first ? first->due : INT64_MAX, least_due(items, COUNT));
	}
	heap_free(&heap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(items_come_out_in_order),
		cmocka_unit_test(an_empty_heap_has_no_first),
		cmocka_unit_test(an_item_that_was_never_pushed_is_not_in_whatever_its_place_says),
		cmocka_unit_test(a_cleared_heap_has_nothing_and_can_be_filled_again),
		cmocka_unit_test(a_heap_can_be_freed_after_its_items),
		cmocka_unit_test(a_heap_agrees_with_a_list_under_random_changes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
