/* duration_test.c - tests of durations */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/duration.h"

static int64_t duration(const char *text)
{
	int64_t ms = -1;
	duration_read(text_of(text), 36500 * DAY_MS, &ms);
	return ms;
}

static void durations_are_parts_with_units_or_seconds(void **state)
{
	(void)state;
	assert_int_equal(duration("0"), 0);
	assert_int_equal(duration("90"), 90000);
	assert_int_equal(duration("1.5"), 1500);
	assert_int_equal(duration("2h30m"), 9000000);
	assert_int_equal(duration("1d12h"), 129600000);
	assert_int_equal(duration("1.5h"), 5400000);
	assert_int_equal(duration(".5h"), 1800000);
	assert_int_equal(duration("250ms"), 250);
	assert_int_equal(duration("1w"), 604800000);
	assert_int_equal(duration("36500d"), 36500 * DAY_MS);
}

static void fractions_of_a_millisecond_are_rounded_up(void **state)
{
	(void)state;
	assert_int_equal(duration("0.3333333333333333h"), 1199999);
	assert_int_equal(duration("1.5ms"), 2);
}

static void durations_are_read_as_slurm_writes_them(void **state)
{
	(void)state;
	assert_int_equal(duration("2:00:00"), 7200000);
	assert_int_equal(duration("100:30:05"), 361805000);
	assert_int_equal(duration("1-12:00:00"), 129600000);
	/* Slurm means minutes and seconds, other programs hours and minutes. */
	assert_int_equal(duration("10:00"), -1);
	assert_int_equal(duration("2:60:00"), -1);
	assert_int_equal(duration("1-24:00:00"), -1);
	assert_int_equal(duration("2:00:00x"), -1);
	assert_int_equal(duration("2:-1:00"), -1);
}

static void what_is_no_duration_is_refused_and_changes_nothing(void **state)
{
	(void)state;
	static const char *const wrong[] = { "",        "h",    "2x",     "2h30",
		                             "-1h",     "2 h",  "2H",     "1.h",
		                             "h2",      "1e9d", "36501d", "99999999999999999999",
		                             "1w99999d" };
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(duration(wrong[i]), -1);
}

static void the_longest_is_what_the_caller_allows(void **state)
{
	(void)state;
	int64_t ms = 77;
	assert_true(duration_read(TEXT("1m"), MINUTE_MS, &ms));
	assert_false(duration_read(TEXT("1m1ms"), MINUTE_MS, &ms));
	assert_false(duration_read(TEXT("0:01:01"), MINUTE_MS, &ms));
	assert_int_equal(ms, MINUTE_MS);
}

static void assert_printed(void (*print)(struct buffer *, int64_t), int64_t ms, const char *text)
{
	struct buffer buffer = { 0 };
	print(&buffer, ms);
	assert_string_equal(buffer.data, text);
	buffer_free(&buffer);
}

static void durations_are_written_by_their_two_largest_units(void **state)
{
	(void)state;
	assert_printed(duration_print, 0, "0s");
	assert_printed(duration_print, 999, "0s");
	assert_printed(duration_print, 12000, "12s");
	assert_printed(duration_print, 60000, "1m");
	assert_printed(duration_print, 9001000, "2h30m");
	assert_printed(duration_print, 90061000, "1d1h");
}

static void or_by_hours_minutes_and_seconds(void **state)
{
	(void)state;
	assert_printed(duration_print_hours, -5, "0s");
	assert_printed(duration_print_hours, 12999, "12s");
	assert_printed(duration_print_hours, 60000, "1m0s");
	assert_printed(duration_print_hours, 93780000, "26h3m0s");
}

static void a_time_is_in_the_bucket_that_ends_nearest_above_it(void **state)
{
	(void)state;
	for (int64_t ms = 0; ms < 2000000; ms = ms < 5000 ? ms + 1 : ms + ms / 50) {
		int bucket = duration_bucket(ms);
		if (bucket < DURATION_BUCKETS - 1)
			assert_true(ms <= duration_longest_ms(bucket));
		assert_true(bucket == 0 || ms > duration_longest_ms(bucket - 1));
	}
	assert_int_equal(duration_bucket(-5), 0);
	assert_int_equal(duration_bucket(INT64_MAX), DURATION_BUCKETS - 1);
}

static void a_bucket_is_a_quarter_of_its_times_wide_at_most(void **state)
{
	(void)state;
	for (int at = 8; at < DURATION_BUCKETS; at++) {
		int64_t least = duration_longest_ms(at - 1) + 1;
		assert_true((duration_longest_ms(at) - least) * 4 <= least);
	}
}

static void percentiles_are_those_of_what_was_counted(void **state)
{
	int64_t counts[DURATION_BUCKETS] = { 0 };

	(void)state;
	assert_int_equal(duration_percentile_ms(counts, 50), -1);
	for (int64_t ms = 0; ms < 100; ms++)
		counts[duration_bucket(ms)]++;
	assert_in_range(duration_percentile_ms(counts, 50), 49, 49 * 5 / 4);
	assert_in_range(duration_percentile_ms(counts, 99), 98, 98 * 5 / 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(durations_are_parts_with_units_or_seconds),
		cmocka_unit_test(fractions_of_a_millisecond_are_rounded_up),
		cmocka_unit_test(durations_are_read_as_slurm_writes_them),
		cmocka_unit_test(what_is_no_duration_is_refused_and_changes_nothing),
		cmocka_unit_test(the_longest_is_what_the_caller_allows),
		cmocka_unit_test(durations_are_written_by_their_two_largest_units),
		cmocka_unit_test(or_by_hours_minutes_and_seconds),
		cmocka_unit_test(a_time_is_in_the_bucket_that_ends_nearest_above_it),
		cmocka_unit_test(a_bucket_is_a_quarter_of_its_times_wide_at_most),
		cmocka_unit_test(percentiles_are_those_of_what_was_counted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
