/* latency_test.c - buckets of times */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../latency.h"

static void a_time_is_in_the_bucket_that_ends_nearest_above_it(void **state)
{
	(void)state;
	for (int64_t ms = 0; ms < 2000000; ms = ms < 5000 ? ms + 1 : ms + ms / 50) {
		int bucket = latency_bucket(ms);
		if (bucket < LATENCY_BUCKETS - 1)
			assert_true(ms <= latency_longest_ms(bucket));
		assert_true(bucket == 0 || ms > latency_longest_ms(bucket - 1));
	}
	assert_int_equal(latency_bucket(-5), 0);
	assert_int_equal(latency_bucket(INT64_MAX), LATENCY_BUCKETS - 1);
}

static void a_bucket_is_a_quarter_of_its_times_wide_at_most(void **state)
{
	(void)state;
	for (int at = 8; at < LATENCY_BUCKETS; at++) {
		int64_t least = latency_longest_ms(at - 1) + 1;
		assert_true((latency_longest_ms(at) - least) * 4 <= least);
	}
}

static void percentiles_are_those_of_what_was_counted(void **state)
{
	int64_t counts[LATENCY_BUCKETS] = { 0 };

	(void)state;
	assert_int_equal(latency_percentile_ms(counts, 50), -1);
	for (int64_t ms = 0; ms < 100; ms++)
		counts[latency_bucket(ms)]++;
	assert_in_range(latency_percentile_ms(counts, 50), 49, 49 * 5 / 4);
	assert_in_range(latency_percentile_ms(counts, 99), 98, 98 * 5 / 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_time_is_in_the_bucket_that_ends_nearest_above_it),
		cmocka_unit_test(a_bucket_is_a_quarter_of_its_times_wide_at_most),
		cmocka_unit_test(percentiles_are_those_of_what_was_counted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
