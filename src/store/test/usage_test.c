/* usage_test.c - what tenants used in a period is what every run adds up to */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "store/archive.h"
#include "store/backend.h"
#include "store/test/drive.h"
#include "store/usage.h"

enum { STEPS = 4000, ROUNDING = STEPS /* millionths: one for each time a meter is read */ };

struct world {
	struct scratch scratch;
	struct store *store;
	struct workload workload;
	struct store *reader;
	struct arena arena;
};

static void world_begin(struct world *world)
{
	memset(world, 0, sizeof(*world));
	scratch_begin(&world->scratch);
	world->store = drive_lead(&world->scratch);
	drive_load(world->store, &world->workload, 5);
	drive_steps(world->store, &world->workload, NULL, STEPS);
	world->reader = drive_read(&world->scratch);
}

static void world_end(struct world *world)
{
	store_free(world->reader);
	store_free(world->store);
	workload_free(&world->workload);
	arena_free(&world->arena);
	scratch_end(&world->scratch);
}

struct span {
	int64_t from_ms, until_ms;
};

/* Of one tenant over a period; all zero where it used nothing. */
static struct usage usage_used(struct world *world, int64_t tenant_id, struct span span)
{
	struct usage *usage;
	int64_t count;
	struct error error;
	int64_t now_ms = sched_meta(world->workload.sched)->now_ms;
	if (!usage_read(world->reader, tenant_id, span.from_ms, span.until_ms, now_ms,
	                &world->arena, &usage, &count, &error))
		fail_msg("%s", error.text);
	assert_true(count <= 1);
	return count == 1 ? usage[0] : (struct usage){ .tenant_id = tenant_id };
}

static const struct span ever = { 0, INT64_MAX };

static int64_t usage_number(struct world *world, const char *sql)
{
	return scratch_number(&world->scratch, sql);
}

static void the_work_has_everything_in_it_that_is_billed(void **state)
{
	struct world world;
	(void)state;
	world_begin(&world);
	assert_true(usage_number(&world, "SELECT count(*) FROM runs WHERE ending = 'preempted'") >
	            0);
	assert_true(usage_number(&world, "SELECT count(*) FROM runs WHERE ending = 'requeued'") >
	            0);
	assert_true(usage_number(&world, "SELECT count(*) FROM runs WHERE ending = 'completed'") >
	            0);
	assert_true(usage_number(&world, "SELECT count(*) FROM runs WHERE ending = 'cancelled'") >
	            0);
	assert_true(usage_number(&world, "SELECT count(*) FROM runs WHERE memory_mib > 0") > 0);
	assert_true(usage_number(&world, "SELECT count(*) FROM runs WHERE task > 0") > 0);
	assert_true(usage_number(&world, "SELECT count(*) FROM runs WHERE job_id = 0") +
	                usage_number(&world, "SELECT count(*) FROM slots") >
	            0);
	assert_true(usage_number(&world, "SELECT count(*) FROM runs JOIN jobs ON jobs.id = job_id "
	                                 "WHERE archived") > 0);
	assert_true(usage_number(&world, "SELECT count(*) FROM prices") > 10);
	assert_true(usage_number(&world, "SELECT count(*) FROM (SELECT job_id, task FROM runs "
	                                 "WHERE job_id > 0 GROUP BY job_id, task "
	                                 "HAVING count(*) > 1) AS again") > 0);
	world_end(&world);
}

static void over_all_time_it_is_what_the_meters_of_the_tenants_say(void **state)
{
	struct world world;
	struct tenant_figures figures;
	(void)state;
	world_begin(&world);
	for (int64_t tenant = 1; tenant <= 3; tenant++) {
		assert_true(sched_tenant_figures(world.workload.sched, tenant, &figures));
		struct usage usage = usage_used(&world, tenant, ever);
		assert_true(usage.gpu_ms > 0 && usage.cost > 0 && usage.runs > usage.jobs);
		assert_int_equal(usage.gpu_ms, figures.gpu_ms);
		assert_in_range(usage.cost - figures.cost, 0, ROUNDING);
		assert_true(usage.cost > 2 * ROUNDING);
	}
	world_end(&world);
}

static void parts_of_a_period_add_up_to_it(void **state)
{
	struct world world;
	(void)state;
	world_begin(&world);
	int64_t now_ms = sched_meta(world.workload.sched)->now_ms;
	struct usage all = usage_used(&world, 1, ever);
	for (int64_t cut_ms = now_ms - 50000; cut_ms < now_ms; cut_ms += 7777) {
		struct usage before = usage_used(&world, 1, (struct span){ 0, cut_ms });
		struct usage after = usage_used(&world, 1, (struct span){ cut_ms, INT64_MAX });
		assert_int_equal(before.gpu_ms + after.gpu_ms, all.gpu_ms);
		assert_in_range(all.cost - before.cost - after.cost, 0, 10);
	}
	world_end(&world);
}

static void idle_and_lost_time_is_part_of_the_whole(void **state)
{
	struct world world;
	int64_t lost = 0, idle = 0;
	(void)state;
	world_begin(&world);
	int64_t now_ms = sched_meta(world.workload.sched)->now_ms;
	for (int64_t tenant = 1; tenant <= 3; tenant++) {
		struct usage all = usage_used(&world, tenant, ever);
		assert_in_range(all.waste.idle_gpu_ms + all.waste.lost_gpu_ms, 0, all.gpu_ms);
		for (int64_t cut_ms = now_ms - 50000; cut_ms < now_ms; cut_ms += 17777) {
			struct usage before =
			    usage_used(&world, tenant, (struct span){ 0, cut_ms });
			struct usage after =
			    usage_used(&world, tenant, (struct span){ cut_ms, INT64_MAX });
			assert_int_equal(before.waste.lost_gpu_ms + after.waste.lost_gpu_ms,
			                 all.waste.lost_gpu_ms);
			assert_int_equal(before.waste.idle_gpu_ms + after.waste.idle_gpu_ms,
			                 all.waste.idle_gpu_ms);
		}
		lost += all.waste.lost_gpu_ms;
		idle += all.waste.idle_gpu_ms;
	}
	assert_true(lost > 0 && idle > 0);
	/* Run by run: what was stopped has only what it saved. */
	int64_t stopped = usage_number(
	    &world, "SELECT coalesce(sum(share * (ended_ms - started_ms)), 0) FROM runs "
		    "WHERE job_id > 0 AND started_ms > 0 AND saved_ms = 0 AND "
		    "ending NOT IN ('completed', 'goes_on')");
	int64_t saved = usage_number(
	    &world, "SELECT coalesce(sum(share * (ended_ms - CASE WHEN started_ms > saved_ms "
		    "THEN started_ms ELSE saved_ms END)), 0) FROM runs WHERE job_id > 0 AND "
		    "started_ms > 0 AND saved_ms > 0 AND ending NOT IN ('completed', 'goes_on')");
	assert_int_equal(lost, stopped + saved);
	world_end(&world);
}

static void owners_have_what_their_jobs_have(void **state)
{
	struct world world;
	struct job_usage *jobs;
	struct owner_usage *owners;
	struct error error;
	int64_t job_count, owner_count, sums[3] = { 0 }, all[3] = { 0 };
	(void)state;
	world_begin(&world);
	const struct job_usage_filter filter = { .until_ms = INT64_MAX,
		                                 .now_ms = sched_meta(world.workload.sched)->now_ms,
		                                 .limit = 100000 };
	assert_true(
	    usage_read_jobs(world.reader, &filter, &world.arena, &jobs, &job_count, &error));
	assert_true(
	    usage_read_owners(world.reader, &filter, &world.arena, &owners, &owner_count, &error));
	assert_true(job_count > 0 && owner_count > 0);
	for (int64_t i = 0; i < job_count; i++) {
		all[0] += jobs[i].gpu_ms;
		all[1] += jobs[i].waste.idle_gpu_ms;
		all[2] += jobs[i].waste.lost_gpu_ms;
	}
	for (int64_t i = 0; i < owner_count; i++) {
		sums[0] += owners[i].gpu_ms;
		sums[1] += owners[i].waste.idle_gpu_ms;
		sums[2] += owners[i].waste.lost_gpu_ms;
		assert_true(owners[i].jobs > 0);
		assert_true(i == 0 || owners[i].gpu_ms <= owners[i - 1].gpu_ms);
	}
	for (int i = 0; i < 3; i++)
		assert_int_equal(sums[i], all[i]);
	world_end(&world);
}

static void jobs_that_are_no_longer_stored_still_count(void **state)
{
	struct world world;
	(void)state;
	world_begin(&world);
	struct usage before = usage_used(&world, 2, ever);
	scratch_execute(&world.scratch, "DELETE FROM tasks WHERE archived");
	scratch_execute(&world.scratch, "DELETE FROM jobs WHERE archived");
	struct usage after = usage_used(&world, 2, ever);
	assert_int_equal(after.gpu_ms, before.gpu_ms);
	assert_int_equal(after.cost, before.cost);
	assert_int_equal(after.jobs, before.jobs);
	world_end(&world);
}

static void the_runs_of_a_job_are_told_last_one_first(void **state)
{
	struct world world;
	struct run_record *runs;
	struct error error;
	int64_t count;
	(void)state;
	world_begin(&world);
	int64_t job =
	    usage_number(&world, "SELECT max(job_id) FROM runs WHERE ending = 'preempted'");
	assert_true(archive_runs(world.reader, job, &world.arena, &runs, &count, &error));
	assert_true(count > 0);
	bool preempted = false;
	for (int64_t i = 0; i < count; i++) {
		assert_int_equal(runs[i].job_id, job);
		preempted = preempted || runs[i].ending == RUN_PREEMPTED;
		if (i > 0 && runs[i - 1].ended_ms > 0)
			assert_true(runs[i].id < runs[i - 1].id);
	}
	assert_true(preempted);
	world_end(&world);
}

/* As a database was before there were runs. */
static void make_old(struct world *world)
{
	const char *const statements[] = {
		"DROP TABLE runs",
		"DROP TABLE prices",
		"ALTER TABLE reservations DROP COLUMN counted_ms",
		"ALTER TABLE reservations DROP COLUMN started_ms",
		"ALTER TABLE reservations DROP COLUMN ending",
		"ALTER TABLE reservations DROP COLUMN run_id",
		"ALTER TABLE meta DROP COLUMN last_run_id",
	};
	for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]); i++)
		scratch_execute(&world->scratch, statements[i]);
}

static void an_older_database_brings_the_last_run_of_each_task_along_once(void **state)
{
	struct world world;
	struct workload loaded;
	(void)state;
	world_begin(&world);
	store_free(world.store);
	store_free(world.reader);
	make_old(&world);
	int64_t ended = usage_number(&world, "SELECT count(*) FROM tasks WHERE state = 'ended' "
	                                     "AND started_ms > 0");
	assert_true(ended > 0);
	for (int i = 0; i < 2; i++) {
		store_free(drive_lead(&world.scratch));
		assert_int_equal(usage_number(&world, "SELECT count(*) FROM runs"), ended);
		assert_int_equal(usage_number(&world, "SELECT last_run_id FROM meta"), ended);
		assert_int_equal(usage_number(&world, "SELECT count(*) FROM prices"), 3);
	}
	world.store = drive_lead(&world.scratch);
	drive_load(world.store, &loaded, 6);
	drive_steps(world.store, &loaded, NULL, 500);
	assert_true(usage_number(&world, "SELECT count(*) FROM runs") > ended);
	assert_int_equal(usage_number(&world, "SELECT count(*) FROM runs WHERE began_ms = 0"), 0);
	world.reader = drive_read(&world.scratch);
	assert_true(usage_used(&world, 1, ever).gpu_ms > 0);
	workload_free(&loaded);
	world_end(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_work_has_everything_in_it_that_is_billed),
		cmocka_unit_test(over_all_time_it_is_what_the_meters_of_the_tenants_say),
		cmocka_unit_test(parts_of_a_period_add_up_to_it),
		cmocka_unit_test(idle_and_lost_time_is_part_of_the_whole),
		cmocka_unit_test(owners_have_what_their_jobs_have),
		cmocka_unit_test(jobs_that_are_no_longer_stored_still_count),
		cmocka_unit_test(the_runs_of_a_job_are_told_last_one_first),
		cmocka_unit_test(an_older_database_brings_the_last_run_of_each_task_along_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
