/* store_test.c - the store, in SQLite or, with STORE_TEST_POSTGRES, in PostgreSQL */
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
#include "store/migrate.h"
#include "store/test/drive.h"

static void what_is_committed_is_what_is_stored(void **state)
{
	struct scratch scratch;
	struct workload workload;
	struct mirror *mirror = mirror_new();
	(void)state;
	scratch_begin(&scratch);
	struct store *store = drive_lead(&scratch);
	drive_load(store, &workload, 1);
	drive_steps(store, &workload, mirror, 3000);
	drive_compare(mirror, store);
	store_free(store);

	store = drive_open(&scratch, "reader");
	struct error error;
	assert_int_equal(store_read_only(store, &error), STORE_DONE);
	drive_compare(mirror, store);
	store_free(store);
	mirror_free(mirror);
	workload_free(&workload);
	scratch_end(&scratch);
}

static void a_loaded_core_goes_on_as_if_it_had_never_stopped(void **state)
{
	struct scratch scratch;
	struct workload first, second;
	struct mirror *mirror = mirror_new();
	struct buffer left = { 0 }, right = { 0 };
	(void)state;
	scratch_begin(&scratch);
	struct store *store = drive_lead(&scratch);
	drive_load(store, &first, 2);
	drive_steps(store, &first, mirror, 2000);
	store_free(store);

	store = drive_lead(&scratch);
	drive_load(store, &second, 2);
	struct sched *loaded = second.sched;
	second = first;
	second.sched = loaded;
	second.effects = (struct effects){ 0 };
	for (int i = 0; i < 500; i++) {
		workload_step(&first);
		workload_step(&second);
		buffer_clear(&left);
		buffer_clear(&right);
		effects_encode(&left, &first.effects);
		effects_encode(&right, &second.effects);
		assert_int_equal(left.size, right.size);
		assert_memory_equal(left.data, right.data, left.size);
	}
	store_free(store);
	buffer_free(&left);
	buffer_free(&right);
	workload_free(&first);
	workload_free(&second);
	mirror_free(mirror);
	scratch_end(&scratch);
}

static void one_scheduler_at_a_time_has_the_database(void **state)
{
	struct scratch scratch;
	struct error error;
	(void)state;
	scratch_begin(&scratch);
	struct store *first = drive_lead(&scratch), *second = drive_open(&scratch, "b");
	assert_int_equal(store_lead(second, &error), STORE_AGAIN);
	assert_non_null(strstr(error.text, "another scheduler"));
	store_free(first);
	assert_int_equal(store_lead(second, &error), STORE_DONE);
	store_free(second);
	scratch_end(&scratch);
}

static void each_start_takes_the_next_term_and_batch(void **state)
{
	struct scratch scratch;
	struct workload workload;
	struct mirror *mirror = mirror_new();
	(void)state;
	scratch_begin(&scratch);
	struct store *store = drive_lead(&scratch);
	assert_int_equal(store_position(store).term, 1);
	drive_load(store, &workload, 3);
	drive_steps(store, &workload, mirror, 10);
	assert_int_equal(sched_meta(workload.sched)->term, store_position(store).term);
	struct store_position before = store_position(store);
	assert_int_equal(before.commands, 10);
	store_free(store);
	store = drive_lead(&scratch);
	assert_int_equal(store_position(store).term, 2);
	assert_true(store_position(store).batch > before.batch);
	assert_int_equal(store_position(store).commands, 10);
	store_free(store);
	workload_free(&workload);
	mirror_free(mirror);
	scratch_end(&scratch);
}

static void a_leader_whose_row_was_moved_writes_nothing(void **state)
{
	struct scratch scratch;
	struct workload workload;
	struct error error;
	(void)state;
	scratch_begin(&scratch);
	struct store *store = drive_lead(&scratch);
	drive_load(store, &workload, 4);
	scratch_execute(&scratch, "UPDATE leader SET holder = 'other#1', batch = batch + 1");
	struct batch *batch = batch_new(store_schema(store));
	workload_step(&workload);
	batch_add(batch, &workload.command, &workload.effects, NULL);
	assert_int_equal(store_commit(store, batch, &error), STORE_FAILED);
	assert_non_null(strstr(error.text, "another scheduler has taken over"));
	batch_free(batch);
	store_free(store);
	scratch_execute(&scratch, "UPDATE leader SET holder = ''");
	store = drive_lead(&scratch);
	assert_int_equal(store_position(store).commands, 0);
	store_free(store);
	workload_free(&workload);
	scratch_end(&scratch);
}

static void a_newer_database_is_refused_and_left_as_it_is(void **state)
{
	struct scratch scratch;
	struct error error;
	(void)state;
	scratch_begin(&scratch);
	store_free(drive_lead(&scratch));
	scratch_execute(&scratch, "UPDATE schema_version SET version = version + 1");
	struct store *store = drive_open(&scratch, "a");
	assert_int_equal(store_lead(store, &error), STORE_FAILED);
	assert_non_null(strstr(error.text, "install a newer one"));
	store_free(store);
	scratch_execute(&scratch, "UPDATE schema_version SET version = version - 1;"
	                          "ALTER TABLE jobs ADD COLUMN flavor TEXT NOT NULL DEFAULT ''");
	store = drive_open(&scratch, "a");
	assert_int_equal(store_lead(store, &error), STORE_FAILED);
	assert_non_null(strstr(error.text, "flavor"));
	store_free(store);
	scratch_execute(&scratch, "ALTER TABLE jobs DROP COLUMN flavor");
	store_free(drive_lead(&scratch));
	scratch_end(&scratch);
}

static void an_older_database_gets_the_columns_and_tables_that_are_new(void **state)
{
	struct scratch scratch;
	struct workload workload;
	struct mirror *mirror = mirror_new();
	struct error error;
	(void)state;
	scratch_begin(&scratch);
	struct store *store = drive_lead(&scratch);
	drive_load(store, &workload, 5);
	drive_steps(store, &workload, mirror, 5);
	store_free(store);
	workload_free(&workload);
	scratch_execute(&scratch, "ALTER TABLE tenants DROP COLUMN queue_max; DROP TABLE outcomes;"
	                          "ALTER TABLE jobs DROP COLUMN message");
	store = drive_open(&scratch, "reader");
	assert_int_equal(store_read_only(store, &error), STORE_FAILED);
	assert_non_null(strstr(error.text, "bring"));
	store_free(store);
	store = drive_lead(&scratch);
	drive_load(store, &workload, 5);
	drive_steps(store, &workload, mirror, 50);
	store_free(store);
	workload_free(&workload);
	mirror_free(mirror);
	scratch_end(&scratch);
}

static void records_that_contradict_each_other_are_not_loaded(void **state)
{
	struct scratch scratch;
	struct workload workload;
	struct mirror *mirror = mirror_new();
	struct error error;
	(void)state;
	scratch_begin(&scratch);
	struct store *store = drive_lead(&scratch);
	drive_load(store, &workload, 6);
	drive_steps(store, &workload, mirror, 500);
	store_free(store);
	scratch_execute(&scratch, "UPDATE reservations SET phase = 'held' WHERE phase = 'live'");
	store = drive_lead(&scratch);
	struct sched *sched = sched_new();
	assert_false(store_load(store, sched, &error));
	assert_int_equal(error.code, ERROR_CORRUPT);
	assert_non_null(strstr(error.text, "reservation"));
	sched_free(sched);
	store_free(store);
	workload_free(&workload);
	mirror_free(mirror);
	scratch_end(&scratch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_committed_is_what_is_stored),
		cmocka_unit_test(a_loaded_core_goes_on_as_if_it_had_never_stopped),
		cmocka_unit_test(one_scheduler_at_a_time_has_the_database),
		cmocka_unit_test(each_start_takes_the_next_term_and_batch),
		cmocka_unit_test(a_leader_whose_row_was_moved_writes_nothing),
		cmocka_unit_test(a_newer_database_is_refused_and_left_as_it_is),
		cmocka_unit_test(an_older_database_gets_the_columns_and_tables_that_are_new),
		cmocka_unit_test(records_that_contradict_each_other_are_not_loaded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
