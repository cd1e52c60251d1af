/* big_bench.c - 100,000 GPUs and a million waiting jobs */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/bench/benches.h"
#include "core/bench/fixture.h"
#include "core/state.h"

enum {
	NODES = 12500,
	GPUS = 8,  /* of a node */
	RACK = 16, /* nodes in one */
	JOBS = 1000000,
	DEPARTMENTS = 5,
	TEAMS = 50,
	CHANGES = 100,
	ARRIVALS = 50000, /* between passes, where these have a budget */
};
#define SUBMITTED_WITHIN_MS (24 * HOUR_MS)

static const struct {
	int weight;
	struct node_kind node;
} node_kinds[] = {
	{ 60, { GPUS, "H100", 81559, 192000, 2048 * GIB } },
	{ 25, { GPUS, "A100", 81920, 128000, 1024 * GIB } },
	{ 15, { GPUS, "L40S", 46068, 128000, 1024 * GIB } },
};

/* What jobs ask for. Gangs are of several tasks and should be in one rack. */
static const struct job_kind {
	int weight;
	enum gpu_kind gpu_kind;
	int gpus, fraction;
	int64_t memory_mib, cores, host_gib;
	int tasks;
	const char *models, *name;
} job_kinds[] = {
	{ 120, GPU_WHOLE, 1, 0, 0, 8, 64, 1, "", "train-small" },
	{ 80, GPU_WHOLE, 1, 0, 0, 16, 128, 1, "", "train-wide" },
	{ 60, GPU_WHOLE, 1, 0, 0, 4, 32, 1, "", "batch" },
	{ 50, GPU_WHOLE, 1, 0, 0, 12, 96, 1, "H100", "train-h100" },
	{ 30, GPU_WHOLE, 1, 0, 0, 8, 64, 1, "H100|A100", "finetune" },
	{ 40, GPU_WHOLE, 1, 0, 0, 8, 64, 1, "L40S", "render" },
	{ 30, GPU_WHOLE, 1, 0, 0, 16, 256, 1, "A100", "dataset" },
	{ 20, GPU_WHOLE, 1, 0, 60000, 8, 64, 1, "", "large-memory" },
	{ 25, GPU_WHOLE, 1, 0, 0, 2, 16, 1, "", "notebook" },
	{ 15, GPU_WHOLE, 1, 0, 0, 24, 192, 1, "", "preprocess" },
	{ 50, GPU_WHOLE, 2, 0, 0, 16, 128, 1, "", "train-pair" },
	{ 30, GPU_WHOLE, 2, 0, 0, 32, 256, 1, "H100", "train-pair-h100" },
	{ 20, GPU_WHOLE, 2, 0, 0, 16, 128, 1, "A100", "train-pair-a100" },
	{ 15, GPU_WHOLE, 2, 0, 0, 8, 64, 1, "", "compare" },
	{ 40, GPU_WHOLE, 4, 0, 0, 32, 256, 1, "", "train-half-node" },
	{ 25, GPU_WHOLE, 4, 0, 0, 48, 512, 1, "H100", "train-half-h100" },
	{ 15, GPU_WHOLE, 4, 0, 0, 64, 256, 1, "A100", "train-half-a100" },
	{ 10, GPU_WHOLE, 4, 0, 0, 16, 128, 1, "", "sweep-4" },
	{ 40, GPU_WHOLE, 8, 0, 0, 64, 512, 1, "", "train-node" },
	{ 30, GPU_WHOLE, 8, 0, 0, 96, 1024, 1, "H100", "train-node-h100" },
	{ 15, GPU_WHOLE, 8, 0, 0, 96, 768, 1, "A100", "train-node-a100" },
	{ 5, GPU_WHOLE, 8, 0, 0, 128, 1024, 1, "", "train-node-full" },
	{ 12, GPU_WHOLE, 8, 0, 0, 64, 512, 2, "", "pretrain-2" },
	{ 10, GPU_WHOLE, 8, 0, 0, 96, 1024, 2, "H100", "pretrain-2-h100" },
	{ 8, GPU_WHOLE, 8, 0, 0, 64, 512, 4, "", "pretrain-4" },
	{ 6, GPU_WHOLE, 8, 0, 0, 96, 1024, 4, "H100", "pretrain-4-h100" },
	{ 4, GPU_WHOLE, 8, 0, 0, 96, 1024, 8, "H100", "pretrain-8-h100" },
	{ 2, GPU_WHOLE, 8, 0, 0, 64, 512, 8, "A100", "pretrain-8-a100" },
	{ 1, GPU_WHOLE, 8, 0, 0, 96, 1024, 16, "H100", "pretrain-16-h100" },
	{ 8, GPU_WHOLE, 1, 0, 0, 8, 64, 8, "", "sweep-8" },
	{ 6, GPU_WHOLE, 4, 0, 0, 32, 256, 2, "", "pipeline" },
	{ 40, GPU_FRACTION, 1, 500, 0, 4, 32, 1, "", "develop" },
	{ 30, GPU_FRACTION, 1, 250, 0, 2, 16, 1, "", "explore" },
	{ 20, GPU_FRACTION, 1, 125, 0, 1, 8, 1, "", "lesson" },
	{ 10, GPU_FRACTION, 2, 500, 0, 8, 64, 1, "", "pair-of-halves" },
	{ 25, GPU_MEMORY, 1, 0, 8000, 2, 16, 1, "", "embed" },
	{ 20, GPU_MEMORY, 1, 0, 16000, 4, 32, 1, "", "score" },
	{ 15, GPU_MEMORY, 1, 0, 24000, 4, 32, 1, "", "infer" },
	{ 10, GPU_MEMORY, 1, 0, 40000, 8, 64, 1, "", "infer-large" },
	{ 15, GPU_NONE, 0, 0, 0, 8, 32, 1, "", "prepare" },
	{ 5, GPU_NONE, 0, 0, 0, 16, 128, 1, "", "collect" },
};
#define JOB_KIND_COUNT (sizeof(job_kinds) / sizeof(job_kinds[0]))

static const struct {
	int weight;
	int64_t value;
} priorities[] = { { 60, 500 }, { 15, 400 }, { 15, 600 }, { 5, 200 }, { 5, 800 } },
  runtimes_minutes[] = { { 10, 0 },   { 15, 10 },   { 25, 60 }, { 20, 240 },
	                 { 15, 720 }, { 10, 1440 }, { 5, 4320 } };

struct bench {
	struct fixture world;
	int64_t teams[TEAMS];
	int nodes, jobs;
};

/* The place of one of `count` things of `size` bytes that begin with a weight. */
static size_t draw(uint64_t *random, const void *things, size_t count, size_t size)
{
	int sum = 0;
	size_t at = 0;
	for (size_t i = 0; i < count; i++)
		sum += *(const int *)(const void *)((const char *)things + i * size);
	int left = (int)random_below(random, (uint64_t)sum);
	while ((left -= *(const int *)(const void *)((const char *)things + at * size)) >= 0)
		at++;
	return at;
}
#define DRAW(random, things)                                                                       \
	(&(things)[draw((random), (things), sizeof(things) / sizeof((things)[0]),                  \
	                sizeof((things)[0]))])

static void big_add_nodes(struct bench *bench)
{
	for (int i = 0; i < bench->nodes; i++) {
		char name[32], rack[32];
		/* Racks are of one kind. */
		uint64_t random = (uint64_t)(i / RACK);
		snprintf(name, sizeof(name), "node-%05d", i);
		snprintf(rack, sizeof(rack), "rack-%04d", i / RACK);
		fixture_node(&bench->world, name, rack, &DRAW(&random, node_kinds)->node);
	}
}

/* Quotas promise four fifths of the cluster; weights divide the rest. */
static void add_tenants(struct bench *bench)
{
	int64_t total = (int64_t)bench->nodes * GPUS * WHOLE_GPU;
	int64_t departments[DEPARTMENTS];
	char name[32];
	for (int i = 0; i < DEPARTMENTS; i++) {
		snprintf(name, sizeof(name), "department-%d", i);
		departments[i] = fixture_tenant(&bench->world, name, 0, total / DEPARTMENTS * 4 / 5,
		                                1000 * (1 + i % 3));
	}
	for (int i = 0; i < TEAMS; i++) {
		snprintf(name, sizeof(name), "team-%02d", i);
		bench->teams[i] = fixture_tenant(&bench->world, name, departments[i % DEPARTMENTS],
		                                 i % 4 == 0 ? QUOTA_UNSET : total / TEAMS * 4 / 5,
		                                 1000 * (1 + i % 5));
	}
}

static void big_submit(struct bench *bench, int number)
{
	uint64_t *random = &bench->world.random;
	const struct job_kind *kind = DRAW(random, job_kinds);
	/* Some teams submit much more than others. */
	size_t team = random_below(random, 1 + random_below(random, TEAMS));
	char name[64];
	snprintf(name, sizeof(name), "%s-%d", kind->name, number);
	struct command command = fixture_job(bench->teams[team], name);
	struct job_record *job = &command.submit.job;
	job->gpu_kind = (int32_t)kind->gpu_kind;
	job->gpu_count = kind->gpus;
	job->fraction = kind->fraction;
	job->memory_mib = kind->memory_mib;
	job->cpu_milli = kind->cores * 1000;
	job->host_bytes = kind->host_gib * GIB;
	job->tasks = job->min_available = kind->tasks;
	job->gpu_models = kind->models;
	job->closeness = kind->tasks > 1 ? CLOSE_RACK : CLOSE_ANY;
	job->priority = DRAW(random, priorities)->value;
	job->max_runtime_ms = DRAW(random, runtimes_minutes)->value * 60 * SECOND_MS;
	fixture_send(&bench->world, &command);
}

static double submit_all(struct bench *bench)
{
	int64_t begin_ms = bench->world.now_ms;
	double begun = clock_seconds();
	for (int i = 0; i < bench->jobs; i++) {
		bench->world.now_ms = begin_ms + SUBMITTED_WITHIN_MS * i / bench->jobs;
		big_submit(bench, i);
	}
	return clock_seconds() - begun;
}

static double longer(double a, double b)
{
	return a > b ? a : b;
}

/* One job ends; the time of the pass that follows, in ms. */
static double big_change(struct bench *bench)
{
	struct fixture *world = &bench->world;
	world->now_ms += SECOND_MS;
	fixture_finish(world, random_below(&world->random, world->running_count));
	double begun = clock_seconds();
	fixture_pass(world);
	double took = clock_seconds() - begun;
	fixture_confirm(world);
	return took * 1000;
}

/* Passes at the budget that the service gives one; the time of the longest. */
static double pass_budgeted(struct bench *bench)
{
	double longest = fixture_pass_within(&bench->world, PASS_UNITS_DEFAULT);
	fixture_confirm(&bench->world);
	return longest;
}

/* The longest pass of a service: while jobs arrive and, when a million wait, after jobs
 * end. */
static void measure_budgeted(struct bench *bench, struct report *report, enum size size)
{
	struct fixture *world = &bench->world;
	int64_t begin_ms = world->now_ms;
	double arriving = 0, ending = 0;
	for (int i = 0; i < bench->jobs; i++) {
		world->now_ms = begin_ms + SUBMITTED_WITHIN_MS * i / bench->jobs;
		big_submit(bench, i);
		if ((i + 1) % ARRIVALS == 0)
			arriving = longer(arriving, pass_budgeted(bench));
	}
	for (int i = 0; i < CHANGES; i++) {
		world->now_ms += SECOND_MS;
		fixture_finish(world, random_below(&world->random, world->running_count));
		ending = longer(ending, pass_budgeted(bench));
	}
	printf("big: with %lld units to a pass the longest takes %.1f ms, while jobs arrive %.1f\n",
	       (long long)PASS_UNITS_DEFAULT, ending * 1000, arriving * 1000);
	report_put(report, "big_arrival_pass_max_ms", size, arriving * 1000);
	report_put(report, "big_budgeted_pass_max_ms", size, ending * 1000);
}

static int by_value(const void *a, const void *b)
{
	const double *one = a, *other = b;
	return (*one > *other) - (*one < *other);
}

static void measure_changes(struct bench *bench, struct report *report, enum size size)
{
	double took[CHANGES];
	int64_t jobs = sched_meta(bench->world.sched)->last_decision_id;
	for (int i = 0; i < CHANGES; i++)
		took[i] = big_change(bench);
	qsort(took, CHANGES, sizeof(took[0]), by_value);
	report_put(report, "big_change_pass_ms", size, took[CHANGES / 2]);
	report_put(report, "big_change_pass_max_ms", size, took[CHANGES - 1]);
	printf("big: %d jobs end, %lld decisions follow\n", CHANGES,
	       (long long)(sched_meta(bench->world.sched)->last_decision_id - jobs));
}

static double first_pass(struct bench *bench)
{
	struct fixture *world = &bench->world;
	double begun = clock_seconds();
	fixture_pass(world);
	double took = clock_seconds() - begun;
	printf("big: the first pass starts %zu jobs on %.1f%% of %d GPUs, and stops %lld\n",
	       world->started_count, (double)world->share / bench->nodes / GPUS / 10,
	       bench->nodes * GPUS, (long long)world->stop_orders);
	fixture_confirm(world);
	return took;
}

static void big_begin(struct bench *bench, int times)
{
	*bench = (struct bench){ .nodes = times * NODES, .jobs = times * JOBS };
	fixture_begin(&bench->world);
	big_add_nodes(bench);
	add_tenants(bench);
}

void big_bench(struct report *report, enum size size)
{
	int times = size == SIZE_TWICE ? 2 : 1;
	struct bench bench;
	malloc_trim(0);
	double before_mib = memory_resident_mib();
	big_begin(&bench, times);
	report_put(report, "big_submit_per_s", size, bench.jobs / submit_all(&bench));
	printf("big: %d nodes of %d GPUs, %d jobs wait, in %zu shapes and %zu classes\n",
	       bench.nodes, GPUS, bench.jobs, bench.world.sched->shapes.count,
	       bench.world.sched->shapes.classes.count);
	report_put(report, "big_first_pass_s", size, first_pass(&bench));
	effects_free(&bench.world.effects); /* the caller's, not the core's */
	measure_changes(&bench, report, size);
	malloc_trim(0);
	report_put(report, "big_memory_mib", size, memory_resident_mib() - before_mib);
	fixture_end(&bench.world);
	if (size != SIZE_ONCE) /* passes with a budget take minutes there */
		return;
	big_begin(&bench, times);
	measure_budgeted(&bench, report, size);
	fixture_end(&bench.world);
}
