/* keep_test.c - backups, checks, repairs, archives and retention, on either database */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "store/archive.h"
#include "store/backend.h"
#include "store/backup.h"
#include "store/check.h"
#include "store/retention.h"
#include "store/test/drive.h"
#include "store/usage.h"

/* A database with the effects of some commands, a mirror of it, and its core. */
struct world {
	struct scratch scratch;
	struct workload workload;
	struct mirror *mirror;
	struct store *store;
};

static void world_begin(struct world *world, int steps)
{
	scratch_begin(&world->scratch);
	world->mirror = mirror_new();
	world->store = drive_lead(&world->scratch);
	drive_load(world->store, &world->workload, 11);
	drive_steps(world->store, &world->workload, world->mirror, steps);
}

static void world_end(struct world *world)
{
	store_free(world->store);
	mirror_free(world->mirror);
	workload_free(&world->workload);
	scratch_end(&world->scratch);
}

static struct store_options options_of(const struct world *world)
{
	return (struct store_options){ .database = world->scratch.database, .name = "a" };
}

static void path_in(const struct world *world, const char *name, char *path, size_t size)
{
	snprintf(path, size, "%s/%s", world->scratch.directory, name);
}

static void a_backup_has_everything_while_the_scheduler_works(void **state)
{
	struct world world;
	struct error error = { 0 };
	char path[PATH_MAX];
	(void)state;
	world_begin(&world, 1500);
	struct store_options options = options_of(&world);
	path_in(&world, "backup", path, sizeof(path));
	if (!backup_write(&options, path, &error))
		fail_msg("%s", error.text);
	struct store *copy = store_new(&(struct store_options){ .database = path });
	assert_int_equal(store_read_only(copy, &error), STORE_DONE);
	drive_compare(world.mirror, copy);
	assert_int_equal(store_position(copy).commands, 1500);
	store_free(copy);
	drive_steps(world.store, &world.workload, world.mirror, 20);
	assert_false(backup_write(&options, path, &error));
	assert_non_null(strstr(error.text, "is there already"));
	world_end(&world);
}

static void a_restored_database_goes_on_beyond_what_was_given_out(void **state)
{
	struct world world;
	struct workload restored;
	struct error error = { 0 };
	char path[PATH_MAX];
	(void)state;
	world_begin(&world, 500);
	struct store_options options = options_of(&world);
	path_in(&world, "backup", path, sizeof(path));
	assert_true(backup_write(&options, path, &error));
	drive_steps(world.store, &world.workload, world.mirror, 500);
	int64_t last_job = sched_meta(world.workload.sched)->last_job_id;
	int64_t term = sched_meta(world.workload.sched)->term;
	assert_false(
	    backup_restore(&(struct store_options){ .database = options.database, .name = "b" },
	                   path, true, &error));
	assert_non_null(strstr(error.text, "another scheduler"));
	store_free(world.store);

	assert_false(backup_restore(&options, path, false, &error));
	assert_non_null(strstr(error.text, "not empty"));
	if (!backup_restore(&options, path, true, &error))
		fail_msg("%s", error.text);
	world.store = drive_lead(&world.scratch);
	drive_load(world.store, &restored, 12);
	assert_true(sched_meta(restored.sched)->last_job_id >= last_job + RESTORE_GAP);
	assert_true(sched_meta(restored.sched)->term >= term + RESTORE_GAP);
	assert_int_equal(
	    scratch_number(&world.scratch, "SELECT count(*) FROM jobs"),
	    scratch_number(&world.scratch, "SELECT count(*) FROM jobs WHERE id < 1000000"));
	drive_steps(world.store, &restored, NULL, 200);
	workload_free(&restored);
	world_end(&world);
}

static void half_a_restore_is_not_started_on(void **state)
{
	struct world world;
	struct error error = { 0 };
	char path[PATH_MAX];
	(void)state;
	world_begin(&world, 100);
	struct store_options options = options_of(&world);
	path_in(&world, "backup", path, sizeof(path));
	assert_true(backup_write(&options, path, &error));
	store_free(world.store);
	scratch_execute(&world.scratch, "UPDATE schema_version SET version = -1");
	world.store = drive_open(&world.scratch, "a");
	assert_int_equal(store_lead(world.store, &error), STORE_FAILED);
	assert_non_null(strstr(error.text, "restore it again"));
	store_free(world.store);
	if (!backup_restore(&options, path, true, &error))
		fail_msg("%s", error.text);
	world.store = drive_lead(&world.scratch);
	world_end(&world);
}

static void what_is_right_has_no_findings(void **state)
{
	struct world world;
	struct check check = { 0 };
	struct error error;
	(void)state;
	world_begin(&world, 800);
	assert_true(check_run(world.store, &check, &error));
	assert_int_equal(check.count, 0);
	assert_int_equal(check.last.code, ERROR_NONE);
	check_free(&check);
	world_end(&world);
}

/* Damages the database, and repairs it so that a core can load it; returns the number of
 * records removed. */
static size_t damage_and_repair(const char *sql, const char *words)
{
	struct world world;
	struct workload repaired;
	struct check check = { 0 };
	struct buffer text = { 0 };
	struct error error;

	world_begin(&world, 700);
	scratch_execute(&world.scratch, sql);
	if (!check_run(world.store, &check, &error))
		fail_msg("%s", error.text);
	size_t count = check.count;
	buffer_text(&text, "");
	check_print(&check, &text);
	if (!strstr(text.data, words))
		fail_msg("'%s' is not in '%s'", words, text.data);
	if (!check_repair(world.store, &check, &error))
		fail_msg("%s", error.text);
	check_free(&check);
	assert_true(check_run(world.store, &check, &error));
	assert_int_equal(check.count, 0);
	assert_true(scratch_number(&world.scratch, "SELECT count(*) FROM quarantine") > 0);
	drive_load(world.store, &repaired, 13);
	workload_free(&repaired);
	buffer_free(&text);
	check_free(&check);
	world_end(&world);
	return count;
}

static void a_reservation_that_cannot_be_is_taken_out_with_its_job(void **state)
{
	(void)state;
	assert_true(damage_and_repair("UPDATE reservations SET node_id = 999 WHERE id = "
	                              "(SELECT max(id) FROM reservations)",
	                              "with a job or a node that is not there") > 1);
}

static void a_task_without_its_job_is_taken_out(void **state)
{
	(void)state;
	damage_and_repair("DELETE FROM jobs WHERE id = (SELECT min(job_id) FROM reservations "
	                  "WHERE job_id > 0)",
	                  "task");
}

static void a_job_in_a_state_that_its_tasks_are_not_in_is_found(void **state)
{
	(void)state;
	damage_and_repair(
	    "UPDATE jobs SET state = 'pending' WHERE id = "
	    "(SELECT min(job_id) FROM reservations WHERE job_id > 0 AND phase = 'live')",
	    "states that their tasks are not in");
}

static void a_slot_without_its_reservation_is_taken_out_and_no_job(void **state)
{
	(void)state;
	assert_int_equal(damage_and_repair("DELETE FROM reservations WHERE id = "
	                                   "(SELECT max(id) FROM slots)",
	                                   "is stored without its reservation"),
	                 1);
}

static void finished_jobs_are_found_listed_and_counted(void **state)
{
	struct world world;
	struct arena arena = { 0 };
	struct error error;
	struct archived_job *jobs, job;
	struct task_record *tasks;
	int64_t count, all = 0, task_count, counts[JOB_STATES];
	(void)state;
	world_begin(&world, 3000);
	struct store *reader = drive_read(&world.scratch);
	struct archive_filter filter = { .state = -1, .limit = 7 };
	assert_true(archive_count(reader, &filter, counts, &error));
	for (int i = 0; i < JOB_STATES; i++)
		all += counts[i];
	assert_true(all > 20);
	assert_int_equal(
	    all, scratch_number(&world.scratch, "SELECT count(*) FROM jobs WHERE archived"));
	int64_t listed = 0, last = INT64_MAX;
	do {
		assert_true(archive_list(reader, &filter, &arena, &jobs, &count, &error));
		for (int64_t i = 0; i < count; i++) {
			assert_true(jobs[i].job.id < last);
			assert_int_equal(jobs[i].job.id, jobs[i].state.id);
			last = filter.behind_id = jobs[i].job.id;
		}
		listed += count;
	} while (count > 0);
	assert_int_equal(listed, all);

	assert_true(archive_find(reader, last, &arena, &job, &tasks, &task_count, &error));
	assert_int_equal(job.job.id, last);
	assert_false(archive_find(reader, 999999, &arena, &job, &tasks, &task_count, &error));
	assert_int_equal(error.code, ERROR_NOT_FOUND);
	filter = (struct archive_filter){ .tenant_id = 2, .state = JOB_CANCELLED };
	assert_true(archive_list(reader, &filter, &arena, &jobs, &count, &error));
	assert_true(count > 0);
	for (int64_t i = 0; i < count; i++)
		assert_true(jobs[i].job.tenant_id == 2 && jobs[i].state.state == JOB_CANCELLED);
	store_free(reader);
	arena_free(&arena);
	world_end(&world);
}

static bool is_even(void *context, const struct job_record *job)
{
	(void)context;
	return job->id % 2 == 0;
}

static void finished_jobs_are_searched_one_by_one(void **state)
{
	struct world world;
	struct arena arena = { 0 };
	struct error error;
	struct archived_job *jobs;
	int64_t count, last = 0;
	(void)state;
	world_begin(&world, 3000);
	struct store *reader = drive_read(&world.scratch);
	int64_t even = scratch_number(&world.scratch,
	                              "SELECT count(*) FROM jobs WHERE archived AND id % 2 = 0 "
	                              "AND tenant_id IN (1, 2)");
	assert_true(even > 3);
	const int64_t tenants[] = { 1, 2 };
	struct archive_filter filter = { .tenant_ids = tenants,
		                         .tenant_count = 2,
		                         .state = -1,
		                         .oldest_first = true,
		                         .limit = 3 };
	struct archive_search search = { .wants = is_even, .most = 1000000 };
	assert_true(archive_search(reader, &filter, &search, &arena, &jobs, &count, &error));
	assert_int_equal(search.matched, even);
	assert_false(search.is_partial);
	assert_int_equal(count, 3);
	for (int64_t i = 0; i < count; i++) {
		assert_true(jobs[i].job.id > last && jobs[i].job.id % 2 == 0);
		assert_int_equal(jobs[i].state.id, jobs[i].job.id);
		last = jobs[i].job.id;
	}
	filter.behind_id = last;
	search.most = 1;
	assert_true(archive_search(reader, &filter, &search, &arena, &jobs, &count, &error));
	assert_true(search.is_partial && search.matched <= 1 && count == search.matched);
	store_free(reader);
	arena_free(&arena);
	world_end(&world);
}

static bool keep_fact(struct world *world, const char *kind, const char *key, const char *value)
{
	struct error error;
	struct batch *batch = batch_new(store_schema(world->store));
	batch_keep(batch, kind, key, "an earlier one");
	batch_keep(batch, kind, key, NULL);
	batch_keep(batch, kind, key, value);
	bool kept = store_commit(world->store, batch, &error) == STORE_DONE;
	batch_free(batch);
	return kept;
}

static bool print_kept(void *context, const struct kept *kept, struct error *error)
{
	(void)error;
	buffer_print(context, "%s/%s=%s;", kept->kind, kept->key, kept->value);
	return true;
}

static void expect_kept(struct store *store, const char *kind, const char *expected)
{
	struct buffer text = { 0 };
	struct error error;
	char start[64];
	snprintf(start, sizeof(start), "%s/", kind);
	buffer_text(&text, "");
	if (!store_load_kept(store, print_kept, &text, &error))
		fail_msg("%s", error.text);
	const char *at = strstr(text.data, start);
	assert_string_equal(at ? at : "", expected);
	buffer_free(&text);
}

static void what_is_kept_is_replaced_forgotten_and_read(void **state)
{
	struct world world;
	(void)state;
	world_begin(&world, 10);
	expect_kept(world.store, "token", "");
	assert_true(keep_fact(&world, "token", "t-1", "first"));
	expect_kept(world.store, "token", "token/t-1=first;");
	assert_true(keep_fact(&world, "token", "t-1", "o'hara; \\ \"{\",\"}\"\n\t\xc3\xa9 \xff"));
	expect_kept(world.store, "token", "token/t-1=o'hara; \\ \"{\",\"}\"\n\t\xc3\xa9 \xff;");
	assert_true(keep_fact(&world, "token", "t-1", NULL));
	expect_kept(world.store, "token", "");
	world_end(&world);
}

static void what_is_kept_is_part_of_a_backup(void **state)
{
	struct world world;
	struct error error = { 0 };
	char path[PATH_MAX];
	(void)state;
	world_begin(&world, 10);
	struct store_options options = options_of(&world);
	path_in(&world, "backup", path, sizeof(path));
	assert_true(keep_fact(&world, "token", "t-1", "first"));
	assert_true(backup_write(&options, path, &error));
	assert_true(keep_fact(&world, "token", "t-2", "second"));
	store_free(world.store);
	if (!backup_restore(&options, path, true, &error))
		fail_msg("%s", error.text);
	world.store = drive_lead(&world.scratch);
	expect_kept(world.store, "token", "token/t-1=first;");
	world_end(&world);
}

static void decisions_are_found_by_job_kind_node_and_tenant(void **state)
{
	struct world world;
	struct arena arena = { 0 };
	struct error error;
	struct decision_record *decisions;
	int64_t count, all = 0, last = INT64_MAX;
	(void)state;
	world_begin(&world, 1500);
	struct store *reader = drive_read(&world.scratch);
	struct decision_filter filter = { .kind = -1, .limit = 50 };
	do {
		assert_true(archive_decisions(reader, &filter, &arena, &decisions, &count, &error));
		for (int64_t i = 0; i < count; i++) {
			assert_true(decisions[i].id < last);
			last = filter.before_id = decisions[i].id;
		}
		all += count;
	} while (count > 0);
	assert_int_equal(all, scratch_number(&world.scratch, "SELECT count(*) FROM decisions"));

	filter = (struct decision_filter){ .kind = DECISION_START };
	assert_true(archive_decisions(reader, &filter, &arena, &decisions, &count, &error));
	assert_true(count > 0);
	int64_t job_id = decisions[0].job_id, tenant_id = decisions[0].tenant_id;
	for (int64_t i = 0; i < count; i++)
		assert_int_equal(decisions[i].kind, DECISION_START);
	filter = (struct decision_filter){ .kind = -1, .job_id = job_id };
	assert_true(archive_decisions(reader, &filter, &arena, &decisions, &count, &error));
	assert_true(count > 0);
	for (int64_t i = 0; i < count; i++)
		assert_int_equal(decisions[i].job_id, job_id);
	int64_t gpu_ids[] = { 1, 2 };
	filter = (struct decision_filter){ .kind = -1,
		                           .gpu_ids = gpu_ids,
		                           .gpu_count = 2,
		                           .tenant_ids = &tenant_id,
		                           .tenant_count = 1 };
	assert_true(archive_decisions(reader, &filter, &arena, &decisions, &count, &error));
	assert_true(count > 0);
	for (int64_t i = 0; i < count; i++) {
		bool is_about = false;
		for (int64_t j = 0; j < decisions[i].gpus.count; j++) {
			int64_t gpu_id = decisions[i].gpus.at[j * LINE_WIDTH + LINE_GPU];
			is_about = is_about || gpu_id == 1 || gpu_id == 2;
		}
		assert_true(is_about);
		assert_int_equal(decisions[i].tenant_id, tenant_id);
	}
	store_free(reader);
	arena_free(&arena);
	world_end(&world);
}

static void events_go_on_from_the_last_number_seen(void **state)
{
	struct world world;
	struct arena arena = { 0 };
	struct error error;
	struct event *events;
	struct event_filter filter = { .limit = 100 };
	int64_t count, all = 0, job_id = 0;
	(void)state;
	world_begin(&world, 1500);
	struct store *reader = drive_read(&world.scratch);
	do {
		assert_true(archive_events(reader, &filter, &arena, &events, &count, &error));
		for (int64_t i = 0; i < count; i++) {
			assert_true(events[i].number > filter.since);
			filter.since = events[i].number;
			job_id = events[i].job_id ? events[i].job_id : job_id;
		}
		all += count;
	} while (count > 0);
	assert_int_equal(all, scratch_number(&world.scratch, "SELECT count(*) FROM events"));
	filter = (struct event_filter){ .job_id = job_id };
	assert_true(archive_events(reader, &filter, &arena, &events, &count, &error));
	assert_true(count > 0);
	for (int64_t i = 0; i < count; i++)
		assert_int_equal(events[i].job_id, job_id);
	store_free(reader);
	arena_free(&arena);
	world_end(&world);
}

static bool keep_add_up(void *context, int64_t tenant_id, enum job_state state, int64_t count,
                        struct error *error)
{
	int64_t *sums = context;
	(void)error;
	sums[0] += count;
	if (tenant_id == 2 && state == JOB_CANCELLED)
		sums[1] = count;
	return true;
}

static void archived_jobs_are_counted_by_tenant_and_state_at_once(void **state)
{
	struct world world;
	struct error error;
	int64_t sums[2] = { 0 };
	(void)state;
	world_begin(&world, 3000);
	struct store *reader = drive_read(&world.scratch);
	assert_true(archive_count_each(reader, keep_add_up, sums, &error));
	assert_int_equal(
	    sums[0], scratch_number(&world.scratch, "SELECT count(*) FROM jobs WHERE archived"));
	assert_true(sums[1] > 0);
	assert_int_equal(sums[1], scratch_number(&world.scratch,
	                                         "SELECT count(*) FROM jobs WHERE archived AND "
	                                         "tenant_id = 2 AND state = 'cancelled'"));
	store_free(reader);
	world_end(&world);
}

static void usage_of_a_period_is_what_its_parts_add_up_to(void **state)
{
	struct world world;
	struct arena arena = { 0 };
	struct error error;
	struct usage *usage;
	int64_t count, sums[3] = { 0 };
	(void)state;
	world_begin(&world, 3000);
	int64_t now_ms = world.workload.now_ms, middle_ms = now_ms - 10000;
	const struct period {
		int64_t from_ms, until_ms;
	} periods[] = { { 0, now_ms }, { 0, middle_ms }, { middle_ms, INT64_MAX } };
	struct store *reader = drive_read(&world.scratch);
	for (int i = 0; i < 3; i++) {
		if (!usage_read(reader, 0, periods[i].from_ms, periods[i].until_ms, now_ms, &arena,
		                &usage, &count, &error))
			fail_msg("%s", error.text);
		for (int64_t j = 0; j < count; j++)
			sums[i] += usage[j].gpu_ms;
	}
	assert_true(sums[1] > 0 && sums[2] > 0);
	assert_int_equal(sums[0], sums[1] + sums[2]);
	int64_t ended = 0;
	for (int64_t j = 0;
	     usage_read(reader, 0, 0, now_ms + 1, now_ms + 1, &arena, &usage, &count, &error) &&
	     j < count;
	     j++)
		ended += usage[j].completed + usage[j].failed + usage[j].cancelled;
	assert_int_equal(ended,
	                 scratch_number(&world.scratch, "SELECT count(*) FROM jobs WHERE state IN "
	                                                "('completed', 'failed', 'cancelled')"));
	store_free(reader);
	arena_free(&arena);
	world_end(&world);
}

static void what_is_too_old_is_deleted_and_nothing_else(void **state)
{
	struct world world;
	struct error error;
	(void)state;
	world_begin(&world, 3000);
	int64_t now_ms = world.workload.now_ms;
	struct batch *batch = batch_new(store_schema(world.store));
	struct retention retention = {
		.decisions_ms = 10000, .events_ms = 20000, .jobs_ms = 15000, .runs_ms = 25000
	};
	int64_t live =
	    scratch_number(&world.scratch, "SELECT count(*) FROM jobs WHERE NOT archived");
	retention_sql(&retention, now_ms, &batch->sql);
	assert_int_equal(store_commit(world.store, batch, &error), STORE_DONE);
	char sql[160];
	const char *const old[] = { "decisions WHERE time_ms < %lld", "events WHERE time_ms < %lld",
		                    "jobs WHERE archived AND completed_ms < %lld",
		                    "runs WHERE ended_ms < %lld" };
	const int64_t ages[] = { 10000, 20000, 15000, 25000 };
	const char *const tables[] = { "decisions", "events", "jobs WHERE archived", "runs" };
	for (int i = 0; i < 4; i++) {
		char condition[96];
		snprintf(condition, sizeof(condition), old[i], (long long)(now_ms - ages[i]));
		snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s", condition);
		assert_int_equal(scratch_number(&world.scratch, sql), 0);
		snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s", tables[i]);
		assert_true(scratch_number(&world.scratch, sql) > 0);
	}
	assert_int_equal(scratch_number(&world.scratch,
	                                "SELECT count(*) FROM tasks WHERE job_id NOT IN "
	                                "(SELECT id FROM jobs)"),
	                 0);
	assert_int_equal(
	    scratch_number(&world.scratch, "SELECT count(*) FROM jobs WHERE NOT archived"), live);
	batch_free(batch);
	world_end(&world);
}

static void jobs_are_loaded_from_the_first_that_is_not_archived(void **state)
{
	struct world world;
	struct workload loaded;
	struct error error;
	(void)state;
	world_begin(&world, 3000);
	struct batch *batch = batch_new(store_schema(world.store));
	for (int i = 0; i < 2; i++) {
		batch_clear(batch);
		retention_advance_sql(&batch->sql);
		if (store_commit(world.store, batch, &error) != STORE_DONE)
			fail_msg("%s", error.text);
		int64_t from = scratch_number(&world.scratch, "SELECT jobs_from FROM leader");
		assert_int_equal(
		    from,
		    scratch_number(&world.scratch, "SELECT min(id) FROM jobs WHERE NOT archived"));
		assert_true(from > 1);
	}
	drive_load(world.store, &loaded, 1);
	workload_free(&loaded);
	scratch_execute(&world.scratch, "UPDATE jobs SET archived = (1 = 1)");
	assert_int_equal(store_commit(world.store, batch, &error), STORE_DONE);
	assert_int_equal(scratch_number(&world.scratch, "SELECT jobs_from FROM leader"),
	                 scratch_number(&world.scratch, "SELECT max(id) + 1 FROM jobs"));
	batch_free(batch);
	world_end(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_backup_has_everything_while_the_scheduler_works),
		cmocka_unit_test(a_restored_database_goes_on_beyond_what_was_given_out),
		cmocka_unit_test(half_a_restore_is_not_started_on),
		cmocka_unit_test(what_is_right_has_no_findings),
		cmocka_unit_test(a_reservation_that_cannot_be_is_taken_out_with_its_job),
		cmocka_unit_test(a_task_without_its_job_is_taken_out),
		cmocka_unit_test(a_job_in_a_state_that_its_tasks_are_not_in_is_found),
		cmocka_unit_test(a_slot_without_its_reservation_is_taken_out_and_no_job),
		cmocka_unit_test(finished_jobs_are_found_listed_and_counted),
		cmocka_unit_test(finished_jobs_are_searched_one_by_one),
		cmocka_unit_test(what_is_kept_is_replaced_forgotten_and_read),
		cmocka_unit_test(what_is_kept_is_part_of_a_backup),
		cmocka_unit_test(decisions_are_found_by_job_kind_node_and_tenant),
		cmocka_unit_test(events_go_on_from_the_last_number_seen),
		cmocka_unit_test(archived_jobs_are_counted_by_tenant_and_state_at_once),
		cmocka_unit_test(usage_of_a_period_is_what_its_parts_add_up_to),
		cmocka_unit_test(what_is_too_old_is_deleted_and_nothing_else),
		cmocka_unit_test(jobs_are_loaded_from_the_first_that_is_not_archived),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
