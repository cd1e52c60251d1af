/* tournament_test.c - tests of the tournament */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../number.h"
#include "../tournament.h"

static void nobody_wins_where_nobody_takes_part(void **state)
{
	(void)state;
	struct tournament tournament = { 0 };
	size_t number = 7;
	assert_true(tournament_best(&tournament, &number) == TOURNAMENT_NONE);
	tournament_reset(&tournament, 0);
	assert_true(tournament_best(&tournament, &number) == TOURNAMENT_NONE);
	tournament_reset(&tournament, 100);
	assert_true(tournament_best(&tournament, &number) == TOURNAMENT_NONE);
	assert_int_equal(number, 7);
	tournament_check(&tournament);
	tournament_free(&tournament);
}

static void the_lowest_number_wins_among_equals(void **state)
{
	(void)state;
	struct tournament tournament = { 0 };
	size_t number;
	tournament_reset(&tournament, 100);
	for (size_t i = 100; i-- > 3;) {
		tournament_put(&tournament, i, -5);
		assert_int_equal(tournament_best(&tournament, &number), -5);
		assert_int_equal(number, i);
	}
	tournament_free(&tournament);
}

static void a_reset_forgets_all_scores(void **state)
{
	(void)state;
	struct tournament tournament = { 0 };
	size_t number;
	tournament_reset(&tournament, 50);
	tournament_put(&tournament, 49, 1);
	tournament_reset(&tournament, 50);
	assert_true(tournament_best(&tournament, &number) == TOURNAMENT_NONE);
	tournament_reset(&tournament, 5000);
	tournament_put(&tournament, 4999, 1);
	assert_int_equal(tournament_best(&tournament, &number), 1);
	assert_int_equal(number, 4999);
	tournament_check(&tournament);
	tournament_free(&tournament);
}

static void a_tournament_agrees_with_a_list_under_random_changes(void **state)
{
	(void)state;
	enum { COUNT = 77 };
	int64_t list[COUNT];
	struct tournament tournament = { 0 };
	uint64_t seed = 1;
	tournament_reset(&tournament, COUNT);
	for (size_t i = 0; i < COUNT; i++)
		list[i] = TOURNAMENT_NONE;
	for (int round = 0; round < 20000; round++) {
		size_t changed = random_below(&seed, COUNT), best = 0, number;
		list[changed] = random_below(&seed, 3) == 0 ? TOURNAMENT_NONE
		                                            : (int64_t)random_below(&seed, 40);
		tournament_put(&tournament, changed, list[changed]);
		for (size_t i = 1; i < COUNT; i++)
			best = list[i] < list[best] ? i : best;
		assert_true(tournament_best(&tournament, &number) == list[best]);
		if (list[best] != TOURNAMENT_NONE)
			assert_int_equal(number, best);
		tournament_check(&tournament);
	}
	tournament_free(&tournament);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_wins_where_nobody_takes_part),
		cmocka_unit_test(the_lowest_number_wins_among_equals),
		cmocka_unit_test(a_reset_forgets_all_scores),
		cmocka_unit_test(a_tournament_agrees_with_a_list_under_random_changes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
