/* compute_test.c - parts of GPUs with shares of their compute */
#include <stdio.h>

#include "core/test/harness.h"

struct compute_lab {
	struct harness *h;
	int64_t one, other; /* tenants */
};

static void add_sharing_node(struct harness *h, const char *name, int gpus, const char *labels)
{
	struct device devices[4];
	char uuids[4][32];

	for (int i = 0; i < gpus; i++) {
		snprintf(uuids[i], sizeof(uuids[i]), "%s-gpu%d", name, i);
		devices[i] = device_of(uuids[i], i, 80000);
	}
	struct node_report_command node = report_of(name, devices, gpus);
	node.labels = labels;
	must(h, report(h, node));
}

static struct compute_lab compute_lab_new(struct config_record config)
{
	struct compute_lab lab = { .h = harness_new() };

	add_sharing_node(lab.h, "n1", 1, NODE_COMPUTE_SHARES "=mps");
	lab.one = put_tenant(lab.h, tenant_named("one"));
	lab.other = put_tenant(lab.h, tenant_named("other"));
	configure(lab.h, config);
	return lab;
}

static int64_t submit_share(struct compute_lab lab, int64_t tenant, int64_t mib, int32_t compute)
{
	struct job_record job_record = memory(tenant, mib);

	job_record.compute = compute;
	return submit(lab.h, job_record);
}

static void assert_why(struct compute_lab lab, int64_t id, const char *words)
{
	struct buffer text = { 0 };

	must(lab.h, sched_why(lab.h->sched, id, 0, &text, &lab.h->error));
	if (!strstr(text.data, words))
		fail_msg("'%s' does not say '%s'", text.data, words);
	buffer_free(&text);
}

static void compute_is_never_given_away_twice(void **unused)
{
	struct compute_lab lab = compute_lab_new(config_default());
	int64_t first = submit_share(lab, lab.one, 1000, 500);
	int64_t second = submit_share(lab, lab.one, 1000, 500);
	int64_t third = submit_share(lab, lab.one, 1000, 1);

	(void)unused;
	pass(lab.h);
	assert_int_equal(state(lab.h, first), JOB_RUNNING);
	assert_int_equal(state(lab.h, second), JOB_RUNNING);
	assert_int_equal(state(lab.h, third), JOB_PENDING);
	assert_why(lab, third, "too little compute left");
	end_job(lab.h, first, 0);
	pass(lab.h);
	assert_int_equal(state(lab.h, third), JOB_RUNNING);
	harness_free(lab.h);
}

static void compute_that_is_releasing_is_not_free(void **unused)
{
	struct compute_lab lab = compute_lab_new(config_default());
	int64_t first = submit_share(lab, lab.one, 1000, 800);
	int64_t second;

	(void)unused;
	pass(lab.h);
	must(lab.h, cancel(lab.h, first));
	second = submit_share(lab, lab.one, 1000, 800);
	pass(lab.h);
	assert_int_equal(state(lab.h, second), JOB_SCHEDULED); /* it has a claim */
	confirm_stops(lab.h);
	pass(lab.h);
	assert_int_equal(state(lab.h, second), JOB_RUNNING);
	harness_free(lab.h);
}

static void who_takes_turns_stays_off_gpus_that_are_shared_by_compute(void **unused)
{
	struct compute_lab lab = compute_lab_new(config_default());
	int64_t first = submit_share(lab, lab.one, 1000, 100);
	int64_t turns, later;

	(void)unused;
	pass(lab.h);
	turns = submit(lab.h, memory(lab.one, 1000));
	pass(lab.h);
	assert_int_equal(state(lab.h, turns), JOB_PENDING);
	assert_why(lab, turns, "may not share compute");
	end_job(lab.h, first, 0);
	pass(lab.h);
	assert_int_equal(state(lab.h, turns), JOB_RUNNING);
	later = submit_share(lab, lab.one, 1000, 100);
	pass(lab.h);
	assert_int_equal(state(lab.h, later), JOB_PENDING);
	harness_free(lab.h);
}

static void tenants_share_a_gpu_only_where_the_settings_allow_it(void **unused)
{
	struct config_record config = config_default();
	struct compute_lab lab = compute_lab_new(config);
	int64_t first = submit_share(lab, lab.one, 1000, 300);
	int64_t second = submit_share(lab, lab.other, 1000, 300);

	(void)unused;
	pass(lab.h);
	assert_int_equal(state(lab.h, first), JOB_RUNNING);
	assert_int_equal(state(lab.h, second), JOB_PENDING);
	config.sharing_mixed = true;
	configure(lab.h, config);
	pass(lab.h);
	assert_int_equal(state(lab.h, second), JOB_RUNNING);
	harness_free(lab.h);
}

static void only_nodes_that_say_so_give_shares(void **unused)
{
	struct compute_lab lab = { .h = harness_new() };
	int64_t first;

	(void)unused;
	add_sharing_node(lab.h, "n1", 1, "");
	lab.one = put_tenant(lab.h, tenant_named("one"));
	first = submit_share(lab, lab.one, 1000, 300);
	pass(lab.h);
	assert_int_equal(state(lab.h, first), JOB_PENDING);
	assert_why(lab, first, "gives no shares of compute");
	add_sharing_node(lab.h, "n1", 1, NODE_COMPUTE_SHARES "=mps");
	pass(lab.h);
	assert_int_equal(state(lab.h, first), JOB_RUNNING);
	harness_free(lab.h);
}

static void an_impossible_share_is_refused_when_asked(void **unused)
{
	struct compute_lab lab = { .h = harness_new() };
	struct command command = { .kind = COMMAND_SUBMIT };

	(void)unused;
	add_sharing_node(lab.h, "n1", 1, "");
	lab.one = put_tenant(lab.h, tenant_named("one"));
	command.submit.job = memory(lab.one, 1000);
	command.submit.job.compute = 300;
	command.submit.check_possible = true;
	must_not(lab.h, harness_apply(lab.h, command), ERROR_IMPOSSIBLE, "share of compute");
	harness_free(lab.h);
}

static void a_share_is_of_a_part_of_one_gpu(void **unused)
{
	struct compute_lab lab = compute_lab_new(config_default());
	struct job_record record = whole(lab.one, 1);

	(void)unused;
	record.compute = 500;
	must_not(lab.h, try_submit(lab.h, record), ERROR_INVALID, "gpu_compute");
	record = memory(lab.one, 1000);
	record.compute = 500;
	record.gpu_count = 2;
	must_not(lab.h, try_submit(lab.h, record), ERROR_INVALID, "gpu_compute");
	record.gpu_count = 1;
	record.compute = WHOLE_GPU + 1;
	must_not(lab.h, try_submit(lab.h, record), ERROR_INVALID, "gpu_compute");
	harness_free(lab.h);
}

static void parts_get_shares_of_their_size_where_the_setting_says_so(void **unused)
{
	struct config_record config = config_default();
	struct compute_lab lab;
	int64_t half, quarter;

	(void)unused;
	config.sharing_compute = COMPUTE_MPS;
	lab = compute_lab_new(config);
	half = submit(lab.h, fraction(lab.one, 500));
	quarter = submit(lab.h, memory(lab.one, 20000));
	assert_int_equal(job(lab.h, half)->r.compute, 500);
	assert_int_equal(job(lab.h, quarter)->r.compute, 250);
	assert_int_equal(job(lab.h, submit(lab.h, whole(lab.one, 1)))->r.compute, 0);
	must(lab.h,
	     harness_apply(lab.h, (struct command){ .kind = COMMAND_SUBMIT,
	                                            .submit = { .job = fraction(lab.one, 500),
	                                                        .takes_turns = true } }));
	assert_int_equal(job(lab.h, lab.h->effects.reply_id)->r.compute, 0);
	harness_free(lab.h);
}

static void a_gang_gets_its_shares_together(void **unused)
{
	struct compute_lab lab = compute_lab_new(config_default());
	struct job_record record = memory(lab.one, 1000);
	int64_t gang;

	(void)unused;
	record.compute = 400;
	record.tasks = record.min_available = 3;
	gang = submit(lab.h, record);
	pass(lab.h);
	assert_int_equal(state(lab.h, gang), JOB_PENDING);
	add_sharing_node(lab.h, "n2", 1, NODE_COMPUTE_SHARES "=mps");
	pass(lab.h);
	assert_int_equal(state(lab.h, gang), JOB_RUNNING);
	harness_free(lab.h);
}

static void lower_priority_makes_room_for_a_share(void **unused)
{
	struct compute_lab lab = compute_lab_new(config_default());
	struct job_record record = memory(lab.one, 1000);
	int64_t low, high;

	(void)unused;
	record.compute = 700;
	record.priority = 100;
	low = submit(lab.h, record);
	pass(lab.h);
	record.priority = 900;
	high = submit(lab.h, record);
	pass(lab.h);
	confirm_stops(lab.h);
	pass(lab.h);
	assert_int_equal(state(lab.h, high), JOB_RUNNING);
	assert_int_equal(state(lab.h, low), JOB_PENDING);
	harness_free(lab.h);
}

static void a_client_of_mps_is_not_suspended(void **unused)
{
	struct compute_lab lab = compute_lab_new(config_default());
	int64_t first = submit_share(lab, lab.one, 1000, 300);

	(void)unused;
	pass(lab.h);
	must_not(lab.h, apply_to(lab.h, COMMAND_SUSPEND, first), ERROR_CONFLICT,
	         "does not suspend clients of MPS");
	harness_free(lab.h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compute_is_never_given_away_twice),
		cmocka_unit_test(compute_that_is_releasing_is_not_free),
		cmocka_unit_test(who_takes_turns_stays_off_gpus_that_are_shared_by_compute),
		cmocka_unit_test(tenants_share_a_gpu_only_where_the_settings_allow_it),
		cmocka_unit_test(only_nodes_that_say_so_give_shares),
		cmocka_unit_test(an_impossible_share_is_refused_when_asked),
		cmocka_unit_test(a_share_is_of_a_part_of_one_gpu),
		cmocka_unit_test(parts_get_shares_of_their_size_where_the_setting_says_so),
		cmocka_unit_test(a_gang_gets_its_shares_together),
		cmocka_unit_test(lower_priority_makes_room_for_a_share),
		cmocka_unit_test(a_client_of_mps_is_not_suspended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
