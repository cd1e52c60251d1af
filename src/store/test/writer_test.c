/* writer_test.c - the store's thread */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "store/test/drive.h"
#include "store/writer.h"

/* What the writer's thread has said. */
struct heard {
	pthread_mutex_t mutex;
	const struct scratch *scratch;
	int64_t replies, batches, early, out_of_order;
	int failed, changed;
	char reason[ERROR_TEXT_MAX];
};

static void writer_on_durable(void *context, const struct batch *batch)
{
	struct heard *heard = context;
	int64_t stored = scratch_number(heard->scratch, "SELECT commands FROM leader");
	pthread_mutex_lock(&heard->mutex);
	for (size_t i = 0; i < batch->reply_count; i++) {
		heard->replies++;
		if ((int64_t)(intptr_t)batch->replies[i].cookie != heard->replies)
			heard->out_of_order++;
	}
	heard->early += stored < heard->replies;
	heard->batches++;
	pthread_mutex_unlock(&heard->mutex);
}

static void writer_on_failed(void *context, const struct error *error)
{
	struct heard *heard = context;
	pthread_mutex_lock(&heard->mutex);
	heard->failed++;
	memcpy(heard->reason, error->text, sizeof(heard->reason));
	pthread_mutex_unlock(&heard->mutex);
}

static void writer_on_changed(void *context)
{
	struct heard *heard = context;
	pthread_mutex_lock(&heard->mutex);
	heard->changed++;
	pthread_mutex_unlock(&heard->mutex);
}

static int64_t replies_of(struct heard *heard)
{
	pthread_mutex_lock(&heard->mutex);
	int64_t replies = heard->replies;
	pthread_mutex_unlock(&heard->mutex);
	return replies;
}

/* A writer on a new database, and a workload for it. */
struct bed {
	struct scratch scratch;
	struct heard heard;
	struct store *store;
	struct journal *journal;
	struct writer *writer;
	struct workload workload;
	int64_t added;
};

static void bed_begin_gathering(struct bed *bed, size_t rows_max, int64_t gather_ms)
{
	memset(bed, 0, sizeof(*bed));
	scratch_begin(&bed->scratch);
	pthread_mutex_init(&bed->heard.mutex, NULL);
	bed->heard.scratch = &bed->scratch;
	bed->store = drive_lead(&bed->scratch);
	bed->journal =
	    journal_new(&(struct journal_options){ .directory = bed->scratch.directory });
	drive_load(bed->store, &bed->workload, 21);
	bed->writer = writer_start(&(struct writer_options){ .store = bed->store,
	                                                     .journal = bed->journal,
	                                                     .rows_max = rows_max,
	                                                     .retry_ms = 10,
	                                                     .gather_ms = gather_ms,
	                                                     .durable = writer_on_durable,
	                                                     .failed = writer_on_failed,
	                                                     .changed = writer_on_changed,
	                                                     .context = &bed->heard });
}

static void bed_begin(struct bed *bed, size_t rows_max)
{
	bed_begin_gathering(bed, rows_max, 0);
}

static void bed_add(struct bed *bed)
{
	workload_step(&bed->workload);
	writer_add(bed->writer, &bed->workload.command, &bed->workload.effects,
	           (void *)(intptr_t)++bed->added);
}

static void bed_stop(struct bed *bed)
{
	writer_stop(bed->writer);
	journal_free(bed->journal);
	store_free(bed->store);
	workload_free(&bed->workload);
}

static void wait_a_little(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

static bool count_command(void *context, int64_t number, const struct command *command,
                          struct error *error)
{
	(void)command;
	(void)error;
	*(int64_t *)context += 1;
	return number == *(int64_t *)context;
}

static void replies_leave_in_order_when_their_batch_is_durable(void **state)
{
	struct bed bed;
	struct error error = { 0 };
	int64_t journalled = 0;
	(void)state;
	bed_begin(&bed, 0);
	for (int i = 0; i < 3000; i++) {
		assert_true(writer_has_room(bed.writer, 10000));
		bed_add(&bed);
	}
	bed_stop(&bed);
	assert_int_equal(bed.heard.replies, 3000);
	assert_int_equal(bed.heard.early, 0);
	assert_int_equal(bed.heard.out_of_order, 0);
	assert_int_equal(bed.heard.failed, 0);
	/* Commands that came while others were written share a transaction. */
	assert_true(bed.heard.batches < 3000);
	assert_true(
	    journal_read(bed.scratch.directory, 0, count_command, &journalled, NULL, &error));
	assert_int_equal(journalled, 3000);
	scratch_end(&bed.scratch);
}

static void what_nobody_waits_for_is_gathered(void **state)
{
	struct bed bed;
	(void)state;
	bed_begin_gathering(&bed, 0, 60000);
	bed_add(&bed); /* the first may go at once */
	writer_hurry(bed.writer);
	while (replies_of(&bed.heard) < 1)
		wait_a_little();
	for (int i = 0; i < 100; i++) {
		bed_add(&bed);
		wait_a_little();
	}
	assert_int_equal(replies_of(&bed.heard), 1);
	bed_add(&bed);
	writer_hurry(bed.writer);
	while (replies_of(&bed.heard) < 102)
		wait_a_little();
	assert_int_equal(bed.heard.batches, 2);
	bed_add(&bed);
	bed_stop(&bed); /* does not wait either */
	assert_int_equal(bed.heard.replies, 103);
	scratch_end(&bed.scratch);
}

static void a_batch_that_is_full_is_not_gathered_for(void **state)
{
	struct bed bed;
	(void)state;
	bed_begin_gathering(&bed, 10, 60000);
	for (int i = 0; i < 200; i++) {
		assert_true(writer_has_room(bed.writer, 10000));
		bed_add(&bed);
	}
	bed_stop(&bed);
	assert_int_equal(bed.heard.replies, 200);
	scratch_end(&bed.scratch);
}

static void what_is_joined_is_one_transaction_however_large(void **state)
{
	struct bed bed;
	(void)state;
	bed_begin(&bed, 10);
	writer_join(bed.writer);
	for (int i = 0; i < 200; i++) {
		bed_add(&bed);
		writer_hurry(bed.writer);
		if (i % 50 == 0)
			wait_a_little();
	}
	assert_int_equal(replies_of(&bed.heard), 0);
	writer_part(bed.writer);
	while (replies_of(&bed.heard) < 200)
		wait_a_little();
	assert_int_equal(bed.heard.batches, 1);
	bed_stop(&bed);
	scratch_end(&bed.scratch);
}

static void answers_alone_leave_in_order_and_need_no_transaction(void **state)
{
	struct bed bed;
	struct writer_health before, after;
	(void)state;
	bed_begin(&bed, 0);
	bed_add(&bed);
	while (replies_of(&bed.heard) < bed.added)
		wait_a_little();
	writer_health(bed.writer, &before);
	for (int i = 0; i < 100; i++) {
		writer_add(bed.writer, NULL, NULL, (void *)(intptr_t)++bed.added);
		writer_hurry(bed.writer);
		while (replies_of(&bed.heard) < bed.added)
			wait_a_little();
	}
	writer_health(bed.writer, &after);
	/* The first command may be tidied up after. */
	assert_true(after.batches - before.batches < 100);
	assert_int_equal(bed.heard.out_of_order, 0);
	bed_stop(&bed);
	scratch_end(&bed.scratch);
}

static void what_is_noted_is_in_the_journal_in_its_place(void **state)
{
	struct bed bed;
	struct error error = { 0 };
	int64_t journalled = 0, missing = 0;
	(void)state;
	bed_begin(&bed, 0);
	for (int i = 0; i < 10; i++) {
		bed_add(&bed);
		writer_note(bed.writer, &(struct command){ .kind = COMMAND_REQUEST_DONE });
	}
	bed_stop(&bed);
	assert_true(
	    journal_read(bed.scratch.directory, 0, count_command, &journalled, &missing, &error));
	assert_int_equal(journalled, 20);
	assert_int_equal(missing, 0);
	scratch_end(&bed.scratch);
}

/* Keeps everyone else from writing to the file. */
static sqlite3 *block(const struct scratch *scratch)
{
	sqlite3 *database;
	assert_int_equal(sqlite3_open(scratch->database, &database), SQLITE_OK);
	sqlite3_busy_timeout(database, 5000);
	assert_int_equal(sqlite3_exec(database, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	return database;
}

static void a_store_that_fails_acknowledges_nothing_and_goes_on_when_it_is_back(void **state)
{
	struct bed bed;
	struct writer_health health;
	(void)state;
	if (scratch_is_postgres())
		skip();
	bed_begin(&bed, 50);
	sqlite3 *blocker = block(&bed.scratch);
	int64_t before = replies_of(&bed.heard);
	do {
		while (writer_has_room(bed.writer, 0))
			bed_add(&bed);
		wait_a_little();
		writer_health(bed.writer, &health);
	} while (health.ok);
	assert_non_null(strstr(health.reason, "lock"));
	assert_int_equal(replies_of(&bed.heard), before);
	/* One batch is being written, one is full: more is not taken. */
	assert_false(writer_has_room(bed.writer, 20));
	assert_true(bed.added < 500);
	sqlite3_close(blocker);
	while (replies_of(&bed.heard) < bed.added)
		wait_a_little();
	writer_health(bed.writer, &health);
	assert_true(health.ok);
	assert_string_equal(health.reason, "");
	bed_stop(&bed);
	assert_int_equal(bed.heard.changed, 2);
	assert_int_equal(bed.heard.out_of_order, 0);
	scratch_end(&bed.scratch);
}

static void a_leader_that_was_replaced_is_told_so_once(void **state)
{
	struct bed bed;
	(void)state;
	bed_begin(&bed, 0);
	bed_add(&bed);
	while (replies_of(&bed.heard) < 1)
		wait_a_little();
	scratch_execute(&bed.scratch, "UPDATE leader SET holder = 'b#1', batch = batch + 1");
	bed_add(&bed);
	for (bool failed = false; !failed;) {
		wait_a_little();
		pthread_mutex_lock(&bed.heard.mutex);
		failed = bed.heard.failed > 0;
		pthread_mutex_unlock(&bed.heard.mutex);
	}
	bed_add(&bed);
	bed_stop(&bed);
	assert_int_equal(bed.heard.failed, 1);
	assert_int_equal(bed.heard.replies, 1);
	assert_non_null(strstr(bed.heard.reason, "another scheduler has taken over"));
	scratch_end(&bed.scratch);
}

static void where_jobs_are_loaded_from_moves_on_as_they_are_archived(void **state)
{
	struct bed bed;
	(void)state;
	bed_begin(&bed, 0);
	while (scratch_number(&bed.scratch, "SELECT jobs_from FROM leader") == 0)
		for (int i = 0; i < 100 && writer_has_room(bed.writer, 1000); i++)
			bed_add(&bed);
	bed_stop(&bed);
	assert_int_equal(bed.heard.replies, bed.added);
	scratch_end(&bed.scratch);
}

static void an_idle_leader_is_heard_of(void **state)
{
	struct bed bed;
	struct writer_health health;
	(void)state;
	if (!scratch_is_postgres())
		skip();
	bed_begin(&bed, 0);
	do {
		wait_a_little();
		writer_health(bed.writer, &health);
	} while (health.batches < 2);
	assert_int_equal(health.commands, 0);
	bed_stop(&bed);
	scratch_end(&bed.scratch);
}

static void what_is_kept_is_written_with_the_command_that_follows(void **state)
{
	struct bed bed;
	(void)state;
	bed_begin(&bed, 0);
	for (int i = 0; i < 40; i++) {
		char key[16];
		snprintf(key, sizeof(key), "%d", i);
		bed_add(&bed);
		writer_keep(bed.writer, "audit", key, "text");
		while (replies_of(&bed.heard) < bed.added)
			wait_a_little();
		assert_int_equal(scratch_number(&bed.scratch, "SELECT count(*) FROM kept"), i);
		bed_add(&bed);
		while (replies_of(&bed.heard) < bed.added)
			wait_a_little();
		assert_int_equal(scratch_number(&bed.scratch, "SELECT count(*) FROM kept"), i + 1);
	}
	bed_stop(&bed);
	scratch_end(&bed.scratch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replies_leave_in_order_when_their_batch_is_durable),
		cmocka_unit_test(what_nobody_waits_for_is_gathered),
		cmocka_unit_test(a_batch_that_is_full_is_not_gathered_for),
		cmocka_unit_test(what_is_joined_is_one_transaction_however_large),
		cmocka_unit_test(
		    a_store_that_fails_acknowledges_nothing_and_goes_on_when_it_is_back),
		cmocka_unit_test(a_leader_that_was_replaced_is_told_so_once),
		cmocka_unit_test(where_jobs_are_loaded_from_moves_on_as_they_are_archived),
		cmocka_unit_test(an_idle_leader_is_heard_of),
		cmocka_unit_test(answers_alone_leave_in_order_and_need_no_transaction),
		cmocka_unit_test(what_is_noted_is_in_the_journal_in_its_place),
		cmocka_unit_test(what_is_kept_is_written_with_the_command_that_follows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
