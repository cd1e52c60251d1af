/* type_demand_test.c - the models of GPUs that jobs insist on */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/place/type_demand.h"

static void what_is_asked_for_adds_up_by_set_of_models(void **state)
{
	struct type_demand insist = { 0 };
	(void)state;
	type_demand_add(&insist, "A100", 1000);
	type_demand_add(&insist, "A100|H100", 500);
	type_demand_add(&insist, "A100", 2000);
	assert_string_equal(type_demand_text(&insist), "A100\nA100|H100");
	assert_int_equal(type_demand_rows(&insist).count, 2);
	assert_int_equal(type_demand_rows(&insist).at[0], 3000);
	assert_int_equal(type_demand_rows(&insist).at[1], 500);
	type_demand_free(&insist);
	assert_string_equal(type_demand_text(&insist), "");
}

static void what_asks_for_no_gpu_is_no_demand(void **state)
{
	struct type_demand insist = { 0 };
	(void)state;
	type_demand_add(&insist, "A100", 0);
	assert_int_equal(insist.count, 0);
}

static void what_counts_half_and_then_nothing_is_forgotten(void **state)
{
	struct type_demand insist = { 0 };
	(void)state;
	type_demand_add(&insist, "A100", 1);
	type_demand_add(&insist, "H100", 1000);
	type_demand_halve(&insist);
	assert_string_equal(type_demand_text(&insist), "H100");
	assert_int_equal(type_demand_rows(&insist).at[0], 500);
	type_demand_free(&insist);
}

static void the_least_asked_for_gives_way_to_one_more_set(void **state)
{
	struct type_demand insist = { 0 };
	char name[16];
	(void)state;
	for (int i = 0; i <= TYPE_DEMAND_SETS; i++) {
		snprintf(name, sizeof(name), "model-%02d", i);
		type_demand_add(&insist, name, i == 7 ? 10 : 1000);
	}
	assert_int_equal(insist.count, TYPE_DEMAND_SETS);
	assert_null(strstr(type_demand_text(&insist), "model-07"));
	assert_non_null(strstr(type_demand_text(&insist), name));
	type_demand_free(&insist);
}

static void what_was_written_is_loaded_again(void **state)
{
	struct type_demand insist = { 0 }, loaded = { 0 };
	struct error error;
	(void)state;
	type_demand_add(&insist, "A100", 1000);
	type_demand_add(&insist, "H100|H200", 700);
	assert_true(type_demand_load(&loaded, type_demand_text(&insist), type_demand_rows(&insist),
	                             1700, &error));
	assert_string_equal(type_demand_text(&loaded), "A100\nH100|H200");
	type_demand_add(&loaded, "H100|H200", 1);
	assert_int_equal(type_demand_rows(&loaded).at[1], 701);
	type_demand_free(&insist);
	type_demand_free(&loaded);
}

static void sets_and_amounts_that_contradict_each_other_are_refused(void **state)
{
	struct type_demand insist = { 0 };
	const int64_t amounts[] = { 5, 0 }, *large = amounts;
	const struct {
		const char *text;
		struct rows rows;
		int64_t most;
	} wrong[] = {
		{ "A100", { .at = amounts, .count = 0 }, 5 },
		{ "", { .at = amounts, .count = 1 }, 5 },
		{ "A100\nH100", { .at = amounts, .count = 2 }, 5 },
		{ "A100", { .at = large, .count = 1 }, 4 },
	};
	(void)state;
	type_demand_add(&insist, "L4", 9);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct error error = { 0 };
		assert_false(
		    type_demand_load(&insist, wrong[i].text, wrong[i].rows, wrong[i].most, &error));
		assert_int_equal(error.code, ERROR_CORRUPT);
	}
	assert_string_equal(type_demand_text(&insist), "L4");
	type_demand_free(&insist);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_asked_for_adds_up_by_set_of_models),
		cmocka_unit_test(what_asks_for_no_gpu_is_no_demand),
		cmocka_unit_test(what_counts_half_and_then_nothing_is_forgotten),
		cmocka_unit_test(the_least_asked_for_gives_way_to_one_more_set),
		cmocka_unit_test(what_was_written_is_loaded_again),
		cmocka_unit_test(sets_and_amounts_that_contradict_each_other_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
