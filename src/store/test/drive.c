/* drive.c - a workload driven into a store, for tests */
#include "store/test/drive.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct store *drive_open(const struct scratch *scratch, const char *name)
{
	return store_new(&(struct store_options){ .database = scratch->database, .name = name });
}

struct store *drive_lead(const struct scratch *scratch)
{
	struct store *store = drive_open(scratch, "a");
	struct error error;
	if (store_lead(store, &error) != STORE_DONE)
		fail_msg("%s", error.text);
	return store;
}

struct store *drive_read(const struct scratch *scratch)
{
	struct store *store = drive_open(scratch, "reader");
	struct error error;
	if (store_read_only(store, &error) != STORE_DONE)
		fail_msg("%s", error.text);
	return store;
}

void drive_load(struct store *store, struct workload *workload, uint64_t seed)
{
	struct error error;
	struct sched *sched = sched_new();
	if (!store_load(store, sched, &error))
		fail_msg("%s", error.text);
	workload_init(workload, sched, seed);
}

static void drive_commit(struct store *store, struct batch *batch)
{
	struct error error;
	if (store_commit(store, batch, &error) != STORE_DONE)
		fail_msg("%s", error.text);
	batch_clear(batch);
}

void drive_steps(struct store *store, struct workload *workload, struct mirror *mirror, int steps)
{
	struct batch *batch = batch_new(store_schema(store));
	for (int i = 0; i < steps; i++) {
		workload_step(workload);
		batch_add(batch, &workload->command, &workload->effects, NULL);
		if (mirror)
			mirror_apply(mirror, &workload->effects);
		if (i % 17 == 16)
			drive_commit(store, batch);
	}
	drive_commit(store, batch);
	batch_free(batch);
}

void drive_compare(struct mirror *mirror, struct store *store)
{
	const char *difference = mirror_differs(mirror, store);
	if (difference)
		fail_msg("%s", difference);
}
