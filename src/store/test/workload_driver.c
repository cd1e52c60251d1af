/* workload_driver.c - drives a workload into a store that may fail at any moment
 *
 *     workload_driver DATABASE DIRECT SEED STEPS
 *
 * Every batch is given again until it is written. In the end what is stored, as
 * seen through DIRECT (the same database by a way that does not fail), is
 * compared with what should be. Says 'same after N failures', or what differs. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "store/test/workload.h"

enum { STEPS_PER_BATCH = 10 };

static int64_t failures;

static void pause_ms(long ms)
{
	failures++;
	nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

static struct store *lead(const char *database)
{
	struct store *store = store_new(&(struct store_options){
	    .database = database, .name = "a", .lease_ms = 60000, .timeout_ms = 1000 });
	struct error error;
	enum store_outcome outcome;
	while ((outcome = store_lead(store, &error)) == STORE_AGAIN)
		pause_ms(1);
	if (outcome != STORE_DONE)
		panic("%s", error.text);
	return store;
}

static void workload_commit(struct store *store, struct batch *batch)
{
	struct error error;
	enum store_outcome outcome;
	while ((outcome = store_commit(store, batch, &error)) == STORE_AGAIN)
		pause_ms(1);
	if (outcome != STORE_DONE)
		panic("%s", error.text);
	batch_clear(batch);
}

int main(int argc, char **argv)
{
	struct workload workload;
	struct mirror *mirror = mirror_new();
	struct error error;
	if (argc != 5) {
		fprintf(stderr, "usage: workload_driver DATABASE DIRECT SEED STEPS\n");
		return 2;
	}
	struct store *store = lead(argv[1]);
	struct batch *batch = batch_new(store_schema(store));
	int64_t steps = strtoll(argv[4], NULL, 10);
	/* The database is new: there is nothing to load. */
	workload_init(&workload, sched_new(), strtoull(argv[3], NULL, 10));
	for (int64_t i = 0; i < steps; i++) {
		workload_step(&workload);
		batch_add(batch, &workload.command, &workload.effects, NULL);
		mirror_apply(mirror, &workload.effects);
		if ((i + 1) % STEPS_PER_BATCH == 0)
			workload_commit(store, batch);
	}
	workload_commit(store, batch);
	batch_free(batch);
	store_free(store);

	store = store_new(&(struct store_options){ .database = argv[2], .name = "reader" });
	if (store_read_only(store, &error) != STORE_DONE)
		panic("%s", error.text);
	const char *difference = mirror_differs(mirror, store);
	if (!difference && store_position(store).commands != steps)
		difference = "commands were counted twice or not at all";
	if (difference)
		printf("%s\n", difference);
	else
		printf("same after %lld failures\n", (long long)failures);
	store_free(store);
	mirror_free(mirror);
	workload_free(&workload);
	return difference ? 1 : 0;
}
