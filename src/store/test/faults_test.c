/* faults_test.c - every write, sync and allocation under SQLite fails once, or for a while */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "store/backend.h"
#include "store/test/faulty.h"
#include "store/test/scratch.h"
#include "store/test/workload.h"

enum { STEPS = 60, STEPS_PER_BATCH = 10, TRIES_MAX = 200 };

static struct store *open_store(const struct scratch *scratch)
{
	return store_new(&(struct store_options){
	    .database = scratch->database, .name = "a", .vfs = FAULTY_VFS });
}

/* Leads and loads, again and again while something fails. */
static struct store *faults_begin(const struct scratch *scratch, struct sched **sched)
{
	struct error error;
	for (int tries = 0; tries < TRIES_MAX; tries++) {
		struct store *store = open_store(scratch);
		enum store_outcome outcome = store_lead(store, &error);
		*sched = sched_new();
		if (outcome == STORE_DONE && store_load(store, *sched, &error))
			return store;
		if (error.code != ERROR_UNAVAILABLE)
			fail_msg("it does not begin: %s", error.text);
		sched_free(*sched);
		store_free(store);
	}
	fail_msg("it does not begin: %s", error.text);
	return NULL;
}

static void faults_commit(struct store *store, const struct batch *batch)
{
	struct error error = { 0 };
	enum store_outcome outcome = STORE_AGAIN;
	for (int tries = 0; outcome == STORE_AGAIN && tries < TRIES_MAX; tries++)
		outcome = store_commit(store, batch, &error);
	if (outcome != STORE_DONE)
		fail_msg("%s", error.text);
}

/* All of a workload, batch by batch, and then what is stored is compared. Things
 * fail from the start on, or only once the tables are made and loaded. */
static bool survives(enum fault fault, int64_t nth, int64_t times, int steps, bool from_start)
{
	struct scratch scratch;
	struct workload workload;
	struct sched *sched;
	struct mirror *mirror = mirror_new();

	scratch_begin(&scratch);
	if (from_start)
		faulty_arm(fault, nth, times);
	struct store *store = faults_begin(&scratch, &sched);
	struct batch *batch = batch_new(store_schema(store));
	workload_init(&workload, sched, 7);
	if (!from_start)
		faulty_arm(fault, nth, times);
	for (int i = 0; i < steps; i++) {
		workload_step(&workload);
		batch_add(batch, &workload.command, &workload.effects, NULL);
		mirror_apply(mirror, &workload.effects);
		if ((i + 1) % STEPS_PER_BATCH == 0) {
			faults_commit(store, batch);
			batch_clear(batch);
		}
	}
	int64_t commands = store_position(store).commands;
	batch_free(batch);
	store_free(store);
	bool happened = faulty_disarm();
	assert_int_equal(commands, steps);

	store = faults_begin(&scratch, &sched);
	const char *difference = mirror_differs(mirror, store);
	if (difference)
		fail_msg("fault %d at %lld: %s", fault, (long long)nth, difference);
	assert_int_equal(store_position(store).commands, steps);
	sched_free(sched);
	store_free(store);
	workload_free(&workload);
	mirror_free(mirror);
	scratch_end(&scratch);
	return happened;
}

/* `make faults` fails every operation. Otherwise one in a few fails, and fewer under the
 * sanitizers, which are slow. */
static int64_t stride(void)
{
#ifdef __SANITIZE_ADDRESS__
	const int64_t usual = 23;
#else
	const int64_t usual = 3;
#endif
	return getenv("STORE_TEST_ALL") ? 1 : usual;
}

static void fail_everywhere(enum fault fault, int64_t times, int64_t least)
{
	int64_t nth = 1;
	while (survives(fault, nth, times, STEPS, true))
		nth += stride();
	/* Fewer operations than this would mean that nothing was tested. */
	assert_true(nth > least);
}

static void no_failing_write_loses_anything(void **state)
{
	(void)state;
	fail_everywhere(FAULT_WRITE, 1, 50);
}

static void no_full_disk_loses_anything(void **state)
{
	(void)state;
	fail_everywhere(FAULT_FULL, 20, 50);
}

static void no_failing_sync_loses_anything(void **state)
{
	(void)state;
	fail_everywhere(FAULT_SYNC, 1, 5);
	fail_everywhere(FAULT_SYNC, 3, 5);
}

/* Making the tables takes thousands of allocations: all of them fail where
 * there is time for it (make faults), otherwise a sample. */
static void no_lack_of_memory_loses_anything(void **state)
{
	int64_t sparse = getenv("STORE_TEST_ALL") ? 1 : 97 * stride(), nth = 1;
	(void)state;
	while (survives(FAULT_MEMORY, nth, 1, 2 * STEPS_PER_BATCH, true))
		nth += sparse;
	assert_true(nth > 5000);
	for (nth = 1; survives(FAULT_MEMORY, nth, 1, 2 * STEPS_PER_BATCH, false);)
		nth += stride();
	assert_true(nth > 50);
}

/* The process or the machine dies after a fault: what was committed is there,
 * and of the batch that failed all or nothing. */
static bool recovers(enum fault fault, int64_t nth, bool power_loss)
{
	struct scratch scratch;
	struct workload workload;
	struct sched *sched;
	struct mirror *expected = mirror_new();
	struct error error;
	int64_t committed = 0;
	bool failed = false;

	scratch_begin(&scratch);
	struct store *store = faults_begin(&scratch, &sched);
	struct batch *batch = batch_new(store_schema(store));
	workload_init(&workload, sched, 8);
	faulty_arm(fault, nth, 1);
	for (int i = 0; i < STEPS; i++) {
		workload_step(&workload);
		batch_add(batch, &workload.command, &workload.effects, NULL);
		if ((i + 1) % STEPS_PER_BATCH != 0)
			continue;
		failed = store_commit(store, batch, &error) != STORE_DONE;
		if (failed)
			break;
		committed = i + 1;
		batch_clear(batch);
	}
	if (power_loss)
		faulty_freeze();
	batch_free(batch);
	store_free(store);
	bool happened = faulty_disarm();
	faulty_power_loss((uint64_t)nth);

	store = faults_begin(&scratch, &sched);
	int64_t stored = store_position(store).commands;
	assert_true(stored == committed || (failed && stored == committed + STEPS_PER_BATCH));
	/* Repeating the commands up to the stored one gives exactly the stored state. */
	struct workload again;
	workload_init(&again, sched_new(), 8);
	for (int64_t i = 0; i < stored; i++) {
		workload_step(&again);
		mirror_apply(expected, &again.effects);
	}
	const char *difference = mirror_differs(expected, store);
	if (difference)
		fail_msg("fault %d at %lld: %s", fault, (long long)nth, difference);
	sched_free(sched);
	store_free(store);
	workload_free(&workload);
	workload_free(&again);
	mirror_free(expected);
	scratch_end(&scratch);
	return happened;
}

static void a_death_after_any_failure_leaves_all_or_nothing(void **state)
{
	(void)state;
	for (enum fault fault = FAULT_WRITE; fault <= FAULT_SYNC; fault++)
		for (int64_t nth = 1; recovers(fault, nth, false); nth += stride())
			;
}

static void a_loss_of_power_leaves_all_that_was_committed(void **state)
{
	(void)state;
	for (enum fault fault = FAULT_WRITE; fault <= FAULT_SYNC; fault++)
		for (int64_t nth = 1; recovers(fault, nth, true); nth += stride())
			;
	for (int64_t seed = 1; seed <= 50; seed += stride())
		recovers(FAULT_NONE, seed, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_failing_write_loses_anything),
		cmocka_unit_test(no_full_disk_loses_anything),
		cmocka_unit_test(no_failing_sync_loses_anything),
		cmocka_unit_test(no_lack_of_memory_loses_anything),
		cmocka_unit_test(a_death_after_any_failure_leaves_all_or_nothing),
		cmocka_unit_test(a_loss_of_power_leaves_all_that_was_committed),
	};
	faulty_install();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
