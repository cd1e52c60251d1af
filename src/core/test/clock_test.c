/* clock_test.c - the clock was wrong: times move, durations and bills do not */
#include "core/test/slots.h"

#define DAY_MS INT64_C(86400000)
#define YEAR_MS (365 * DAY_MS)
#define BEGAN_MS INT64_C(1700000000000)
#define PER_HOUR INT64_C(3600000000) /* so that a second of a GPU costs 1,000,000 */
#define PER_SECOND INT64_C(1000000)

/* A tenant that pays, and a node with two GPUs. */
struct lab {
	struct harness *h;
	int64_t tenant;
};

static struct lab clock_lab_new(void)
{
	struct lab lab = { .h = harness_new() };
	struct tenant_record tenant = tenant_named("lab");

	lab.h->now_ms = BEGAN_MS;
	add_node(lab.h, "n1", 2, 80000);
	tenant.cost_per_gpu_hour = PER_HOUR;
	lab.tenant = put_tenant(lab.h, tenant);
	return lab;
}

static bool try_move(struct lab *lab, int64_t to_ms, bool clamp)
{
	struct command command = { .kind = COMMAND_CLOCK };

	command.clock.to_ms = to_ms;
	command.clock.clamp = clamp;
	return harness_apply(lab->h, command);
}

static void test_clock_move(struct lab *lab, int64_t to_ms, bool clamp)
{
	must(lab->h, try_move(lab, to_ms, clamp));
	lab->h->now_ms = to_ms;
}

static int64_t clock_cost(const struct lab *lab)
{
	struct tenant_figures figures;

	assert_true(sched_tenant_figures(lab->h->sched, lab->tenant, &figures));
	return figures.cost;
}

static int64_t run_job(struct lab *lab)
{
	int64_t id = submit(lab->h, whole(lab->tenant, 1));

	pass(lab->h);
	assert_int_equal(state(lab->h, id), JOB_RUNNING);
	return id;
}

static void a_clock_that_moves_bills_nobody(void **unused)
{
	static const int64_t by[] = { 3 * YEAR_MS, -YEAR_MS, 7200000, -7200000 };

	(void)unused;
	for (size_t i = 0; i < sizeof(by) / sizeof(by[0]); i++) {
		struct lab lab = clock_lab_new();
		int64_t id = run_job(&lab);
		time_passes(lab.h, 2000);
		test_clock_move(&lab, lab.h->now_ms + by[i], false);
		assert_int_equal(sched_meta(lab.h->sched)->now_ms, BEGAN_MS + 2000 + by[i]);
		time_passes(lab.h, 3000);
		assert_int_equal(clock_cost(&lab), 5 * PER_SECOND);
		end_job(lab.h, id, 0);
		assert_int_equal(clock_cost(&lab), 5 * PER_SECOND);
		const struct task *task = &job(lab.h, id)->tasks[0];
		assert_int_equal(task->ended_ms - task->started_ms, 5000);
		harness_free(lab.h);
	}
}

static void a_clock_that_moves_is_told_and_written(void **unused)
{
	struct lab lab = clock_lab_new();
	bool told = false, meta = false;

	(void)unused;
	test_clock_move(&lab, BEGAN_MS - YEAR_MS, false);
	for (size_t i = 0; i < lab.h->effects.count; i++) {
		const struct effect *effect = &lab.h->effects.at[i];
		if (effect->kind == EFFECT_EVENT && effect->event.kind == EVENT_CLOCK_MOVED)
			told = effect->event.value == -YEAR_MS;
		if (effect->kind == EFFECT_PUT && effect->record_kind == RECORD_META)
			meta = ((const struct meta_record *)effect->record)->now_ms ==
			       BEGAN_MS - YEAR_MS;
	}
	assert_true(told);
	assert_true(meta);
	harness_free(lab.h);
}

static void ages_and_what_is_due_stay_as_they_are(void **unused)
{
	struct lab lab = clock_lab_new();
	struct job_record wide = whole(lab.tenant, 2), dated = whole(lab.tenant, 1);

	(void)unused;
	run_job(&lab);
	dated.deadline_ms = BEGAN_MS + DAY_MS;
	int64_t waiting = submit(lab.h, wide), deadline = submit(lab.h, dated);
	time_passes(lab.h, 60000);
	test_clock_move(&lab, lab.h->now_ms - 10 * DAY_MS, false);
	assert_int_equal(lab.h->now_ms - job(lab.h, waiting)->s.queued_ms, 60000);
	assert_int_equal(lab.h->now_ms - job(lab.h, waiting)->r.submitted_ms, 60000);
	assert_int_equal(job(lab.h, deadline)->r.deadline_ms, BEGAN_MS + DAY_MS);
	harness_free(lab.h);
}

/* The clock was ahead for a moment, and a scheduler without a timekeeper believed it. */
static void what_is_ahead_of_the_clock_is_set_to_now_and_the_rest_stays(void **unused)
{
	struct lab lab = clock_lab_new();
	int64_t before = run_job(&lab);

	(void)unused;
	time_passes(lab.h, 5000);
	lab.h->now_ms += 3 * YEAR_MS;
	int64_t during = submit(lab.h, whole(lab.tenant, 2));
	int64_t right_ms = BEGAN_MS + 7000;
	test_clock_move(&lab, right_ms, true);
	assert_int_equal(job(lab.h, before)->r.submitted_ms, BEGAN_MS);
	assert_int_equal(job(lab.h, before)->s.started_ms, BEGAN_MS);
	assert_int_equal(job(lab.h, during)->r.submitted_ms, right_ms);
	assert_int_equal(job(lab.h, during)->s.queued_ms, right_ms);
	assert_int_equal(clock_cost(&lab), 7 * PER_SECOND);
	int64_t after = submit(lab.h, whole(lab.tenant, 1));
	assert_int_equal(job(lab.h, after)->r.submitted_ms, right_ms);
	time_passes(lab.h, 1000);
	assert_int_equal(clock_cost(&lab), 8 * PER_SECOND);
	harness_free(lab.h);
}

static void the_cost_of_a_month_stays_in_the_month_that_it_is(void **unused)
{
	struct lab lab = clock_lab_new();
	struct tenant_figures figures;

	(void)unused;
	run_job(&lab);
	time_passes(lab.h, 5000);
	lab.h->now_ms += 3 * YEAR_MS;
	must(lab.h, harness_apply(lab.h, (struct command){ .kind = COMMAND_TIME }));
	end_job(lab.h, 1, 0);
	test_clock_move(&lab, BEGAN_MS + 7000, true);
	assert_true(sched_tenant_figures(lab.h->sched, lab.tenant, &figures));
	assert_int_equal(figures.month_cost,
	                 tenants_find(&lab.h->sched->tenants, lab.tenant)->r.month_cost);
	harness_free(lab.h);
}

static void requests_end_and_slots_stay(void **unused)
{
	struct lab lab = clock_lab_new();
	int64_t model_id = put_model(lab.h, model_of(lab.tenant, "m", 30000)), loads[8];
	int64_t asked = request(lab.h, model_id);

	(void)unused;
	assert_int_equal(pass_only(lab.h, loads), 1);
	ready(lab.h, loads[0]);
	test_clock_move(&lab, lab.h->now_ms + YEAR_MS, false);
	assert_int_equal(routed(lab.h, asked)->outcome, ROUTE_ENDED);
	assert_int_equal(slot_of(lab.h, model_id)->r.state, SLOT_READY);
	int64_t again = request(lab.h, model_id);
	assert_int_equal(routed(lab.h, again)->slot_id, loads[0]);
	harness_free(lab.h);
}

static void a_time_that_cannot_be_is_refused(void **unused)
{
	struct lab lab = clock_lab_new();

	(void)unused;
	must_not(lab.h, try_move(&lab, 0, false), ERROR_INVALID, "the clock cannot go");
	must_not(lab.h, try_move(&lab, TIME_MS_MAX + 1, false), ERROR_INVALID, "cannot go");
	must_not(lab.h, try_move(&lab, BEGAN_MS + 1, true), ERROR_INVALID, "cannot go");
	harness_free(lab.h);
}

static void a_day_without_a_scheduler_is_charged_and_three_years_are_not(void **unused)
{
	struct lab lab = clock_lab_new();

	(void)unused;
	int64_t id = run_job(&lab);
	time_passes(lab.h, 1000);
	lab.h->now_ms += DAY_MS;
	must(lab.h, harness_apply(lab.h, (struct command){ .kind = COMMAND_START }));
	assert_int_equal(clock_cost(&lab), (1 + 86400) * PER_SECOND);
	lab.h->now_ms += 3 * YEAR_MS;
	must(lab.h, harness_apply(lab.h, (struct command){ .kind = COMMAND_START }));
	assert_int_equal(clock_cost(&lab), (1 + 86400) * PER_SECOND);
	time_passes(lab.h, 4000);
	end_job(lab.h, id, 0);
	assert_int_equal(clock_cost(&lab), (5 + 86400) * PER_SECOND);
	harness_free(lab.h);
}

static void classes_of_nodes_and_guests_stay(void **unused)
{
	struct lab lab = clock_lab_new();
	struct command class = { .kind = COMMAND_PUT_NODE_CLASS };
	struct command guest = { .kind = COMMAND_PUT_GUEST };

	(void)unused;
	class.node_class.name = "fast";
	class.node_class.nodes = "7 n1";
	must(lab.h, harness_apply(lab.h, class));
	guest.guest = (struct guest_command){ .name = "db", .node = "n1", .marks = "app=db" };
	must(lab.h, harness_apply(lab.h, guest));
	test_clock_move(&lab, BEGAN_MS + YEAR_MS, false);
	const struct cluster *cluster = &lab.h->sched->cluster;
	const struct node_class *kept = cluster_node_class(cluster, "fast");
	assert_non_null(kept);
	assert_string_equal(kept->r.nodes, "7 n1");
	const struct guest *db = text_map_get(&cluster->guest_by_name, "db");
	assert_non_null(db);
	assert_string_equal(db->r.marks, "app=db");
	assert_int_equal(cluster_node(cluster, "n1")->guest_count, 1);
	harness_free(lab.h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_clock_that_moves_bills_nobody),
		cmocka_unit_test(a_clock_that_moves_is_told_and_written),
		cmocka_unit_test(ages_and_what_is_due_stay_as_they_are),
		cmocka_unit_test(what_is_ahead_of_the_clock_is_set_to_now_and_the_rest_stays),
		cmocka_unit_test(the_cost_of_a_month_stays_in_the_month_that_it_is),
		cmocka_unit_test(requests_end_and_slots_stay),
		cmocka_unit_test(classes_of_nodes_and_guests_stay),
		cmocka_unit_test(a_time_that_cannot_be_is_refused),
		cmocka_unit_test(a_day_without_a_scheduler_is_charged_and_three_years_are_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
