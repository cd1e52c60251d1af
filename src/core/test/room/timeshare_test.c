/* timeshare_test.c - GPUs shared in time: who gives way to whom, and for how long nobody waits */
#include "core/test/harness.h"

#define MINUTE INT64_C(60000)
#define HOUR (60 * MINUTE)

struct lab {
	struct harness *h;
	int64_t tenant;
	struct config_record config;
};

/* One tenant, a node n1 with as many GPUs, and time sharing. */
static struct lab timeshare_lab_new(int gpus)
{
	struct lab lab = { .h = harness_new(), .config = config_default() };

	add_node(lab.h, "n1", gpus, 80000);
	lab.tenant = put_tenant(lab.h, tenant_named("lab"));
	lab.config.time_sharing = SHARING_ATTAINED_SERVICE;
	lab.config.sharing_wait_ms = 1000 * HOUR;
	lab.config.enable_consolidation = false;
	configure(lab.h, lab.config);
	return lab;
}

/* A job that can be interrupted. */
static struct job_record turns(struct lab lab, int32_t gpus)
{
	struct job_record job_record = whole(lab.tenant, gpus);

	job_record.preemptible = job_record.movable = true;
	return job_record;
}

/* Submits it and sees it start. */
static int64_t timeshare_execute(struct lab lab, struct job_record job_record)
{
	int64_t id = submit(lab.h, job_record);

	assert_int_equal(pass(lab.h), 1);
	return id;
}

static bool runs(struct lab lab, int64_t id)
{
	return job(lab.h, id)->counts.live > 0;
}

/* Passes and nodes that do what they are told, until nobody is told anything. */
static void timeshare_settle(struct lab lab)
{
	do {
		confirm_stops(lab.h);
		pass(lab.h);
	} while (lab.h->stop_count > 0);
}

static void after(struct lab lab, int64_t ms)
{
	lab.h->now_ms += ms;
	timeshare_settle(lab);
}

static void nobody_gives_way_where_time_is_not_shared(void **unused)
{
	struct lab lab = timeshare_lab_new(1);

	(void)unused;
	configure(lab.h, config_default());
	int64_t first = timeshare_execute(lab, turns(lab, 1)),
		second = submit(lab.h, turns(lab, 1));
	after(lab, 100 * HOUR);
	assert_true(runs(lab, first));
	assert_false(runs(lab, second));
	harness_free(lab.h);
}

static void who_had_clearly_more_gives_way_and_comes_back(void **unused)
{
	struct lab lab = timeshare_lab_new(1);

	(void)unused;
	int64_t first = timeshare_execute(lab, turns(lab, 1));
	after(lab, 74 * MINUTE);
	int64_t second = submit(lab.h, turns(lab, 1));
	timeshare_settle(lab);
	assert_true(runs(lab, first)); /* 74 minutes are not clearly more than an hour */
	after(lab, 2 * MINUTE);
	assert_true(runs(lab, second));
	assert_int_equal(job(lab.h, first)->s.served_ms, 76 * MINUTE);
	assert_non_null(decided(lab.h, DECISION_SHARE, second));
	after(lab, 94 * MINUTE);
	assert_true(runs(lab, second));
	after(lab, MINUTE);
	assert_true(runs(lab, first));
	harness_free(lab.h);
}

static void those_who_cannot_be_interrupted_neither_give_nor_take(void **unused)
{
	struct lab lab = timeshare_lab_new(2);
	struct job_record fixed = turns(lab, 1), brittle = turns(lab, 1);

	(void)unused;
	fixed.preemptible = false;
	brittle.movable = false;
	int64_t first = timeshare_execute(lab, fixed), second = timeshare_execute(lab, brittle);
	after(lab, 10 * HOUR);
	int64_t third = submit(lab.h, turns(lab, 1));
	timeshare_settle(lab);
	assert_true(runs(lab, first) && runs(lab, second));
	assert_false(runs(lab, third));
	end_job(lab.h, first, 0);
	timeshare_settle(lab);
	assert_true(runs(lab, third));
	after(lab, 10 * HOUR);
	int64_t fourth = submit(lab.h, brittle);
	timeshare_settle(lab);
	assert_true(runs(lab, third));
	assert_false(runs(lab, fourth));
	harness_free(lab.h);
}

static void only_jobs_of_one_priority_and_tenant_share(void **unused)
{
	struct lab lab = timeshare_lab_new(1);
	struct job_record low = turns(lab, 1), other = turns(lab, 1);

	(void)unused;
	low.priority = 400;
	other.tenant_id = put_tenant(lab.h, tenant_named("other"));
	int64_t first = timeshare_execute(lab, turns(lab, 1));
	after(lab, 100 * MINUTE);
	int64_t second = submit(lab.h, low), third = submit(lab.h, other);
	timeshare_settle(lab);
	assert_true(runs(lab, first));
	assert_null(decided(lab.h, DECISION_SHARE, second));
	assert_null(decided(lab.h, DECISION_SHARE, third));
	harness_free(lab.h);
}

static void many_gpus_are_not_taken_for_the_sake_of_one(void **unused)
{
	struct lab lab = timeshare_lab_new(4);

	(void)unused;
	int64_t small = timeshare_execute(lab, turns(lab, 1));
	lab.h->now_ms += 2 * HOUR;
	int64_t large = timeshare_execute(lab, turns(lab, 3)); /* soon has had more GPU time */
	after(lab, 3 * HOUR);
	int64_t next = submit(lab.h, turns(lab, 1));
	timeshare_settle(lab);
	assert_true(runs(lab, next) && runs(lab, large));
	assert_false(runs(lab, small));
	harness_free(lab.h);
}

static void the_node_where_least_is_lost_is_taken(void **unused)
{
	struct lab lab = timeshare_lab_new(2);

	(void)unused;
	int64_t old = timeshare_execute(lab, turns(lab, 2));
	after(lab, 5 * HOUR);
	add_node(lab.h, "n2", 2, 80000);
	int64_t young = timeshare_execute(lab, turns(lab, 2));
	after(lab, HOUR);
	int64_t next = submit(lab.h, turns(lab, 2));
	timeshare_settle(lab);
	assert_true(runs(lab, next) && runs(lab, young));
	assert_false(runs(lab, old));
	harness_free(lab.h);
}

static void a_gang_takes_turns_as_a_whole(void **unused)
{
	struct lab lab = timeshare_lab_new(2);
	struct job_record gang = turns(lab, 2);

	(void)unused;
	add_node(lab.h, "n2", 2, 80000);
	gang.tasks = gang.min_available = 2;
	int64_t first = timeshare_execute(lab, turns(lab, 2)),
		second = timeshare_execute(lab, turns(lab, 2));
	after(lab, 2 * HOUR);
	int64_t third = submit(lab.h, gang);
	timeshare_settle(lab);
	assert_int_equal(job(lab.h, third)->counts.live, 2);
	assert_false(runs(lab, first) || runs(lab, second));
	after(lab, 4 * HOUR);
	assert_true(runs(lab, first) && runs(lab, second));
	assert_int_equal(job_active(job(lab.h, third)), 0);
	harness_free(lab.h);
}

/* Newcomers come without end, and each has had less. */
static void who_waited_for_long_enough_has_a_turn_that_is_not_cut_short(void **unused)
{
	struct lab lab = timeshare_lab_new(1);

	(void)unused;
	lab.config.sharing_wait_ms = 6 * HOUR;
	lab.config.sharing_turn_ms = 2 * HOUR;
	lab.config.ageing_per_minute = 100;
	configure(lab.h, lab.config);
	int64_t old = timeshare_execute(lab, turns(lab, 1)), waits_from = 0, longest = 0,
		turn_from = 0;
	after(lab, 50 * HOUR);
	for (int64_t i = 0, last = 0; i < 200; i++) {
		bool ran = runs(lab, old);
		int64_t next = submit(lab.h, turns(lab, 1));
		if (last)
			cancel(lab.h, last);
		last = next;
		after(lab, 13 * MINUTE);
		if (ran && !runs(lab, old)) {
			waits_from = lab.h->now_ms;
			assert_true(turn_from == 0 || waits_from - turn_from >= 2 * HOUR);
		}
		if (!ran && runs(lab, old)) {
			turn_from = lab.h->now_ms;
			longest = max64(longest, turn_from - waits_from);
		}
	}
	assert_true(turn_from > 0);
	assert_in_range(longest, 6 * HOUR, 6 * HOUR + 26 * MINUTE);
	harness_free(lab.h);
}

static void what_was_served_counts_among_equals_and_never_against_lower_priorities(void **unused)
{
	struct lab lab = timeshare_lab_new(1);
	struct job_record low = turns(lab, 1);

	(void)unused;
	low.priority = 499;
	low.preemptible = false;
	int64_t old = timeshare_execute(lab, turns(lab, 1));
	after(lab, 20 * HOUR);
	int64_t young = submit(lab.h, turns(lab, 1));
	timeshare_settle(lab);
	assert_true(runs(lab, young));
	int64_t lower = submit(lab.h, low), newest = submit(lab.h, turns(lab, 1));
	end_job(lab.h, young, 0);
	timeshare_settle(lab);
	assert_true(runs(lab, newest));
	end_job(lab.h, newest, 0);
	timeshare_settle(lab);
	assert_true(runs(lab, old));
	assert_false(runs(lab, lower));
	harness_free(lab.h);
}

static void an_estimate_counts_as_long_as_it_holds(void **unused)
{
	struct lab lab = timeshare_lab_new(1);
	struct job_record lengthy = turns(lab, 1), brief = turns(lab, 1);

	(void)unused;
	lengthy.estimate_ms = 100 * HOUR;
	brief.estimate_ms = 2 * HOUR;
	int64_t first = timeshare_execute(lab, lengthy), second = submit(lab.h, brief);
	timeshare_settle(lab);
	assert_true(runs(lab, second)); /* at once, since nothing needs to be found out */
	after(lab, 90 * HOUR);
	assert_true(runs(lab, second));
	after(lab, 170 * HOUR); /* it should have ended long ago, and who knows when it will */
	assert_true(runs(lab, first));
	harness_free(lab.h);
}

/* Whether others are moved for a job that needs a whole node, where two are in its
 * way, each on a node of its own, and could be on one. */
static bool moves_others(bool sharing, bool move_any_job)
{
	struct lab lab = timeshare_lab_new(2);
	int64_t jobs[4];

	add_node(lab.h, "n2", 2, 80000);
	lab.config.time_sharing = sharing ? SHARING_ATTAINED_SERVICE : SHARING_OFF;
	lab.config.enable_consolidation = true;
	lab.config.move_any_job = move_any_job;
	configure(lab.h, lab.config);
	for (int i = 0; i < 4; i++)
		jobs[i] = timeshare_execute(lab, turns(lab, 1));
	assert_ptr_equal(node_of(lab.h, jobs[0]), node_of(lab.h, jobs[1]));
	end_job(lab.h, jobs[0], 0);
	end_job(lab.h, jobs[2], 0);
	int64_t large = submit(lab.h, turns(lab, 2));
	timeshare_settle(lab);
	bool moved = decided(lab.h, DECISION_MOVE, large) != NULL;
	harness_free(lab.h);
	return moved;
}

static void who_takes_turns_is_moved_for_others_only_where_all_jobs_are(void **unused)
{
	(void)unused;
	assert_true(moves_others(false, false));
	assert_false(moves_others(true, false));
	assert_true(moves_others(true, true));
}

static void nobody_gives_way_before_the_one_who_waits_has_waited_for_the_delay(void **unused)
{
	struct lab lab = timeshare_lab_new(1);

	(void)unused;
	lab.config.sharing_delay_ms = 5 * MINUTE;
	configure(lab.h, lab.config);
	int64_t old = timeshare_execute(lab, turns(lab, 1));
	after(lab, 20 * HOUR);
	int64_t waiter = submit(lab.h, turns(lab, 1));
	after(lab, 5 * MINUTE - 1);
	assert_true(runs(lab, old));
	int64_t later = submit(lab.h, turns(lab, 1));
	after(lab, 1);
	assert_true(runs(lab, waiter));
	assert_false(runs(lab, later));
	harness_free(lab.h);
}

static void time_sharing_needs_ageing(void **unused)
{
	struct config_record config = config_default();
	struct error error;

	(void)unused;
	config.time_sharing = 3;
	assert_false(config_check(&config, &error));
	assert_non_null(strstr(error.text, "time_sharing is 3"));
	config.time_sharing = SHARING_ATTAINED_SERVICE;
	assert_true(config_check(&config, &error));
	config.ageing_per_minute = 0;
	assert_false(config_check(&config, &error));
	assert_non_null(strstr(error.text, "ageing_per_minute is 0"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_gives_way_where_time_is_not_shared),
		cmocka_unit_test(who_had_clearly_more_gives_way_and_comes_back),
		cmocka_unit_test(those_who_cannot_be_interrupted_neither_give_nor_take),
		cmocka_unit_test(only_jobs_of_one_priority_and_tenant_share),
		cmocka_unit_test(many_gpus_are_not_taken_for_the_sake_of_one),
		cmocka_unit_test(the_node_where_least_is_lost_is_taken),
		cmocka_unit_test(a_gang_takes_turns_as_a_whole),
		cmocka_unit_test(who_waited_for_long_enough_has_a_turn_that_is_not_cut_short),
		cmocka_unit_test(
		    what_was_served_counts_among_equals_and_never_against_lower_priorities),
		cmocka_unit_test(an_estimate_counts_as_long_as_it_holds),
		cmocka_unit_test(who_takes_turns_is_moved_for_others_only_where_all_jobs_are),
		cmocka_unit_test(
		    nobody_gives_way_before_the_one_who_waits_has_waited_for_the_delay),
		cmocka_unit_test(time_sharing_needs_ageing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
