/* group_test.c - groups of which some pods have ended, and others come again */
#include "pods/test/pods_lab.h"

#include <stdio.h>

enum { SIZE = 4 };

static json_t *member_at(int place, const char *node, const char *phase, int64_t job)
{
	char name[32], annotation[64] = "";

	snprintf(name, sizeof(name), "p%d", place);
	if (job > 0)
		snprintf(annotation, sizeof(annotation), "job-%lld/%d", (long long)job, place);
	return lab_member(name, SIZE, node, phase, annotation);
}

/* A group of which all pods run, as job 1 with reservations 101 to 104. */
static struct lab *lab_running(void)
{
	struct lab *lab = lab_new();

	lab_begin(lab);
	for (int i = 0; i < SIZE; i++)
		lab_pod(lab, REFLECTOR_PUT, member_at(i, "", "Pending", 0));
	lab_round(lab, 1000);
	assert_int_equal(lab_last(lab, COMMAND_SUBMIT)->least, SIZE);
	for (int i = 0; i < SIZE; i++)
		lab_start(lab, 1, i, 101 + i);
	lab_round(lab, 1000);
	for (int i = 0; i < SIZE; i++)
		lab_pod(lab, REFLECTOR_PUT, member_at(i, "n1", "Running", 1));
	assert_int_equal(lab_count(lab, COMMAND_TASK_STARTED, 0), SIZE);
	return lab;
}

/* The others come again under new names. */
static void rest_comes_again(struct lab *lab)
{
	char name[32];

	for (int i = 1; i < SIZE; i++) {
		snprintf(name, sizeof(name), "again-%d", i);
		lab_pod(lab, REFLECTOR_PUT, lab_member(name, SIZE, "", "Pending", ""));
	}
}

static void assert_rest_is_bound(struct lab *lab, int64_t job_id, int first)
{
	char uid[32];

	for (int i = 0; i < SIZE - 1; i++)
		lab_start(lab, job_id, first + i, 201 + i);
	lab_round(lab, 1000);
	for (int i = 1; i < SIZE; i++) {
		snprintf(uid, sizeof(uid), "uid-again-%d", i);
		assert_int_equal(lab_written(lab, WRITE_BIND, uid), 1);
	}
}

static void rest_is_evicted(struct lab *lab)
{
	for (int i = 1; i < SIZE; i++)
		lab_stop(lab, 1, i, 101 + i);
	lab_round(lab, 1000);
	for (int i = 1; i < SIZE; i++) {
		lab_pod(lab, REFLECTOR_PUT, member_at(i, "n1", "Failed", 1));
		lab_pod(lab, REFLECTOR_GONE, member_at(i, "n1", "Failed", 1));
	}
	lab_round(lab, 1000);
}

static void the_rest_of_a_group_of_which_one_has_succeeded_starts_again(void **state)
{
	struct lab *lab = lab_running();

	(void)state;
	lab_pod(lab, REFLECTOR_PUT, member_at(0, "n1", "Succeeded", 1));
	assert_int_equal(lab_last(lab, COMMAND_TASK_EXITED)->id, 101);
	rest_is_evicted(lab);
	assert_int_equal(lab_count(lab, COMMAND_HOLD, 1), 1);
	rest_comes_again(lab);
	lab_round(lab, 1000);
	assert_int_equal(lab_count(lab, COMMAND_UNHOLD, 1), 1);
	assert_rest_is_bound(lab, 1, 1);
	lab_free(lab);
}

static void so_it_does_if_the_scheduler_restarted_between(void **state)
{
	struct lab *lab = lab_running();

	(void)state;
	lab_restart(lab);
	pods_know(lab->pods,
	          &(struct pods_known){ .job_id = 1,
	                                .key = PODS_KEY "group/default/own/g#0123456789abcdef",
	                                .tasks = SIZE });
	pods_know_task(lab->pods,
	               &(struct pods_known_task){ .job_id = 1, .task = 0, .ended = true });
	lab_pod(lab, REFLECTOR_PUT, member_at(0, "n1", "Succeeded", 1));
	lab_begin(lab);
	lab_round(lab, 2000);
	rest_comes_again(lab);
	/* Longer than an evicted pod has to be made again. */
	lab_round(lab, 400000);
	assert_int_equal(lab_count(lab, COMMAND_CANCEL, 0), 0);
	assert_int_equal(lab_count(lab, COMMAND_HOLD, 1), lab_count(lab, COMMAND_UNHOLD, 1));
	assert_rest_is_bound(lab, 1, 1);
	lab_free(lab);
}

static void a_pod_that_succeeds_while_it_is_evicted_is_done(void **state)
{
	struct lab *lab = lab_running();

	(void)state;
	for (int i = 0; i < SIZE; i++)
		lab_stop(lab, 1, i, 101 + i);
	lab_pod(lab, REFLECTOR_PUT, member_at(0, "n1", "Succeeded", 1));
	assert_true(lab_last(lab, COMMAND_TASK_EXITED)->finished);
	lab_pod(lab, REFLECTOR_GONE, member_at(0, "n1", "Succeeded", 1));
	rest_is_evicted(lab);
	rest_comes_again(lab);
	lab_round(lab, 1000);
	assert_int_equal(lab_count(lab, COMMAND_UNHOLD, 1), 1);
	assert_rest_is_bound(lab, 1, 1);
	lab_free(lab);
}

static void those_that_have_succeeded_count_for_a_group_whose_job_is_gone(void **state)
{
	struct lab *lab = lab_new();

	(void)state;
	lab_pod(lab, REFLECTOR_PUT, member_at(0, "n1", "Succeeded", 1));
	lab_begin(lab);
	rest_comes_again(lab);
	lab_round(lab, 1000);
	assert_int_equal(lab_last(lab, COMMAND_SUBMIT)->least, SIZE - 1);
	assert_int_equal(lab_last(lab, COMMAND_SUBMIT)->tasks, SIZE - 1);
	assert_rest_is_bound(lab, 1, 0);
	lab_free(lab);
}

static void those_of_an_earlier_run_that_is_complete_do_not_count(void **state)
{
	struct lab *lab = lab_new();

	(void)state;
	for (int i = 0; i < SIZE; i++)
		lab_pod(lab, REFLECTOR_PUT, member_at(i, "n1", "Succeeded", 1));
	lab_begin(lab);
	rest_comes_again(lab);
	lab_round(lab, 20000);
	assert_int_equal(lab_count(lab, COMMAND_SUBMIT, 0), 0);
	lab_pod(lab, REFLECTOR_PUT, lab_member("again-0", SIZE, "", "Pending", ""));
	lab_round(lab, 1000);
	assert_int_equal(lab_last(lab, COMMAND_SUBMIT)->least, SIZE);
	lab_free(lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_rest_of_a_group_of_which_one_has_succeeded_starts_again),
		cmocka_unit_test(so_it_does_if_the_scheduler_restarted_between),
		cmocka_unit_test(a_pod_that_succeeds_while_it_is_evicted_is_done),
		cmocka_unit_test(those_that_have_succeeded_count_for_a_group_whose_job_is_gone),
		cmocka_unit_test(those_of_an_earlier_run_that_is_complete_do_not_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
