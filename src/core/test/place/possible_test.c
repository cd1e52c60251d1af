/* possible_test.c - what is taken in can be placed, and what is refused cannot */
#include <stdio.h>

#include "core/test/harness.h"
#include "core/test/property_random.h"

#define CASES 3000
#define GPUS_MOST 8

/* GPUs of other sizes and in other NVLink groups on each node. */
static void add_some_node(struct harness *h, uint64_t *random, int number)
{
	struct device devices[GPUS_MOST];
	char name[16], uuids[GPUS_MOST][32];
	int count = (int)between(random, 1, GPUS_MOST);

	snprintf(name, sizeof(name), "n%d", number);
	for (int i = 0; i < count; i++) {
		snprintf(uuids[i], sizeof(uuids[i]), "n%d-gpu%d", number, i);
		devices[i] = device_of(uuids[i], i, 10000 * between(random, 1, 4));
		devices[i].nvlink_group = between(random, 0, 3);
	}
	struct node_report_command node = report_of(name, devices, count);
	node.cpu_milli = 1000 * between(random, 1, 8);
	node.rack = chance(random, 50) ? "r1" : "r2";
	must(h, report(h, node));
}

static struct job_record some_job(uint64_t *random, int64_t tenant, int64_t *uneven)
{
	static const enum gpu_kind kinds[] = { GPU_WHOLE, GPU_MEMORY, GPU_FRACTION, GPU_UNEVEN };
	struct job_record job =
	    job_of(tenant, ONE_OF(random, kinds), (int32_t)between(random, 1, 4));

	for (int i = 0; i < job.gpu_count; i++)
		uneven[i] = 1000 * between(random, 1, 30);
	if (job.gpu_kind == GPU_UNEVEN)
		job.uneven = (struct rows){ uneven, job.gpu_count };
	if (job.gpu_kind == GPU_MEMORY)
		job.memory_mib = uneven[0];
	if (job.gpu_kind == GPU_FRACTION)
		job.fraction = (int32_t)(100 * between(random, 1, 10));
	job.tasks = between(random, 1, 8);
	job.min_available = chance(random, 70) ? job.tasks : between(random, 1, job.tasks);
	job.cpu_milli = 500 * between(random, 0, 4);
	job.closeness = (int32_t)between(random, CLOSE_ANY, CLOSE_RACK);
	job.closeness_required = chance(random, 50);
	return job;
}

/* On an empty cluster: refused where it is not placed, and only there. */
static void try_case(uint64_t seed)
{
	uint64_t random = seed * 7919;
	struct harness *h = harness_new();
	struct command command = { .kind = COMMAND_SUBMIT };
	int64_t uneven[4], lab = put_tenant(h, tenant_named("lab"));
	int64_t nodes = between(&random, 1, 3);

	for (int i = 0; i < nodes; i++)
		add_some_node(h, &random, i);
	command.submit.job = some_job(&random, lab, uneven);
	command.submit.check_possible = true;
	bool possible = harness_apply(h, command);
	char reason[400] = "it was taken in";
	if (!possible) {
		snprintf(reason, sizeof(reason), "%s", h->error.text);
		submit(h, command.submit.job);
	}
	if ((pass(h) > 0) != possible)
		fail_msg("case %llu: it was %splaced, and: %s", (unsigned long long)seed,
		         possible ? "not " : "", reason);
	harness_free(h);
}

static void what_is_taken_in_is_placed_on_an_empty_cluster_and_nothing_else(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= CASES; seed++)
		try_case(seed);
}

static void add_linked_node(struct harness *h)
{
	static const int64_t groups[] = { 1, 1, 1, 1, 2, 2, 0, 0 };
	struct device devices[GPUS_MOST];
	char uuids[GPUS_MOST][32];

	for (int i = 0; i < GPUS_MOST; i++) {
		snprintf(uuids[i], sizeof(uuids[i]), "n1-gpu%d", i);
		devices[i] = device_of(uuids[i], i, 80000);
		devices[i].nvlink_group = groups[i];
	}
	must(h, report(h, report_of("n1", devices, GPUS_MOST)));
}

static bool try_checked(struct harness *h, struct job_record job)
{
	struct command command = { .kind = COMMAND_SUBMIT };

	command.submit.job = job;
	command.submit.check_possible = true;
	return harness_apply(h, command);
}

static void a_gang_that_requires_nvlink_is_told_what_the_best_group_takes(void **state)
{
	struct harness *h = harness_new();
	struct job_record job = whole(put_tenant(h, tenant_named("lab")), 2);

	(void)state;
	add_linked_node(h);
	job.closeness = CLOSE_NVLINK;
	job.closeness_required = true;
	job.tasks = job.min_available = 3;
	must_not(h, try_checked(h, job), ERROR_IMPOSSIBLE,
	         "needs 3 tasks together, the best NVLink group takes 2 if nothing else is on it");
	job.tasks = job.min_available = 2;
	must(h, try_checked(h, job));
	job = whole(job.tenant_id, 5);
	job.closeness = CLOSE_NVLINK;
	job.closeness_required = true;
	must_not(h, try_checked(h, job), ERROR_IMPOSSIBLE, "in one NVLink group");
	harness_free(h);
}

static void uneven_parts_may_go_to_gpus_of_other_sizes(void **state)
{
	static const int64_t parts[] = { 60000, 10000 };
	struct harness *h = harness_new();
	struct job_record job = job_of(put_tenant(h, tenant_named("lab")), GPU_UNEVEN, 2);
	struct device devices[] = { device_of("a", 0, 80000), device_of("b", 1, 16000) };

	(void)state;
	must(h, report(h, report_of("n1", devices, 2)));
	job.uneven = (struct rows){ parts, 2 };
	must(h, try_checked(h, job));
	assert_int_equal(pass(h), 1);
	harness_free(h);
}

/* The largest parts of two tasks on one GPU each, with the smallest of the other. */
static void tasks_of_uneven_parts_share_gpus_crosswise(void **state)
{
	static const int64_t parts[] = { 60000, 10000 };
	struct harness *h = harness_new();
	struct job_record job = job_of(put_tenant(h, tenant_named("lab")), GPU_UNEVEN, 2);

	(void)state;
	add_node(h, "n1", 2, 80000);
	job.uneven = (struct rows){ parts, 2 };
	job.tasks = job.min_available = 2;
	job.closeness = CLOSE_NODE;
	job.closeness_required = true;
	must(h, try_checked(h, job));
	assert_int_equal(pass(h), 2);
	job.tasks = job.min_available = 3;
	must_not(h, try_checked(h, job), ERROR_IMPOSSIBLE,
	         "needs 3 tasks together, the best node takes 2 if nothing else is on it");
	harness_free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_taken_in_is_placed_on_an_empty_cluster_and_nothing_else),
		cmocka_unit_test(a_gang_that_requires_nvlink_is_told_what_the_best_group_takes),
		cmocka_unit_test(uneven_parts_may_go_to_gpus_of_other_sizes),
		cmocka_unit_test(tasks_of_uneven_parts_share_gpus_crosswise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
