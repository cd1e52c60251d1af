/* options_test.c - numbers in options are read as they are meant, or refused */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/options.h"

static int64_t test_options_number(const char *text, int64_t most)
{
	int64_t value = -1;
	struct error error = { 0 };
	return options_number("--n", text, most, &value, &error) ? value : -1;
}

static void numbers_may_have_a_unit(void **state)
{
	(void)state;
	assert_int_equal(test_options_number("1", 10), 1);
	assert_int_equal(test_options_number("010", 10), 10);
	assert_int_equal(test_options_number("8k", 8192), 8192);
	assert_int_equal(test_options_number("2M", INT64_MAX), 2 << 20);
}

static void numbers_out_of_range_or_with_more_behind_are_refused(void **state)
{
	(void)state;
	assert_int_equal(test_options_number("0", 10), -1);
	assert_int_equal(test_options_number("11", 10), -1);
	assert_int_equal(test_options_number("8k", 8191), -1);
	assert_int_equal(test_options_number("", 10), -1);
	assert_int_equal(test_options_number("k", 10000), -1);
	assert_int_equal(test_options_number("1kk", 10000), -1);
	assert_int_equal(test_options_number("1 ", 10), -1);
	assert_int_equal(test_options_number("+1", 10), -1);
	assert_int_equal(test_options_number("1.5", 10), -1);
	assert_int_equal(test_options_number("99999999999999999999", INT64_MAX), -1);
}

static void lists_have_commas_between_their_numbers(void **state)
{
	(void)state;
	int64_t numbers[3];
	struct error error = { 0 };
	assert_int_equal(options_numbers("--n", "1,2k,3", 4096, numbers, 3, &error), 3);
	assert_int_equal(numbers[1], 2048);
	assert_int_equal(options_numbers("--n", "7", 10, numbers, 3, &error), 1);
	assert_int_equal(options_numbers("--n", "", 10, numbers, 3, &error), -1);
	assert_int_equal(options_numbers("--n", "1,", 10, numbers, 3, &error), -1);
	assert_int_equal(options_numbers("--n", "1;2", 10, numbers, 3, &error), -1);
	assert_int_equal(options_numbers("--n", "1,2,3,4", 10, numbers, 3, &error), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_may_have_a_unit),
		cmocka_unit_test(numbers_out_of_range_or_with_more_behind_are_refused),
		cmocka_unit_test(lists_have_commas_between_their_numbers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
