/* rate_test.c - tests of how often one client may ask */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/auth/rate.h"

static void a_client_gets_its_burst_and_then_its_rate(void **state)
{
	(void)state;
	struct rates *rates = rates_new(10, 20, 64);
	int64_t taken = 0, wait_ms = 0;

	for (int64_t now_ms = 0; now_ms < 10000; now_ms++)
		taken += rates_take(rates, 7, now_ms, &wait_ms);
	assert_int_equal(taken, 20 + 99);
	assert_true(wait_ms >= 1 && wait_ms <= 100);
	rates_free(rates);
}

static void one_client_does_not_use_up_what_another_has(void **state)
{
	(void)state;
	struct rates *rates = rates_new(1, 5, 64);

	for (int i = 0; i < 100; i++)
		rates_take(rates, 1, 0, NULL);
	assert_false(rates_take(rates, 1, 0, NULL));
	assert_true(rates_take(rates, 2, 0, NULL));
	rates_free(rates);
}

static void a_flood_of_strangers_does_not_give_a_client_more(void **state)
{
	(void)state;
	struct rates *rates = rates_new(1, 2, 64);

	while (rates_take(rates, 1, 0, NULL))
		;
	/* Theirs are fuller than the one of who asked most, so theirs are forgotten. */
	for (uint64_t client = 2; client < 100000; client++)
		rates_take(rates, client, 0, NULL);
	assert_false(rates_has(rates, 1, 0, NULL));
	rates_free(rates);
}

static void no_rate_is_no_limit_and_huge_ones_do_not_overflow(void **state)
{
	(void)state;
	struct rates *none = rates_new(0, 0, 64), *huge = rates_new(INT64_MAX, INT64_MAX, 64);

	for (int i = 0; i < 1000; i++) {
		assert_true(rates_take(none, 1, 0, NULL));
		assert_true(rates_take(huge, 1, INT64_MAX / 4 * (i % 4), NULL));
	}
	rates_free(none);
	rates_free(huge);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_client_gets_its_burst_and_then_its_rate),
		cmocka_unit_test(one_client_does_not_use_up_what_another_has),
		cmocka_unit_test(a_flood_of_strangers_does_not_give_a_client_more),
		cmocka_unit_test(no_rate_is_no_limit_and_huge_ones_do_not_overflow),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
