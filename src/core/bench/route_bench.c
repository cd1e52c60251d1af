/* route_bench.c - requests to warm models: finding a slot, and giving its place back */
#include <stdio.h>

#include "core/bench/benches.h"
#include "core/bench/models_fixture.h"

enum {
	GPUS = 1000,
	ROUTES = 2000000, /* in a run */
	FLYING = 4096,    /* requests in flight at any time */
	RUNS = 3,
	BURST = 1000, /* routes in a millisecond */
};
static const int64_t model_mib = 61440;

/* One model on each GPU. */
static void warm_up(struct models_fixture *fixture, int gpus)
{
	models_begin(fixture, gpus, gpus, &model_mib, 1);
	for (int i = 0; i < gpus; i++)
		models_request(fixture, i);
	models_answer(fixture);
	for (int i = 0; i < gpus; i++) {
		if (!fixture->loaded[i])
			panic("model %d is not loaded", i);
		models_done(fixture, i + 1, REQUEST_SUCCEEDED);
	}
}

static void route(struct models_fixture *fixture)
{
	int place = (int)random_below(&fixture->world.random, (uint64_t)fixture->model_count);
	models_request(fixture, place);
	const struct effects *effects = &fixture->world.effects;
	INVARIANT(effects->count > 0 && effects->at[0].kind == EFFECT_ROUTE &&
	          effects->at[0].route.outcome == ROUTE_GRANTED);
}

static double route_run(struct models_fixture *fixture)
{
	int64_t first = fixture->requests + 1;
	for (int i = 0; i < FLYING; i++)
		route(fixture);
	double begun = clock_seconds();
	for (int64_t i = 0; i < ROUTES; i++) {
		route(fixture);
		models_done(fixture, first + i, REQUEST_SUCCEEDED);
		fixture->world.now_ms += i % BURST == 0;
	}
	double took = clock_seconds() - begun;
	for (int64_t i = 0; i < FLYING; i++)
		models_done(fixture, first + ROUTES + i, REQUEST_SUCCEEDED);
	return took;
}

void route_bench(struct report *report, enum size size)
{
	int gpus = size == SIZE_TWICE ? 2 * GPUS : GPUS;
	struct models_fixture fixture;
	warm_up(&fixture, gpus);
	double best = route_run(&fixture);
	for (int i = 1; i < RUNS; i++) {
		double took = route_run(&fixture);
		best = took < best ? took : best;
	}
	printf("routes: %d models on %d GPUs, %d requests in flight\n", gpus, gpus, FLYING);
	report_put(report, "warm_routes_per_s", size, ROUTES / best);
	models_end(&fixture);
}
