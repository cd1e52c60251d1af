/* scarcity_test.c - what free GPUs are worth more for those who insist on their model */
#include <stdio.h>

#include "core/place/scarcity.h"
#include "core/test/harness.h"

/* Two nodes with four GPUs of model A, one with four of B, one with four of C. */
struct lab {
	struct harness *h;
	int64_t tenant;
};

static void add_model(struct harness *h, const char *name, const char *model)
{
	struct device devices[4];
	char uuids[4][16];

	for (int i = 0; i < 4; i++) {
		snprintf(uuids[i], sizeof(uuids[i]), "%s-%d", name, i);
		devices[i] = device_of(uuids[i], i, 80000);
		devices[i].model = model;
	}
	must(h, report(h, report_of(name, devices, 4)));
}

static struct lab scarcity_lab_begin(enum policy policy)
{
	struct lab lab = { .h = harness_new() };
	struct config_record config = config_default();

	config.policy = (int32_t)policy;
	configure(lab.h, config);
	lab.tenant = put_tenant(lab.h, tenant_named("lab"));
	add_model(lab.h, "a1", "A");
	add_model(lab.h, "a2", "A");
	add_model(lab.h, "b", "B");
	add_model(lab.h, "c", "C");
	return lab;
}

/* One comes and goes. */
static void ask_for(struct lab lab, int gpus, const char *models)
{
	struct job_record one = whole(lab.tenant, gpus);

	one.gpu_models = models;
	must(lab.h, cancel(lab.h, submit(lab.h, one)));
}

static int64_t scarcity_start(struct lab lab, int gpus, const char *models)
{
	struct job_record one = whole(lab.tenant, gpus);

	one.gpu_models = models;
	int64_t id = submit(lab.h, one);
	assert_int_equal(pass(lab.h), 1);
	return id;
}

static int scarcity(struct lab lab, const char *uuid)
{
	sched_prepare(lab.h->sched);
	return scarcity_of(&lab.h->sched->placement.scarcity, gpu(lab.h, uuid)->gpu_type);
}

static void where_nobody_insists_there_is_no_premium(void **unused)
{
	struct lab lab = scarcity_lab_begin(POLICY_WORTH);

	(void)unused;
	ask_for(lab, 1, "");
	assert_int_equal(scarcity(lab, "b-0"), 0);
	harness_free(lab.h);
}

/* A quarter of what arrives insists on B, of which there is a quarter. */
static void a_model_that_will_all_be_needed_is_worth_twice_as_much(void **unused)
{
	struct lab lab = scarcity_lab_begin(POLICY_WORTH);

	(void)unused;
	ask_for(lab, 3, "");
	ask_for(lab, 1, "B");
	assert_int_equal(scarcity(lab, "b-0"), SCARCITY_UNIT);
	assert_int_equal(scarcity(lab, "a1-0"), 0);
	ask_for(lab, 4, "");
	assert_int_equal(scarcity(lab, "b-0"), SCARCITY_UNIT / 2);
	harness_free(lab.h);
}

static void a_model_of_which_less_is_left_is_worth_more(void **unused)
{
	struct lab lab = scarcity_lab_begin(POLICY_WORTH);

	(void)unused;
	ask_for(lab, 3, "");
	ask_for(lab, 1, "A");
	assert_int_equal(scarcity(lab, "a1-0"), SCARCITY_UNIT / 2);
	int64_t id = scarcity_start(lab, 4, "A");
	/* 5 of 8 insist, and 4 of the 12 that are free are A. */
	assert_int_equal(scarcity(lab, "a2-0"), SCARCITY_UNIT * 15 / 8);
	must(lab.h, cancel(lab.h, id));
	harness_free(lab.h);
}

/* Who takes B or C goes where nobody insists. */
static void who_may_use_several_models_is_taken_to_use_the_least_scarce(void **unused)
{
	struct lab lab = scarcity_lab_begin(POLICY_WORTH);

	(void)unused;
	ask_for(lab, 6, "");
	ask_for(lab, 1, "B");
	ask_for(lab, 1, "B|C");
	assert_int_equal(scarcity(lab, "b-0"), SCARCITY_UNIT / 2);
	assert_int_equal(scarcity(lab, "c-0"), SCARCITY_UNIT / 2);
	harness_free(lab.h);
}

static void models_that_are_not_there_cost_nobody_anything(void **unused)
{
	struct lab lab = scarcity_lab_begin(POLICY_WORTH);

	(void)unused;
	ask_for(lab, 1, "");
	ask_for(lab, 1, "Z");
	assert_int_equal(scarcity(lab, "a1-0"), 0);
	add_model(lab.h, "z", "Z");
	assert_int_equal(scarcity(lab, "z-0"), SCARCITY_MAX);
	harness_free(lab.h);
}

static void what_is_on_nodes_that_take_nothing_is_not_free(void **unused)
{
	struct lab lab = scarcity_lab_begin(POLICY_WORTH);

	(void)unused;
	ask_for(lab, 3, "");
	ask_for(lab, 1, "A");
	assert_int_equal(scarcity(lab, "a1-0"), SCARCITY_UNIT / 2);
	must(lab.h, harness_apply(lab.h, (struct command){ .kind = COMMAND_NODE_DRAIN,
	                                                   .drain = { "a2", true, NULL } }));
	/* A quarter of 12, of 4. */
	assert_int_equal(scarcity(lab, "a1-0"), SCARCITY_UNIT * 3 / 4);
	harness_free(lab.h);
}

static void other_policies_and_a_given_mix_know_no_premium(void **unused)
{
	struct lab lab = scarcity_lab_begin(POLICY_FRAGMENT);
	static const int64_t kinds[] = { 1000, 1, 0, 1 };
	struct config_record config = config_default();

	(void)unused;
	ask_for(lab, 1, "B");
	assert_int_equal(scarcity(lab, "b-0"), 0);
	config.policy = POLICY_WORTH;
	configure(lab.h, config);
	assert_int_equal(scarcity(lab, "b-0"), SCARCITY_MAX);
	must(lab.h,
	     harness_apply(lab.h, (struct command){ .kind = COMMAND_MIX, .mix = { kinds, 1 } }));
	assert_int_equal(scarcity(lab, "b-0"), 0);
	harness_free(lab.h);
}

/* By name a1 would be next; but A is all needed, and B not. */
static void who_insists_on_nothing_keeps_off_what_others_insist_on(void **unused)
{
	struct lab lab = scarcity_lab_begin(POLICY_WORTH);

	(void)unused;
	ask_for(lab, 1, "");
	ask_for(lab, 4, "A");
	assert_string_equal(node_of(lab.h, scarcity_start(lab, 1, "")), "b");
	assert_string_equal(node_of(lab.h, scarcity_start(lab, 1, "A")), "a1");
	harness_free(lab.h);
}

static void a_decision_says_what_the_model_had_to_do_with_the_score(void **unused)
{
	struct lab lab = scarcity_lab_begin(POLICY_WORTH);
	struct buffer text = { 0 };

	(void)unused;
	ask_for(lab, 3, "");
	scarcity_start(lab, 1, "B");
	const struct decision_record *decision = decided(lab.h, DECISION_START, 0);
	assert_int_equal(decision->premium_milli, 1000);
	assert_true(sched_explain(lab.h->sched, decision, 0, &text));
	assert_non_null(strstr(text.data, "in the score, free GPUs of this model are worth 100.0% "
	                                  "more, for the jobs that insist on it\n"));
	buffer_free(&text);
	harness_free(lab.h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(where_nobody_insists_there_is_no_premium),
		cmocka_unit_test(a_model_that_will_all_be_needed_is_worth_twice_as_much),
		cmocka_unit_test(a_model_of_which_less_is_left_is_worth_more),
		cmocka_unit_test(who_may_use_several_models_is_taken_to_use_the_least_scarce),
		cmocka_unit_test(models_that_are_not_there_cost_nobody_anything),
		cmocka_unit_test(what_is_on_nodes_that_take_nothing_is_not_free),
		cmocka_unit_test(other_policies_and_a_given_mix_know_no_premium),
		cmocka_unit_test(who_insists_on_nothing_keeps_off_what_others_insist_on),
		cmocka_unit_test(a_decision_says_what_the_model_had_to_do_with_the_score),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
