/* traits_test.c - what jobs are compared by */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/predict/traits.h"

static void assert_pattern(const char *name, const char *expected)
{
	struct buffer buffer = { 0 };
	predict_pattern(&buffer, name);
	assert_string_equal(buffer.data, expected);
	assert_int_equal(buffer.size, strlen(expected));
	buffer_free(&buffer);
}

static void what_varies_is_cut_out_of_names(void **state)
{
	(void)state;
	assert_pattern("train-17", "train-#");
	assert_pattern("Train_017b", "train_#b");
	assert_pattern("v1.12.3", "v#.#.#");
	assert_pattern("nightly 2026-11-15", "nightly #-#-#");
	assert_pattern("run-2026-11-15T08:30", "run-#-#-#t#:#");
	assert_pattern("build-3f2a9c1b7", "build-#");
	assert_pattern("sha-DEADBEEF01aa", "sha-#");
	assert_pattern("job-550e8400-e29b-41d4-a716-446655440000-x", "job-#-x");
	assert_pattern("job-550e8400-e29b-41d4-a716", "job-#-e#b-#d#-a#");
	assert_pattern("12345678", "#");
	assert_pattern("7", "#");
	assert_pattern("", "");
	assert_pattern("---", "---");
}

static void words_stay_in_names(void **state)
{
	(void)state;
	assert_pattern("deadbeef", "deadbeef");
	assert_pattern("decade2024", "decade#");
	assert_pattern("made12345678", "made#");
	assert_pattern("a1b2c3", "a#b#c#");
	assert_pattern("\xc3\x9c"
	               "bung-\xe6\xa8\xa1\xe5\x9e\x8b-7",
	               "\xc3\x9c"
	               "bung-\xe6\xa8\xa1\xe5\x9e\x8b-#");
}

/* A name of 127 letters and characters of three bytes has no room for the first of those. */
static void long_names_are_cut_between_characters(void **state)
{
	(void)state;
	const char character[3] = { '\xe6', '\xa8', '\xa1' };
	char name[1000] = "", expected[200] = "";
	memset(name, 'x', 127);
	memset(expected, 'x', 127);
	for (size_t i = 127; i + 3 < sizeof(name); i += 3)
		memcpy(name + i, character, sizeof(character));
	assert_pattern(name, expected);

	memset(name, 'x', 999);
	memset(expected, 'x', 128);
	assert_pattern(name, expected);

	memset(name, 0x80, 999);
	assert_pattern(name, "");
}

static void jobs_without_a_key_have_no_expert_for_it(void **state)
{
	(void)state;
	struct traits traits = { .user = 7, .tenant = 7, .size = 1000 };
	traits_set_name(&traits, "");
	assert_int_equal(traits_key(&traits, BY_USER_NAME), 0);
	assert_int_equal(traits_key(&traits, BY_USER_LIMIT), 0);
	assert_int_equal(traits_key(&traits, BY_TENANT), 0);
	assert_true(traits_key(&traits, BY_USER) > 0);
	assert_true(traits_key(&traits, BY_NOTHING) > 0);
	traits_set_name(&traits, "train");
	assert_true(traits_key(&traits, BY_USER_NAME) > 0);
	assert_int_equal(traits_key(&traits, BY_PATTERN), 0);
	traits_set_name(&traits, "train-1");
	int64_t pattern = traits_key(&traits, BY_PATTERN), name = traits_key(&traits, BY_NAME);
	traits_set_name(&traits, "train-2");
	assert_int_equal(traits_key(&traits, BY_PATTERN), pattern);
	assert_int_not_equal(traits_key(&traits, BY_NAME), name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_varies_is_cut_out_of_names),
		cmocka_unit_test(words_stay_in_names),
		cmocka_unit_test(long_names_are_cut_between_characters),
		cmocka_unit_test(jobs_without_a_key_have_no_expert_for_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
