/* number_text_test.c - tests of numbers from text */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/number_text.h"

static void whole_numbers_are_read_up_to_their_bounds(void **state)
{
	(void)state;
	int64_t number = 0;
	assert_true(number_read(TEXT("0"), 0, 10, &number));
	assert_int_equal(number, 0);
	assert_true(number_read(TEXT("-5"), -5, 5, &number));
	assert_int_equal(number, -5);
	assert_true(number_read(TEXT("007"), 0, 10, &number));
	assert_int_equal(number, 7);
	assert_true(number_read(TEXT("9223372036854775807"), 0, INT64_MAX, &number));
	assert_int_equal(number, INT64_MAX);
	assert_true(number_read(TEXT("-9223372036854775808"), INT64_MIN, 0, &number));
	assert_int_equal(number, INT64_MIN);
	assert_false(number_read(TEXT("-9223372036854775809"), INT64_MIN, 0, &number));
	assert_true(number_read((struct text){ "42 apples", 2 }, 0, 100, &number));
	assert_int_equal(number, 42);
}

static void what_is_no_number_is_refused_and_changes_nothing(void **state)
{
	(void)state;
	static const char *const wrong[] = { "",
		                             "-",
		                             "+1",
		                             " 1",
		                             "1 ",
		                             "1x",
		                             "0x1",
		                             "1.0",
		                             "1e2",
		                             "--1",
		                             "101",
		                             "-1",
		                             "9223372036854775808" };
	int64_t number = 77;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(number_read(text_of(wrong[i]), 0, 100, &number));
	assert_false(number_read((struct text){ NULL, 0 }, 0, 100, &number));
	assert_false(number_read((struct text){ "1\0002", 3 }, 0, 100, &number));
	assert_int_equal(number, 77);
}

static void decimals_are_scaled_by_their_places(void **state)
{
	(void)state;
	int64_t number = 0;
	assert_true(number_read_decimal(TEXT("1.5"), 3, 0, 10000, &number));
	assert_int_equal(number, 1500);
	assert_true(number_read_decimal(TEXT(".25"), 2, 0, 100, &number));
	assert_int_equal(number, 25);
	assert_true(number_read_decimal(TEXT("-2"), 3, -2000, 0, &number));
	assert_int_equal(number, -2000);
	assert_false(number_read_decimal(TEXT("1."), 3, 0, 10000, &number));
	assert_false(number_read_decimal(TEXT("."), 3, 0, 10000, &number));
	assert_false(number_read_decimal(TEXT("0.0005"), 3, 0, 10000, &number));
	assert_false(number_read_decimal(TEXT("10.001"), 3, 0, 10000, &number));
	assert_false(number_read_decimal(TEXT("9223372036854775807"), 3, 0, INT64_MAX, &number));
	assert_int_equal(number, -2000);
}

static void a_number_is_taken_off_the_front(void **state)
{
	(void)state;
	struct text text = TEXT("12x34");
	int64_t number = 0;
	assert_true(number_take(&text, 100, &number));
	assert_int_equal(number, 12);
	assert_false(number_take(&text, 100, &number));
	assert_true(text_is(text, "x34"));
	text = text_from(text, 1);
	assert_false(number_take(&text, 33, &number));
	assert_true(text_is(text, "34"));
	assert_true(number_take_digits(&text, 1, &number));
	assert_int_equal(number, 3);
	assert_false(number_take_digits(&text, 2, &number));
	assert_true(text_is(text, "4"));
}

static void digits_beyond_the_places_are_left(void **state)
{
	(void)state;
	struct text text = TEXT("1.2345");
	int64_t number = 0;
	assert_true(number_take_decimal(&text, 2, 1000, &number));
	assert_int_equal(number, 123);
	assert_true(text_is(text, "45"));
}

static void a_port_has_at_most_five_digits(void **state)
{
	(void)state;
	int64_t port = 0;
	assert_true(number_read_port(TEXT("65535"), &port));
	assert_int_equal(port, 65535);
	assert_false(number_read_port(TEXT("0"), &port));
	assert_false(number_read_port(TEXT("65536"), &port));
	assert_false(number_read_port(TEXT("000080"), &port));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_numbers_are_read_up_to_their_bounds),
		cmocka_unit_test(what_is_no_number_is_refused_and_changes_nothing),
		cmocka_unit_test(decimals_are_scaled_by_their_places),
		cmocka_unit_test(a_number_is_taken_off_the_front),
		cmocka_unit_test(digits_beyond_the_places_are_left),
		cmocka_unit_test(a_port_has_at_most_five_digits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
