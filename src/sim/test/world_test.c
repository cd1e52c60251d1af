/* world_test.c - records are kept as a store would keep them */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sim/world/world.h"

static void world_put_tenant(struct world *world, int64_t id, const char *name)
{
	struct tenant_record tenant = { .id = id, .name = name };
	world_put(world, RECORD_TENANT, &tenant);
}

static void what_is_kept_is_a_copy_with_its_texts_and_rows(void **state)
{
	(void)state;
	struct world world = { 0 };
	char name[] = "lab";
	int64_t parts[] = { 1, 8000, 250, 0, 0 };
	struct reservation_record reservation = { .id = 7, .parts = { parts, 1 } };
	world_put_tenant(&world, 3, name);
	world_put(&world, RECORD_RESERVATION, &reservation);
	name[0] = 'x';
	parts[PART_MIB] = 1;

	const struct tenant_record *tenant = world_find(&world, RECORD_TENANT, 3, 0);
	const struct reservation_record *kept = world_find(&world, RECORD_RESERVATION, 7, 0);
	assert_string_equal(tenant->name, "lab");
	assert_int_equal(kept->parts.count, 1);
	assert_int_equal(kept->parts.at[PART_MIB], 8000);
	world_free(&world);
}

static void texts_that_are_missing_are_kept_as_empty_ones(void **state)
{
	(void)state;
	struct world world = { 0 };
	struct node_record node = { .id = 1, .name = "node-a" };
	world_put(&world, RECORD_NODE, &node);
	const struct node_record *kept = world_find(&world, RECORD_NODE, 1, 0);
	assert_string_equal(kept->name, "node-a");
	assert_string_equal(kept->rack, "");
	assert_string_equal(kept->labels, "");
	world_free(&world);
}

static void a_record_takes_the_place_of_the_one_with_its_key(void **state)
{
	(void)state;
	struct world world = { 0 };
	world_put_tenant(&world, 3, "lab");
	world_put_tenant(&world, 3, "factory");
	const struct tenant_record *kept = world_find(&world, RECORD_TENANT, 3, 0);
	assert_string_equal(kept->name, "factory");
	assert_int_equal(world.kept[RECORD_TENANT].count, 1);
	world_free(&world);
}

static void tasks_are_kept_by_job_and_place(void **state)
{
	(void)state;
	struct world world = { 0 };
	for (int64_t place = 0; place < 3; place++) {
		struct task_record task = { .job_id = 5, .place = place, .exit_code = place * 10 };
		world_put(&world, RECORD_TASK, &task);
	}
	const struct task_record *kept = world_find(&world, RECORD_TASK, 5, 2);
	assert_int_equal(kept->exit_code, 20);
	assert_null(world_find(&world, RECORD_TASK, 5, 3));
	assert_null(world_find(&world, RECORD_TASK, 4, 2));
	world_free(&world);
}

static void what_effects_delete_is_gone(void **state)
{
	(void)state;
	struct world world = { 0 };
	struct effects effects = { 0 };
	world_put_tenant(&world, 3, "lab");
	effects_delete(&effects, RECORD_TENANT, 3, 0);
	effects_delete(&effects, RECORD_TENANT, 4, 0);
	world_apply(&world, &effects);
	assert_null(world_find(&world, RECORD_TENANT, 3, 0));
	effects_free(&effects);
	world_free(&world);
}

static void what_effects_archive_can_be_read_and_is_not_loaded(void **state)
{
	(void)state;
	struct world world = { 0 };
	struct effects effects = { 0 };
	struct decision_record decision = { .id = 9, .job_id = 5 };
	effects_put(&effects, RECORD_DECISION, &decision);
	effects_archive(&effects, RECORD_DECISION, 9, 0);
	world_apply(&world, &effects);
	const struct decision_record *found = world_find(&world, RECORD_DECISION, 9, 0);
	assert_int_equal(found->job_id, 5);
	assert_int_equal(world.kept[RECORD_DECISION].count, 0);
	effects_free(&effects);
	world_free(&world);
}

static void a_core_goes_on_with_the_records_of_another(void **state)
{
	(void)state;
	struct world world = { 0 };
	struct effects effects = { 0 };
	struct error error = { 0 };
	struct command command = { .kind = COMMAND_TIME, .now_ms = 5000 };
	struct sched *first = sched_new();
	assert_true(sched_apply(first, &command, &effects, &error));
	world_apply(&world, &effects);

	struct sched *second = world_load(&world, &error);
	assert_non_null(second);
	sched_check(second);
	assert_true(record_equal(RECORD_META, sched_meta(first), sched_meta(second)));
	sched_free(first);
	sched_free(second);
	effects_free(&effects);
	world_free(&world);
}

static void records_that_contradict_themselves_are_refused_with_a_reason(void **state)
{
	(void)state;
	struct world world = { 0 };
	struct error error = { 0 };
	struct task_record task = { .job_id = 5, .place = 0, .state = TASK_RUNNING };
	world_put(&world, RECORD_TASK, &task);
	assert_null(world_load(&world, &error));
	assert_true(strlen(error.text) > 0);
	world_free(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_kept_is_a_copy_with_its_texts_and_rows),
		cmocka_unit_test(texts_that_are_missing_are_kept_as_empty_ones),
		cmocka_unit_test(a_record_takes_the_place_of_the_one_with_its_key),
		cmocka_unit_test(tasks_are_kept_by_job_and_place),
		cmocka_unit_test(what_effects_delete_is_gone),
		cmocka_unit_test(what_effects_archive_can_be_read_and_is_not_loaded),
		cmocka_unit_test(a_core_goes_on_with_the_records_of_another),
		cmocka_unit_test(records_that_contradict_themselves_are_refused_with_a_reason),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
