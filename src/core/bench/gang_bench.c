/* gang_bench.c - a gang of as many tasks as a job can have, placed in one pass */
#include <stdio.h>
#include <stdlib.h>

#include "core/bench/benches.h"
#include "core/bench/fixture.h"

enum {
	NODES = 1000,
	GPUS = 8,
	RACK = 16,
	SMALL_JOBS = 2400, /* of parts of a GPU, so that nodes differ in what they have left */
	RUNS = 11,
};

static const struct node_kind kind = { GPUS, "H100", 81559, 192000, 2048 * GIB };

static void submit_small(struct fixture *world, int64_t tenant_id)
{
	struct command command = fixture_job(tenant_id, "small");
	command.submit.job.gpu_kind = GPU_FRACTION;
	command.submit.job.gpu_count = 1;
	command.submit.job.fraction = 100 * (int32_t)(1 + random_below(&world->random, 9));
	command.submit.job.cpu_milli = 1000;
	fixture_send(world, &command);
}

static void submit_gang(struct fixture *world, int64_t tenant_id)
{
	struct command command = fixture_job(tenant_id, "gang");
	command.submit.job.gpu_kind = GPU_WHOLE;
	command.submit.job.gpu_count = 1;
	command.submit.job.cpu_milli = 4000;
	command.submit.job.tasks = command.submit.job.min_available = TASKS_MAX;
	fixture_send(world, &command);
}

/* Places the gang; the time of the pass, in ms. Then it ends. */
static double gang_place(struct fixture *world, int64_t tenant_id)
{
	world->now_ms += SECOND_MS;
	submit_gang(world, tenant_id);
	double begun = clock_seconds();
	fixture_pass(world);
	double took = clock_seconds() - begun;
	INVARIANT(world->started_count == 1);
	fixture_confirm(world);
	INVARIANT(world->running[world->running_count - 1].tasks == TASKS_MAX);
	fixture_finish(world, world->running_count - 1);
	return took * 1000;
}

static int by_value(const void *a, const void *b)
{
	const double *one = a, *other = b;
	return (*one > *other) - (*one < *other);
}

void gang_bench(struct report *report, enum size size)
{
	struct fixture world;
	int times = size == SIZE_TWICE ? 2 : 1;
	double took[RUNS];
	fixture_begin(&world);
	for (int i = 0; i < times * NODES; i++) {
		char name[32], rack[32];
		snprintf(name, sizeof(name), "node-%05d", i);
		snprintf(rack, sizeof(rack), "rack-%04d", i / RACK);
		fixture_node(&world, name, rack, &kind);
	}
	int64_t tenant_id = fixture_tenant(&world, "team", 0, QUOTA_UNSET, 1000);
	for (int i = 0; i < times * SMALL_JOBS; i++)
		submit_small(&world, tenant_id);
	fixture_pass(&world);
	fixture_confirm(&world);
	printf("gang: %d tasks on %d nodes of %d GPUs, %zu other jobs run\n", TASKS_MAX,
	       times * NODES, GPUS, world.running_count);
	for (int i = 0; i < RUNS; i++)
		took[i] = gang_place(&world, tenant_id);
	qsort(took, RUNS, sizeof(took[0]), by_value);
	report_put(report, "gang_pass_ms", size, took[RUNS / 2]);
	fixture_end(&world);
}
