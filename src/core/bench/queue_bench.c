/* queue_bench.c - one queue of many jobs: push, pop, remove, position */
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "core/bench/benches.h"
#include "core/bench/fixture.h"
#include "core/queue/queue.h"

enum { JOBS = 100000, ROUNDS = 10, RUNS = 5, LEVELS = 10 };
#define NOW_MS (1000 * HOUR_MS)
#define OLDEST_MS (12 * HOUR_MS)

/* `size` jobs wait, and at times a round's worth more. The first of `jobs` are
 * those that wait. */
struct bench {
	struct queue queue;
	struct queue_entry *entries, **jobs, **wanted;
	size_t size, round;
	int64_t now_ms, last_number;
	uint64_t random;
};

struct times {
	double push, pop, remove, position;
};

static void fill_entry(struct bench *bench, struct queue_entry *entry, int64_t age_ms)
{
	*entry = (struct queue_entry){
		.priority = 100 * (1 + (int64_t)random_below(&bench->random, LEVELS)),
		.queued_ms = bench->now_ms - age_ms,
		.number = ++bench->last_number,
	};
}

static void queue_begin(struct bench *bench, size_t size)
{
	*bench = (struct bench){ .size = size, .round = size / ROUNDS, .now_ms = NOW_MS };
	queue_init(&bench->queue, (struct queue_rule){ .per_minute = 10, .cap = 5000 });
	bench->entries = memory_zero(size + bench->round, sizeof(*bench->entries));
	bench->jobs = memory_zero(size + bench->round, sizeof(struct queue_entry *));
	bench->wanted = memory_zero(size, sizeof(struct queue_entry *));
	for (size_t i = 0; i < size + bench->round; i++) {
		struct queue_entry *entry = bench->jobs[i] = &bench->entries[i];
		fill_entry(bench, entry, (int64_t)random_below(&bench->random, OLDEST_MS));
		if (i < size)
			queue_push(&bench->queue, entry, bench->now_ms);
	}
}

static void queue_end(struct bench *bench)
{
	queue_free(&bench->queue);
	free(bench->entries);
	free(bench->jobs);
	free(bench->wanted);
}

/* A round's worth of jobs arrive, over some time. */
static double push_round(struct bench *bench)
{
	struct queue_entry **arriving = bench->jobs + bench->size;
	bench->now_ms += 60 * SECOND_MS;
	for (size_t i = 0; i < bench->round; i++)
		fill_entry(bench, arriving[i], 0);
	double begun = clock_seconds();
	for (size_t i = 0; i < bench->round; i++)
		queue_push(&bench->queue, arriving[i], bench->now_ms);
	return clock_seconds() - begun;
}

static double remove_round(struct bench *bench)
{
	struct queue_entry **leaving = bench->jobs + bench->size;
	for (size_t last = bench->size + bench->round - 1; last >= bench->size; last--) {
		size_t at = random_below(&bench->random, last + 1);
		struct queue_entry *entry = bench->jobs[at];
		bench->jobs[at] = bench->jobs[last];
		bench->jobs[last] = entry;
	}
	double begun = clock_seconds();
	for (size_t i = 0; i < bench->round; i++)
		queue_remove(&bench->queue, leaving[i]);
	return clock_seconds() - begun;
}

/* Puts the jobs that wait before those that do not. */
static void sort_out(struct bench *bench)
{
	size_t waiting = 0, others = bench->size;
	for (size_t i = 0; i < bench->size + bench->round; i++) {
		struct queue_entry *entry = &bench->entries[i];
		bench->jobs[entry->queued ? waiting++ : others++] = entry;
	}
}

static double pop_round(struct bench *bench)
{
	double begun = clock_seconds();
	for (size_t i = 0; i < bench->round; i++)
		INVARIANT(queue_pop(&bench->queue, bench->now_ms));
	double took = clock_seconds() - begun;
	sort_out(bench);
	return took;
}

static double look_up_positions(struct bench *bench)
{
	size_t sum = 0;
	for (size_t i = 0; i < bench->size; i++)
		bench->wanted[i] = bench->jobs[random_below(&bench->random, bench->size)];
	double begun = clock_seconds();
	for (size_t i = 0; i < bench->size; i++)
		sum += queue_position(&bench->queue, bench->wanted[i], bench->now_ms);
	double took = clock_seconds() - begun;
	INVARIANT(sum / bench->size < bench->size);
	return took;
}

/* Each operation as often as jobs wait. */
static struct times queue_execute(struct bench *bench)
{
	struct times times = { 0 };
	for (int i = 0; i < ROUNDS; i++) {
		times.push += push_round(bench);
		times.remove += remove_round(bench);
		push_round(bench);
		times.pop += pop_round(bench);
	}
	times.position = look_up_positions(bench);
	return times;
}

static double least(double a, double b)
{
	return a < b ? a : b;
}

void queue_bench(struct report *report, enum size size)
{
	size_t jobs = size == SIZE_TWICE ? 2 * JOBS : JOBS;
	struct bench bench;
	queue_begin(&bench, jobs);
	printf("queue: %zu jobs wait, %zu of them still age\n", queue_count(&bench.queue),
	       bench.queue.ageing.count);
	struct times best = queue_execute(&bench);
	for (int i = 1; i < RUNS; i++) {
		struct times times = queue_execute(&bench);
		best.push = least(best.push, times.push);
		best.pop = least(best.pop, times.pop);
		best.remove = least(best.remove, times.remove);
		best.position = least(best.position, times.position);
	}
	report_put(report, "queue_push_per_s", size, (double)jobs / best.push);
	report_put(report, "queue_pop_per_s", size, (double)jobs / best.pop);
	report_put(report, "queue_remove_per_s", size, (double)jobs / best.remove);
	report_put(report, "queue_position_per_s", size, (double)jobs / best.position);
	queue_end(&bench);
}
