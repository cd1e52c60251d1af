/* spelling_test.c - how far words are apart */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/spelling.h"

static void a_letter_more_less_other_or_swapped_is_one_away(void **state)
{
	(void)state;
	assert_int_equal(spelling_distance("submit", "submit"), 0);
	assert_int_equal(spelling_distance("submt", "submit"), 1);
	assert_int_equal(spelling_distance("submmit", "submit"), 1);
	assert_int_equal(spelling_distance("submot", "submit"), 1);
	assert_int_equal(spelling_distance("sumbit", "submit"), 1);
	assert_int_equal(spelling_distance("", "submit"), 6);
}

static void words_that_are_too_long_are_far_from_all(void **state)
{
	char longest[64], longer[65];
	(void)state;
	memset(longest, 'a', 63);
	memset(longer, 'a', 64);
	longest[63] = longer[64] = '\0';
	assert_int_equal(spelling_distance(longest, "a"), 62);
	assert_int_equal(spelling_distance(longer, "a"), INT_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_letter_more_less_other_or_swapped_is_one_away),
		cmocka_unit_test(words_that_are_too_long_are_far_from_all),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
