/* suggest_test.c - typing errors are recognized, other words are not */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/suggest.h"

static void the_nearest_command_is_suggested(void **state)
{
	(void)state;
	assert_string_equal(suggest_command("sumbit"), "submit");
	assert_string_equal(suggest_command("staus"), "status");
	assert_string_equal(suggest_command("quue"), "queue");
	assert_string_equal(suggest_command("create-tennant"), "create-tenant");
	assert_string_equal(suggest_command("est"), "estimate");
}

static void a_command_of_another_scheduler_is_answered_with_ours(void **state)
{
	(void)state;
	assert_string_equal(suggest_command("sbatch"), "submit");
	assert_string_equal(suggest_command("scancel"), "cancel");
}

static void a_word_that_is_like_none_is_left_alone(void **state)
{
	(void)state;
	assert_null(suggest_command("guess"));
	assert_null(suggest_command("x"));
	assert_null(suggest_command(""));
	assert_null(suggest_command("a-word-that-is-longer-than-any-command-could-ever-be"));
}

static void an_option_is_suggested_only_where_there_is_one(void **state)
{
	(void)state;
	static const struct option some[] = { OPTION("--gpus", "-g", "N", ""),
		                              OPTION("--max-runtime", NULL, "TIME", ""),
		                              { 0 } };
	const struct option *sets[] = { some };
	assert_string_equal(option_suggest(sets, 1, suggest_options, "--gpu"), "--gpus");
	assert_string_equal(option_suggest(sets, 1, suggest_options, "--time"), "--max-runtime");
	assert_string_equal(option_suggest(sets, 1, suggest_options, "--max"), "--max-runtime");
	assert_null(option_suggest(sets, 1, suggest_options, "--mem"));
	assert_null(option_suggest(sets, 1, suggest_options, "-x"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_nearest_command_is_suggested),
		cmocka_unit_test(a_command_of_another_scheduler_is_answered_with_ours),
		cmocka_unit_test(a_word_that_is_like_none_is_left_alone),
		cmocka_unit_test(an_option_is_suggested_only_where_there_is_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
