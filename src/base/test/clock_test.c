/* clock_test.c - tests of the clocks */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"

static int64_t time_ns(struct timespec time)
{
	return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void units_of_one_clock_agree(void **state)
{
	(void)state;
	int64_t before_s = (int64_t)time(NULL), us = clock_unix_us(), ms = clock_unix_ms();
	assert_true(us / 1000000 >= before_s - 1);
	assert_true(us / 1000 <= ms);
	int64_t steady_us = clock_steady_us(), boot_us = clock_boot_us();
	assert_true(steady_us / 1000 <= clock_steady_ms());
	assert_true(boot_us / 1000 <= clock_boot_ms());
	assert_true(clock_s(CLOCK_MONOTONIC) >= (double)steady_us / 1e6);
}

static void a_wait_ends_that_much_later(void **state)
{
	(void)state;
	int64_t before_ns = clock_ns(CLOCK_MONOTONIC);
	struct timespec until = clock_after_us(CLOCK_MONOTONIC, 1999999);
	int64_t after_ns = clock_ns(CLOCK_MONOTONIC);
	assert_in_range(until.tv_nsec, 0, 999999999);
	assert_true(time_ns(until) >= before_ns + 1999999000);
	assert_true(time_ns(until) <= after_ns + 1999999000);
}

static void a_negative_wait_is_now_and_an_endless_one_does_not_overflow(void **state)
{
	(void)state;
	struct timespec now = clock_after_us(CLOCK_MONOTONIC, INT64_MIN);
	assert_true(time_ns(now) <= clock_ns(CLOCK_MONOTONIC));
	struct timespec never = clock_after_us(CLOCK_MONOTONIC, INT64_MAX);
	assert_true(time_ns(never) > clock_ns(CLOCK_MONOTONIC));
	assert_in_range(never.tv_nsec, 0, 999999999);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(units_of_one_clock_agree),
		cmocka_unit_test(a_wait_ends_that_much_later),
		cmocka_unit_test(a_negative_wait_is_now_and_an_endless_one_does_not_overflow),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
