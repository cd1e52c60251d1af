/* pass_test.c - who is served next, and that a pass does all of it and no more */
#include "core/test/harness.h"

struct lab {
	struct harness *h;
	int64_t tenant;
};

/* One tenant and a node n1 with as many GPUs. */
static struct lab pass_lab_new(int gpus)
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

/* A job with this time limit. */
static int64_t submit_for(struct lab lab, int64_t max_runtime_ms, int32_t gpus)
{
	struct job_record job_record = whole(lab.tenant, gpus);

	job_record.max_runtime_ms = max_runtime_ms;
	return submit(lab.h, job_record);
}

/* One that is not acknowledged, with this many units. */
static void pass_of(struct harness *h, int64_t units)
{
	must(h, harness_apply(h, (struct command){ .kind = COMMAND_PASS, .units = units }));
}

/* Order. */

static void among_equals_the_first_to_come_is_the_first_to_be_served(void **unused)
{
	struct lab lab = pass_lab_new(2);
	int64_t jobs[4];

	(void)unused;
	for (int i = 0; i < 4; i++) {
		jobs[i] = submit_at(lab, 500, 1);
		lab.h->now_ms += 1;
	}
	assert_int_equal(pass(lab.h), 2);
	assert_int_equal(state(lab.h, jobs[0]), JOB_RUNNING);
	assert_int_equal(state(lab.h, jobs[1]), JOB_RUNNING);
	end_job(lab.h, jobs[1], 0);
	assert_int_equal(pass(lab.h), 1);
	assert_int_equal(state(lab.h, jobs[2]), JOB_RUNNING);
	harness_free(lab.h);
}

static void among_equals_that_holds_for_jobs_that_ask_for_different_things(void **unused)
{
	struct lab lab = pass_lab_new(1);

	(void)unused;
	int64_t first = submit(lab.h, memory(lab.tenant, 50000));
	int64_t second = submit(lab.h, whole(lab.tenant, 1));
	submit(lab.h, fraction(lab.tenant, 500));
	assert_int_equal(pass(lab.h), 1);
	assert_int_equal(state(lab.h, first), JOB_RUNNING);
	end_job(lab.h, first, 0);
	assert_int_equal(pass(lab.h), 1);
	assert_int_equal(state(lab.h, second), JOB_RUNNING);
	harness_free(lab.h);
}

static void a_higher_priority_is_served_first(void **unused)
{
	struct lab lab = pass_lab_new(1);

	(void)unused;
	int64_t low = submit_at(lab, 500, 1), high = submit_at(lab, 501, 1);
	assert_int_equal(pass(lab.h), 1);
	assert_int_equal(state(lab.h, high), JOB_RUNNING);
	assert_int_equal(state(lab.h, low), JOB_PENDING);
	harness_free(lab.h);
}

/* At 10 points a minute, 100 points are ten minutes. */
static enum job_state state_after_waiting(int64_t minutes_ms)
{
	struct lab lab = pass_lab_new(1);
	int64_t all = submit_at(lab, 900, 1);

	pass(lab.h);
	int64_t low = submit_at(lab, 500, 1);
	lab.h->now_ms += minutes_ms;
	submit_at(lab, 600, 1);
	lab.h->now_ms += 1000;
	end_job(lab.h, all, 0);
	assert_int_equal(pass(lab.h), 1);
	enum job_state result = state(lab.h, low);
	harness_free(lab.h);
	return result;
}

static void a_job_passes_more_important_ones_that_come_much_later(void **unused)
{
	(void)unused;
	assert_int_equal(state_after_waiting(10 * 60000 - 1), JOB_PENDING);
	assert_int_equal(state_after_waiting(10 * 60000 + 1), JOB_RUNNING);
}

static void no_job_starves_behind_important_jobs_that_keep_coming(void **unused)
{
	struct lab lab = pass_lab_new(1);
	struct config_record config = config_default();
	int64_t runs = submit_at(lab, 900, 1), low = submit_at(lab, 500, 1), minutes = 0;

	(void)unused;
	pass(lab.h);
	for (; state(lab.h, low) == JOB_PENDING && minutes < 100; minutes++) {
		int64_t next = submit_at(lab, 900, 1);
		lab.h->now_ms += 60000;
		end_job(lab.h, runs, 0);
		pass(lab.h);
		runs = next;
		if (state(lab.h, next) != JOB_RUNNING)
			break;
	}
	assert_int_equal(state(lab.h, low), JOB_RUNNING);
	assert_in_range(minutes, 39, (900 - 500) / config.ageing_per_minute + 1);
	harness_free(lab.h);
}

static void a_job_that_does_not_fit_does_not_keep_others_from_starting(void **unused)
{
	struct lab lab = pass_lab_new(2);
	struct config_record config = config_default();

	(void)unused;
	config.enable_backfill = false;
	configure(lab.h, config);
	int64_t large = submit_at(lab, 900, 4), small = submit_at(lab, 500, 1);
	assert_int_equal(pass(lab.h), 1);
	assert_int_equal(state(lab.h, large), JOB_PENDING);
	assert_int_equal(state(lab.h, small), JOB_RUNNING);
	harness_free(lab.h);
}

static void tenants_take_turns(void **unused)
{
	struct lab lab = pass_lab_new(4);
	int64_t other = put_tenant(lab.h, tenant_named("other"));

	(void)unused;
	for (int i = 0; i < 4; i++)
		submit(lab.h, whole(lab.tenant, 1));
	for (int i = 0; i < 4; i++)
		submit(lab.h, whole(other, 1));
	assert_int_equal(pass(lab.h), 4);
	assert_int_equal(tenants_find(&lab.h->sched->tenants, other)->allocated.of[AMOUNT_GPU],
	                 2 * WHOLE_GPU);
	harness_free(lab.h);
}

static void the_position_counts_those_who_go_before(void **unused)
{
	struct lab lab = pass_lab_new(1);
	int64_t other = put_tenant(lab.h, tenant_named("other"));
	int64_t position, of_tenant;

	(void)unused;
	submit_at(lab, 900, 1);
	pass(lab.h);
	int64_t second = submit_at(lab, 500, 1), first = submit_at(lab, 600, 1);
	submit(lab.h, whole(other, 1));
	assert_true(sched_position(lab.h->sched, first, &position, &of_tenant, &lab.h->error));
	assert_int_equal(of_tenant, 0);
	assert_true(sched_position(lab.h->sched, second, &position, &of_tenant, &lab.h->error));
	assert_int_equal(of_tenant, 1);
	harness_free(lab.h);
}

/* Passes. */

/* A cluster where something of everything happens: starts, claims, victims, moves. */
static struct harness *busy(void)
{
	struct harness *h = harness_new();
	struct tenant_record sharing = tenant_named("first");
	int64_t tenants[3];

	for (int i = 0; i < 3; i++)
		add_node(h, i == 0 ? "n1" : i == 1 ? "n2" : "n3", 4, 80000);
	sharing.quota_gpu = 4 * WHOLE_GPU;
	tenants[0] = put_tenant(h, sharing);
	sharing.name = "second";
	tenants[1] = put_tenant(h, sharing);
	sharing.name = "third";
	tenants[2] = put_tenant(h, sharing);
	for (int i = 0; i < 8; i++) {
		struct job_record job_record = whole(tenants[0], 1);
		job_record.movable = i % 2 == 0;
		job_record.max_runtime_ms = 100000;
		submit(h, job_record);
	}
	for (int i = 0; i < 8; i++)
		submit(h, memory(tenants[1], 30000));
	pass(h);
	h->now_ms += 10000;
	must(h, cancel(h, 2));
	for (int i = 0; i < 6; i++) {
		struct job_record job_record = whole(tenants[2], 1 + i % 3);
		job_record.priority = 500 + 100 * (i % 2);
		submit(h, job_record);
	}
	struct job_record gang = whole(tenants[1], 2);
	gang.tasks = 3;
	gang.min_available = 2;
	submit(h, gang);
	for (int i = 0; i < 4; i++)
		submit(h, fraction(tenants[0], 500));
	return h;
}

static void a_pass_that_follows_a_complete_one_has_no_effects(void **unused)
{
	struct harness *h = busy();

	(void)unused;
	for (int round = 0; round < 6; round++) {
		pass_of(h, INT64_MAX);
		int64_t started[64];
		int count = read_orders(h, started);
		pass_of(h, INT64_MAX);
		assert_int_equal(h->effects.count, 0);
		for (int i = 0; i < count; i++)
			must(h, to_task(h, COMMAND_TASK_STARTED, started[i], 0, false));
		confirm_stops(h);
		h->now_ms += 20000;
	}
	harness_free(h);
}

/* Where everything is, as text. */
static void print_placement(const struct harness *h, struct buffer *buffer)
{
	for (int64_t id = 1; id <= h->sched->meta.last_job_id; id++) {
		const struct job *it = job(h, id);
		for (int t = 0; it && t < it->r.tasks; t++) {
			const struct reservation *right = it->tasks[t].reservation,
						 *claim = it->tasks[t].claim;
			if (!right && !claim)
				continue;
			buffer_print(buffer, "%lld.%d:", (long long)id, t);
			if (right)
				buffer_print(buffer, " %s in phase %d on %s", right->node->r.name,
				             (int)right->phase, right->parts[0].gpu->r.uuid);
			if (claim)
				buffer_print(buffer, " claims %s", claim->parts[0].gpu->r.uuid);
			buffer_text(buffer, "\n");
		}
	}
}

static void passes_of_one_unit_end_where_one_without_limit_does(void **unused)
{
	struct harness *whole_pass = busy(), *steps = busy();
	struct buffer one = { 0 }, other = { 0 };
	int passes = 0;

	(void)unused;
	pass_of(whole_pass, INT64_MAX);
	do {
		pass_of(steps, 1);
		passes++;
	} while (effects_of(steps, EFFECT_MORE) > 0);
	assert_true(passes > 3);
	print_placement(whole_pass, &one);
	print_placement(steps, &other);
	assert_string_equal(one.data, other.data);
	buffer_free(&one);
	buffer_free(&other);
	harness_free(whole_pass);
	harness_free(steps);
}

static void a_pass_that_used_up_its_units_says_so(void **unused)
{
	struct lab lab = pass_lab_new(4);

	(void)unused;
	for (int i = 0; i < 3; i++)
		submit_at(lab, 500, 1);
	pass_of(lab.h, 2);
	assert_int_equal(effects_of(lab.h, EFFECT_START), 2);
	assert_int_equal(effects_of(lab.h, EFFECT_MORE), 1);
	pass_of(lab.h, 2);
	assert_int_equal(effects_of(lab.h, EFFECT_START), 1);
	assert_int_equal(effects_of(lab.h, EFFECT_MORE), 0);
	harness_free(lab.h);
}

static void a_pass_in_which_jobs_end_that_are_not_kept_is_followed_by_another(void **unused)
{
	struct lab lab = pass_lab_new(1);
	struct job_record late = whole(lab.tenant, 1);
	struct config_record config = *sched_config(lab.h->sched);

	(void)unused;
	config.retention_ms = 0;
	configure(lab.h, config);
	submit_at(lab, 500, 1);
	pass(lab.h);
	late.deadline_ms = lab.h->now_ms + 1000;
	submit(lab.h, late);
	lab.h->now_ms += 2000;
	pass_of(lab.h, 100);
	assert_int_equal(effects_of(lab.h, EFFECT_ARCHIVE), 0);
	assert_int_equal(effects_of(lab.h, EFFECT_MORE), 1);
	pass_of(lab.h, 100);
	assert_true(effects_of(lab.h, EFFECT_ARCHIVE) > 0);
	assert_int_equal(effects_of(lab.h, EFFECT_MORE), 0);
	pass_of(lab.h, 100);
	assert_int_equal(lab.h->effects.count, 0);
	harness_free(lab.h);
}

static void a_start_is_a_decision_with_the_arithmetic_of_the_law(void **unused)
{
	struct lab lab = pass_lab_new(1);

	(void)unused;
	report_gpu(lab.h, "n1-gpu0", 5000, 40, true);
	submit(lab.h, memory(lab.tenant, 20000));
	pass(lab.h);
	int64_t id = submit(lab.h, memory(lab.tenant, 30000));
	pass(lab.h);
	const struct decision_record *decision = decided(lab.h, DECISION_START, id);
	assert_int_equal(decision->gpus.count, 1);
	const int64_t *line = decision->gpus.at;
	assert_int_equal(line[LINE_CAPACITY], 80000);
	assert_int_equal(line[LINE_FOREIGN], 5000);
	assert_int_equal(line[LINE_USED_BEFORE], 20000);
	assert_int_equal(line[LINE_ASKED], 30000);
	assert_int_equal(line[LINE_USED_AFTER], 50000);
	harness_free(lab.h);
}

static void time_never_goes_back(void **unused)
{
	struct lab lab = pass_lab_new(1);

	(void)unused;
	time_passes(lab.h, 5000);
	int64_t now_ms = lab.h->now_ms;
	lab.h->now_ms -= 3000;
	int64_t id = submit_at(lab, 500, 1);
	assert_int_equal(job(lab.h, id)->r.submitted_ms, now_ms);
	assert_int_equal(sched_meta(lab.h->sched)->now_ms, now_ms);
	harness_free(lab.h);
}

/* Promised starts. */

/* Four GPUs, three of them taken by a job that ends in 100 s at the latest, and a
 * job of four that waits. */
static struct lab lab_with_large_job(int64_t *runs, int64_t *large)
{
	struct lab lab = pass_lab_new(4);

	*runs = submit_for(lab, 100000, 3);
	pass(lab.h);
	*large = submit_for(lab, 100000, 4);
	pass(lab.h);
	return lab;
}

static void a_large_job_that_waits_is_promised_a_start(void **unused)
{
	int64_t runs, large;
	struct lab lab = lab_with_large_job(&runs, &large);

	(void)unused;
	const struct decision_record *promise = decided(lab.h, DECISION_PROMISE, large);
	assert_non_null(promise);
	int64_t end_ms = job(lab.h, runs)->s.started_ms + 100000;
	assert_in_range(promise->until_ms, end_ms, end_ms + 60000); /* in whole minutes */
	harness_free(lab.h);
}

static void a_small_job_that_ends_before_passes(void **unused)
{
	int64_t runs, large;
	struct lab lab = lab_with_large_job(&runs, &large);

	(void)unused;
	int64_t small = submit_for(lab, 60000, 1);
	assert_int_equal(pass(lab.h), 1);
	assert_int_equal(state(lab.h, small), JOB_RUNNING);
	harness_free(lab.h);
}

static void a_small_job_that_would_push_the_start_back_waits(void **unused)
{
	int64_t runs, large;
	struct lab lab = lab_with_large_job(&runs, &large);

	(void)unused;
	int64_t small = submit_for(lab, 200000, 1), unknown = submit_at(lab, 500, 1);
	assert_int_equal(pass(lab.h), 0);
	end_job(lab.h, runs, 0);
	assert_int_equal(pass(lab.h), 1);
	assert_int_equal(state(lab.h, large), JOB_RUNNING);
	assert_int_equal(state(lab.h, small), JOB_PENDING);
	assert_int_equal(state(lab.h, unknown), JOB_PENDING);
	harness_free(lab.h);
}

static void gpus_that_no_promise_counts_on_are_for_everyone(void **unused)
{
	int64_t runs, large;
	struct lab lab = lab_with_large_job(&runs, &large);

	(void)unused;
	add_node(lab.h, "n2", 1, 80000);
	int64_t small = submit_for(lab, 200000, 1);
	assert_int_equal(pass(lab.h), 1);
	assert_string_equal(node_of(lab.h, small), "n2");
	harness_free(lab.h);
}

static void a_promise_ends_with_the_job_that_it_was_given_to(void **unused)
{
	int64_t runs, large;
	struct lab lab = lab_with_large_job(&runs, &large);

	(void)unused;
	int64_t small = submit_for(lab, 200000, 1);
	assert_int_equal(pass(lab.h), 0);
	must(lab.h, cancel(lab.h, large));
	assert_int_equal(pass(lab.h), 1);
	assert_int_equal(state(lab.h, small), JOB_RUNNING);
	harness_free(lab.h);
}

static void without_backfill_nobody_waits_for_a_promise(void **unused)
{
	struct lab lab = pass_lab_new(4);
	struct config_record config = config_default();

	(void)unused;
	config.enable_backfill = false;
	configure(lab.h, config);
	submit_for(lab, 100000, 3);
	pass(lab.h);
	submit_for(lab, 100000, 4);
	submit_for(lab, 200000, 1);
	assert_int_equal(pass(lab.h), 1);
	harness_free(lab.h);
}

/* Money. */

static void a_tenant_that_spent_its_budget_starts_nothing_more_this_month(void **unused)
{
	struct lab lab = pass_lab_new(4);
	struct tenant_record poor = tenant_named("poor");

	(void)unused;
	poor.cost_per_gpu_hour = 1000000;
	poor.budget_per_month = 2000000;
	lab.tenant = put_tenant(lab.h, poor);
	submit_at(lab, 500, 1);
	assert_int_equal(pass(lab.h), 1);
	time_passes(lab.h, 2 * 3600000);
	submit_at(lab, 500, 1);
	assert_int_equal(pass(lab.h), 0);
	time_passes(lab.h, INT64_C(31) * 24 * 3600000);
	end_job(lab.h, 1, 0);
	assert_int_equal(lab.h->sched->tenants.all[1]->r.jobs_completed, 1);
	harness_free(lab.h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(among_equals_the_first_to_come_is_the_first_to_be_served),
		cmocka_unit_test(among_equals_that_holds_for_jobs_that_ask_for_different_things),
		cmocka_unit_test(a_higher_priority_is_served_first),
		cmocka_unit_test(a_job_passes_more_important_ones_that_come_much_later),
		cmocka_unit_test(no_job_starves_behind_important_jobs_that_keep_coming),
		cmocka_unit_test(a_job_that_does_not_fit_does_not_keep_others_from_starting),
		cmocka_unit_test(tenants_take_turns),
		cmocka_unit_test(the_position_counts_those_who_go_before),
		cmocka_unit_test(a_pass_that_follows_a_complete_one_has_no_effects),
		cmocka_unit_test(passes_of_one_unit_end_where_one_without_limit_does),
		cmocka_unit_test(a_pass_that_used_up_its_units_says_so),
		cmocka_unit_test(a_pass_in_which_jobs_end_that_are_not_kept_is_followed_by_another),
		cmocka_unit_test(a_start_is_a_decision_with_the_arithmetic_of_the_law),
		cmocka_unit_test(time_never_goes_back),
		cmocka_unit_test(a_large_job_that_waits_is_promised_a_start),
		cmocka_unit_test(a_small_job_that_ends_before_passes),
		cmocka_unit_test(a_small_job_that_would_push_the_start_back_waits),
		cmocka_unit_test(gpus_that_no_promise_counts_on_are_for_everyone),
		cmocka_unit_test(a_promise_ends_with_the_job_that_it_was_given_to),
		cmocka_unit_test(without_backfill_nobody_waits_for_a_promise),
		cmocka_unit_test(a_tenant_that_spent_its_budget_starts_nothing_more_this_month),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
