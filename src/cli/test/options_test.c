/* options_test.c - options are taken as they are meant, or refused */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/options.h"

/* What a command with three options makes of its arguments. */
struct outcome {
	const char *size;
	bool loud;
	const char *operands[4];
	int count; /* of operands; -1: refused */
	size_t after_dashes;
	const char *tags[4];
	struct error error;
};

static const struct option options[] = {
	OPTION("--size", "-s", "N", "how large"),
	OPTION("--loud", NULL, NULL, "loudly"),
	OPTION("--tag", "-t", "TEXT", "several", .repeats = true),
	{ 0 },
};

static struct outcome read_as(bool runs, int argc, const char *const *argv)
{
	struct outcome outcome = { 0 };
	struct arguments arguments = { 0 };
	const struct option *sets[] = { options };
	char *words[8];
	size_t at = 0;
	for (int i = 0; i < argc; i++)
		words[i] = (char *)(uintptr_t)argv[i];
	if (arguments_read(&arguments, sets, 1, runs, argc, words, &outcome.error))
		outcome.count = (int)arguments.operand_count;
	else
		outcome.count = -1;
	outcome.size = arguments_value(&arguments, "--size");
	outcome.loud = arguments_has(&arguments, "--loud");
	outcome.after_dashes = arguments.after_dashes;
	for (int i = 0; i < outcome.count && i < 4; i++)
		outcome.operands[i] = arguments.operands[i];
	for (int i = 0; i < 4; i++)
		outcome.tags[i] = arguments_next(&arguments, "--tag", &at);
	arguments_free(&arguments);
	return outcome;
}

#define WORDS(...)                                                                                 \
	sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *), (const char *[])                 \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}
#define READ(...) read_as(false, WORDS(__VA_ARGS__))
#define READ_RUN(...) read_as(true, WORDS(__VA_ARGS__))

static void values_follow_or_come_with_an_equals_sign(void **state)
{
	(void)state;
	assert_string_equal(READ("--size", "4").size, "4");
	assert_string_equal(READ("--size=4").size, "4");
	assert_string_equal(READ("-s", "4").size, "4");
	assert_string_equal(READ("-s4").size, "4");
	assert_string_equal(READ("-s=4").size, "4");
	assert_string_equal(READ("--size=").size, "");
	assert_string_equal(READ("--size", "--loud").size, "--loud");
}

static void options_and_operands_may_be_mixed(void **state)
{
	(void)state;
	struct outcome outcome = READ("a", "--loud", "b");
	assert_true(outcome.loud);
	assert_int_equal(outcome.count, 2);
	assert_string_equal(outcome.operands[1], "b");
}

static void after_two_dashes_all_are_operands(void **state)
{
	(void)state;
	struct outcome outcome = READ("--", "--loud");
	assert_false(outcome.loud);
	assert_string_equal(outcome.operands[0], "--loud");
	assert_int_equal(outcome.after_dashes, 1);
}

static void behind_the_first_word_of_a_command_to_run_all_are_its_own(void **state)
{
	(void)state;
	struct outcome outcome = READ_RUN("--size", "4", "python", "--loud", "--", "x");
	assert_string_equal(outcome.size, "4");
	assert_false(outcome.loud);
	assert_int_equal(outcome.count, 4);
	assert_string_equal(outcome.operands[2], "--");
}

static void an_option_that_repeats_keeps_all_its_values(void **state)
{
	(void)state;
	struct outcome outcome = READ("--tag", "a", "--size=1", "-t", "b");
	assert_string_equal(outcome.tags[0], "a");
	assert_string_equal(outcome.tags[1], "b");
	assert_null(outcome.tags[2]);
}

static void a_single_dash_is_an_operand(void **state)
{
	(void)state;
	assert_string_equal(READ("-").operands[0], "-");
}

static void what_is_not_understood_is_refused(void **state)
{
	(void)state;
	assert_int_equal(READ("--siz", "4").count, -1);
	assert_int_equal(READ("--sizes", "4").count, -1);
	assert_int_equal(READ("--size").count, -1);
	assert_int_equal(READ("--loud=1").count, -1);
	assert_int_equal(READ("--loud", "--loud").count, -1);
	assert_int_equal(READ("-x").count, -1);
	assert_string_equal(READ("--siz=4").error.text,
	                    "there is no option '--siz'; did you mean --size?");
	assert_string_equal(READ("--colour=red").error.text, "there is no option '--colour'");
}

static int64_t number(const char *text, int64_t most)
{
	int64_t value = -1;
	struct error error = { 0 };
	return options_number("--n", text, most, &value, &error) ? value : -1;
}

static void numbers_may_have_a_unit(void **state)
{
	(void)state;
	assert_int_equal(number("1", 10), 1);
	assert_int_equal(number("010", 10), 10);
	assert_int_equal(number("8k", 8192), 8192);
	assert_int_equal(number("2M", INT64_MAX), 2 << 20);
}

static void numbers_out_of_range_or_with_more_behind_are_refused(void **state)
{
	(void)state;
	assert_int_equal(number("0", 10), -1);
	assert_int_equal(number("11", 10), -1);
	assert_int_equal(number("8k", 8191), -1);
	assert_int_equal(number("", 10), -1);
	assert_int_equal(number("k", 10000), -1);
	assert_int_equal(number("1kk", 10000), -1);
	assert_int_equal(number("1 ", 10), -1);
	assert_int_equal(number("+1", 10), -1);
	assert_int_equal(number("1.5", 10), -1);
	assert_int_equal(number("99999999999999999999", INT64_MAX), -1);
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
		cmocka_unit_test(values_follow_or_come_with_an_equals_sign),
		cmocka_unit_test(options_and_operands_may_be_mixed),
		cmocka_unit_test(after_two_dashes_all_are_operands),
		cmocka_unit_test(behind_the_first_word_of_a_command_to_run_all_are_its_own),
		cmocka_unit_test(an_option_that_repeats_keeps_all_its_values),
		cmocka_unit_test(a_single_dash_is_an_operand),
		cmocka_unit_test(what_is_not_understood_is_refused),
		cmocka_unit_test(numbers_may_have_a_unit),
		cmocka_unit_test(numbers_out_of_range_or_with_more_behind_are_refused),
		cmocka_unit_test(lists_have_commas_between_their_numbers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
