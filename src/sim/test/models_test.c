/* models_test.c - what comes out differently from what a case expects is found and named */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sim/scenario/models.h"
#include "sim/scenario/models_run.h"

/* A case with these steps on one runner of two GPUs of 80 GiB; quotes are ' here. */
static json_t *case_of(const char *steps)
{
	struct buffer text = { 0 };
	buffer_print(&text,
	             "{'name': 'a case', 'runners': [{'name': 'r1', 'gpus_gib': [80, 80]}],"
	             " 'steps': [%s]}",
	             steps);
	for (size_t i = 0; i < text.size; i++) {
		if (text.data[i] == '\'')
			text.data[i] = '"';
	}
	json_t *json = json_loads(text.data, 0, NULL);
	assert_non_null(json);
	buffer_free(&text);
	return json;
}

static void expect_verdict(const char *steps, enum verdict wanted, const char *reason)
{
	struct buffer found = { 0 };
	json_t *json = case_of(steps);
	buffer_text(&found, "");
	enum verdict verdict = models_run_case(json, NULL, &found);
	assert_string_equal(found.data, reason);
	assert_int_equal(verdict, wanted);
	buffer_free(&found);
	json_decref(json);
}

static void expect_pass(const char *steps)
{
	expect_verdict(steps, VERDICT_PASSED, "");
}

static void expect_failure(const char *steps, const char *reason)
{
	expect_verdict(steps, VERDICT_FAILED, reason);
}

#define REQUEST(name, gib, more)                                                                   \
	"{'do': 'request', 'model': '" name "', 'memory_gib': " gib more "}"

static void a_case_that_cannot_be_read_is_not_run(void **state)
{
	(void)state;
	expect_verdict("{'do': 'dance'}", VERDICT_UNREADABLE,
	               "the case cannot be read: steps[0].do is 'dance', which is not a step");
}

static void a_wrong_expectation_of_a_request_is_reported(void **state)
{
	(void)state;
	expect_pass(REQUEST("m", "20", ", 'expect': 'placed'"));
	expect_failure(REQUEST("m", "20", ", 'expect': 'waiting'"),
	               "step 1 (request): m should be waiting and is placed");
	expect_failure(REQUEST("m", "20", ", 'expect': 'placed', 'gpu_count': 2"),
	               "step 1 (request): gpu_count of m should be 2 and is 1");
	expect_failure(REQUEST("m", "100", ", 'expect': 'placed', 'per_gpu_gib': 49"),
	               "step 1 (request): m should have 50176 MiB on each GPU and has 51200; "
	               "m should have 50176 MiB on each GPU and has 51200");
	expect_failure(REQUEST("m", "20", ", 'expect': 'placed', 'evicted': 1"),
	               "step 1 (request): evicted for the sake of m should be 1 and is 0");
}

static void a_refusal_that_was_not_expected_comes_with_its_reason(void **state)
{
	(void)state;
	struct buffer found = { 0 };
	json_t *json = case_of(REQUEST("m", "500", ", 'expect': 'placed'"));
	assert_int_equal(models_run_case(json, NULL, &found), VERDICT_FAILED);
	assert_non_null(
	    strstr(found.data, "step 1 (request): m should be placed and is unschedulable: "));
	buffer_free(&found);
	json_decref(json);
	expect_pass(REQUEST("m", "500", ", 'expect': 'unschedulable'"));
}

static void without_an_expectation_only_what_fits_must_be_placed(void **state)
{
	(void)state;
	expect_pass(REQUEST("a", "70", ", 'gpu': 0") ", " REQUEST(
	    "b", "70", ", 'gpu': 0") ", " REQUEST("c", "500", ""));
	expect_pass(REQUEST("a", "70", ", 'gpu': 0") ", " REQUEST(
	    "b", "70", ", 'gpu': 0, 'expect': 'waiting'"));
}

static void a_wrong_expectation_of_a_dispatch_is_reported(void **state)
{
	(void)state;
	expect_failure(REQUEST("m", "20", "") ", {'do': 'dispatch', 'model': 'm',"
	                                      " 'expect': 'queued'}",
	               "step 2 (dispatch): the request for m should be queued and is served");
	expect_failure(REQUEST("m", "20", "") ", {'do': 'dispatch', 'model': 'm', 'fail': true,"
	                                      " 'expect': 'served'}",
	               "step 2 (dispatch): the request for m should be served and is failed");
	expect_failure("{'do': 'dispatch', 'model': 'x'}",
	               "step 1 (dispatch): x is not a model of the case");
}

static void a_check_that_does_not_hold_is_reported(void **state)
{
	(void)state;
	static const struct {
		const char *check, *reason;
	} cases[] = {
		{ "'total_gib': 21", "total_gib should be 21 and is 20.000" },
		{ "'ledger_gib_sorted': [0, 30]",
		  "ledger_gib_sorted[1] should be 30 and is 20.000" },
		{ "'ledger_gib_sorted': [20]",
		  "ledger_gib_sorted has 1 numbers, and there are 2 GPUs" },
		{ "'placed': ['n']", "n should be placed and has 0 slots" },
		{ "'gone': ['m']", "m should be gone and has 1 slots" },
		{ "'min_slots': 2", "there should be at least 2 slots and are 1" },
		{ "'active_requests': {'m': 1}", "active_requests of m should be 1 and is 0" },
		{ "'waiting_requests': {'m': 1}", "waiting_requests of m should be 1 and is 0" },
		{ "'slots': {'m': 2}", "slots of m should be 2 and is 1" },
		{ "'failures': {'m': 1}", "failures of m should be 1 and is 0" },
		{ "'jobs': {'j': 'running'}", "job j should be running and is not known" },
		{ "'parts_gib': {'m': [10, 10]}", "m should have 2 parts and has 1" },
		{ "'parts_gib': {'m': [21]}", "part 0 of m should be 21 GiB and is 20.000" },
		{ "'ledger_same_as_before_restart': true",
		  "ledger_same_as_before_restart should be true: GPU 0 had 0 MiB reserved and has "
		  "20480" },
		{ "'no_gpu_over_capacity': false",
		  "no_gpu_over_capacity should be false: it is not" },
		{ "'n_alone_on_its_gpu': true",
		  "n_alone_on_its_gpu should be true: n has no slot" },
		{ "'m_alone_on_its_gpu': false",
		  "m_alone_on_its_gpu should be false: it is alone" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct buffer steps = { 0 }, reason = { 0 };
		buffer_print(&steps, REQUEST("m", "20", ", 'gpu': 0") ", {'do': 'check', %s}",
		             cases[i].check);
		buffer_print(&reason, "step 2 (check): %s", cases[i].reason);
		expect_failure(steps.data, reason.data);
		buffer_free(&steps);
		buffer_free(&reason);
	}
}

static void slots_that_share_a_gpu_are_found(void **state)
{
	(void)state;
	expect_failure(REQUEST("a", "20", ", 'gpu': 1") ", " REQUEST(
			   "b", "20", ", 'gpu': 1") ", {'do': 'check', 'distinct_gpus': true, "
	                                            "'a_alone_on_its_gpu': true}",
	               "step 3 (check): distinct_gpus should be true: GPU 1 has 2 slots; "
	               "a_alone_on_its_gpu should be true: GPU 1 has 2 slots");
}

static void jobs_that_do_not_do_as_expected_are_reported(void **state)
{
	(void)state;
	expect_failure("{'do': 'submit', 'job': 'j', 'gpus': 1, 'expect': 'waiting'}",
	               "step 1 (submit): job j should be waiting and is running");
	expect_failure("{'do': 'submit', 'job': 'j', 'gpus': 1},"
	               " {'do': 'check', 'jobs': {'j': 'ended'}}",
	               "step 2 (check): job j should be ended and is running");
}

/* A run in which one model of 60 GiB is loaded on GPU 0. */
struct fixture {
	json_t *json;
	struct models_case models_case;
	struct models_run run;
	struct buffer reason;
};

static void models_start(struct fixture *fixture)
{
	struct error error = { 0 };
	*fixture = (struct fixture){ .json = case_of(REQUEST("m", "60", ", 'gpu': 0")) };
	assert_true(models_case_read(&fixture->models_case, fixture->json, &error));
	fixture->run.models_case = &fixture->models_case;
	fixture->run.reason = &fixture->reason;
	buffer_text(&fixture->reason, "");
	assert_true(run_begin(&fixture->run));
	assert_true(step_run(&fixture->run, &fixture->models_case.steps[0]));
}

static void models_conclude(struct fixture *fixture)
{
	run_free(&fixture->run);
	buffer_free(&fixture->reason);
	models_case_free(&fixture->models_case);
	json_decref(fixture->json);
}

static void a_runner_takes_no_more_than_its_gpus_have(void **state)
{
	(void)state;
	struct fixture fixture;
	models_start(&fixture);
	const int64_t parts[PART_WIDTH] = { [PART_GPU] = 1, [PART_MIB] = 30720 };
	struct effect order = { .kind = EFFECT_LOAD };
	order.load = (struct load_order){
		.reservation_id = 99, .model_id = 1, .node_id = 1, .parts = { parts, 1 }
	};
	assert_false(runner_ordered(&fixture.run, &order));
	assert_string_equal(fixture.reason.data,
	                    "r1 was told to put 30720 MiB on GPU 0, which has 61440 of 81920 MiB "
	                    "in use");
	models_conclude(&fixture);
}

static void a_runner_loads_one_model_after_the_other_onto_a_gpu(void **state)
{
	(void)state;
	struct fixture fixture;
	models_start(&fixture);
	const int64_t parts[PART_WIDTH] = { [PART_GPU] = 2, [PART_MIB] = 1024 };
	struct effect order = { .kind = EFFECT_LOAD };
	order.load = (struct load_order){
		.reservation_id = 98, .model_id = 1, .node_id = 1, .parts = { parts, 1 }
	};
	assert_true(runner_ordered(&fixture.run, &order));
	order.load.reservation_id = 99;
	assert_false(runner_ordered(&fixture.run, &order));
	assert_string_equal(fixture.reason.data,
	                    "r1 was told to load two models onto GPU 1 at once");
	models_conclude(&fixture);
}

static void a_request_that_is_over_may_not_be_answered_again(void **state)
{
	(void)state;
	struct fixture fixture;
	models_start(&fixture);
	struct route_effect route = { .outcome = ROUTE_GRANTED, .request_id = 1, .slot_id = 1 };
	assert_false(router_told(&fixture.run, &route));
	assert_string_equal(fixture.reason.data, "the core answered request 1, which has ended");
	models_conclude(&fixture);
}

static void a_request_that_nobody_sent_may_not_be_answered(void **state)
{
	(void)state;
	struct fixture fixture;
	models_start(&fixture);
	struct route_effect route = { .outcome = ROUTE_QUEUED, .request_id = 77 };
	assert_false(router_told(&fixture.run, &route));
	assert_string_equal(fixture.reason.data, "the core answered request 77, which nobody sent");
	models_conclude(&fixture);
}

static void a_model_that_is_idle_for_long_leaves_the_others_in_use(void **state)
{
	(void)state;
	expect_pass(REQUEST("a", "70", ", 'gpu': 0") ", " REQUEST(
	    "b", "70",
	    ", 'gpu': 1") ", {'do': 'idle_past_ttl', 'model': 'a', 'for_minutes': 60},"
	                  " {'do': 'request', 'model': 'c', 'memory_gib': 70, 'expect': 'placed',"
	                  "  'evicted': 1, 'placed': ['b'], 'gone': ['a']},"
	                  " {'do': 'request', 'model': 'd', 'memory_gib': 70, 'expect': 'waiting',"
	                  "  'evicted': 0}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_case_that_cannot_be_read_is_not_run),
		cmocka_unit_test(a_wrong_expectation_of_a_request_is_reported),
		cmocka_unit_test(a_refusal_that_was_not_expected_comes_with_its_reason),
		cmocka_unit_test(without_an_expectation_only_what_fits_must_be_placed),
		cmocka_unit_test(a_wrong_expectation_of_a_dispatch_is_reported),
		cmocka_unit_test(a_check_that_does_not_hold_is_reported),
		cmocka_unit_test(slots_that_share_a_gpu_are_found),
		cmocka_unit_test(jobs_that_do_not_do_as_expected_are_reported),
		cmocka_unit_test(a_runner_takes_no_more_than_its_gpus_have),
		cmocka_unit_test(a_runner_loads_one_model_after_the_other_onto_a_gpu),
		cmocka_unit_test(a_request_that_is_over_may_not_be_answered_again),
		cmocka_unit_test(a_request_that_nobody_sent_may_not_be_answered),
		cmocka_unit_test(a_model_that_is_idle_for_long_leaves_the_others_in_use),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
