/* evict_bench.c - a full cluster of idle slots, and requests for models that have none */
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "core/bench/benches.h"
#include "core/bench/models_fixture.h"

enum {
	GPUS = 1000,
	MODELS = 4, /* to a GPU */
	ROUNDS = 20,
	ARRIVALS = 100, /* of a round */
	RUNS = 5,
};
/* From a quarter of a GPU to one and a half, which takes two. */
static const int64_t sizes_mib[] = { 20480, 61440, 40960, 30720, 71680, 122880, 20480, 51200 };
enum { SIZES_MIB = sizeof(sizes_mib) / sizeof(sizes_mib[0]) };

struct bench {
	struct models_fixture models;
	int64_t *requests; /* of a model that is asked for; 0: none */
	int64_t plans, evicted;
	double took;
};

/* Ends requests that are served, or never will be. */
static void end_requests(struct bench *bench)
{
	for (int i = 0; i < bench->models.model_count; i++) {
		if (bench->requests[i])
			models_done(&bench->models, bench->requests[i],
			            bench->models.loaded[i] ? REQUEST_SUCCEEDED : REQUEST_GONE);
		bench->requests[i] = 0;
	}
}

/* Everyone asks, and those that find no room go away. */
static void evict_fill(struct bench *bench, int gpus)
{
	models_begin(&bench->models, gpus, MODELS * gpus, sizes_mib, SIZES_MIB);
	bench->requests = memory_zero((size_t)bench->models.model_count, sizeof(int64_t));
	for (int i = 0; i < bench->models.model_count; i++)
		bench->requests[i] = models_request(&bench->models, i);
	models_answer(&bench->models);
	end_requests(bench);
}

/* Asks for models that have no slot, and measures the pass that makes room. */
static void run_round(struct bench *bench)
{
	struct models_fixture *models = &bench->models;
	models->world.now_ms += HOUR_MS;
	fixture_send(&models->world, &(struct command){ .kind = COMMAND_TIME });
	for (int asked = 0; asked < ARRIVALS;) {
		int place = (int)random_below(&models->world.random, (uint64_t)models->model_count);
		if (models->loaded[place] || bench->requests[place])
			continue;
		bench->requests[place] = models_request(models, place);
		asked++;
	}
	models->stopped = 0;
	double begun = clock_seconds();
	models_pass(models);
	bench->took += clock_seconds() - begun;
	bench->plans += ARRIVALS;
	bench->evicted += models->stopped;
	models_answer(models);
	end_requests(bench);
}

static double evict_run(int gpus, int64_t *evicted)
{
	struct bench bench = { 0 };
	evict_fill(&bench, gpus);
	for (int i = 0; i < ROUNDS; i++)
		run_round(&bench);
	if (bench.evicted < bench.plans / 2)
		panic("only %lld slots went for %lld requests", (long long)bench.evicted,
		      (long long)bench.plans);
	*evicted = bench.evicted;
	double rate = (double)bench.plans / bench.took;
	free(bench.requests);
	models_end(&bench.models);
	return rate;
}

void evict_bench(struct report *report, enum size size)
{
	int gpus = size == SIZE_TWICE ? 2 * GPUS : GPUS;
	int64_t evicted;
	double best = evict_run(gpus, &evicted);
	for (int i = 1; i < RUNS; i++) {
		double rate = evict_run(gpus, &evicted);
		best = rate > best ? rate : best;
	}
	printf("evictions: %d GPUs full of idle slots, %d requests, %lld slots go\n", gpus,
	       ROUNDS * ARRIVALS, (long long)evicted);
	report_put(report, "evict_plans_per_s", size, best);
}
