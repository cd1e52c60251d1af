/* room_test.c - making room between tenants, by waiting, by moving, and what if it fails */
#include <stdio.h>

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
static struct lab room_lab_new(int gpus)
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

/* Between tenants. */

/* Two tenants without quotas; `lab.tenant` is the first and has all GPUs. */
static struct lab lab_of_two(int gpus, int64_t *other, int64_t *jobs)
{
	struct lab lab = { .h = harness_new() };

	add_node(lab.h, "n1", gpus, 80000);
	lab.tenant = put_tenant(lab.h, sharing("first"));
	*other = put_tenant(lab.h, sharing("second"));
	for (int i = 0; i < gpus; i++)
		jobs[i] = run_at(lab, 500, 1);
	return lab;
}

static int64_t gpus_of(const struct harness *h, int64_t tenant)
{
	return tenants_find(&h->sched->tenants, tenant)->allocated.of[AMOUNT_GPU] / WHOLE_GPU;
}

static void a_tenant_below_its_share_takes_from_one_above(void **unused)
{
	int64_t other, jobs[4];
	struct lab lab = lab_of_two(4, &other, jobs);

	(void)unused;
	int64_t winner = submit(lab.h, whole(other, 1));
	pass(lab.h);
	assert_int_equal(lab.h->stop_count, 1);
	assert_non_null(decided(lab.h, DECISION_RECLAIM, winner));
	confirm_stops(lab.h);
	assert_int_equal(pass(lab.h), 1);
	assert_int_equal(state(lab.h, winner), JOB_RUNNING);
	harness_free(lab.h);
}

static void a_tenant_takes_no_more_than_its_share_and_then_nothing_moves(void **unused)
{
	int64_t other, jobs[4];
	struct lab lab = lab_of_two(4, &other, jobs);

	(void)unused;
	for (int i = 0; i < 4; i++)
		submit(lab.h, whole(other, 1));
	rounds(lab.h, 6);
	int starts = lab.h->starts;
	for (int i = 0; i < 20; i++) {
		assert_int_equal(gpus_of(lab.h, lab.tenant), 2);
		assert_int_equal(gpus_of(lab.h, other), 2);
		rounds(lab.h, 1);
	}
	assert_int_equal(lab.h->starts, starts);
	harness_free(lab.h);
}

static void what_is_idle_is_borrowed_and_given_back(void **unused)
{
	int64_t other, jobs[4];
	struct lab lab = lab_of_two(4, &other, jobs);
	int64_t winners[2];

	(void)unused;
	for (int i = 0; i < 2; i++)
		winners[i] = submit(lab.h, whole(other, 1));
	rounds(lab.h, 6);
	assert_int_equal(gpus_of(lab.h, other), 2);
	end_job(lab.h, winners[0], 0);
	end_job(lab.h, winners[1], 0);
	rounds(lab.h, 2);
	assert_int_equal(gpus_of(lab.h, lab.tenant), 4);
	harness_free(lab.h);
}

static void what_a_tenant_is_owed_is_taken_and_not_more(void **unused)
{
	struct lab lab = { .h = harness_new() };
	struct tenant_record small = sharing("small"), large = sharing("large");

	(void)unused;
	add_node(lab.h, "n1", 4, 80000);
	small.quota_gpu = 1 * WHOLE_GPU;
	large.quota_gpu = 3 * WHOLE_GPU;
	lab.tenant = put_tenant(lab.h, small);
	int64_t other = put_tenant(lab.h, large);
	for (int i = 0; i < 4; i++)
		run_at(lab, 500, 1);
	for (int i = 0; i < 4; i++)
		submit(lab.h, whole(other, 1));
	rounds(lab.h, 8);
	assert_int_equal(gpus_of(lab.h, other), 3);
	assert_int_equal(gpus_of(lab.h, lab.tenant), 1);
	rounds(lab.h, 20);
	assert_int_equal(gpus_of(lab.h, other), 3);
	harness_free(lab.h);
}

static void what_may_not_be_preempted_is_not_reclaimed(void **unused)
{
	struct lab lab = { .h = harness_new() };

	(void)unused;
	add_node(lab.h, "n1", 2, 80000);
	lab.tenant = put_tenant(lab.h, sharing("first"));
	int64_t other = put_tenant(lab.h, sharing("second"));
	struct job_record fixed = whole(lab.tenant, 2);
	fixed.preemptible = false;
	int64_t runs = submit(lab.h, fixed);
	pass(lab.h);
	submit(lab.h, whole(other, 1));
	rounds(lab.h, 3);
	assert_int_equal(state(lab.h, runs), JOB_RUNNING);
	harness_free(lab.h);
}

static void a_tenant_that_may_not_preempt_does_not_reclaim(void **unused)
{
	struct lab lab = { .h = harness_new() };
	struct tenant_record meek = sharing("meek");

	(void)unused;
	add_node(lab.h, "n1", 2, 80000);
	lab.tenant = put_tenant(lab.h, sharing("first"));
	meek.can_preempt_others = false;
	int64_t other = put_tenant(lab.h, meek);
	run_at(lab, 500, 1);
	run_at(lab, 500, 1);
	submit(lab.h, whole(other, 1));
	rounds(lab.h, 3);
	assert_int_equal(gpus_of(lab.h, lab.tenant), 2);
	harness_free(lab.h);
}

static void a_high_priority_takes_nothing_from_another_tenant_within_its_share(void **unused)
{
	struct lab lab = { .h = harness_new() };

	(void)unused;
	add_node(lab.h, "n1", 2, 80000);
	lab.tenant = put_tenant(lab.h, sharing("first"));
	run_at(lab, 100, 1);
	int64_t first = lab.tenant;
	lab.tenant = put_tenant(lab.h, sharing("second"));
	run_at(lab, 500, 1);
	submit_at(lab, 5000, 1);
	rounds(lab.h, 3);
	assert_int_equal(gpus_of(lab.h, first), 1);
	assert_int_equal(gpus_of(lab.h, lab.tenant), 1);
	harness_free(lab.h);
}

/* Waiting instead. */

/* Teaches that jobs of this name take so long. */
static void teach(struct lab lab, const char *name, int64_t took_ms)
{
	struct job_record job_record = whole(lab.tenant, 1);

	job_record.name = name;
	for (int i = 0; i < 20; i++) {
		int64_t id = submit(lab.h, job_record);
		assert_int_equal(pass(lab.h), 1);
		time_passes(lab.h, took_ms);
		end_job(lab.h, id, 0);
	}
}

/* A job that is expected to take 100 s, of which 90 have passed. */
static int64_t run_almost_done(struct lab lab)
{
	struct job_record job_record = whole(lab.tenant, 1);

	teach(lab, "train", 100000);
	job_record.name = "train";
	int64_t id = submit(lab.h, job_record);
	assert_int_equal(pass(lab.h), 1);
	time_passes(lab.h, 90000);
	return id;
}

static void a_victim_that_ends_soon_is_waited_for_instead(void **unused)
{
	struct lab lab = room_lab_new(1);
	int64_t runs = run_almost_done(lab);

	(void)unused;
	int64_t winner = submit_at(lab, 900, 1);
	pass(lab.h);
	assert_int_equal(state(lab.h, runs), JOB_RUNNING);
	const struct decision_record *wait = decided(lab.h, DECISION_WAIT, winner);
	assert_non_null(wait);
	assert_int_equal(wait->lost_gpu_ms, 90000 * WHOLE_GPU);
	assert_in_range(wait->wait_gpu_ms, 9000 * WHOLE_GPU, 11000 * WHOLE_GPU);
	assert_in_range(wait->until_ms, lab.h->now_ms + 9000, lab.h->now_ms + 11000);
	harness_free(lab.h);
}

/* Both sides are told when the one ends and the other starts. */
static void one_who_is_waited_for_is_told_so(void **unused)
{
	struct lab lab = room_lab_new(1);
	int64_t runs = run_almost_done(lab);
	char said[64];

	(void)unused;
	assert_non_null(strstr(why(lab.h, runs), "it is expected to end by "));
	assert_null(strstr(why(lab.h, runs), "waits for it"));
	int64_t winner = submit_at(lab, 900, 1);
	pass(lab.h);
	const struct decision_record *awaited = decided(lab.h, DECISION_AWAITED, runs);
	assert_non_null(awaited);
	assert_int_equal(awaited->for_job_id, winner);
	assert_int_equal(awaited->until_ms, decided(lab.h, DECISION_WAIT, winner)->until_ms);
	snprintf(said, sizeof(said), "job-%d waits for it to end, rather than preempting it, until",
	         (int)winner);
	assert_non_null(strstr(why(lab.h, runs), said));
	assert_non_null(strstr(why(lab.h, runs), "beyond that, it may be preempted"));
	end_job(lab.h, runs, 0);
	assert_null(strstr(why(lab.h, runs), "waits for it"));
	harness_free(lab.h);
}

/* The one that started last would lose 700 s, and needs 300 more: the other goes, though it
 * loses more. Waiting would cost four GPUs for 300 s. */
static void a_victim_that_loses_more_than_it_still_needs_is_spared(void **unused)
{
	struct lab lab = room_lab_new(4);
	struct job_record hours = whole(lab.tenant, 4), minutes = whole(lab.tenant, 1);

	(void)unused;
	teach(lab, "minutes", 1000000);
	teach(lab, "hours", 10000000);
	hours.name = "hours";
	minutes.name = "minutes";
	int64_t long_one = submit(lab.h, hours);
	assert_int_equal(pass(lab.h), 1);
	add_node(lab.h, "n2", 4, 80000);
	int64_t short_one = submit(lab.h, minutes);
	assert_int_equal(pass(lab.h), 1);
	time_passes(lab.h, 700000);
	int64_t winner = submit_at(lab, 900, 4);
	pass(lab.h);
	assert_non_null(decided(lab.h, DECISION_PREEMPT, winner));
	assert_true(was_told_to_stop(lab.h, long_one));
	assert_int_equal(state(lab.h, short_one), JOB_RUNNING);
	harness_free(lab.h);
}

static void one_who_is_waited_for_makes_room_by_ending(void **unused)
{
	struct lab lab = room_lab_new(1);
	int64_t runs = run_almost_done(lab);

	(void)unused;
	int64_t winner = submit_at(lab, 900, 1);
	pass(lab.h);
	time_passes(lab.h, 10000);
	end_job(lab.h, runs, 0);
	assert_int_equal(pass(lab.h), 1);
	assert_int_equal(state(lab.h, winner), JOB_RUNNING);
	assert_int_equal(job(lab.h, runs)->s.preempted_count, 0);
	harness_free(lab.h);
}

static void one_who_is_waited_for_and_does_not_end_is_preempted(void **unused)
{
	struct lab lab = room_lab_new(1);
	int64_t runs = run_almost_done(lab);

	(void)unused;
	int64_t winner = submit_at(lab, 900, 1);
	for (int i = 0; i < 12 && !was_told_to_stop(lab.h, runs); i++) {
		pass(lab.h);
		lab.h->now_ms += 10000;
	}
	assert_true(was_told_to_stop(lab.h, runs));
	assert_non_null(decided(lab.h, DECISION_PREEMPT, winner));
	harness_free(lab.h);
}

static void a_victim_with_a_long_way_to_go_is_not_waited_for(void **unused)
{
	struct lab lab = room_lab_new(1);
	struct job_record job_record = whole(lab.tenant, 1);

	(void)unused;
	teach(lab, "train", 100000);
	job_record.name = "train";
	int64_t runs = submit(lab.h, job_record);
	pass(lab.h);
	time_passes(lab.h, 20000);
	int64_t winner = submit_at(lab, 900, 1);
	pass(lab.h);
	assert_true(was_told_to_stop(lab.h, runs));
	const struct decision_record *decision = decided(lab.h, DECISION_PREEMPT, winner);
	assert_int_equal(decision->lost_gpu_ms, 20000 * WHOLE_GPU);
	assert_true(decision->wait_gpu_ms > decision->lost_gpu_ms);
	harness_free(lab.h);
}

/* Consolidation. */

/* Nodes n1 and n2 of two GPUs, with a job of one GPU on each. */
static struct lab lab_in_pieces(bool movable, struct config_record config, int64_t *jobs)
{
	struct lab lab = { .h = harness_new() };

	configure(lab.h, config);
	add_node(lab.h, "n1", 2, 80000);
	lab.tenant = put_tenant(lab.h, tenant_named("lab"));
	struct job_record job_record = whole(lab.tenant, 1);
	job_record.movable = movable;
	jobs[0] = submit(lab.h, job_record);
	pass(lab.h);
	drain(lab.h, "n1", true);
	add_node(lab.h, "n2", 2, 80000);
	jobs[1] = submit(lab.h, job_record);
	pass(lab.h);
	drain(lab.h, "n1", false);
	assert_string_equal(node_of(lab.h, jobs[0]), "n1");
	assert_string_equal(node_of(lab.h, jobs[1]), "n2");
	return lab;
}

static void jobs_move_together_so_that_a_large_one_fits(void **unused)
{
	int64_t jobs[2];
	struct lab lab = lab_in_pieces(true, config_default(), jobs);

	(void)unused;
	int64_t large = submit(lab.h, whole(lab.tenant, 2));
	pass(lab.h);
	assert_int_equal(lab.h->stop_count, 1);
	assert_non_null(decided(lab.h, DECISION_MOVE, large));
	assert_true(has_claim(lab.h, large));
	rounds(lab.h, 2);
	assert_int_equal(state(lab.h, large), JOB_RUNNING);
	assert_int_equal(state(lab.h, jobs[0]), JOB_RUNNING);
	assert_int_equal(state(lab.h, jobs[1]), JOB_RUNNING);
	assert_string_equal(node_of(lab.h, jobs[0]), node_of(lab.h, jobs[1]));
	harness_free(lab.h);
}

static void only_jobs_with_checkpoints_are_moved(void **unused)
{
	int64_t jobs[2];
	struct lab lab = lab_in_pieces(false, config_default(), jobs);

	(void)unused;
	int64_t large = submit(lab.h, whole(lab.tenant, 2));
	rounds(lab.h, 3);
	assert_int_equal(state(lab.h, large), JOB_PENDING);
	assert_string_equal(node_of(lab.h, jobs[0]), "n1");
	assert_string_equal(node_of(lab.h, jobs[1]), "n2");
	harness_free(lab.h);
}

static void unless_the_configuration_says_all(void **unused)
{
	int64_t jobs[2];
	struct config_record config = config_default();

	(void)unused;
	config.move_any_job = true;
	struct lab lab = lab_in_pieces(false, config, jobs);
	int64_t large = submit(lab.h, whole(lab.tenant, 2));
	rounds(lab.h, 3);
	assert_int_equal(state(lab.h, large), JOB_RUNNING);
	assert_string_equal(node_of(lab.h, jobs[0]), node_of(lab.h, jobs[1]));
	harness_free(lab.h);
}

static void nothing_moves_where_consolidation_is_switched_off(void **unused)
{
	int64_t jobs[2];
	struct config_record config = config_default();

	(void)unused;
	config.enable_consolidation = false;
	struct lab lab = lab_in_pieces(true, config, jobs);
	int64_t large = submit(lab.h, whole(lab.tenant, 2));
	rounds(lab.h, 3);
	assert_int_equal(state(lab.h, large), JOB_PENDING);
	harness_free(lab.h);
}

static void a_victim_that_may_move_is_moved_where_there_is_room(void **unused)
{
	struct lab lab = room_lab_new(1);
	struct job_record movable = whole(lab.tenant, 1);
	struct job_record pinned = whole(lab.tenant, 1);

	(void)unused;
	movable.movable = true;
	int64_t victim = submit(lab.h, movable);
	pass(lab.h);
	struct device device = device_of("n2-gpu0", 0, 40000);
	must(lab.h, report(lab.h, report_of("n2", &device, 1)));
	pinned.priority = 900;
	pinned.memory_mib = 80000;
	int64_t winner = submit(lab.h, pinned);
	rounds(lab.h, 2);
	assert_int_equal(state(lab.h, winner), JOB_RUNNING);
	assert_int_equal(state(lab.h, victim), JOB_RUNNING);
	assert_string_equal(node_of(lab.h, victim), "n2");
	harness_free(lab.h);
}

/* Releases that take too long. */

static void a_claim_on_memory_that_does_not_come_back_lapses_and_is_planned_anew(void **unused)
{
	struct lab lab = room_lab_new(1);
	struct config_record config = config_default();

	(void)unused;
	int64_t first = run_at(lab, 500, 1);
	add_node(lab.h, "n2", 1, 80000);
	int64_t second = run_at(lab, 510, 1);
	int64_t winner = submit_at(lab, 900, 1);
	pass(lab.h);
	assert_true(was_told_to_stop(lab.h, first));
	lab.h->now_ms += config.grace_ms + config.release_timeout_ms;
	pass(lab.h);
	assert_non_null(decided(lab.h, DECISION_LAPSED, winner));
	assert_true(was_told_to_stop(lab.h, second));
	assert_true(has_claim(lab.h, winner));
	must(lab.h, to_task(lab.h, COMMAND_MEMORY_RELEASED, right_of(lab.h, second, 0), 0, false));
	assert_int_equal(pass(lab.h), 1);
	assert_string_equal(node_of(lab.h, winner), "n2");
	harness_free(lab.h);
}

static void a_claim_does_not_lapse_before_its_time(void **unused)
{
	struct lab lab = room_lab_new(1);
	struct config_record config = config_default();

	(void)unused;
	run_at(lab, 500, 1);
	int64_t winner = submit_at(lab, 900, 1);
	pass(lab.h);
	assert_int_equal(decided(lab.h, DECISION_PREEMPT, winner)->until_ms,
	                 lab.h->now_ms + config.grace_ms + config.release_timeout_ms);
	lab.h->now_ms += config.grace_ms + config.release_timeout_ms - 1;
	pass(lab.h);
	assert_true(has_claim(lab.h, winner));
	harness_free(lab.h);
}

static void memory_that_comes_back_late_is_free_again(void **unused)
{
	struct lab lab = room_lab_new(1);
	struct config_record config = config_default();

	(void)unused;
	run_at(lab, 500, 1);
	int64_t winner = submit_at(lab, 900, 1);
	pass(lab.h);
	lab.h->now_ms += config.grace_ms + config.release_timeout_ms;
	pass(lab.h);
	assert_false(has_claim(lab.h, winner));
	confirm_stops(lab.h);
	assert_int_equal(pass(lab.h), 1);
	assert_int_equal(state(lab.h, winner), JOB_RUNNING);
	harness_free(lab.h);
}

/* Attempts look at every node with memory coming back, and that is work. */
static void room_on_many_nodes_counts_for_more_than_its_victims(void **unused)
{
	enum { NODES = 150, UNITS = 100000 };
	struct lab lab = room_lab_new(1);

	(void)unused;
	for (int i = 1; i < NODES; i++) {
		char name[16];
		snprintf(name, sizeof(name), "m%03d", i);
		add_node(lab.h, name, 1, 80000);
	}
	for (int i = 0; i < NODES; i++)
		submit_at(lab, 100, 1);
	assert_int_equal(pass(lab.h), NODES);
	struct job_record gang = whole(lab.tenant, 1);
	gang.priority = 900;
	gang.tasks = gang.min_available = NODES;
	submit(lab.h, gang);
	must(lab.h, harness_apply(lab.h, (struct command){ .kind = COMMAND_PASS, .units = UNITS }));
	assert_int_equal(effects_of(lab.h, EFFECT_STOP), NODES);
	assert_true(UNITS - lab.h->sched->pass.budget > NODES + 1);
	harness_free(lab.h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tenant_below_its_share_takes_from_one_above),
		cmocka_unit_test(a_tenant_takes_no_more_than_its_share_and_then_nothing_moves),
		cmocka_unit_test(what_is_idle_is_borrowed_and_given_back),
		cmocka_unit_test(what_a_tenant_is_owed_is_taken_and_not_more),
		cmocka_unit_test(what_may_not_be_preempted_is_not_reclaimed),
		cmocka_unit_test(a_tenant_that_may_not_preempt_does_not_reclaim),
		cmocka_unit_test(
		    a_high_priority_takes_nothing_from_another_tenant_within_its_share),
		cmocka_unit_test(a_victim_that_ends_soon_is_waited_for_instead),
		cmocka_unit_test(one_who_is_waited_for_is_told_so),
		cmocka_unit_test(a_victim_that_loses_more_than_it_still_needs_is_spared),
		cmocka_unit_test(one_who_is_waited_for_makes_room_by_ending),
		cmocka_unit_test(one_who_is_waited_for_and_does_not_end_is_preempted),
		cmocka_unit_test(a_victim_with_a_long_way_to_go_is_not_waited_for),
		cmocka_unit_test(jobs_move_together_so_that_a_large_one_fits),
		cmocka_unit_test(only_jobs_with_checkpoints_are_moved),
		cmocka_unit_test(unless_the_configuration_says_all),
		cmocka_unit_test(nothing_moves_where_consolidation_is_switched_off),
		cmocka_unit_test(a_victim_that_may_move_is_moved_where_there_is_room),
		cmocka_unit_test(
		    a_claim_on_memory_that_does_not_come_back_lapses_and_is_planned_anew),
		cmocka_unit_test(a_claim_does_not_lapse_before_its_time),
		cmocka_unit_test(memory_that_comes_back_late_is_free_again),
		cmocka_unit_test(room_on_many_nodes_counts_for_more_than_its_victims),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
