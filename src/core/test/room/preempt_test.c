/* preempt_test.c - making room within a tenant: who has to go, and who is protected */
#include "core/test/harness.h"

struct lab {
	struct harness *h;
	int64_t tenant;
};

/* A tenant without a quota. */
static struct tenant_record sharing(const char *name)
{
	struct tenant_record tenant = tenant_named(name);

	tenant.quota_gpu = tenant.quota_cpu = tenant.quota_host = QUOTA_UNSET;
	return tenant;
}

/* One tenant and a node n1 with as many GPUs. */
static struct lab preempt_lab_new(int gpus)
{
	struct lab lab = { .h = harness_new() };

	add_node(lab.h, "n1", gpus, 80000);
	lab.tenant = put_tenant(lab.h, tenant_named("lab"));
	return lab;
}

static int64_t submit_at(struct lab lab, int64_t priority, int32_t gpus)
{
	struct job_record job_record = whole(lab.tenant, gpus);

	job_record.priority = priority;
	return submit(lab.h, job_record);
}

/* Submits it and sees it start. */
static int64_t run_at(struct lab lab, int64_t priority, int32_t gpus)
{
	int64_t id = submit_at(lab, priority, gpus);

	assert_int_equal(pass(lab.h), 1);
	return id;
}

static bool was_told_to_stop(const struct harness *h, int64_t id)
{
	return state(h, id) == JOB_PREEMPTED;
}

/* Rounds of passes and of nodes that do what they are told. */
static void rounds(struct harness *h, int count)
{
	for (int i = 0; i < count; i++) {
		pass(h);
		confirm_stops(h);
		h->now_ms += 1000;
	}
}

/* Within a tenant. */

static void what_was_just_placed_is_not_stopped_before_it_has_started(void **unused)
{
	struct lab lab = preempt_lab_new(1);
	int64_t started[4];

	(void)unused;
	int64_t low = submit_at(lab, 100, 1);
	must(lab.h, harness_apply(lab.h, (struct command){ .kind = COMMAND_PASS, .units = 9 }));
	assert_int_equal(read_orders(lab.h, started), 1);
	submit_at(lab, 900, 1);
	pass(lab.h);
	assert_int_equal(state(lab.h, low), JOB_SCHEDULED);
	must(lab.h, to_task(lab.h, COMMAND_TASK_STARTED, started[0], 0, false));
	pass(lab.h);
	assert_true(was_told_to_stop(lab.h, low));
	harness_free(lab.h);
}

static void what_was_just_stopped_is_not_late_at_once_even_without_any_time_to_stop(void **unused)
{
	struct lab lab = preempt_lab_new(1);
	struct config_record config = config_default();

	(void)unused;
	config.grace_ms = config.release_timeout_ms = 0;
	configure(lab.h, config);
	int64_t low = run_at(lab, 100, 1), high = submit_at(lab, 900, 1);
	pass(lab.h);
	assert_true(was_told_to_stop(lab.h, low));
	pass(lab.h);
	assert_int_equal(job(lab.h, high)->counts.claims, 1);
	lab.h->now_ms++;
	pass(lab.h);
	assert_int_equal(job(lab.h, high)->counts.claims, 0);
	harness_free(lab.h);
}

#define SECOND INT64_C(1000)
#define HOUR (3600 * SECOND)

static int64_t start_named(struct lab lab, const char *name)
{
	struct job_record record = whole(lab.tenant, 1);

	record.name = name;
	int64_t id = submit(lab.h, record);
	assert_int_equal(pass(lab.h), 1);
	return id;
}

static void learn_that(struct lab lab, const char *name, int64_t took_ms)
{
	for (int i = 0; i < 8; i++) {
		int64_t id = start_named(lab, name);
		time_passes(lab.h, took_ms);
		end_job(lab.h, id, 0);
	}
}

/* The last one to start loses least, but it is about to end. */
static void who_is_about_to_end_stays_where_others_can_go(void **unused)
{
	(void)unused;
	for (int predicts = 0; predicts < 2; predicts++) {
		struct lab lab = preempt_lab_new(3);
		struct config_record config = config_default();
		config.predict_jobs = predicts ? config.predict_jobs : 0;
		configure(lab.h, config);
		learn_that(lab, "brief", 300 * SECOND);
		learn_that(lab, "lasting", 10 * HOUR);
		start_named(lab, "lasting");
		time_passes(lab.h, HOUR);
		start_named(lab, "lasting");
		time_passes(lab.h, HOUR);
		int64_t brief = start_named(lab, "brief");
		time_passes(lab.h, 290 * SECOND);
		int64_t winner = submit_at(lab, 900, 2);
		pass(lab.h);
		assert_non_null(decided(lab.h, DECISION_PREEMPT, winner));
		assert_int_equal(was_told_to_stop(lab.h, brief), !predicts);
		harness_free(lab.h);
	}
}

static void only_a_strictly_higher_priority_preempts(void **unused)
{
	struct lab lab = preempt_lab_new(1);

	(void)unused;
	int64_t runs = run_at(lab, 500, 1);
	submit_at(lab, 500, 1);
	pass(lab.h);
	assert_int_equal(state(lab.h, runs), JOB_RUNNING);
	int64_t winner = submit_at(lab, 501, 1);
	pass(lab.h);
	assert_true(was_told_to_stop(lab.h, runs));
	assert_true(has_claim(lab.h, winner));
	assert_non_null(decided(lab.h, DECISION_PREEMPT, winner));
	harness_free(lab.h);
}

static void waiting_for_long_never_makes_a_victim(void **unused)
{
	struct lab lab = preempt_lab_new(1);

	(void)unused;
	int64_t runs = run_at(lab, 500, 1);
	submit_at(lab, 499, 1);
	for (int hour = 0; hour < 20; hour++) {
		lab.h->now_ms += 3600000;
		pass(lab.h);
		assert_int_equal(state(lab.h, runs), JOB_RUNNING);
	}
	harness_free(lab.h);
}

static void what_had_its_turn_by_waiting_is_not_stopped_for_one_it_passed(void **unused)
{
	struct lab lab = preempt_lab_new(1);

	(void)unused;
	int64_t first = run_at(lab, 600, 1);
	int64_t old = submit_at(lab, 400, 1);
	lab.h->now_ms += 3600000;
	int64_t young = submit_at(lab, 600, 1);
	pass(lab.h);
	end_job(lab.h, first, 0);
	for (int i = 0; i < 5; i++) {
		pass(lab.h);
		lab.h->now_ms += 60000;
	}
	assert_int_equal(state(lab.h, old), JOB_RUNNING);
	assert_int_equal(state(lab.h, young), JOB_PENDING);
	submit_at(lab, 700, 1);
	pass(lab.h);
	assert_true(was_told_to_stop(lab.h, old));
	harness_free(lab.h);
}

static void the_lowest_priority_goes_first(void **unused)
{
	struct lab lab = preempt_lab_new(3);

	(void)unused;
	int64_t middle = run_at(lab, 400, 1), low = run_at(lab, 300, 1), high = run_at(lab, 500, 1);
	submit_at(lab, 900, 1);
	pass(lab.h);
	assert_true(was_told_to_stop(lab.h, low));
	assert_int_equal(state(lab.h, middle), JOB_RUNNING);
	assert_int_equal(state(lab.h, high), JOB_RUNNING);
	harness_free(lab.h);
}

static void of_one_priority_the_latest_started_goes_first(void **unused)
{
	struct lab lab = preempt_lab_new(3);

	(void)unused;
	int64_t first = run_at(lab, 500, 1), second = run_at(lab, 500, 1),
		third = run_at(lab, 500, 1);
	submit_at(lab, 900, 1);
	pass(lab.h);
	assert_true(was_told_to_stop(lab.h, third));
	assert_int_equal(state(lab.h, first), JOB_RUNNING);
	assert_int_equal(state(lab.h, second), JOB_RUNNING);
	harness_free(lab.h);
}

static void of_one_priority_one_whose_work_was_just_saved_goes_first(void **unused)
{
	struct lab lab = preempt_lab_new(2);

	(void)unused;
	int64_t first = run_at(lab, 500, 1), second = run_at(lab, 500, 1);
	lab.h->now_ms += 60000;
	must(lab.h, to_task(lab.h, COMMAND_TASK_CHECKPOINT, right_of(lab.h, first, 0), 0, false));
	submit_at(lab, 900, 1);
	pass(lab.h);
	assert_true(was_told_to_stop(lab.h, first));
	assert_int_equal(state(lab.h, second), JOB_RUNNING);
	harness_free(lab.h);
}

static void no_more_go_than_are_needed(void **unused)
{
	struct lab lab = preempt_lab_new(4);
	int64_t jobs[4];

	(void)unused;
	for (int i = 0; i < 4; i++)
		jobs[i] = run_at(lab, 500, 1);
	int64_t winner = submit_at(lab, 900, 2);
	pass(lab.h);
	assert_int_equal(lab.h->stop_count, 2);
	assert_int_equal(state(lab.h, jobs[0]), JOB_RUNNING);
	assert_int_equal(state(lab.h, jobs[1]), JOB_RUNNING);
	assert_int_equal(decided(lab.h, DECISION_PREEMPT, winner)->victims.count, 2);
	harness_free(lab.h);
}

static void what_is_not_in_the_way_stays(void **unused)
{
	struct lab lab = preempt_lab_new(2);

	(void)unused;
	int64_t lowest = run_at(lab, 300, 1), other = run_at(lab, 450, 1);
	add_node(lab.h, "n2", 2, 80000);
	int64_t third = run_at(lab, 400, 1), fourth = run_at(lab, 410, 1);
	assert_string_equal(node_of(lab.h, third), "n2");
	submit_at(lab, 900, 2);
	pass(lab.h);
	assert_true(was_told_to_stop(lab.h, third));
	assert_true(was_told_to_stop(lab.h, fourth));
	assert_int_equal(state(lab.h, lowest), JOB_RUNNING);
	assert_int_equal(state(lab.h, other), JOB_RUNNING);
	harness_free(lab.h);
}

static void nobody_goes_for_one_who_would_not_fit_even_then(void **unused)
{
	struct lab lab = preempt_lab_new(2);
	struct job_record fixed = whole(lab.tenant, 1);

	(void)unused;
	fixed.preemptible = false;
	submit(lab.h, fixed);
	pass(lab.h);
	int64_t runs = run_at(lab, 500, 1);
	submit_at(lab, 900, 2);
	pass(lab.h);
	assert_int_equal(state(lab.h, runs), JOB_RUNNING);
	assert_int_equal(lab.h->stop_count, 0);
	harness_free(lab.h);
}

static void a_victim_gets_notice_and_is_queued_again_when_its_memory_is_back(void **unused)
{
	struct lab lab = preempt_lab_new(1);

	(void)unused;
	int64_t victim = run_at(lab, 500, 1);
	int64_t winner = submit_at(lab, 900, 1);
	must(lab.h, harness_apply(lab.h, (struct command){ .kind = COMMAND_PASS, .units = 9 }));
	for (size_t i = 0; i < lab.h->effects.count; i++)
		if (lab.h->effects.at[i].kind == EFFECT_STOP)
			assert_int_equal(lab.h->effects.at[i].order.grace_ms,
			                 config_default().grace_ms);
	assert_int_equal(effects_of(lab.h, EFFECT_STOP), 1);
	assert_int_equal(decided(lab.h, DECISION_EVICTED, victim)->for_job_id, winner);
	assert_int_equal(state(lab.h, victim), JOB_PREEMPTED);
	assert_int_equal(job(lab.h, victim)->s.preempted_count, 1);
	must(lab.h, to_task(lab.h, COMMAND_MEMORY_RELEASED, right_of(lab.h, victim, 0), 0, false));
	assert_int_equal(state(lab.h, victim), JOB_PENDING);
	assert_int_equal(pass(lab.h), 1);
	end_job(lab.h, winner, 0);
	assert_int_equal(pass(lab.h), 1);
	assert_int_equal(state(lab.h, victim), JOB_RUNNING);
	harness_free(lab.h);
}

static void the_winner_starts_only_when_the_memory_is_confirmed(void **unused)
{
	struct lab lab = preempt_lab_new(1);

	(void)unused;
	int64_t victim = run_at(lab, 500, 1);
	int64_t winner = submit_at(lab, 900, 1);
	pass(lab.h);
	must(lab.h, to_task(lab.h, COMMAND_TASK_EXITED, right_of(lab.h, victim, 0), 143, false));
	assert_int_equal(pass(lab.h), 0);
	assert_int_equal(state(lab.h, winner), JOB_SCHEDULED);
	assert_int_equal(gpu(lab.h, "n1-gpu0")->books.owners, 1);
	must(lab.h, to_task(lab.h, COMMAND_MEMORY_RELEASED, right_of(lab.h, victim, 0), 0, false));
	assert_int_equal(pass(lab.h), 1);
	assert_int_equal(state(lab.h, winner), JOB_RUNNING);
	assert_int_equal(state(lab.h, victim), JOB_PENDING);
	harness_free(lab.h);
}

static void a_claim_keeps_others_off_what_is_being_freed(void **unused)
{
	struct lab lab = preempt_lab_new(1);

	(void)unused;
	run_at(lab, 500, 1);
	int64_t winner = submit_at(lab, 900, 1);
	pass(lab.h);
	int64_t late = submit_at(lab, 900, 1);
	pass(lab.h);
	confirm_stops(lab.h);
	assert_int_equal(pass(lab.h), 1);
	assert_int_equal(state(lab.h, winner), JOB_RUNNING);
	assert_int_equal(state(lab.h, late), JOB_PENDING);
	harness_free(lab.h);
}

static void a_cancelled_winner_leaves_the_room_to_others(void **unused)
{
	struct lab lab = preempt_lab_new(1);

	(void)unused;
	int64_t victim = run_at(lab, 500, 1);
	int64_t winner = submit_at(lab, 900, 1);
	pass(lab.h);
	must(lab.h, cancel(lab.h, winner));
	assert_int_equal(gpu(lab.h, "n1-gpu0")->books.claims, 0);
	confirm_stops(lab.h);
	assert_int_equal(pass(lab.h), 1);
	assert_int_equal(state(lab.h, victim), JOB_RUNNING);
	harness_free(lab.h);
}

/* Who is protected. */

static void a_tenant_that_may_not_preempt_waits(void **unused)
{
	struct lab lab = preempt_lab_new(1);
	struct tenant_record meek = tenant_named("meek");

	(void)unused;
	meek.can_preempt_others = false;
	lab.tenant = put_tenant(lab.h, meek);
	int64_t runs = run_at(lab, 500, 1);
	submit_at(lab, 900, 1);
	pass(lab.h);
	assert_int_equal(state(lab.h, runs), JOB_RUNNING);
	harness_free(lab.h);
}

static void nobody_is_preempted_where_that_is_switched_off(void **unused)
{
	struct lab lab = preempt_lab_new(1);
	struct config_record config = config_default();

	(void)unused;
	config.enable_preemption = false;
	configure(lab.h, config);
	int64_t runs = run_at(lab, 500, 1);
	submit_at(lab, 900, 1);
	pass(lab.h);
	assert_int_equal(state(lab.h, runs), JOB_RUNNING);
	harness_free(lab.h);
}

static void a_job_that_is_not_preemptible_is_never_a_victim(void **unused)
{
	struct lab lab = preempt_lab_new(1);
	struct job_record fixed = whole(lab.tenant, 1);

	(void)unused;
	fixed.preemptible = false;
	int64_t runs = submit(lab.h, fixed);
	pass(lab.h);
	submit_at(lab, 5000, 1);
	pass(lab.h);
	assert_int_equal(state(lab.h, runs), JOB_RUNNING);
	harness_free(lab.h);
}

static void a_job_that_was_preempted_often_enough_is_protected(void **unused)
{
	struct lab lab = preempt_lab_new(1);
	struct tenant_record patient = tenant_named("patient");

	(void)unused;
	patient.max_preemptions = 1;
	lab.tenant = put_tenant(lab.h, patient);
	int64_t victim = run_at(lab, 500, 1);
	int64_t winner = submit_at(lab, 900, 1);
	rounds(lab.h, 2);
	assert_int_equal(state(lab.h, winner), JOB_RUNNING);
	end_job(lab.h, winner, 0);
	assert_int_equal(pass(lab.h), 1);
	assert_int_equal(state(lab.h, victim), JOB_RUNNING);
	submit_at(lab, 900, 1);
	rounds(lab.h, 3);
	assert_int_equal(state(lab.h, victim), JOB_RUNNING);
	harness_free(lab.h);
}

static void a_job_is_protected_until_it_ran_for_a_while(void **unused)
{
	struct lab lab = preempt_lab_new(1);
	struct config_record config = config_default();

	(void)unused;
	config.min_runtime_ms = 60000;
	configure(lab.h, config);
	int64_t runs = run_at(lab, 500, 1);
	submit_at(lab, 900, 1);
	pass(lab.h);
	lab.h->now_ms += 59999;
	pass(lab.h);
	assert_int_equal(state(lab.h, runs), JOB_RUNNING);
	lab.h->now_ms += 1;
	pass(lab.h);
	assert_true(was_told_to_stop(lab.h, runs));
	harness_free(lab.h);
}

/* Limits and quotas. */

static void a_limit_binds_at_every_ancestor(void **unused)
{
	struct harness *h = harness_new();
	struct tenant_record top = tenant_named("top"), child = tenant_named("child");

	(void)unused;
	add_node(h, "n1", 8, 80000);
	top.limit_gpu = 2 * WHOLE_GPU;
	child.parent_id = put_tenant(h, top);
	int64_t one = put_tenant(h, child);
	child.name = "sister";
	int64_t other = put_tenant(h, child);
	submit(h, whole(one, 1));
	submit(h, whole(other, 1));
	int64_t third = submit(h, whole(other, 1));
	assert_int_equal(pass(h), 2);
	assert_int_equal(state(h, third), JOB_PENDING);
	must_not(h, try_submit(h, whole(one, 3)), ERROR_FORBIDDEN,
	         "quota exceeded for tenant top: GPUs requested=3, quota=2, current=2");
	harness_free(h);
}

static void at_its_limit_a_tenant_makes_room_among_its_own(void **unused)
{
	struct lab lab = preempt_lab_new(8);
	struct tenant_record limited = tenant_named("limited");

	(void)unused;
	limited.limit_gpu = 1 * WHOLE_GPU;
	lab.tenant = put_tenant(lab.h, limited);
	int64_t runs = run_at(lab, 500, 1);
	int64_t winner = submit_at(lab, 900, 1);
	rounds(lab.h, 2);
	assert_int_equal(state(lab.h, winner), JOB_RUNNING);
	assert_int_equal(state(lab.h, runs), JOB_PENDING);
	harness_free(lab.h);
}

static void the_number_of_running_jobs_is_limited_too(void **unused)
{
	struct lab lab = preempt_lab_new(8);
	struct tenant_record limited = tenant_named("limited");

	(void)unused;
	limited.limit_jobs = 2;
	lab.tenant = put_tenant(lab.h, limited);
	for (int i = 0; i < 3; i++)
		submit_at(lab, 500, 1);
	assert_int_equal(pass(lab.h), 2);
	harness_free(lab.h);
}

static void jobs_that_may_not_be_preempted_are_bound_by_the_quota(void **unused)
{
	struct lab lab = preempt_lab_new(8);
	struct tenant_record owed = sharing("owed");

	(void)unused;
	owed.quota_gpu = 2 * WHOLE_GPU;
	owed.quota_cpu = owed.quota_host = UNLIMITED;
	lab.tenant = put_tenant(lab.h, owed);
	struct job_record fixed = whole(lab.tenant, 1);
	fixed.preemptible = false;
	submit(lab.h, fixed);
	submit(lab.h, fixed);
	int64_t third = submit(lab.h, fixed);
	assert_int_equal(pass(lab.h), 2);
	assert_int_equal(state(lab.h, third), JOB_PENDING);
	run_at(lab, 400, 4);
	fixed.gpu_count = 3;
	must_not(
	    lab.h, try_submit(lab.h, fixed), ERROR_FORBIDDEN,
	    "jobs that may not be preempted are bound by the quota: GPUs requested=3, quota=2");
	harness_free(lab.h);
}

static void where_no_quota_is_set_they_are_bound_by_the_limit_alone(void **unused)
{
	struct lab lab = preempt_lab_new(8);

	(void)unused;
	lab.tenant = put_tenant(lab.h, sharing("free"));
	struct job_record fixed = whole(lab.tenant, 8);
	fixed.preemptible = false;
	submit(lab.h, fixed);
	assert_int_equal(pass(lab.h), 1);
	harness_free(lab.h);
}

static void a_job_that_never_preempts_waits(void **unused)
{
	struct lab lab = preempt_lab_new(1);
	int64_t low = run_at(lab, 10, 1);
	struct job_record patient = whole(lab.tenant, 1);

	(void)unused;
	patient.priority = 100;
	patient.marks = "app=x\n@preempts=never";
	int64_t waits = submit(lab.h, patient);
	assert_int_equal(pass(lab.h), 0);
	assert_false(was_told_to_stop(lab.h, right_of(lab.h, low, 0)));
	assert_int_equal(state(lab.h, waits), JOB_PENDING);
	/* Another of its priority is not held up by it. */
	submit_at(lab, 100, 1);
	pass(lab.h);
	assert_true(was_told_to_stop(lab.h, right_of(lab.h, low, 0)));
	harness_free(lab.h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_just_placed_is_not_stopped_before_it_has_started),
		cmocka_unit_test(
		    what_was_just_stopped_is_not_late_at_once_even_without_any_time_to_stop),
		cmocka_unit_test(only_a_strictly_higher_priority_preempts),
		cmocka_unit_test(waiting_for_long_never_makes_a_victim),
		cmocka_unit_test(what_had_its_turn_by_waiting_is_not_stopped_for_one_it_passed),
		cmocka_unit_test(the_lowest_priority_goes_first),
		cmocka_unit_test(of_one_priority_the_latest_started_goes_first),
		cmocka_unit_test(of_one_priority_one_whose_work_was_just_saved_goes_first),
		cmocka_unit_test(no_more_go_than_are_needed),
		cmocka_unit_test(what_is_not_in_the_way_stays),
		cmocka_unit_test(nobody_goes_for_one_who_would_not_fit_even_then),
		cmocka_unit_test(a_victim_gets_notice_and_is_queued_again_when_its_memory_is_back),
		cmocka_unit_test(the_winner_starts_only_when_the_memory_is_confirmed),
		cmocka_unit_test(a_claim_keeps_others_off_what_is_being_freed),
		cmocka_unit_test(a_cancelled_winner_leaves_the_room_to_others),
		cmocka_unit_test(a_tenant_that_may_not_preempt_waits),
		cmocka_unit_test(who_is_about_to_end_stays_where_others_can_go),
		cmocka_unit_test(nobody_is_preempted_where_that_is_switched_off),
		cmocka_unit_test(a_job_that_is_not_preemptible_is_never_a_victim),
		cmocka_unit_test(a_job_that_was_preempted_often_enough_is_protected),
		cmocka_unit_test(a_job_is_protected_until_it_ran_for_a_while),
		cmocka_unit_test(a_limit_binds_at_every_ancestor),
		cmocka_unit_test(at_its_limit_a_tenant_makes_room_among_its_own),
		cmocka_unit_test(the_number_of_running_jobs_is_limited_too),
		cmocka_unit_test(jobs_that_may_not_be_preempted_are_bound_by_the_quota),
		cmocka_unit_test(a_job_that_never_preempts_waits),
		cmocka_unit_test(where_no_quota_is_set_they_are_bound_by_the_limit_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
