/* options_test.c - options are taken as they are meant, or refused */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/options.h"

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
	                    "unknown option '--siz'; did you mean --size?");
	assert_string_equal(READ("--colour=red").error.text, "unknown option '--colour'");
}

/* Where options are stored. */
struct target {
	const char *name, *mode;
	bool loud;
	int64_t size;
};

static const struct option stored[] = {
	OPTION("--name", "-n", "TEXT", "what it is called", STORES_TEXT(struct target, name)),
	OPTION("--mode", NULL, "fast|slow", "how", STORES_TEXT(struct target, mode),
	       .words = "fast slow"),
	OPTION("--loud", NULL, NULL, "loudly", STORES_FLAG(struct target, loud)),
	OPTION("--max-size", NULL, "N", "in KiB", STORES_NUMBER(struct target, size, 1, 10),
	       .unit = 1024, .repeats = true),
	{ 0 },
};

static struct target store(struct error *error, int argc, const char *const *argv)
{
	struct target target = { .size = -1 };
	char *words[8];

	for (int i = 0; i < argc; i++)
		words[i] = (char *)(uintptr_t)argv[i];
	if (options_store(stored, argc, words, &target, error))
		assert_int_equal(error->code, ERROR_NONE);
	else
		assert_int_equal(error->code, ERROR_INVALID);
	return target;
}
#define STORE(...) store(&error, WORDS(__VA_ARGS__))

static void options_are_stored_where_their_table_says(void **state)
{
	(void)state;
	struct error error = { 0 };
	struct target target = STORE("-nx", "--mode=slow", "--loud", "--max-size", "3");
	assert_string_equal(target.name, "x");
	assert_string_equal(target.mode, "slow");
	assert_true(target.loud);
	assert_int_equal(target.size, 3072);
	assert_false(STORE("--loud=false").loud);
	assert_int_equal(STORE("--max-size=1", "--max-size=2").size, 2048);
}

static void values_that_an_option_may_not_have_are_refused(void **state)
{
	(void)state;
	static const struct {
		const char *argument, *reason;
	} wrong[] = {
		{ "--max-size=11", "--max-size is '11': it is a number from 1 to 10" },
		{ "--max-size=x", "--max-size is 'x': it is a number from 1 to 10" },
		{ "--mode=medium", "--mode is 'medium': it is one of: fast slow" },
		{ "--mode=", "--mode is '': it is one of: fast slow" },
		{ "--loud=maybe", "--loud is 'maybe': it is true or false" },
		{ "--lod", "unknown option '--lod'; did you mean --loud?" },
		{ "word", "unexpected argument 'word'" },
	};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct error error = { 0 };
		STORE(wrong[i].argument);
		assert_string_equal(error.text, wrong[i].reason);
	}
}

static void the_environment_has_an_option_by_its_name(void **state)
{
	(void)state;
	struct target target = { 0 };
	struct arena arena = { 0 };
	struct error error = { 0 };
	setenv("PROGRAM_NAME", "of the environment", 1);
	setenv("PROGRAM_MAX_SIZE", "4", 1);
	setenv("PROGRAM_LOUD", "1", 1);
	setenv("PROGRAM_MODE", "", 1);
	assert_true(options_store_environment(stored, "PROGRAM", &target, &arena, &error));
	assert_string_equal(target.name, "of the environment");
	assert_int_equal(target.size, 4096);
	assert_true(target.loud);
	assert_null(target.mode);
	setenv("PROGRAM_MODE", "medium", 1);
	assert_false(options_store_environment(stored, "PROGRAM", &target, &arena, &error));
	arena_free(&arena);
}

static void help_has_no_line_over_80_columns(void **state)
{
	(void)state;
	static const struct option table[] = {
		OPTION("--short", "-s", NULL, "says little"),
		OPTION("--an-option-with-a-long-name", NULL, "VALUE",
		       "has its help below, in words that are many more than fit into a single "
		       "line of the terminal that they are read on"),
		OPTION("--hidden", NULL, NULL, NULL),
		{ 0 },
	};
	char text[1024] = "";
	FILE *file = fmemopen(text, sizeof(text), "w");
	options_print(file, table);
	fclose(file);
	assert_ptr_equal(strstr(text, "  -s, --short                says little\n"), text);
	assert_null(strstr(text, "--hidden"));
	for (char *line = text; *line; line += strcspn(line, "\n") + 1)
		assert_true(strcspn(line, "\n") <= 80);
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
		cmocka_unit_test(options_are_stored_where_their_table_says),
		cmocka_unit_test(values_that_an_option_may_not_have_are_refused),
		cmocka_unit_test(the_environment_has_an_option_by_its_name),
		cmocka_unit_test(help_has_no_line_over_80_columns),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
