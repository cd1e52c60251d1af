/* jct_test.c - jobs that share a small cluster, and the trace they come from */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sim/trace/jct_trace.h"

#define SECOND INT64_C(1000)
#define HOUR (3600 * SECOND)
#define BEGIN INT64_C(1500000000000)

static struct jct_result jct_execute(const char *policy, struct philly_job *jobs, size_t count,
                                     int64_t nodes, int64_t gpus)
{
	static int64_t completion[16];
	struct philly philly = { .jobs = jobs, .count = count };
	struct jct_world world = { .nodes = nodes, .gpus = gpus, .cost_ms = -1 };
	struct jct_result result = { .completion_ms = completion };
	struct error error = { 0 };
	if (!jct_run(&philly, &world, jct_policy(policy), &result, NULL, NULL, &error))
		fail_msg("refused: %s", error.text);
	usage_free(&result.usage);
	return result;
}

static void jobs_that_fit_take_what_they_run_whatever_the_policy(void **state)
{
	struct philly_job jobs[] = {
		{ .submit_ms = BEGIN, .duration_ms = HOUR, .gpus = 1 },
		{ .submit_ms = BEGIN + SECOND, .duration_ms = 2 * HOUR, .gpus = 3 }
	};
	(void)state;
	for (int i = 0; i < jct_policy_count; i++) {
		struct jct_result result = jct_execute(jct_policies[i].name, jobs, 2, 1, 4);
		assert_int_equal(result.completion_ms[0], HOUR);
		assert_int_equal(result.completion_ms[1], 2 * HOUR);
		assert_int_equal(result.preemptions, 0);
		assert_int_equal(result.longest_wait_ms, 0);
	}
}

/* A long job runs, a large one waits, and then comes a small one. */
static void policies_differ_in_who_passes_whom(void **state)
{
	struct philly_job jobs[] = {
		{ .submit_ms = BEGIN, .duration_ms = 10 * HOUR, .gpus = 3 },
		{ .submit_ms = BEGIN + SECOND, .duration_ms = 4 * HOUR, .gpus = 4 },
		{ .submit_ms = BEGIN + 2 * SECOND, .duration_ms = HOUR, .gpus = 1 }
	};
	(void)state;
	struct jct_result result = jct_execute("fifo", jobs, 3, 1, 4);
	assert_int_equal(result.completion_ms[1], 14 * HOUR - SECOND);
	assert_int_equal(result.completion_ms[2], 15 * HOUR - 2 * SECOND);
	result = jct_execute("skip", jobs, 3, 1, 4);
	assert_int_equal(result.completion_ms[1], 14 * HOUR - SECOND);
	assert_int_equal(result.completion_ms[2], HOUR);
	result = jct_execute("shortest", jobs, 3, 1, 4);
	assert_int_equal(result.completion_ms[2], HOUR);
	result = jct_execute("attained", jobs, 3, 1, 4);
	assert_true(result.completion_ms[2] < 2 * HOUR);
	assert_true(result.preemptions > 0);
	assert_true(result.completion_ms[1] < 14 * HOUR - SECOND);
}

/* Bob's jobs have always taken an hour when Ann's waits for one of them. */
static void starts_that_are_promised_are_counted(void **state)
{
	struct philly_job jobs[8];
	(void)state;
	for (int i = 0; i < 7; i++)
		jobs[i] = (struct philly_job){ .submit_ms = BEGIN + i * 2 * HOUR,
			                       .duration_ms = HOUR,
			                       .gpus = 1,
			                       .user = "bob" };
	jobs[7] = (struct philly_job){ .submit_ms = jobs[6].submit_ms + SECOND,
		                       .duration_ms = HOUR,
		                       .gpus = 4,
		                       .user = "ann" };
	struct jct_result result = jct_execute("backfill", jobs, 8, 1, 4);
	assert_int_equal(result.promises.given, 1);
	assert_int_equal(result.promises.wait_ms, HOUR - SECOND);
	assert_in_range(result.promises.ahead_ms, HOUR / 2, 2 * HOUR);
	assert_int_equal(result.promises.kept, result.promises.ahead_ms >= HOUR - SECOND);
	result = jct_execute("skip", jobs, 8, 1, 4);
	assert_int_equal(result.promises.given, 0);
}

/* Ann's jobs have been short and Bob's long. A node of one GPU is busy when both come back,
 * Bob first. */
static void who_is_predicted_to_be_short_goes_before_who_came_first(void **state)
{
	struct philly_job jobs[14] = { 0 };
	size_t count = 0;
	(void)state;
	for (int i = 0; i < 5; i++) {
		jobs[count++] = (struct philly_job){ .submit_ms = BEGIN + i * 10 * HOUR,
			                             .duration_ms = 8 * HOUR,
			                             .gpus = 1,
			                             .user = "bob" };
		jobs[count++] = (struct philly_job){ .submit_ms = BEGIN + (i * 10 + 9) * HOUR,
			                             .duration_ms = HOUR / 60,
			                             .gpus = 1,
			                             .user = "ann" };
	}
	int64_t busy_ms = BEGIN + 100 * HOUR;
	jobs[count++] = (struct philly_job){
		.submit_ms = busy_ms, .duration_ms = HOUR / 60, .gpus = 1, .user = "ann"
	};
	jobs[count++] = (struct philly_job){
		.submit_ms = busy_ms + SECOND, .duration_ms = 8 * HOUR, .gpus = 1, .user = "bob"
	};
	jobs[count++] = (struct philly_job){ .submit_ms = busy_ms + 2 * SECOND,
		                             .duration_ms = HOUR / 60,
		                             .gpus = 1,
		                             .user = "ann" };
	struct jct_result result = jct_execute("predicted", jobs, count, 1, 1);
	assert_true(result.completion_ms[12] < HOUR);
	assert_true(result.completion_ms[11] > 8 * HOUR);
	result = jct_execute("attained", jobs, count, 1, 1);
	assert_true(result.completion_ms[11] < result.completion_ms[12] + 8 * HOUR);
}

static void the_nodes_follow_from_the_load(void **state)
{
	struct philly_job jobs[] = { { .submit_ms = BEGIN, .duration_ms = 9 * HOUR, .gpus = 2 },
		                     { .submit_ms = BEGIN + HOUR, .gpus = 12 } };
	struct philly philly = { .jobs = jobs, .count = 2 };
	struct jct_world world = { .gpus = 8 };
	(void)state;
	jct_trace_load(&philly, &world, 90);
	assert_int_equal(world.nodes, 3); /* 18 hours of GPU time in one hour, 20 GPUs */
	jobs[0].duration_ms = HOUR;
	world.nodes = 0;
	jct_trace_load(&philly, &world, 100);
	assert_int_equal(world.nodes, 2); /* for the largest */
	assert_int_equal(jobs[1].submit_ms - jobs[0].submit_ms, HOUR / 8);
}

static void an_interruption_costs_what_was_said(void **state)
{
	struct philly_job jobs[] = {
		{ .submit_ms = BEGIN, .duration_ms = 10 * HOUR, .gpus = 1 },
		{ .submit_ms = BEGIN + 5 * HOUR, .duration_ms = HOUR, .gpus = 1 }
	};
	(void)state;
	struct jct_result result = jct_execute("attained", jobs, 2, 1, 1);
	assert_int_equal(result.preemptions, 1);
	assert_int_equal(result.completion_ms[1], HOUR);
	assert_int_equal(result.completion_ms[0], 11 * HOUR + 7 * SECOND);
	assert_int_equal(result.longest_wait_ms, HOUR);
}

/* 20 GiB on each GPU: 10 s out and 3.637 s in. The short job waits five minutes before another
 * makes way for it. */
static void what_suspending_costs_is_the_time_that_moving_its_memory_takes(void **state)
{
	struct philly_job jobs[] = {
		{ .submit_ms = BEGIN, .duration_ms = 10 * HOUR, .gpus = 4 },
		{ .submit_ms = BEGIN + 5 * HOUR, .duration_ms = HOUR, .gpus = 4 }
	};
	(void)state;
	for (int i = 0; i < 2; i++) {
		int64_t gpus = i == 0 ? 4 : 1;
		struct jct_result result =
		    jct_execute(i == 0 ? "suspend" : "parallel", jobs, 2, 1, 4);
		assert_int_equal(result.suspends, 1);
		assert_int_equal(result.preemptions, 1);
		assert_int_equal(result.completion_ms[1], HOUR + 300 * SECOND + gpus * 10 * SECOND);
		assert_int_equal(result.completion_ms[0], 11 * HOUR + gpus * 13637);
		assert_int_equal(result.lost_ms, 4 * gpus * 13637);
	}
}

static void what_waits_for_its_gpus_for_too_long_starts_again(void **state)
{
	struct philly_job jobs[] = {
		{ .submit_ms = BEGIN, .duration_ms = 10 * HOUR, .gpus = 1 },
		{ .submit_ms = BEGIN + 5 * HOUR, .duration_ms = 5 * HOUR, .gpus = 1 }
	};
	(void)state;
	struct jct_result result = jct_execute("suspend", jobs, 2, 1, 1);
	assert_int_equal(result.suspends, 1);
	assert_true(result.preemptions > 1);
}

static void more_gpus_than_a_node_has_are_a_gang(void **state)
{
	struct philly_job jobs[] = { { .submit_ms = BEGIN, .duration_ms = HOUR, .gpus = 12 } };
	(void)state;
	assert_int_equal(jct_execute("skip", jobs, 1, 2, 8).completion_ms[0], HOUR);
}

static void a_job_that_never_fits_is_said(void **state)
{
	struct philly_job jobs[] = { { .submit_ms = BEGIN, .duration_ms = HOUR, .gpus = 12 } };
	struct philly philly = { .jobs = jobs, .count = 1 };
	struct jct_world world = { .nodes = 1, .gpus = 8, .cost_ms = -1 };
	int64_t completion[1];
	struct jct_result result = { .completion_ms = completion };
	struct error error = { 0 };
	(void)state;
	assert_false(jct_run(&philly, &world, jct_policy("skip"), &result, NULL, NULL, &error));
	usage_free(&result.usage);
	assert_string_equal(error.text, "1 jobs never start on 1 nodes of 8 GPUs");
}

/* Two virtual clusters, of which one has all GPUs when the other comes. */
static void virtual_clusters_can_be_tenants_with_shares_of_their_own(void **state)
{
	struct philly_job jobs[] = {
		{ .submit_ms = BEGIN, .duration_ms = 10 * HOUR, .gpus = 1 },
		{ .submit_ms = BEGIN, .duration_ms = 10 * HOUR, .gpus = 1 },
		{ .submit_ms = BEGIN + SECOND, .duration_ms = 20 * HOUR, .gpus = 1, .cluster = 1 }
	};
	const char *names[] = { "one", "other" };
	struct philly philly = { .jobs = jobs, .count = 3, .clusters = names, .cluster_count = 2 };
	struct jct_world world = { .nodes = 1, .gpus = 2, .cost_ms = -1, .tenants = true };
	int64_t completion[3];
	struct jct_result result = { .completion_ms = completion };
	struct error error = { 0 };
	(void)state;
	assert_true(jct_run(&philly, &world, jct_policy("ours"), &result, NULL, NULL, &error));
	assert_int_equal(completion[2], 20 * HOUR);
	assert_int_equal(result.usage.owners, 2);
	usage_free(&result.usage);
	world.tenants = false;
	assert_true(jct_run(&philly, &world, jct_policy("skip"), &result, NULL, NULL, &error));
	assert_true(completion[2] > 20 * HOUR);
	usage_free(&result.usage);
}

static bool jct_read_text(struct philly *philly, const char *text, struct error *error)
{
	struct csv csv;
	bool fine = csv_begin(&csv, "t", text, strlen(text), error) &&
	            philly_read_rows(philly, &csv, &philly_usual, error);
	csv_free(&csv);
	return fine;
}

#define COLUMNS "timestamp,duration,num_gpus,gpu_time,cluster\n"

static void rows_of_the_usual_clusters_and_months_are_read(void **state)
{
	struct philly philly = { 0 };
	struct error error = { 0 };
	(void)state;
	assert_true(jct_read_text(&philly,
	                          COLUMNS "2017-10-09 07:01:55,66.5,2,133,11cb48\n"
	                                  "2017-09-30 07:01:55,66.5,2,133,11cb48\n"
	                                  "2017-10-09 07:01:55,66.5,2,133,0000aa\n",
	                          &error));
	assert_int_equal(philly.count, 1);
	assert_int_equal(philly.jobs[0].submit_ms, INT64_C(1507532515000));
	assert_int_equal(philly.jobs[0].duration_ms, 66500);
	assert_int_equal(philly.jobs[0].gpus, 2);
	assert_int_equal(philly.cluster_count, 1);
	assert_string_equal(philly.clusters[philly.jobs[0].cluster], "11cb48");
	philly_free(&philly);
}

static void rows_that_make_no_sense_are_refused_by_line(void **state)
{
	static const char *const rows[][2] = {
		{ "2017-10-09 7:01,66.0,1,66,11cb48\n", "t:2: timestamp is '2017-10-09 7:01'" },
		{ "2017-10-09 07:01:55,-1,1,66,11cb48\n", "t:2: duration is '-1'" },
		{ "2017-10-09 07:01:55,1e9,1,66,11cb48\n", "t:2: duration is '1e9'" },
		{ "2017-10-09 07:01:55,66.0,0,66,11cb48\n", "t:2: num_gpus is" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct philly philly = { 0 };
		struct error error = { 0 };
		char text[256];
		strcpy(text, COLUMNS);
		strcat(text, rows[i][0]);
		assert_false(jct_read_text(&philly, text, &error));
		if (strncmp(error.text, rows[i][1], strlen(rows[i][1])) != 0)
			fail_msg("%s", error.text);
		philly_free(&philly);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(jobs_that_fit_take_what_they_run_whatever_the_policy),
		cmocka_unit_test(starts_that_are_promised_are_counted),
		cmocka_unit_test(policies_differ_in_who_passes_whom),
		cmocka_unit_test(who_is_predicted_to_be_short_goes_before_who_came_first),
		cmocka_unit_test(the_nodes_follow_from_the_load),
		cmocka_unit_test(an_interruption_costs_what_was_said),
		cmocka_unit_test(what_suspending_costs_is_the_time_that_moving_its_memory_takes),
		cmocka_unit_test(what_waits_for_its_gpus_for_too_long_starts_again),
		cmocka_unit_test(more_gpus_than_a_node_has_are_a_gang),
		cmocka_unit_test(a_job_that_never_fits_is_said),
		cmocka_unit_test(virtual_clusters_can_be_tenants_with_shares_of_their_own),
		cmocka_unit_test(rows_of_the_usual_clusters_and_months_are_read),
		cmocka_unit_test(rows_that_make_no_sense_are_refused_by_line),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
