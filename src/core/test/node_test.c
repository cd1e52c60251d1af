/* node_test.c - nodes that drain, fall silent, die and return, and what runs on them */
#include "core/test/harness.h"

/* A tenant, and a node n1 whose two GPUs are n1-gpu0 and n1-gpu1. */
struct lab {
	struct harness *h;
	int64_t tenant;
};

static struct lab node_lab_new(void)
{
	struct lab lab = { .h = harness_new() };

	add_node(lab.h, "n1", 2, 80000);
	lab.tenant = put_tenant(lab.h, tenant_named("lab"));
	return lab;
}

/* n1 reports its first GPU with this capacity and this foreign memory, and no other. */
static void report_first(struct lab lab, int64_t capacity_mib, int64_t foreign_mib)
{
	struct device device = device_of("n1-gpu0", 0, capacity_mib);

	device.foreign_mib = foreign_mib;
	must(lab.h, report(lab.h, report_of("n1", &device, 1)));
}

/* n1 says that these are all that it has running. */
static void report_running(struct lab lab, const int64_t *running, int64_t count)
{
	struct device devices[] = { device_of("n1-gpu0", 0, 80000),
		                    device_of("n1-gpu1", 1, 80000) };
	struct node_report_command node = report_of("n1", devices, 2);

	node.snapshot = true;
	node.running = running;
	node.running_count = count;
	must(lab.h, report(lab.h, node));
}

/* Nodes. */

static void a_draining_node_takes_nothing_and_keeps_what_it_has(void **unused)
{
	struct lab lab = node_lab_new();

	(void)unused;
	int64_t first = submit(lab.h, whole(lab.tenant, 1));
	pass(lab.h);
	drain(lab.h, "n1", true);
	int64_t second = submit(lab.h, whole(lab.tenant, 1));
	assert_int_equal(pass(lab.h), 0);
	assert_int_equal(state(lab.h, first), JOB_RUNNING);
	drain(lab.h, "n1", false);
	assert_int_equal(pass(lab.h), 1);
	assert_int_equal(state(lab.h, second), JOB_RUNNING);
	harness_free(lab.h);
}

static void draining_outlasts_a_report(void **unused)
{
	struct lab lab = node_lab_new();

	(void)unused;
	drain(lab.h, "n1", true);
	add_node(lab.h, "n1", 2, 90000);
	submit(lab.h, whole(lab.tenant, 1));
	assert_int_equal(pass(lab.h), 0);
	harness_free(lab.h);
}

/* Drains "n1", or resumes it. */
static void drain_for(struct lab *lab, bool draining, const char *reason)
{
	must(lab->h,
	     harness_apply(lab->h, (struct command){ .kind = COMMAND_NODE_DRAIN,
	                                             .drain = { "n1", draining, reason } }));
}

static const struct node_record *first_node(const struct lab *lab)
{
	return &cluster_node(&lab->h->sched->cluster, "n1")->r;
}

static void the_reason_of_a_drain_is_kept_until_the_node_is_resumed(void **unused)
{
	struct lab lab = node_lab_new();

	(void)unused;
	drain_for(&lab, true, "a new fan");
	add_node(lab.h, "n1", 2, 90000);
	assert_string_equal(first_node(&lab)->drain_reason, "a new fan");
	drain_for(&lab, true, NULL);
	assert_string_equal(first_node(&lab)->drain_reason, "a new fan");
	drain_for(&lab, true, "a new disk");
	assert_string_equal(first_node(&lab)->drain_reason, "a new disk");
	drain_for(&lab, false, NULL);
	assert_string_equal(first_node(&lab)->drain_reason, "");
	drain_for(&lab, true, NULL);
	assert_string_equal(first_node(&lab)->drain_reason, "");
	harness_free(lab.h);
}

static void a_claim_on_a_node_that_drains_lapses(void **unused)
{
	struct lab lab = node_lab_new();

	(void)unused;
	int64_t first = submit(lab.h, whole(lab.tenant, 2));
	pass(lab.h);
	must(lab.h, cancel(lab.h, first));
	int64_t second = submit(lab.h, whole(lab.tenant, 2));
	pass(lab.h);
	assert_true(has_claim(lab.h, second));
	drain(lab.h, "n1", true);
	pass(lab.h);
	assert_false(has_claim(lab.h, second));
	assert_non_null(decided(lab.h, DECISION_LAPSED, second));
	harness_free(lab.h);
}

static void work_on_a_silent_node_stays_where_it_is(void **unused)
{
	struct lab lab = node_lab_new();

	(void)unused;
	int64_t id = submit(lab.h, whole(lab.tenant, 1));
	pass(lab.h);
	set_node_state(lab.h, "n1", NODE_UNKNOWN);
	add_node(lab.h, "n2", 2, 80000);
	submit(lab.h, whole(lab.tenant, 2));
	assert_int_equal(pass(lab.h), 1);
	assert_int_equal(state(lab.h, id), JOB_RUNNING);
	assert_string_equal(node_of(lab.h, id), "n1");
	harness_free(lab.h);
}

static void nothing_starts_on_a_silent_node(void **unused)
{
	struct lab lab = node_lab_new();

	(void)unused;
	set_node_state(lab.h, "n1", NODE_UNKNOWN);
	submit(lab.h, whole(lab.tenant, 1));
	assert_int_equal(pass(lab.h), 0);
	set_node_state(lab.h, "n1", NODE_ONLINE);
	assert_int_equal(pass(lab.h), 1);
	harness_free(lab.h);
}

static void a_job_that_keeps_its_lease_stays_on_a_lost_node(void **unused)
{
	struct lab lab = node_lab_new();

	(void)unused;
	int64_t id = submit(lab.h, whole(lab.tenant, 1));
	pass(lab.h);
	add_node(lab.h, "n2", 2, 80000);
	set_node_state(lab.h, "n1", NODE_LOST);
	assert_int_equal(pass(lab.h), 0);
	assert_int_equal(state(lab.h, id), JOB_RUNNING);
	assert_int_equal(gpu(lab.h, "n1-gpu0")->books.owners, 1);
	harness_free(lab.h);
}

static void a_lost_node_that_returns_goes_on_with_what_it_kept(void **unused)
{
	struct lab lab = node_lab_new();

	(void)unused;
	int64_t id = submit(lab.h, whole(lab.tenant, 1));
	pass(lab.h);
	int64_t right = right_of(lab.h, id, 0);
	set_node_state(lab.h, "n1", NODE_LOST);
	report_running(lab, &right, 1);
	assert_int_equal(effects_of(lab.h, EFFECT_STOP), 0);
	assert_int_equal(state(lab.h, id), JOB_RUNNING);
	submit(lab.h, whole(lab.tenant, 1));
	assert_int_equal(pass(lab.h), 1);
	harness_free(lab.h);
}

static void a_lost_node_that_returns_is_told_to_stop_what_was_given_up(void **unused)
{
	struct lab lab = node_lab_new();
	struct job_record stops = whole(lab.tenant, 1);

	(void)unused;
	stops.lease_loss = LEASE_STOP;
	int64_t id = submit(lab.h, stops);
	pass(lab.h);
	int64_t right = right_of(lab.h, id, 0);
	set_node_state(lab.h, "n1", NODE_LOST);
	report_running(lab, &right, 1);
	assert_int_equal(effects_of(lab.h, EFFECT_STOP), 1);
	assert_int_equal(state(lab.h, id), JOB_PENDING);
	harness_free(lab.h);
}

static void a_job_that_stops_with_its_lease_starts_elsewhere(void **unused)
{
	struct lab lab = node_lab_new();
	struct job_record stops = whole(lab.tenant, 1);

	(void)unused;
	stops.lease_loss = LEASE_STOP;
	int64_t id = submit(lab.h, stops);
	pass(lab.h);
	add_node(lab.h, "n2", 2, 80000);
	set_node_state(lab.h, "n1", NODE_UNKNOWN);
	assert_int_equal(state(lab.h, id), JOB_RUNNING);
	set_node_state(lab.h, "n1", NODE_LOST);
	assert_int_equal(state(lab.h, id), JOB_PENDING);
	assert_int_equal(pass(lab.h), 1);
	assert_string_equal(node_of(lab.h, id), "n2");
	harness_free(lab.h);
}

static void work_on_a_node_that_is_declared_dead_starts_elsewhere(void **unused)
{
	struct lab lab = node_lab_new();

	(void)unused;
	int64_t id = submit(lab.h, whole(lab.tenant, 1));
	pass(lab.h);
	add_node(lab.h, "n2", 2, 80000);
	must(lab.h, apply_to_node(lab.h, COMMAND_NODE_DEAD, "n1"));
	assert_int_equal(pass(lab.h), 1);
	assert_string_equal(node_of(lab.h, id), "n2");
	assert_int_equal(gpu(lab.h, "n1-gpu0")->books.owners, 0);
	harness_free(lab.h);
}

static void nothing_starts_on_a_dead_node_until_it_reports_again(void **unused)
{
	struct lab lab = node_lab_new();

	(void)unused;
	must(lab.h, apply_to_node(lab.h, COMMAND_NODE_DEAD, "n1"));
	set_node_state(lab.h, "n1", NODE_ONLINE);
	submit(lab.h, whole(lab.tenant, 1));
	assert_int_equal(pass(lab.h), 0);
	add_node(lab.h, "n1", 2, 80000);
	assert_int_equal(pass(lab.h), 1);
	harness_free(lab.h);
}

static void a_job_that_was_cancelled_is_done_with_when_its_node_is_dead(void **unused)
{
	struct lab lab = node_lab_new();

	(void)unused;
	int64_t id = submit(lab.h, whole(lab.tenant, 1));
	pass(lab.h);
	must(lab.h, cancel(lab.h, id));
	must(lab.h, apply_to_node(lab.h, COMMAND_NODE_DEAD, "n1"));
	assert_int_equal(state(lab.h, id), JOB_CANCELLED);
	assert_int_equal(lab.h->sched->reservations.count, 0);
	harness_free(lab.h);
}

static void a_node_is_removed_only_when_it_is_empty(void **unused)
{
	struct lab lab = node_lab_new();

	(void)unused;
	int64_t id = submit(lab.h, whole(lab.tenant, 1));
	pass(lab.h);
	must_not(lab.h, apply_to_node(lab.h, COMMAND_NODE_REMOVE, "n1"), ERROR_CONFLICT,
	         "node n1 has work on it");
	end_job(lab.h, id, 0);
	must(lab.h, apply_to_node(lab.h, COMMAND_NODE_REMOVE, "n1"));
	assert_null(cluster_node(&lab.h->sched->cluster, "n1"));
	assert_null(gpu(lab.h, "n1-gpu0"));
	submit(lab.h, whole(lab.tenant, 1));
	assert_int_equal(pass(lab.h), 0);
	add_node(lab.h, "n1", 2, 80000);
	assert_int_equal(pass(lab.h), 1);
	harness_free(lab.h);
}

static void a_node_that_nobody_knows_can_neither_be_drained_nor_lost_nor_removed(void **unused)
{
	struct lab lab = node_lab_new();
	struct command lost = { .kind = COMMAND_NODE_STATE, .node_state = { "n9", NODE_LOST } };
	struct command drained = { .kind = COMMAND_NODE_DRAIN, .drain = { "n9", true, NULL } };

	(void)unused;
	must_not(lab.h, harness_apply(lab.h, lost), ERROR_NOT_FOUND, "node n9 is not known");
	must_not(lab.h, harness_apply(lab.h, drained), ERROR_NOT_FOUND, "node n9 is not known");
	must_not(lab.h, apply_to_node(lab.h, COMMAND_NODE_DEAD, "n9"), ERROR_NOT_FOUND, "n9");
	must_not(lab.h, apply_to_node(lab.h, COMMAND_NODE_REMOVE, "n9"), ERROR_NOT_FOUND, "n9");
	harness_free(lab.h);
}

/* Snapshots. */

/* Places a job of one GPU; its order to start is not acknowledged. */
static int64_t place_silently(struct lab lab, int64_t *id)
{
	int64_t started[4];

	*id = submit(lab.h, whole(lab.tenant, 1));
	must(lab.h, harness_apply(lab.h, (struct command){ .kind = COMMAND_PASS, .units = 9 }));
	assert_int_equal(read_orders(lab.h, started), 1);
	return started[0];
}

static void a_snapshot_that_names_a_placed_task_starts_it(void **unused)
{
	struct lab lab = node_lab_new();
	int64_t id, right = place_silently(lab, &id);

	(void)unused;
	assert_int_equal(state(lab.h, id), JOB_SCHEDULED);
	report_running(lab, &right, 1);
	assert_int_equal(state(lab.h, id), JOB_RUNNING);
	harness_free(lab.h);
}

static void a_snapshot_that_does_not_name_a_placed_task_gets_its_order_again(void **unused)
{
	struct lab lab = node_lab_new();
	int64_t id, right = place_silently(lab, &id);

	(void)unused;
	report_running(lab, NULL, 0);
	assert_int_equal(effects_of(lab.h, EFFECT_START), 1);
	assert_int_equal(right_of(lab.h, id, 0), right);
	harness_free(lab.h);
}

static void a_running_task_that_a_snapshot_does_not_name_is_queued_again(void **unused)
{
	struct lab lab = node_lab_new();

	(void)unused;
	int64_t id = submit(lab.h, whole(lab.tenant, 1));
	pass(lab.h);
	report_running(lab, NULL, 0);
	assert_int_equal(state(lab.h, id), JOB_PENDING);
	assert_int_equal(gpu(lab.h, "n1-gpu0")->books.owners, 0);
	assert_int_equal(pass(lab.h), 1);
	harness_free(lab.h);
}

static void a_report_that_is_no_snapshot_says_nothing_about_what_runs(void **unused)
{
	struct lab lab = node_lab_new();

	(void)unused;
	int64_t id = submit(lab.h, whole(lab.tenant, 1));
	pass(lab.h);
	report_first(lab, 80000, 0);
	assert_int_equal(state(lab.h, id), JOB_RUNNING);
	harness_free(lab.h);
}

static void a_stopping_task_that_a_snapshot_does_not_name_is_gone(void **unused)
{
	struct lab lab = node_lab_new();

	(void)unused;
	int64_t id = submit(lab.h, whole(lab.tenant, 1));
	pass(lab.h);
	must(lab.h, cancel(lab.h, id));
	report_running(lab, NULL, 0);
	assert_int_equal(gpu(lab.h, "n1-gpu0")->books.owners, 0);
	assert_int_equal(state(lab.h, id), JOB_CANCELLED);
	harness_free(lab.h);
}

static void a_stopping_task_that_a_snapshot_names_gets_its_order_again(void **unused)
{
	struct lab lab = node_lab_new();

	(void)unused;
	int64_t id = submit(lab.h, whole(lab.tenant, 1));
	pass(lab.h);
	int64_t right = right_of(lab.h, id, 0);
	must(lab.h, cancel(lab.h, id));
	report_running(lab, &right, 1);
	assert_int_equal(effects_of(lab.h, EFFECT_STOP), 1);
	assert_int_equal(gpu(lab.h, "n1-gpu0")->books.owners, 1);
	harness_free(lab.h);
}

/* n1 has nothing, and had not heard of this one yet when it said so. */
static void report_before(struct lab lab, int64_t right)
{
	struct device devices[] = { device_of("n1-gpu0", 0, 80000),
		                    device_of("n1-gpu1", 1, 80000) };
	struct node_report_command node = report_of("n1", devices, 2);

	node.snapshot = true;
	node.coming = &right;
	node.coming_count = 1;
	must(lab.h, report(lab.h, node));
}

static void nothing_follows_from_a_snapshot_for_an_order_that_was_still_on_its_way(void **unused)
{
	struct lab lab = node_lab_new();
	int64_t id, right = place_silently(lab, &id);

	(void)unused;
	report_before(lab, right);
	assert_int_equal(effects_of(lab.h, EFFECT_START), 0);
	assert_int_equal(right_of(lab.h, id, 0), right);
	must(lab.h, cancel(lab.h, id));
	report_before(lab, right);
	assert_int_equal(gpu(lab.h, "n1-gpu0")->books.owners, 1);
	report_running(lab, NULL, 0);
	assert_int_equal(gpu(lab.h, "n1-gpu0")->books.owners, 0);
	harness_free(lab.h);
}

static void what_a_snapshot_names_and_nobody_knows_is_told_to_stop(void **unused)
{
	struct lab lab = node_lab_new();
	const int64_t unknown = 77;

	(void)unused;
	report_running(lab, &unknown, 1);
	assert_int_equal(effects_of(lab.h, EFFECT_STOP), 1);
	for (size_t i = 0; i < lab.h->effects.count; i++)
		if (lab.h->effects.at[i].kind == EFFECT_STOP)
			assert_int_equal(lab.h->effects.at[i].order.reservation_id, unknown);
	harness_free(lab.h);
}

/* Terms. */

static void begin_term(struct lab lab)
{
	must(lab.h, harness_apply(lab.h, (struct command){ .kind = COMMAND_START }));
}

static void in_a_new_term_nothing_starts_on_a_node_until_it_has_reported(void **unused)
{
	struct lab lab = node_lab_new();

	(void)unused;
	add_node(lab.h, "n2", 2, 80000);
	begin_term(lab);
	int64_t first = submit(lab.h, whole(lab.tenant, 1)),
		second = submit(lab.h, whole(lab.tenant, 2));
	assert_int_equal(pass(lab.h), 0);
	add_node(lab.h, "n2", 2, 80000);
	assert_int_equal(pass(lab.h), 1);
	assert_string_equal(node_of(lab.h, first), "n2");
	add_node(lab.h, "n1", 2, 80000);
	assert_int_equal(pass(lab.h), 1);
	assert_string_equal(node_of(lab.h, second), "n1");
	harness_free(lab.h);
}

static void what_ran_before_a_new_term_is_adopted(void **unused)
{
	struct lab lab = node_lab_new();

	(void)unused;
	int64_t id = submit(lab.h, whole(lab.tenant, 1));
	pass(lab.h);
	int64_t right = right_of(lab.h, id, 0);
	begin_term(lab);
	report_running(lab, &right, 1);
	assert_int_equal(state(lab.h, id), JOB_RUNNING);
	assert_int_equal(right_of(lab.h, id, 0), right);
	assert_int_equal(pass(lab.h), 0);
	harness_free(lab.h);
}

static void orders_carry_the_term_of_their_scheduler(void **unused)
{
	struct lab lab = node_lab_new();

	(void)unused;
	begin_term(lab);
	begin_term(lab);
	add_node(lab.h, "n1", 2, 80000);
	submit(lab.h, whole(lab.tenant, 1));
	must(lab.h, harness_apply(lab.h, (struct command){ .kind = COMMAND_PASS, .units = 9 }));
	assert_int_equal(effects_of(lab.h, EFFECT_START), 1);
	for (size_t i = 0; i < lab.h->effects.count; i++)
		if (lab.h->effects.at[i].kind == EFFECT_START)
			assert_int_equal(lab.h->effects.at[i].order.term, 2);
	harness_free(lab.h);
}

/* Tasks. */

static void memory_is_back_only_when_the_node_says_so(void **unused)
{
	struct lab lab = node_lab_new();

	(void)unused;
	int64_t first = submit(lab.h, whole(lab.tenant, 2));
	pass(lab.h);
	must(lab.h, to_task(lab.h, COMMAND_TASK_EXITED, right_of(lab.h, first, 0), 0, false));
	assert_int_equal(state(lab.h, first), JOB_COMPLETED);
	int64_t second = submit(lab.h, whole(lab.tenant, 2));
	assert_int_equal(pass(lab.h), 0);
	assert_true(has_claim(lab.h, second));
	must(lab.h, to_task(lab.h, COMMAND_MEMORY_RELEASED, right_of(lab.h, first, 0), 0, false));
	assert_int_equal(pass(lab.h), 1);
	harness_free(lab.h);
}

static void news_of_a_reservation_that_nobody_knows_is_refused(void **unused)
{
	struct lab lab = node_lab_new();

	(void)unused;
	must_not(lab.h, to_task(lab.h, COMMAND_TASK_STARTED, 9, 0, false), ERROR_NOT_FOUND,
	         "reservation 9 is not known");
	must_not(lab.h, to_task(lab.h, COMMAND_MEMORY_RELEASED, 9, 0, false), ERROR_NOT_FOUND, "9");
	harness_free(lab.h);
}

static void news_that_cannot_be_is_refused(void **unused)
{
	struct lab lab = node_lab_new();

	(void)unused;
	int64_t id = submit(lab.h, whole(lab.tenant, 1));
	pass(lab.h);
	int64_t right = right_of(lab.h, id, 0);
	must_not(lab.h, to_task(lab.h, COMMAND_MEMORY_RELEASED, right, 0, false), ERROR_CONFLICT,
	         "has not been told to stop");
	must_not(lab.h, to_task(lab.h, COMMAND_TASK_REFUSED, right, 0, false), ERROR_CONFLICT,
	         "is not waiting for a start");
	must(lab.h, cancel(lab.h, id));
	must_not(lab.h, to_task(lab.h, COMMAND_TASK_STARTED, right, 0, false), ERROR_CONFLICT,
	         "is not to be started");
	must_not(lab.h, to_task(lab.h, COMMAND_TASK_CHECKPOINT, right, 0, false), ERROR_CONFLICT,
	         "is not running");
	harness_free(lab.h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_draining_node_takes_nothing_and_keeps_what_it_has),
		cmocka_unit_test(draining_outlasts_a_report),
		cmocka_unit_test(the_reason_of_a_drain_is_kept_until_the_node_is_resumed),
		cmocka_unit_test(a_claim_on_a_node_that_drains_lapses),
		cmocka_unit_test(work_on_a_silent_node_stays_where_it_is),
		cmocka_unit_test(nothing_starts_on_a_silent_node),
		cmocka_unit_test(a_job_that_keeps_its_lease_stays_on_a_lost_node),
		cmocka_unit_test(a_lost_node_that_returns_goes_on_with_what_it_kept),
		cmocka_unit_test(a_lost_node_that_returns_is_told_to_stop_what_was_given_up),
		cmocka_unit_test(a_job_that_stops_with_its_lease_starts_elsewhere),
		cmocka_unit_test(work_on_a_node_that_is_declared_dead_starts_elsewhere),
		cmocka_unit_test(nothing_starts_on_a_dead_node_until_it_reports_again),
		cmocka_unit_test(a_job_that_was_cancelled_is_done_with_when_its_node_is_dead),
		cmocka_unit_test(a_node_is_removed_only_when_it_is_empty),
		cmocka_unit_test(
		    a_node_that_nobody_knows_can_neither_be_drained_nor_lost_nor_removed),
		cmocka_unit_test(a_snapshot_that_names_a_placed_task_starts_it),
		cmocka_unit_test(a_snapshot_that_does_not_name_a_placed_task_gets_its_order_again),
		cmocka_unit_test(a_running_task_that_a_snapshot_does_not_name_is_queued_again),
		cmocka_unit_test(a_report_that_is_no_snapshot_says_nothing_about_what_runs),
		cmocka_unit_test(a_stopping_task_that_a_snapshot_does_not_name_is_gone),
		cmocka_unit_test(a_stopping_task_that_a_snapshot_names_gets_its_order_again),
		cmocka_unit_test(
		    nothing_follows_from_a_snapshot_for_an_order_that_was_still_on_its_way),
		cmocka_unit_test(what_a_snapshot_names_and_nobody_knows_is_told_to_stop),
		cmocka_unit_test(in_a_new_term_nothing_starts_on_a_node_until_it_has_reported),
		cmocka_unit_test(what_ran_before_a_new_term_is_adopted),
		cmocka_unit_test(orders_carry_the_term_of_their_scheduler),
		cmocka_unit_test(memory_is_back_only_when_the_node_says_so),
		cmocka_unit_test(news_of_a_reservation_that_nobody_knows_is_refused),
		cmocka_unit_test(news_that_cannot_be_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
