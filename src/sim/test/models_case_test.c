/* models_case_test.c - cases of models are read as they are meant, or refused with what is wrong */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "sim/scenario/models_case.h"

/* A case with these steps on one runner of two GPUs, read; quotes are ' here. */
struct reading_case {
	json_t *json;
	struct models_case models_case;
	struct error error;
	bool fine;
};

#define FRAME "{'name': 'a case', 'policy': 'pack', 'runners': [%s], 'steps': [%s]}"

static struct reading_case read_case(const char *runners, const char *steps)
{
	struct buffer text = { 0 };
	struct reading_case reading = { 0 };
	buffer_print(&text, FRAME, runners, steps);
	for (size_t i = 0; i < text.size; i++) {
		if (text.data[i] == '\'')
			text.data[i] = '"';
	}
	reading.json = json_loads(text.data, 0, NULL);
	assert_non_null(reading.json);
	reading.fine = models_case_read(&reading.models_case, reading.json, &reading.error);
	buffer_free(&text);
	return reading;
}

static struct reading_case read_steps(const char *steps)
{
	return read_case("{'name': 'r1', 'gpus_gib': [80, 0.5]}", steps);
}

static void models_case_finish(struct reading_case *reading)
{
	models_case_free(&reading->models_case);
	json_decref(reading->json);
}

static void memory_asked_for_is_rounded_up_and_memory_there_is_rounded_down(void **state)
{
	(void)state;
	struct reading_case reading =
	    read_case("{'name': 'r1', 'gpus_gib': [74.49]}",
	              "{'do': 'request', 'model': 'm', 'memory_gib': 74.49}");
	assert_true(reading.fine);
	assert_int_equal(reading.models_case.runners[0].gpu_mib[0], 76277);
	assert_int_equal(reading.models_case.steps[0].memory_mib, 76278);
	models_case_finish(&reading);
}

static void whole_gibibytes_are_not_rounded(void **state)
{
	(void)state;
	struct reading_case reading =
	    read_steps("{'do': 'request', 'model': 'm', 'memory_gib': 80, 'per_gpu_gib': 0.5}");
	assert_true(reading.fine);
	assert_int_equal(reading.models_case.runners[0].gpu_mib[0], 81920);
	assert_int_equal(reading.models_case.runners[0].gpu_mib[1], 512);
	assert_int_equal(reading.models_case.steps[0].memory_mib, 81920);
	assert_int_equal(reading.models_case.steps[0].per_gpu_mib, 512);
	assert_int_equal(reading.models_case.policy, SLOT_PACK);
	models_case_finish(&reading);
}

static void what_is_not_said_is_known_as_such(void **state)
{
	(void)state;
	struct reading_case reading = read_steps("{'do': 'request', 'model': 'm'}");
	const struct model_step *step = &reading.models_case.steps[0];
	assert_true(reading.fine);
	assert_int_equal(step->memory_mib, -1);
	assert_int_equal(step->gpu, -1);
	assert_int_equal(step->evicted, -1);
	assert_int_equal(step->expect, EXPECT_NOTHING);
	assert_false(step->withhold);
	assert_false(step->replica);
	models_case_finish(&reading);
}

static void a_replica_is_asked_for_by_number_or_by_true(void **state)
{
	(void)state;
	struct reading_case reading =
	    read_steps("{'do': 'request', 'model': 'm', 'replica': 2},"
	               "{'do': 'request', 'model': 'm', 'replica': true},"
	               "{'do': 'request', 'model': 'm', 'replica': false, 'leave': 'starting',"
	               " 'confirm_release': false}");
	assert_true(reading.fine);
	assert_true(reading.models_case.steps[0].replica);
	assert_true(reading.models_case.steps[1].replica);
	assert_false(reading.models_case.steps[2].replica);
	assert_int_equal(reading.models_case.steps[2].answer, ANSWER_STARTING);
	assert_true(reading.models_case.steps[2].withhold);
	models_case_finish(&reading);
}

static void the_model_in_a_key_is_found(void **state)
{
	(void)state;
	char name[32];
	assert_true(alone_model("qwen3:30b_alone_on_its_gpu", name, sizeof(name)));
	assert_string_equal(name, "qwen3:30b");
	assert_false(alone_model("_alone_on_its_gpu", name, sizeof(name)));
	assert_false(alone_model("alone", name, sizeof(name)));
}

static void expect_refusal(const char *steps, const char *sentence)
{
	struct reading_case reading = read_steps(steps);
	assert_false(reading.fine);
	assert_string_equal(reading.error.text, sentence);
	models_case_finish(&reading);
}

static void fields_that_no_step_has_are_refused(void **state)
{
	(void)state;
	expect_refusal("{'do': 'dance'}", "steps[0].do is 'dance', which is not a step");
	expect_refusal("{'model': 'm'}", "steps[0].do is missing");
	expect_refusal("{'do': 'settle'}, {'do': 'busy', 'model': 'm', 'hold': true}",
	               "steps[1].hold is not a field of busy");
	expect_refusal("{'do': 'check', 'no_gpu_over_capcity': true}",
	               "steps[0].no_gpu_over_capcity is not a field of check");
}

static void values_of_the_wrong_kind_are_refused(void **state)
{
	(void)state;
	expect_refusal("{'do': 'busy'}", "steps[0].model is missing");
	expect_refusal("{'do': 'request', 'model': 7}",
	               "steps[0].model must be a non-empty string");
	expect_refusal("{'do': 'request', 'model': 'm', 'memory_gib': '80'}",
	               "steps[0].memory_gib must be a number from 0 to 1000000");
	expect_refusal("{'do': 'request', 'model': 'm', 'memory_gib': -1}",
	               "steps[0].memory_gib must be a number from 0 to 1000000");
	expect_refusal("{'do': 'request', 'model': 'm', 'gpu_count': 0}",
	               "steps[0].gpu_count must be a whole number from 1 to 16");
	expect_refusal("{'do': 'request', 'model': 'm', 'runner': 'r9'}",
	               "steps[0].runner 'r9' is not a runner of the case");
	expect_refusal("{'do': 'check', 'placed': 'm'}", "steps[0].placed must be an array, [...]");
	expect_refusal("{'do': 'check', 'gone': [1]}", "steps[0].gone must be an array of strings");
	expect_refusal("{'do': 'check', 'active_requests': {'m': -1}}",
	               "steps[0].active_requests must have a whole number from 0 for m");
	expect_refusal("{'do': 'check', 'distinct_gpus': 1}",
	               "steps[0].distinct_gpus must be true or false");
	expect_refusal("{'do': 'prewarm', 'models': {'m': 'big'}}",
	               "steps[0].m must be a number from 0 to 1000000");
}

static void expectations_are_those_of_the_step(void **state)
{
	(void)state;
	expect_refusal(
	    "{'do': 'request', 'model': 'm', 'expect': 'served'}",
	    "steps[0].expect cannot be 'served' for request, only one of: placed waiting "
	    "unschedulable");
	expect_refusal("{'do': 'dispatch', 'model': 'm', 'expect': 'happy'}",
	               "steps[0].expect must be one of: anything, placed, waiting, "
	               "unschedulable, served, queued, served_or_queued, failed, running");
	expect_refusal("{'do': 'request', 'model': 'm', 'leave': 'ready'}",
	               "steps[0].leave can only be starting");
}

static void a_case_needs_runners_with_names_of_their_own(void **state)
{
	(void)state;
	struct reading_case reading = read_case("", "");
	assert_string_equal(reading.error.text, "runners is empty");
	models_case_finish(&reading);
	reading = read_case("{'name': 'r', 'gpus_gib': [1]}, {'name': 'r', 'gpus_gib': [1]}", "");
	assert_string_equal(reading.error.text, "runners[1].name 'r' is used twice");
	models_case_finish(&reading);
	reading = read_case("{'name': 'r', 'gpus': [1]}", "");
	assert_string_equal(reading.error.text, "runners[0].gpus_gib is missing");
	models_case_finish(&reading);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_asked_for_is_rounded_up_and_memory_there_is_rounded_down),
		cmocka_unit_test(whole_gibibytes_are_not_rounded),
		cmocka_unit_test(what_is_not_said_is_known_as_such),
		cmocka_unit_test(a_replica_is_asked_for_by_number_or_by_true),
		cmocka_unit_test(the_model_in_a_key_is_found),
		cmocka_unit_test(fields_that_no_step_has_are_refused),
		cmocka_unit_test(values_of_the_wrong_kind_are_refused),
		cmocka_unit_test(expectations_are_those_of_the_step),
		cmocka_unit_test(a_case_needs_runners_with_names_of_their_own),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
