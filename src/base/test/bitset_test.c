/* bitset_test.c - tests of bit sets */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../bitset.h"

static void a_set_has_what_was_added_and_not_dropped(void **state)
{
	(void)state;
	struct bitset set = { 0 };
	bitset_grow(&set, 200);
	bitset_add(&set, 0);
	bitset_add(&set, 63);
	bitset_add(&set, 64);
	bitset_assign(&set, 199, true);
	bitset_drop(&set, 63);
	bitset_assign(&set, 0, false);
	for (size_t i = 0; i < 200; i++)
		assert_true(bitset_has(&set, i) == (i == 64 || i == 199));
	bitset_free(&set);
}

static void what_was_never_made_room_for_is_not_in(void **state)
{
	(void)state;
	struct bitset set = { 0 };
	assert_false(bitset_has(&set, 0));
	bitset_grow(&set, 1);
	assert_false(bitset_has(&set, 64));
	assert_false(bitset_has(&set, SIZE_MAX));
	bitset_free(&set);
}

static void growing_keeps_members_and_adds_none(void **state)
{
	(void)state;
	struct bitset set = { 0 };
	for (size_t size = 1; size < 3000; size += 7) {
		bitset_grow(&set, size);
		assert_true(set.words * 64 >= size);
		bitset_add(&set, size - 1);
	}
	for (size_t i = 0; i < set.words * 64; i++)
		assert_true(bitset_has(&set, i) == (i < 2999 && i % 7 == 0));
	bitset_free(&set);
}

static void a_set_never_shrinks(void **state)
{
	(void)state;
	struct bitset set = { 0 };
	bitset_grow(&set, 1000);
	bitset_add(&set, 999);
	bitset_grow(&set, 10);
	bitset_grow(&set, 0);
	assert_true(bitset_has(&set, 999));
	bitset_free(&set);
	assert_int_equal(set.words, 0);
}

static void a_walk_takes_each_member_once_lowest_first(void **state)
{
	(void)state;
	uint64_t left = UINT64_C(1) << 63 | 1 << 5 | 1;
	assert_int_equal(bits_take(&left), 0);
	assert_int_equal(bitset_take(&left, 2), 2 * 64 + 5);
	assert_int_equal(bits_take(&left), 63);
	assert_true(left == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_set_has_what_was_added_and_not_dropped),
		cmocka_unit_test(what_was_never_made_room_for_is_not_in),
		cmocka_unit_test(growing_keeps_members_and_adds_none),
		cmocka_unit_test(a_set_never_shrinks),
		cmocka_unit_test(a_walk_takes_each_member_once_lowest_first),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
