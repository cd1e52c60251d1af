/* reclaim_bench.c - a full cluster of which most is reclaimed by others in one pass */
#include <stdio.h>

#include "core/bench/benches.h"
#include "core/bench/fixture.h"

enum {
	NODES = 500,
	GPUS = 8, /* of a node */
	HOLDERS = 2,
	TENANTS = 8,
	BATCHES = 8, /* of starts, an hour apart */
	RUNS = 3,
};

static const struct node_kind node_kind = {
	.gpus = GPUS,
	.model = "H100",
	.memory_mib = 81559,
	.cpu_milli = 128000,
	.host_bytes = 1024 * GIB,
};

struct bench {
	struct fixture world;
	int64_t tenants[TENANTS];
	int nodes, jobs; /* jobs: that run, and as many that wait */
};

static void reclaim_begin(struct bench *bench, int nodes)
{
	*bench = (struct bench){ .nodes = nodes, .jobs = nodes * GPUS };
	fixture_begin(&bench->world);
	for (int i = 0; i < nodes; i++) {
		char name[32], rack[32];
		snprintf(name, sizeof(name), "node-%04d", i);
		snprintf(rack, sizeof(rack), "rack-%03d", i / 16);
		fixture_node(&bench->world, name, rack, &node_kind);
	}
	for (int i = 0; i < TENANTS; i++) {
		char name[32];
		snprintf(name, sizeof(name), "team-%d", i);
		bench->tenants[i] = fixture_tenant(
		    &bench->world, name, 0, (int64_t)bench->jobs * WHOLE_GPU / TENANTS, 1000);
	}
}

static void reclaim_submit(struct bench *bench, int64_t tenant_id, int gpus)
{
	struct command command = fixture_job(tenant_id, "train");
	struct job_record *job = &command.submit.job;
	job->gpu_kind = GPU_WHOLE;
	job->gpu_count = gpus;
	job->cpu_milli = INT64_C(8000) * gpus;
	job->host_bytes = 64 * GIB * gpus;
	job->max_runtime_ms = HOUR_MS * (12 + (int64_t)random_below(&bench->world.random, 60));
	fixture_send(&bench->world, &command);
}

/* The holders take all GPUs while nobody else wants them. */
static void reclaim_fill(struct bench *bench)
{
	struct fixture *world = &bench->world;
	for (int i = 0; i < bench->jobs; i++) {
		reclaim_submit(bench, bench->tenants[i % HOLDERS], 1);
		if ((i + 1) % (bench->jobs / BATCHES) == 0) {
			fixture_pass(world);
			fixture_confirm(world);
			world->now_ms += HOUR_MS;
		}
	}
	if (world->running_count != (size_t)bench->jobs)
		panic("%zu jobs run, there should be %d", world->running_count, bench->jobs);
}

/* Then the others come, with jobs of 1, 2, 4 and 8 GPUs. */
static void arrive(struct bench *bench)
{
	for (int i = 0; i < bench->jobs; i++) {
		uint64_t of = random_below(&bench->world.random, 100);
		int gpus = of < 70 ? 1 : of < 85 ? 2 : of < 95 ? 4 : 8;
		reclaim_submit(bench, bench->tenants[HOLDERS + i % (TENANTS - HOLDERS)], gpus);
	}
}

static double reclaim_run(int nodes, int64_t *evictions)
{
	struct bench bench;
	reclaim_begin(&bench, nodes);
	reclaim_fill(&bench);
	arrive(&bench);
	double begun = clock_seconds();
	fixture_pass(&bench.world);
	double took = clock_seconds() - begun;
	*evictions = bench.world.stop_orders;
	fixture_end(&bench.world);
	return took;
}

void reclaim_bench(struct report *report, enum size size)
{
	int nodes = size == SIZE_TWICE ? 2 * NODES : NODES;
	int64_t evictions;
	double best = reclaim_run(nodes, &evictions);
	for (int i = 1; i < RUNS; i++) {
		double took = reclaim_run(nodes, &evictions);
		best = took < best ? took : best;
	}
	printf("reclaim: %d nodes, %d jobs run and %d wait, %lld must go\n", nodes, nodes * GPUS,
	       nodes * GPUS, (long long)evictions);
	report_put(report, "reclaim_pass_ms", size, best * 1000);
	report_put(report, "reclaim_evictions", size, (double)evictions);
}
