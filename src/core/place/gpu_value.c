/* gpu_value.c - what the rest of a GPU is worth in the end, and the CPU that goes with it */
#include "core/place/gpu_value.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "core/place/workload_mix.h"

#define ROUNDS 16
#define GPUS 2048   /* that are filled in thought, or fewer: */
#define ASKED 8192  /* about the most parts requested in a round */
#define OVERLOAD 13 /* tenths of what there is that is asked for */
#define DOUBT 1     /* times that a rest was used as guessed, against those it was seen */

/* One part on one GPU, as kinds ask for it. */
struct demand {
	int32_t milli, cpu_milli;
	int64_t weight; /* and that of all before it */
};

/* A GPU that had so much left, and so much CPU given, before it got a part. */
struct moment {
	int32_t gpu, left;
	int64_t cpu_milli;
};

/* What became of rests of one size. */
struct outcome {
	int64_t times, used_milli, cpu_milli;
	int128 cpu_squares;
};

/* The GPUs of a round. Those with the same left are a list, and sizes that a
 * list was ever made for are noted. */
struct rehearsal {
	struct demand *demands;
	size_t demand_count;
	int gpu_count;
	int32_t left[GPUS], next[GPUS];
	int64_t cpu_milli[GPUS];
	int32_t first[WHOLE_GPU + 1]; /* -1: none */
	int32_t sizes[WHOLE_GPU + 1];
	bool noted[WHOLE_GPU + 1];
	int size_count;
	struct moment *moments;
	size_t moment_count, moment_capacity;
	struct outcome outcomes[WHOLE_GPU + 1];
};

static void list_demands(struct rehearsal *rehearsal, const struct workload_kind *kinds,
                         size_t count)
{
	int64_t sum = 0;

	rehearsal->demands = memory_alloc(count * sizeof(*rehearsal->demands));
	for (size_t i = 0; i < count; i++) {
		const struct workload_kind *kind = &kinds[i];
		if (kind->gpu_count == 0)
			continue;
		sum += kind->times * kind->gpu_count;
		rehearsal->demands[rehearsal->demand_count++] = (struct demand){
			.milli = (int32_t)kind->gpu_milli,
			.cpu_milli =
			    (int32_t)min64(kind->cpu_milli / kind->gpu_count, GPU_VALUE_CPU_MAX),
			.weight = sum,
		};
	}
}

static int64_t weight_of(const struct rehearsal *rehearsal, size_t demand)
{
	return rehearsal->demands[demand].weight -
	       (demand > 0 ? rehearsal->demands[demand - 1].weight : 0);
}

/* Before anything was tried: a rest is used as often as a part that arrives fits. */
static void guess(struct gpu_value *gpu_value, struct rehearsal *rehearsal)
{
	int64_t fits[WHOLE_GPU + 1] = { 0 }, all = 0;
	int128 milli = 0, cpu = 0;

	for (size_t i = 0; i < rehearsal->demand_count; i++) {
		const struct demand *demand = &rehearsal->demands[i];
		fits[demand->milli] += weight_of(rehearsal, i);
		milli += (int128)weight_of(rehearsal, i) * demand->milli;
		cpu += (int128)weight_of(rehearsal, i) * demand->cpu_milli;
	}
	all = rehearsal->demands[rehearsal->demand_count - 1].weight;
	for (int r = 0; r <= WHOLE_GPU; r++) {
		fits[r] += r > 0 ? fits[r - 1] : 0;
		int64_t used_milli = (int64_t)((int128)r * fits[r] / all);
		int64_t cpu_milli =
		    min64((int64_t)(cpu * used_milli / milli), INT64_C(1) * GPU_VALUE_CPU_MAX);
		gpu_value->value[r] = (int32_t)((int128)r * GPU_VALUE_UNIT * fits[r] / all);
		gpu_value->cpu_milli[r] = (int32_t)cpu_milli;
		gpu_value->cpu_variance[r] = cpu_milli * cpu_milli / 4;
	}
	rehearsal->gpu_count = (int)max64(
	    1, min64(GPUS, (int64_t)(milli * ASKED * 10 / OVERLOAD / ((int128)all * WHOLE_GPU))));
}

static void gpu_value_put(struct rehearsal *rehearsal, int32_t gpu, int32_t left)
{
	INVARIANT(gpu >= 0 && gpu < rehearsal->gpu_count && left >= 0 && left <= WHOLE_GPU);
	if (!rehearsal->noted[left]) {
		rehearsal->noted[left] = true;
		rehearsal->sizes[rehearsal->size_count++] = left;
	}
	rehearsal->left[gpu] = left;
	rehearsal->next[gpu] = rehearsal->first[left];
	rehearsal->first[left] = gpu;
}

static void empty(struct rehearsal *rehearsal)
{
	rehearsal->size_count = 0;
	rehearsal->moment_count = 0;
	memset(rehearsal->noted, 0, sizeof(rehearsal->noted));
	memset(rehearsal->cpu_milli, 0, sizeof(rehearsal->cpu_milli));
	for (int r = 0; r <= WHOLE_GPU; r++)
		rehearsal->first[r] = -1;
	for (int32_t gpu = 0; gpu < rehearsal->gpu_count; gpu++)
		gpu_value_put(rehearsal, gpu, WHOLE_GPU);
}

static const struct demand *draw(const struct rehearsal *rehearsal, uint64_t *random)
{
	size_t from = 0, to = rehearsal->demand_count - 1;
	int64_t all = rehearsal->demands[to].weight;
	int64_t drawn = (int64_t)random_below(random, (uint64_t)all);

	while (from < to) {
		size_t middle = (from + to) / 2;
		if (rehearsal->demands[middle].weight > drawn)
			to = middle;
		else
			from = middle + 1;
	}
	return &rehearsal->demands[from];
}

/* The size of rest that loses least by giving so much, the smallest among
 * equals; -1: none is left that could. */
static int32_t best_rest(const struct rehearsal *rehearsal, const struct gpu_value *gpu_value,
                         int32_t milli)
{
	int32_t best = -1;
	int64_t best_loss = INT64_MAX;

	for (int i = 0; i < rehearsal->size_count; i++) {
		int32_t rest = rehearsal->sizes[i];
		if (rest < milli || rehearsal->first[rest] < 0)
			continue;
		int64_t loss = (int64_t)gpu_value->value[rest] - gpu_value->value[rest - milli];
		if (loss < best_loss || (loss == best_loss && rest < best)) {
			best_loss = loss;
			best = rest;
		}
	}
	return best;
}

static void gpu_value_note(struct rehearsal *rehearsal, int32_t gpu)
{
	array_reserve(rehearsal->moments, rehearsal->moment_capacity, rehearsal->moment_count + 1);
	rehearsal->moments[rehearsal->moment_count++] =
	    (struct moment){ gpu, rehearsal->left[gpu], rehearsal->cpu_milli[gpu] };
}

static void gpu_value_fill(struct rehearsal *rehearsal, const struct gpu_value *gpu_value,
                           uint64_t *random)
{
	int64_t left_milli = (int64_t)rehearsal->gpu_count * WHOLE_GPU * OVERLOAD / 10;

	while (left_milli > 0) {
		const struct demand *demand = draw(rehearsal, random);
		int32_t rest = best_rest(rehearsal, gpu_value, demand->milli);
		left_milli -= demand->milli;
		if (rest < 0)
			continue;
		int32_t gpu = rehearsal->first[rest];
		gpu_value_note(rehearsal, gpu);
		rehearsal->first[rest] = rehearsal->next[gpu];
		rehearsal->cpu_milli[gpu] += demand->cpu_milli;
		gpu_value_put(rehearsal, gpu, rest - demand->milli);
	}
	for (int32_t gpu = 0; gpu < rehearsal->gpu_count; gpu++)
		gpu_value_note(rehearsal, gpu);
}

/* Moves by `part` of `of` from the old to the new. */
static int64_t gpu_value_move(int64_t from, int64_t to, int64_t part, int64_t of)
{
	return from + (int64_t)((int128)(to - from) * part / of);
}

/* What became of the rests; later rounds count half, so that rounds that disagree
 * settle. */
static void learn(struct rehearsal *rehearsal, struct gpu_value *gpu_value, int halves)
{
	memset(rehearsal->outcomes, 0, sizeof(rehearsal->outcomes));
	for (size_t i = 0; i < rehearsal->moment_count; i++) {
		const struct moment *moment = &rehearsal->moments[i];
		struct outcome *outcome = &rehearsal->outcomes[moment->left];
		int64_t cpu =
		    min64(rehearsal->cpu_milli[moment->gpu] - moment->cpu_milli, GPU_VALUE_CPU_MAX);
		outcome->times++;
		outcome->used_milli += moment->left - rehearsal->left[moment->gpu];
		outcome->cpu_milli += cpu;
		outcome->cpu_squares += (int128)cpu * cpu;
	}
	for (int r = 0; r <= WHOLE_GPU; r++) {
		const struct outcome *outcome = &rehearsal->outcomes[r];
		int64_t times = outcome->times, of = (times + DOUBT) * halves;
		if (times == 0)
			continue;
		int64_t cpu = outcome->cpu_milli / times;
		int64_t variance = (int64_t)(outcome->cpu_squares / times - (int128)cpu * cpu);
		gpu_value->value[r] = (int32_t)gpu_value_move(
		    gpu_value->value[r], outcome->used_milli * GPU_VALUE_UNIT / times, times, of);
		gpu_value->cpu_milli[r] =
		    (int32_t)gpu_value_move(gpu_value->cpu_milli[r], cpu, times, of);
		gpu_value->cpu_variance[r] =
		    gpu_value_move(gpu_value->cpu_variance[r], variance, times, of);
	}
}

void gpu_value_learn(struct gpu_value *gpu_value, const struct workload_kind *kinds, size_t count)
{
	struct rehearsal *rehearsal = NEW(struct rehearsal);
	uint64_t random = 1;

	INVARIANT(kinds != NULL || count == 0);
	*gpu_value = (struct gpu_value){ 0 };
	list_demands(rehearsal, kinds, count);
	if (rehearsal->demand_count > 0) {
		guess(gpu_value, rehearsal);
		for (int round = 0; round < ROUNDS; round++) {
			empty(rehearsal);
			gpu_value_fill(rehearsal, gpu_value, &random);
			learn(rehearsal, gpu_value, round == 0 ? 1 : 2);
		}
	}
	free(rehearsal->demands);
	free(rehearsal->moments);
	free(rehearsal);
}

/* The square root, rounded down. */
static int64_t root(int64_t square)
{
	if (square < 2)
		return square;
	/* Not below the root, from where it falls until it is there. */
	int64_t x = INT64_C(1) << ((65 - __builtin_clzll((uint64_t)square)) / 2);
	for (;;) {
		int64_t y = (x + square / x) / 2;
		if (y >= x)
			return x;
		x = y;
	}
}

/* Expected to be missing, of a need that is spread evenly about its mean. */
static int64_t missing(const struct gpu_value_sum *sum, int64_t cpu_milli)
{
	int64_t over = sum->cpu_milli - max64(cpu_milli, 0), square = 3 * sum->cpu_variance;

	/* Far from the mean the spread does not matter, and needs no root. */
	if (over < 0 && (int128)over * over >= square)
		return 0;
	if ((int128)over * over >= square)
		return over;
	int64_t half = root(square);
	return half > 0 ? (over + half) * (over + half) / (4 * half) : 0;
}

int64_t gpu_value_sum_with(const struct gpu_value_sum *sum, int64_t cpu_milli)
{
	INVARIANT(sum->cpu_milli >= 0 && sum->cpu_variance >= 0);
	if (sum->cpu_milli == 0)
		return sum->value;
	int64_t lacking = missing(sum, cpu_milli);
	if (lacking == 0)
		return sum->value;
	int64_t part = min64((lacking << 16) / sum->cpu_milli, 1 << 16);
	return sum->value - (sum->value >> 16) * part;
}
