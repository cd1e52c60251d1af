/* queue_case_test.c - cases are read as they are meant, and refused with the field that is wrong */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sim/scenario/queue_case.h"

/* A case with these jobs on one node of two GPUs, read; quotes are ' here. */
struct reading_case {
	json_t *json;
	struct queue_case queue_case;
	struct error error;
	bool fine;
};

#define FRAME                                                                                      \
	"{'name': 'a case', 'rounds': 2,"                                                          \
	" 'nodes': [{'name': 'node0', 'gpus': 2, 'gpu_memory_mb': 101, 'cpu_cores': 8,"            \
	" 'memory_bytes': 1000}],"                                                                 \
	" 'tenants': [{'name': 'child', 'parent': 'root', 'quota_gpus': 1},"                       \
	" {'name': 'root', 'parent': null, 'limit_cpu_cores': 2.5}],"                              \
	" 'jobs': [%s], 'expect_jobs': {},"                                                        \
	" 'expect_tasks': {'job-1': {'status': 'running', 'node': 'node0'}}}"

static struct reading_case read_jobs(const char *jobs)
{
	struct buffer text = { 0 };
	struct reading_case reading = { 0 };
	buffer_print(&text, FRAME, jobs);
	for (size_t i = 0; i < text.size; i++) {
		if (text.data[i] == '\'')
			text.data[i] = '"';
	}
	reading.json = json_loads(text.data, 0, NULL);
	assert_non_null(reading.json);
	reading.fine = queue_case_read(&reading.queue_case, reading.json, &reading.error);
	buffer_free(&text);
	return reading;
}

static void queue_case_finish(struct reading_case *reading)
{
	queue_case_free(&reading->queue_case);
	json_decref(reading->json);
}

static void tenants_are_numbered_in_order_and_may_come_before_their_parents(void **state)
{
	(void)state;
	struct reading_case reading = read_jobs("{'name': 'job', 'tenant': 'child', 'priority': 50,"
	                                        " 'tasks': [{'state': 'pending'},"
	                                        " {'state': 'pending'}]}");
	const struct tenant_record *tenants = reading.queue_case.tenants;
	assert_true(reading.fine);
	assert_int_equal(tenants[0].id, 1);
	assert_int_equal(tenants[0].parent_id, 2);
	assert_int_equal(tenants[0].quota_gpu, 1000);
	assert_true(tenants[0].limit_gpu == UNLIMITED);
	assert_true(tenants[1].quota_gpu == UNLIMITED);
	assert_int_equal(tenants[1].limit_cpu, 2500);
	queue_case_finish(&reading);
}

static void tasks_are_in_the_order_of_their_priorities(void **state)
{
	(void)state;
	struct reading_case reading =
	    read_jobs("{'name': 'job', 'tenant': 'child', 'priority': 50, 'gpus': 1, 'tasks': ["
	              "{'state': 'pending', 'priority': 1}, {'state': 'pending', 'priority': 2},"
	              " {'state': 'pending', 'priority': 1}]}");
	const struct case_task *tasks = reading.queue_case.jobs[0].tasks;
	assert_true(reading.fine);
	assert_int_equal(tasks[0].index, 1);
	assert_int_equal(tasks[1].index, 0);
	assert_int_equal(tasks[2].index, 2);
	assert_true(tasks[0].is_expected);
	assert_false(tasks[1].is_expected);
	queue_case_finish(&reading);
}

static void tasks_of_one_group_share_a_gpu_and_others_get_their_own(void **state)
{
	(void)state;
	struct reading_case reading =
	    read_jobs("{'name': 'whole', 'tenant': 'child', 'priority': 50, 'gpus': 1, 'tasks': ["
	              "{'state': 'running', 'node': 'node0'}]},"
	              "{'name': 'job', 'tenant': 'child', 'priority': 50, 'gpu_fraction': 0.5,"
	              " 'tasks': [{'state': 'running', 'node': 'node0', 'gpu_groups': ['x']},"
	              " {'state': 'releasing', 'node': 'node0', 'gpu_groups': ['x']}]}");
	struct world world = { 0 };
	assert_true(reading.fine);
	assert_true(queue_case_records(&reading.queue_case, &world, &reading.error));
	const struct reservation_record *whole = world_find(&world, RECORD_RESERVATION, 1, 0);
	const struct reservation_record *half = world_find(&world, RECORD_RESERVATION, 2, 0);
	const struct reservation_record *other = world_find(&world, RECORD_RESERVATION, 3, 0);
	assert_int_equal(half->parts.at[PART_GPU], other->parts.at[PART_GPU]);
	assert_int_not_equal(half->parts.at[PART_GPU], whole->parts.at[PART_GPU]);
	assert_int_equal(half->parts.at[PART_MIB], 50); /* of 101, rounded down */
	assert_int_equal(half->phase, PHASE_LIVE);
	assert_int_equal(other->phase, PHASE_RELEASING);
	assert_true(other->requeue);
	world_free(&world);
	queue_case_finish(&reading);
}

static void more_tasks_than_gpus_are_refused(void **state)
{
	(void)state;
	struct reading_case reading = read_jobs(
	    "{'name': 'job', 'tenant': 'child', 'priority': 50, 'gpus': 2, 'tasks': ["
	    "{'state': 'running', 'node': 'node0'}, {'state': 'running', 'node': 'node0'}]}");
	struct world world = { 0 };
	assert_true(reading.fine);
	assert_false(queue_case_records(&reading.queue_case, &world, &reading.error));
	assert_string_equal(reading.error.text, "node0 has no GPU left for task job-1");
	world_free(&world);
	queue_case_finish(&reading);
}

static void expect_refusal(const char *jobs, const char *sentence)
{
	struct reading_case reading = read_jobs(jobs);
	assert_false(reading.fine);
	assert_string_equal(reading.error.text, sentence);
	queue_case_finish(&reading);
}

static void what_is_wrong_is_named_with_its_field(void **state)
{
	(void)state;
	expect_refusal("{'name': 'job', 'tenant': 'child', 'tasks': [{'state': 'pending'}]}",
	               "jobs[0].priority is missing");
	expect_refusal("{'name': 'job', 'tenant': 'nobody', 'priority': 50, 'tasks': []}",
	               "jobs[0].tasks is empty");
	expect_refusal("{'name': 'job', 'tenant': 'nobody', 'priority': 50, 'tasks':"
	               " [{'state': 'pending'}]}",
	               "jobs[0].tenant 'nobody' is not a tenant of the case");
	expect_refusal("{'name': 'job', 'tenant': 'child', 'priority': 50, 'gpu_fraction': 1.5,"
	               " 'tasks': [{'state': 'pending'}]}",
	               "jobs[0].gpu_fraction must be a number from 0 to 1");
	expect_refusal("{'name': 'job', 'tenant': 'child', 'priority': 50, 'tasks':"
	               " [{'state': 'asleep'}]}",
	               "jobs[0].tasks[0].state must be one of: pending, running, releasing,"
	               " stuckinreleasing");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tenants_are_numbered_in_order_and_may_come_before_their_parents),
		cmocka_unit_test(tasks_are_in_the_order_of_their_priorities),
		cmocka_unit_test(tasks_of_one_group_share_a_gpu_and_others_get_their_own),
		cmocka_unit_test(more_tasks_than_gpus_are_refused),
		cmocka_unit_test(what_is_wrong_is_named_with_its_field),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
