/* gang_test.c - jobs of several tasks: together, elastic, or split over nodes */
#include <stdio.h>

#include "core/test/harness.h"

struct lab {
	struct harness *h;
	int64_t tenant;
};

static struct lab gang_lab_new(void)
{
	struct lab lab = { .h = harness_new() };

	lab.tenant = put_tenant(lab.h, tenant_named("lab"));
	return lab;
}

static struct job_record gang(const struct lab lab, int64_t tasks, int64_t min_available,
                              int32_t gpus_each)
{
	struct job_record job_record = whole(lab.tenant, gpus_each);

	job_record.tasks = tasks;
	job_record.min_available = min_available;
	return job_record;
}

static const struct reservation *right(const struct harness *h, int64_t id, int task)
{
	return job(h, id)->tasks[task].reservation;
}

static const char *node_of_task(const struct harness *h, int64_t id, int task)
{
	return right(h, id, task) ? right(h, id, task)->node->r.name : "";
}

/* All or nothing. */

static void a_gang_starts_together_or_not_at_all(void **unused)
{
	struct lab lab = gang_lab_new();

	(void)unused;
	add_node(lab.h, "n1", 2, 80000);
	add_node(lab.h, "n2", 1, 80000);
	int64_t id = submit(lab.h, gang(lab, 4, 4, 1));
	assert_int_equal(pass(lab.h), 0);
	assert_int_equal(placed(lab.h, id), 0);
	assert_int_equal(gpu(lab.h, "n1-gpu0")->books.owners, 0);
	add_node(lab.h, "n3", 1, 80000);
	assert_int_equal(pass(lab.h), 4);
	assert_int_equal(state(lab.h, id), JOB_RUNNING);
	harness_free(lab.h);
}

/* Each GPU has room for two parts; onto the fullest first, the third task
 * would find room on one GPU alone. */
static void tasks_with_parts_of_several_gpus_fit_if_they_can_be_spread(void **unused)
{
	struct lab lab = gang_lab_new();
	struct job_record job_record = fraction(lab.tenant, 400);

	(void)unused;
	add_node(lab.h, "n1", 3, 80000);
	job_record.gpu_count = 2;
	job_record.tasks = job_record.min_available = 3;
	int64_t id = submit(lab.h, job_record);
	assert_int_equal(pass(lab.h), 3);
	assert_int_equal(placed(lab.h, id), 3);
	harness_free(lab.h);
}

static void a_gang_runs_when_all_of_its_minimum_runs(void **unused)
{
	struct lab lab = gang_lab_new();
	int64_t started[4];

	(void)unused;
	add_node(lab.h, "n1", 2, 80000);
	int64_t id = submit(lab.h, gang(lab, 2, 2, 1));
	must(lab.h, harness_apply(lab.h, (struct command){ .kind = COMMAND_PASS, .units = 9 }));
	assert_int_equal(read_orders(lab.h, started), 2);
	must(lab.h, to_task(lab.h, COMMAND_TASK_STARTED, started[0], 0, false));
	assert_int_equal(state(lab.h, id), JOB_SCHEDULED);
	must(lab.h, to_task(lab.h, COMMAND_TASK_STARTED, started[1], 0, false));
	assert_int_equal(state(lab.h, id), JOB_RUNNING);
	harness_free(lab.h);
}

static void a_gang_claims_together_and_starts_when_the_last_memory_is_back(void **unused)
{
	struct lab lab = gang_lab_new();

	(void)unused;
	add_node(lab.h, "n1", 2, 80000);
	int64_t first = submit(lab.h, whole(lab.tenant, 1)),
		second = submit(lab.h, whole(lab.tenant, 1));
	pass(lab.h);
	must(lab.h, cancel(lab.h, first));
	must(lab.h, cancel(lab.h, second));
	int64_t id = submit(lab.h, gang(lab, 2, 2, 1));
	assert_int_equal(pass(lab.h), 0);
	assert_int_equal(job(lab.h, id)->counts.claims, 2);
	must(lab.h, to_task(lab.h, COMMAND_MEMORY_RELEASED, lab.h->stopped[0], 0, false));
	assert_int_equal(pass(lab.h), 0);
	must(lab.h, to_task(lab.h, COMMAND_MEMORY_RELEASED, lab.h->stopped[1], 0, false));
	assert_int_equal(pass(lab.h), 2);
	harness_free(lab.h);
}

static void a_gang_is_over_when_all_of_its_tasks_ended(void **unused)
{
	struct lab lab = gang_lab_new();

	(void)unused;
	add_node(lab.h, "n1", 2, 80000);
	int64_t id = submit(lab.h, gang(lab, 2, 2, 1));
	pass(lab.h);
	must(lab.h, to_task(lab.h, COMMAND_TASK_EXITED, right_of(lab.h, id, 0), 0, true));
	assert_int_equal(state(lab.h, id), JOB_RUNNING);
	assert_int_equal(pass(lab.h), 0);
	must(lab.h, to_task(lab.h, COMMAND_TASK_EXITED, right_of(lab.h, id, 1), 0, true));
	assert_int_equal(state(lab.h, id), JOB_COMPLETED);
	harness_free(lab.h);
}

static void a_gang_fails_with_its_first_task_that_fails(void **unused)
{
	struct lab lab = gang_lab_new();
	int64_t started[4];

	(void)unused;
	add_node(lab.h, "n1", 2, 80000);
	int64_t id = submit(lab.h, gang(lab, 2, 2, 1));
	pass(lab.h);
	must(lab.h, to_task(lab.h, COMMAND_TASK_EXITED, right_of(lab.h, id, 1), 3, true));
	read_orders(lab.h, started);
	assert_int_equal(state(lab.h, id), JOB_FAILED);
	assert_int_equal(job(lab.h, id)->s.exit_code, 3);
	assert_int_equal(lab.h->stop_count, 1);
	assert_int_equal(lab.h->stopped[0], right_of(lab.h, id, 0));
	harness_free(lab.h);
}

static void a_limit_stops_a_gang_whole(void **unused)
{
	struct lab lab = gang_lab_new();
	struct tenant_record small = tenant_named("small");

	(void)unused;
	add_node(lab.h, "n1", 8, 80000);
	small.limit_gpu = 5 * WHOLE_GPU;
	lab.tenant = put_tenant(lab.h, small);
	submit(lab.h, whole(lab.tenant, 2));
	int64_t id = submit(lab.h, gang(lab, 4, 4, 1));
	assert_int_equal(pass(lab.h), 1);
	assert_int_equal(placed(lab.h, id), 0);
	harness_free(lab.h);
}

/* Elastic jobs. */

static void an_elastic_job_starts_with_its_minimum_and_grows_one_by_one(void **unused)
{
	struct lab lab = gang_lab_new();

	(void)unused;
	add_node(lab.h, "n1", 3, 80000);
	int64_t id = submit(lab.h, gang(lab, 6, 2, 1));
	assert_int_equal(pass(lab.h), 3);
	assert_int_equal(decided(lab.h, DECISION_START, id)->tasks, 2);
	assert_int_equal(decided(lab.h, DECISION_GROW, id)->tasks, 1);
	add_node(lab.h, "n2", 1, 80000);
	assert_int_equal(pass(lab.h), 1);
	assert_int_equal(placed(lab.h, id), 4);
	harness_free(lab.h);
}

static void a_job_that_cannot_grow_where_it_is_holds_nobody_up(void **unused)
{
	struct lab lab = gang_lab_new();
	struct job_record together = gang(lab, 2, 1, 1);

	(void)unused;
	together.closeness = CLOSE_NODE;
	together.closeness_required = true;
	add_node(lab.h, "n1", 1, 80000);
	int64_t grows = submit(lab.h, together);
	assert_int_equal(pass(lab.h), 1);
	int64_t other = submit(lab.h, together);
	assert_int_equal(pass(lab.h), 0);
	add_node(lab.h, "n2", 1, 80000);
	assert_int_equal(pass(lab.h), 1);
	assert_int_equal(placed(lab.h, grows), 1);
	assert_int_equal(placed(lab.h, other), 1);
	harness_free(lab.h);
}

static void an_elastic_job_grows_no_further_than_all_of_its_tasks(void **unused)
{
	struct lab lab = gang_lab_new();

	(void)unused;
	add_node(lab.h, "n1", 8, 80000);
	int64_t id = submit(lab.h, gang(lab, 3, 1, 1));
	assert_int_equal(pass(lab.h), 3);
	assert_int_equal(pass(lab.h), 0);
	assert_int_equal(placed(lab.h, id), 3);
	harness_free(lab.h);
}

static void an_elastic_job_shrinks_to_its_minimum_for_a_higher_priority(void **unused)
{
	struct lab lab = gang_lab_new();
	struct job_record high = whole(lab.tenant, 2);

	(void)unused;
	add_node(lab.h, "n1", 4, 80000);
	int64_t id = submit(lab.h, gang(lab, 4, 2, 1));
	assert_int_equal(pass(lab.h), 4);
	high.priority = 900;
	int64_t winner = submit(lab.h, high);
	assert_int_equal(pass(lab.h), 0);
	assert_int_equal(lab.h->stop_count, 2);
	assert_int_equal(placed(lab.h, id), 2);
	assert_int_equal(state(lab.h, id), JOB_RUNNING);
	assert_int_equal(job(lab.h, id)->s.preempted_count, 0);
	confirm_stops(lab.h);
	assert_int_equal(pass(lab.h), 1);
	assert_int_equal(state(lab.h, winner), JOB_RUNNING);
	harness_free(lab.h);
}

static void an_elastic_job_loses_its_last_tasks_first(void **unused)
{
	struct lab lab = gang_lab_new();
	struct job_record high = whole(lab.tenant, 1);

	(void)unused;
	add_node(lab.h, "n1", 3, 80000);
	int64_t id = submit(lab.h, gang(lab, 3, 1, 1));
	assert_int_equal(pass(lab.h), 3);
	high.priority = 900;
	submit(lab.h, high);
	pass(lab.h);
	assert_int_equal(right(lab.h, id, 2)->phase, PHASE_RELEASING);
	assert_int_equal(right(lab.h, id, 0)->phase, PHASE_LIVE);
	assert_int_equal(right(lab.h, id, 1)->phase, PHASE_LIVE);
	harness_free(lab.h);
}

static void an_elastic_job_that_must_go_below_its_minimum_goes_whole(void **unused)
{
	struct lab lab = gang_lab_new();
	struct job_record high = whole(lab.tenant, 3);

	(void)unused;
	add_node(lab.h, "n1", 4, 80000);
	int64_t id = submit(lab.h, gang(lab, 4, 2, 1));
	assert_int_equal(pass(lab.h), 4);
	high.priority = 900;
	submit(lab.h, high);
	pass(lab.h);
	assert_int_equal(placed(lab.h, id), 0);
	assert_int_equal(lab.h->stop_count, 4);
	assert_int_equal(job(lab.h, id)->s.preempted_count, 1);
	harness_free(lab.h);
}

static void an_elastic_job_grows_again_when_there_is_room(void **unused)
{
	struct lab lab = gang_lab_new();
	struct job_record high = whole(lab.tenant, 2);

	(void)unused;
	add_node(lab.h, "n1", 4, 80000);
	int64_t id = submit(lab.h, gang(lab, 4, 2, 1));
	pass(lab.h);
	high.priority = 900;
	int64_t winner = submit(lab.h, high);
	pass(lab.h);
	confirm_stops(lab.h);
	pass(lab.h);
	end_job(lab.h, winner, 0);
	assert_int_equal(pass(lab.h), 2);
	assert_int_equal(placed(lab.h, id), 4);
	harness_free(lab.h);
}

static void an_elastic_job_that_is_ending_does_not_grow(void **unused)
{
	struct lab lab = gang_lab_new();

	(void)unused;
	add_node(lab.h, "n1", 2, 80000);
	int64_t id = submit(lab.h, gang(lab, 3, 2, 1));
	assert_int_equal(pass(lab.h), 2);
	must(lab.h, to_task(lab.h, COMMAND_TASK_EXITED, right_of(lab.h, id, 0), 0, true));
	assert_int_equal(pass(lab.h), 0);
	must(lab.h, to_task(lab.h, COMMAND_TASK_EXITED, right_of(lab.h, id, 1), 0, true));
	assert_int_equal(state(lab.h, id), JOB_COMPLETED);
	harness_free(lab.h);
}

/* Lost tasks. */

/* A gang of two on n1 and n2, of which n2 is then declared dead. */
static int64_t lose_one(struct lab lab)
{
	add_node(lab.h, "n1", 1, 80000);
	add_node(lab.h, "n2", 1, 80000);
	int64_t id = submit(lab.h, gang(lab, 2, 2, 1));
	assert_int_equal(pass(lab.h), 2);
	must(lab.h, apply_to_node(lab.h, COMMAND_NODE_DEAD, "n2"));
	return id;
}

static void a_lost_task_gets_a_new_place_within_the_grace(void **unused)
{
	struct lab lab = gang_lab_new();
	int64_t id = lose_one(lab);

	(void)unused;
	assert_int_equal(pass(lab.h), 0);
	lab.h->now_ms += config_default().gang_grace_ms - 1;
	assert_int_equal(pass(lab.h), 0);
	assert_int_equal(placed(lab.h, id), 1);
	add_node(lab.h, "n3", 1, 80000);
	assert_int_equal(pass(lab.h), 1);
	assert_int_equal(state(lab.h, id), JOB_RUNNING);
	lab.h->now_ms += config_default().gang_grace_ms;
	assert_int_equal(pass(lab.h), 0);
	assert_int_equal(placed(lab.h, id), 2);
	harness_free(lab.h);
}

static void a_gang_that_stays_short_is_stopped_and_queued_again(void **unused)
{
	struct lab lab = gang_lab_new();
	int64_t id = lose_one(lab);

	(void)unused;
	lab.h->now_ms += config_default().gang_grace_ms;
	assert_int_equal(pass(lab.h), 0);
	assert_int_equal(placed(lab.h, id), 0);
	assert_int_equal(decided(lab.h, DECISION_GANG, id)->tasks, 1);
	confirm_stops(lab.h);
	assert_int_equal(state(lab.h, id), JOB_PENDING);
	add_node(lab.h, "n3", 1, 80000);
	assert_int_equal(pass(lab.h), 2);
	assert_int_equal(state(lab.h, id), JOB_RUNNING);
	harness_free(lab.h);
}

static void an_elastic_job_that_keeps_its_minimum_is_not_short(void **unused)
{
	struct lab lab = gang_lab_new();

	(void)unused;
	add_node(lab.h, "n1", 2, 80000);
	add_node(lab.h, "n2", 1, 80000);
	int64_t id = submit(lab.h, gang(lab, 3, 2, 1));
	assert_int_equal(pass(lab.h), 3);
	must(lab.h, apply_to_node(lab.h, COMMAND_NODE_DEAD, "n2"));
	lab.h->now_ms += config_default().gang_grace_ms;
	assert_int_equal(pass(lab.h), 0);
	assert_int_equal(placed(lab.h, id), 2);
	assert_null(decided(lab.h, DECISION_GANG, id));
	harness_free(lab.h);
}

static void a_refused_task_of_a_gang_is_tried_again(void **unused)
{
	struct lab lab = gang_lab_new();
	int64_t started[4];

	(void)unused;
	add_node(lab.h, "n1", 2, 80000);
	int64_t id = submit(lab.h, gang(lab, 2, 2, 1));
	must(lab.h, harness_apply(lab.h, (struct command){ .kind = COMMAND_PASS, .units = 9 }));
	assert_int_equal(read_orders(lab.h, started), 2);
	must(lab.h, to_task(lab.h, COMMAND_TASK_STARTED, started[0], 0, false));
	must(lab.h, to_task(lab.h, COMMAND_TASK_REFUSED, started[1], 0, false));
	assert_int_equal(pass(lab.h), 0);
	lab.h->now_ms += config_default().refuse_backoff_ms;
	assert_int_equal(pass(lab.h), 1);
	assert_int_equal(state(lab.h, id), JOB_RUNNING);
	harness_free(lab.h);
}

/* Split jobs. */

static struct job_record split(const struct lab lab, int64_t gpus)
{
	struct job_record job_record = whole(lab.tenant, 1);

	job_record.split_gpus = gpus;
	return job_record;
}

static void twenty_gpus_are_split_over_nodes_of_eight_as_eight_eight_and_four(void **unused)
{
	struct lab lab = gang_lab_new();

	(void)unused;
	add_node(lab.h, "n1", 8, 80000);
	add_node(lab.h, "n2", 8, 80000);
	add_node(lab.h, "n3", 8, 80000);
	int64_t id = submit(lab.h, split(lab, 20));
	assert_int_equal(pass(lab.h), 3);
	assert_int_equal(right(lab.h, id, 0)->part_count, 8);
	assert_int_equal(right(lab.h, id, 1)->part_count, 8);
	assert_int_equal(right(lab.h, id, 2)->part_count, 4);
	assert_int_equal(state(lab.h, id), JOB_RUNNING);
	assert_non_null(decided(lab.h, DECISION_START, id));
	harness_free(lab.h);
}

static void a_split_leaves_large_nodes_whole_where_a_small_one_is_enough(void **unused)
{
	struct lab lab = gang_lab_new();

	(void)unused;
	add_node(lab.h, "n1", 8, 80000);
	add_node(lab.h, "n2", 8, 80000);
	add_node(lab.h, "n3", 4, 80000);
	submit(lab.h, split(lab, 12));
	assert_int_equal(pass(lab.h), 2);
	assert_int_equal(cluster_node(&lab.h->sched->cluster, "n3")->reservation_count, 1);
	harness_free(lab.h);
}

static void a_split_job_waits_until_all_of_its_gpus_are_there(void **unused)
{
	struct lab lab = gang_lab_new();

	(void)unused;
	add_node(lab.h, "n1", 8, 80000);
	add_node(lab.h, "n2", 8, 80000);
	int64_t id = submit(lab.h, split(lab, 20));
	assert_int_equal(pass(lab.h), 0);
	assert_int_equal(placed(lab.h, id), 0);
	add_node(lab.h, "n3", 4, 80000);
	assert_int_equal(pass(lab.h), 3);
	harness_free(lab.h);
}

static void tasks_of_a_split_job_are_numbered_by_the_names_of_their_nodes(void **unused)
{
	struct lab lab = gang_lab_new();

	(void)unused;
	add_node(lab.h, "a", 2, 80000);
	add_node(lab.h, "b", 8, 80000);
	int64_t id = submit(lab.h, split(lab, 10));
	assert_int_equal(pass(lab.h), 2);
	assert_string_equal(node_of_task(lab.h, id, 0), "a");
	assert_string_equal(node_of_task(lab.h, id, 1), "b");
	harness_free(lab.h);
}

static void a_split_job_runs_when_all_of_its_parts_run(void **unused)
{
	struct lab lab = gang_lab_new();
	int64_t started[4];

	(void)unused;
	add_node(lab.h, "n1", 8, 80000);
	add_node(lab.h, "n2", 8, 80000);
	int64_t id = submit(lab.h, split(lab, 12));
	must(lab.h, harness_apply(lab.h, (struct command){ .kind = COMMAND_PASS, .units = 9 }));
	assert_int_equal(read_orders(lab.h, started), 2);
	must(lab.h, to_task(lab.h, COMMAND_TASK_STARTED, started[0], 0, false));
	assert_int_equal(state(lab.h, id), JOB_SCHEDULED);
	must(lab.h, to_task(lab.h, COMMAND_TASK_STARTED, started[1], 0, false));
	assert_int_equal(state(lab.h, id), JOB_RUNNING);
	harness_free(lab.h);
}

static void a_split_job_that_lost_a_part_is_stopped_and_split_anew(void **unused)
{
	struct lab lab = gang_lab_new();
	int64_t started[4];

	(void)unused;
	add_node(lab.h, "n1", 8, 80000);
	add_node(lab.h, "n2", 8, 80000);
	int64_t id = submit(lab.h, split(lab, 12));
	assert_int_equal(pass(lab.h), 2);
	must(lab.h, apply_to_node(lab.h, COMMAND_NODE_DEAD, "n2"));
	read_orders(lab.h, started);
	assert_int_equal(lab.h->stop_count, 1);
	assert_int_equal(placed(lab.h, id), 0);
	confirm_stops(lab.h);
	add_node(lab.h, "n3", 4, 80000);
	assert_int_equal(pass(lab.h), 2);
	assert_int_equal(state(lab.h, id), JOB_RUNNING);
	harness_free(lab.h);
}

static void a_split_job_is_preempted_whole(void **unused)
{
	struct lab lab = gang_lab_new();
	struct job_record high = whole(lab.tenant, 2);

	(void)unused;
	add_node(lab.h, "n1", 4, 80000);
	add_node(lab.h, "n2", 4, 80000);
	int64_t id = submit(lab.h, split(lab, 8));
	assert_int_equal(pass(lab.h), 2);
	high.priority = 900;
	submit(lab.h, high);
	assert_int_equal(pass(lab.h), 0);
	assert_int_equal(placed(lab.h, id), 0);
	assert_int_equal(lab.h->stop_count, 2);
	assert_int_equal(job(lab.h, id)->s.preempted_count, 1);
	harness_free(lab.h);
}

static void a_split_job_is_over_when_all_of_its_parts_ended(void **unused)
{
	struct lab lab = gang_lab_new();

	(void)unused;
	add_node(lab.h, "n1", 8, 80000);
	add_node(lab.h, "n2", 8, 80000);
	int64_t id = submit(lab.h, split(lab, 12));
	pass(lab.h);
	must(lab.h, to_task(lab.h, COMMAND_TASK_EXITED, right_of(lab.h, id, 0), 0, true));
	assert_int_equal(state(lab.h, id), JOB_RUNNING);
	assert_int_equal(pass(lab.h), 0);
	must(lab.h, to_task(lab.h, COMMAND_TASK_EXITED, right_of(lab.h, id, 1), 0, true));
	assert_int_equal(state(lab.h, id), JOB_COMPLETED);
	harness_free(lab.h);
}

/* What all GPUs of a node have left. */
static int64_t left_on(const struct node *node)
{
	int64_t left_mib = 0;

	for (int i = 0; i < node->gpu_count; i++)
		left_mib += max64(gpu_free_later(node->gpus[i]), 0);
	return left_mib;
}

static bool comes_before(const struct reservation *a, const struct reservation *b)
{
	int64_t left_a = left_on(a->node), left_b = left_on(b->node);

	return left_a != left_b ? left_a < left_b : a->node->rank < b->node->rank;
}

/* Sorts by insertion: those of one node stay in the order in which they were placed. */
static void sort_by_insertion(const struct reservation **placed_tasks, int count)
{
	for (int i = 1; i < count; i++) {
		const struct reservation *moving = placed_tasks[i];
		int j = i;
		for (; j > 0 && comes_before(moving, placed_tasks[j - 1]); j--)
			placed_tasks[j] = placed_tasks[j - 1];
		placed_tasks[j] = moving;
	}
}

static int gang_by_id(const void *a, const void *b)
{
	const struct reservation *const *one = a, *const *other = b;

	return (*one)->id > (*other)->id ? 1 : -1;
}

static void assert_numbered_by_place(const struct harness *h, int64_t id, int tasks)
{
	const struct reservation *expected[64];

	for (int i = 0; i < tasks; i++)
		expected[i] = right(h, id, i);
	qsort(expected, (size_t)tasks, sizeof(struct reservation *), gang_by_id);
	sort_by_insertion(expected, tasks);
	for (int i = 0; i < tasks; i++)
		assert_ptr_equal(right(h, id, i), expected[i]);
}

static void tasks_are_numbered_by_what_their_nodes_have_left_then_by_name(void **unused)
{
	uint64_t random = 7;

	(void)unused;
	for (int round = 0; round < 40; round++) {
		struct lab lab = gang_lab_new();
		struct config_record config = config_default();
		config.policy = round % POLICY_COUNT;
		configure(lab.h, config);
		for (int i = 0; i < 12; i++) {
			char name[8];
			snprintf(name, sizeof(name), "n%02d", (i * 7) % 12);
			add_node(lab.h, name, 1 + (int)random_below(&random, 8), 80000);
		}
		for (int i = 0; i < 8; i++)
			submit(lab.h,
			       fraction(lab.tenant, 100 + 100 * (int)random_below(&random, 7)));
		pass(lab.h);
		int tasks = 2 + (int)random_below(&random, 20);
		struct job_record one = gang(lab, tasks, tasks, 1);
		if (round % 3 == 0)
			one = fraction(lab.tenant, 300);
		one.tasks = one.min_available = tasks;
		int64_t id = submit(lab.h, one);
		if (pass(lab.h) == tasks)
			assert_numbered_by_place(lab.h, id, tasks);
		else
			assert_true(round % 3 != 0);
		harness_free(lab.h);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_gang_starts_together_or_not_at_all),
		cmocka_unit_test(tasks_with_parts_of_several_gpus_fit_if_they_can_be_spread),
		cmocka_unit_test(a_gang_runs_when_all_of_its_minimum_runs),
		cmocka_unit_test(a_gang_claims_together_and_starts_when_the_last_memory_is_back),
		cmocka_unit_test(a_gang_is_over_when_all_of_its_tasks_ended),
		cmocka_unit_test(a_gang_fails_with_its_first_task_that_fails),
		cmocka_unit_test(a_limit_stops_a_gang_whole),
		cmocka_unit_test(an_elastic_job_starts_with_its_minimum_and_grows_one_by_one),
		cmocka_unit_test(a_job_that_cannot_grow_where_it_is_holds_nobody_up),
		cmocka_unit_test(an_elastic_job_grows_no_further_than_all_of_its_tasks),
		cmocka_unit_test(an_elastic_job_shrinks_to_its_minimum_for_a_higher_priority),
		cmocka_unit_test(an_elastic_job_loses_its_last_tasks_first),
		cmocka_unit_test(an_elastic_job_that_must_go_below_its_minimum_goes_whole),
		cmocka_unit_test(an_elastic_job_grows_again_when_there_is_room),
		cmocka_unit_test(an_elastic_job_that_is_ending_does_not_grow),
		cmocka_unit_test(a_lost_task_gets_a_new_place_within_the_grace),
		cmocka_unit_test(a_gang_that_stays_short_is_stopped_and_queued_again),
		cmocka_unit_test(an_elastic_job_that_keeps_its_minimum_is_not_short),
		cmocka_unit_test(a_refused_task_of_a_gang_is_tried_again),
		cmocka_unit_test(twenty_gpus_are_split_over_nodes_of_eight_as_eight_eight_and_four),
		cmocka_unit_test(a_split_leaves_large_nodes_whole_where_a_small_one_is_enough),
		cmocka_unit_test(a_split_job_waits_until_all_of_its_gpus_are_there),
		cmocka_unit_test(tasks_of_a_split_job_are_numbered_by_the_names_of_their_nodes),
		cmocka_unit_test(tasks_are_numbered_by_what_their_nodes_have_left_then_by_name),
		cmocka_unit_test(a_split_job_runs_when_all_of_its_parts_run),
		cmocka_unit_test(a_split_job_that_lost_a_part_is_stopped_and_split_anew),
		cmocka_unit_test(a_split_job_is_preempted_whole),
		cmocka_unit_test(a_split_job_is_over_when_all_of_its_parts_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
