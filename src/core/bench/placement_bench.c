/* placement_bench.c - a busy cluster in which jobs arrive and end all the time */
#include <stdio.h>

#include "core/bench/benches.h"
#include "core/bench/openb.h"

enum {
	BUSY = 870, /* thousandths of the cluster's GPUs that are in use */
	BATCH = 64, /* submissions between two passes, as a server under load has them */
	BATCHED_PLACEMENTS = 32000,
	SINGLE_PLACEMENTS = 8000,
	RUNS = 3,
};
#define MIB (INT64_C(1) << 20)

struct bench {
	struct fixture world;
	struct openb openb;
	int64_t tenant; /* the trace knows of one only */
	int64_t busy;   /* thousandths of GPUs */
	double begun;   /* by the clock: time passes as it does while this runs */
	int64_t submitted;
};

static void placement_add_nodes(struct bench *bench, int copies)
{
	int64_t gpus = 0;
	for (int copy = 0; copy < copies; copy++) {
		for (size_t i = 0; i < bench->openb.node_count; i++) {
			char name[48];
			snprintf(name, sizeof(name), "openb-node-%d%04zu", copy, i);
			fixture_node(&bench->world, name, "", &bench->openb.nodes[i]);
			gpus += bench->openb.nodes[i].gpus;
		}
	}
	bench->busy = gpus * BUSY;
}

static void placement_begin(struct bench *bench, enum policy policy, int copies, const char *trace)
{
	*bench = (struct bench){ .begun = clock_seconds() };
	fixture_begin(&bench->world);
	fixture_policy(&bench->world, policy);
	openb_read(&bench->openb, trace);
	placement_add_nodes(bench, copies);
	bench->tenant = fixture_tenant(&bench->world, "openb", 0, QUOTA_UNSET, 1000);
}

static void placement_submit(struct bench *bench)
{
	uint64_t *random = &bench->world.random;
	const struct openb_task *task =
	    &bench->openb.tasks[random_below(random, bench->openb.task_count)];
	char name[32];
	snprintf(name, sizeof(name), "task-%lld", (long long)++bench->submitted);
	struct command command = fixture_job(bench->tenant, name);
	struct job_record *job = &command.submit.job;
	bool whole = task->gpus > 1 || task->milli == WHOLE_GPU;
	job->gpu_kind = task->gpus == 0 ? GPU_NONE : whole ? GPU_WHOLE : GPU_FRACTION;
	job->gpu_count = task->gpus;
	job->fraction = job->gpu_kind == GPU_FRACTION ? task->milli : 0;
	job->cpu_milli = task->cpu_milli;
	job->host_bytes = task->host_mib * MIB;
	fixture_send(&bench->world, &command);
}

/* Jobs arrive, those that fit start, and others end until the cluster is no
 * fuller than it should be. Returns how many started. */
static int64_t placement_step(struct bench *bench, int jobs)
{
	struct fixture *world = &bench->world;
	world->now_ms = BEGIN_MS + (int64_t)((clock_seconds() - bench->begun) * 1000);
	for (int i = 0; i < jobs; i++)
		placement_submit(bench);
	fixture_pass(world);
	int64_t started = (int64_t)world->started_count;
	fixture_confirm(world);
	while (world->share > bench->busy)
		fixture_finish(world, random_below(&world->random, world->running_count));
	return started;
}

static void placement_fill(struct bench *bench)
{
	while (bench->world.share < bench->busy - WHOLE_GPU)
		placement_step(bench, BATCH);
}

/* Placements per second. */
static double placement_measure(struct bench *bench, int batch, int64_t placements)
{
	int64_t started = 0;
	double begun = clock_seconds();
	while (started < placements)
		started += placement_step(bench, batch);
	return (double)started / (clock_seconds() - begun);
}

static double larger(double a, double b)
{
	return a > b ? a : b;
}

static void placement_end(struct bench *bench)
{
	openb_free(&bench->openb);
	fixture_end(&bench->world);
}

/* Two clusters, one with the default policy and one with fragment, take turns: the speed
 * of a machine changes from one minute to the next. The best of some runs counts. */
void placement_bench(struct report *report, enum size size, const char *trace)
{
	int copies = size == SIZE_TWICE ? 2 : 1;
	struct bench bench, other;
	double batched = 0, single = 0, fragment = 0;
	placement_begin(&bench, POLICY_DEFAULT, copies, trace);
	placement_begin(&other, POLICY_FRAGMENT, copies, trace);
	placement_fill(&bench);
	placement_fill(&other);
	printf("placements: %zu nodes like openb's%s, %lld GPUs, %zu jobs run\n",
	       bench.openb.node_count * (size_t)copies, bench.openb.from_trace ? "" : " (made up)",
	       (long long)(bench.busy / BUSY), bench.world.running_count);
	for (int i = 0; i < RUNS; i++) {
		batched = larger(batched, placement_measure(&bench, BATCH, BATCHED_PLACEMENTS));
		fragment = larger(fragment, placement_measure(&other, BATCH, BATCHED_PLACEMENTS));
		single = larger(single, placement_measure(&bench, 1, SINGLE_PLACEMENTS));
	}
	report_put(report, "placements_per_s", size, batched);
	report_put(report, "placements_single_per_s", size, single);
	report_put(report, "placements_fragment_per_s", size, fragment);
	report_put(report, "placements_of_fragment", size, batched / fragment);
	printf("placements: %lld submitted, %.1f%% of the GPUs in use, %zu jobs run\n",
	       (long long)bench.submitted,
	       (double)bench.world.share * BUSY / (double)bench.busy / 10,
	       bench.world.running_count);
	placement_end(&bench);
	placement_end(&other);
}
