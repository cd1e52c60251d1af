/* catalogue_test.c - what readers see follows what becomes durable */
#include "api/read/catalogue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
/* After those. */
#include <cmocka.h>

#include "core/sched.h"

/* A core whose effects go to a catalogue as if they were durable at once. */
struct world {
	struct schema schema;
	struct sched *sched;
	struct effects effects;
	struct batch *batch;
	struct catalogue *catalogue;
	int64_t now_ms;
};

static int catalogue_set_up(void **state)
{
	struct world *world = NEW(struct world);
	schema_init(&world->schema);
	world->sched = sched_new();
	world->batch = batch_new(&world->schema);
	world->catalogue = catalogue_new();
	world->now_ms = 1000;
	*state = world;
	return 0;
}

static int catalogue_tear_down(void **state)
{
	struct world *world = *state;
	catalogue_free(world->catalogue);
	batch_free(world->batch);
	effects_free(&world->effects);
	sched_free(world->sched);
	free(world);
	return 0;
}

static int64_t catalogue_execute(struct world *world, struct command command)
{
	struct error error = { 0 };
	command.now_ms = world->now_ms;
	effects_clear(&world->effects);
	if (!sched_apply(world->sched, &command, &world->effects, &error))
		fail_msg("%s", error.text);
	batch_add(world->batch, &command, &world->effects, NULL);
	return world->effects.reply_id;
}

static void catalogue_commit(struct world *world)
{
	catalogue_apply(world->catalogue, world->batch);
	batch_clear(world->batch);
}

static int64_t tenant(struct world *world, const char *name)
{
	return catalogue_execute(world,
	                         (struct command){ .kind = COMMAND_PUT_TENANT,
	                                           .tenant = { .name = name,
	                                                       .payload = "{}",
	                                                       .limit_gpu = UNLIMITED,
	                                                       .limit_cpu = UNLIMITED,
	                                                       .limit_host = UNLIMITED,
	                                                       .limit_gpu_memory = UNLIMITED,
	                                                       .limit_jobs = UNLIMITED,
	                                                       .quota_gpu = QUOTA_UNSET,
	                                                       .quota_cpu = QUOTA_UNSET,
	                                                       .quota_host = QUOTA_UNSET,
	                                                       .weight = 1000,
	                                                       .allow_preemption = true,
	                                                       .max_preemptions = UNLIMITED,
	                                                       .queue_max = UNLIMITED,
	                                                       .budget_per_month = UNLIMITED } });
}

static int64_t job(struct world *world, int64_t tenant_id, int64_t priority)
{
	return catalogue_execute(
	    world, (struct command){ .kind = COMMAND_SUBMIT,
	                             .submit = { .job = { .tenant_id = tenant_id,
	                                                  .name = "train",
	                                                  .payload = "{}",
	                                                  .priority = priority,
	                                                  .gpu_kind = GPU_WHOLE,
	                                                  .gpu_count = 1,
	                                                  .gpu_models = "",
	                                                  .node_labels = "",
	                                                  .idempotency_key = "" } } });
}

static void node(struct world *world, const char *name, const char *uuid)
{
	struct device device = { .uuid = uuid,
		                 .model = "H100",
		                 .mig_parent = "",
		                 .capacity_mib = 81920,
		                 .healthy = true };
	catalogue_execute(world, (struct command){ .kind = COMMAND_NODE_REPORT,
	                                           .report = { .name = name,
	                                                       .boot = "1",
	                                                       .zone = "",
	                                                       .rack = "",
	                                                       .labels = "",
	                                                       .cpu_milli = 64000,
	                                                       .host_bytes = INT64_C(1) << 38,
	                                                       .devices = &device,
	                                                       .device_count = 1,
	                                                       .snapshot = true } });
}

static void nothing_is_seen_before_it_is_durable(void **state)
{
	struct world *world = *state;
	int64_t id = job(world, tenant(world, "lab"), 100);
	struct catalogue_job seen;
	assert_false(catalogue_job(world->catalogue, id, &seen));
	catalogue_commit(world);
	assert_true(catalogue_job(world->catalogue, id, &seen));
	assert_string_equal(seen.job->name, "train");
	assert_int_equal(seen.state->state, JOB_PENDING);
	assert_string_equal(catalogue_tenant_named(world->catalogue, "lab")->payload, "{}");
}

static void jobs_are_listed_by_tenant_state_and_order(void **state)
{
	struct world *world = *state;
	int64_t lab = tenant(world, "lab"), team = tenant(world, "team"), ids[8], archived;
	int64_t low = job(world, lab, 100), other = job(world, team, 900),
		high = job(world, lab, 500);
	catalogue_commit(world);
	catalogue_execute(world, (struct command){ .kind = COMMAND_CANCEL, .id = low });
	catalogue_commit(world);

	struct catalogue_filter all = { .state = -1 }, by_priority = all, of_lab = all;
	by_priority.order = ORDER_PRIORITY;
	of_lab.tenant_id = lab;
	assert_int_equal(catalogue_list(world->catalogue, &all, 0, 8, ids), 3);
	assert_int_equal(ids[0], high);
	assert_int_equal(ids[2], low);
	assert_int_equal(catalogue_list(world->catalogue, &all, 1, 1, ids), 1);
	assert_int_equal(ids[0], other);
	assert_int_equal(catalogue_list(world->catalogue, &by_priority, 0, 8, ids), 3);
	assert_int_equal(ids[0], other);
	assert_int_equal(ids[1], high);
	assert_int_equal(catalogue_count(world->catalogue, &of_lab, &archived), 2);
	of_lab.state = JOB_CANCELLED;
	assert_int_equal(catalogue_list(world->catalogue, &of_lab, 0, 8, ids), 1);
	assert_int_equal(ids[0], low);
	assert_int_equal(catalogue_rank(world->catalogue, &all, other), 1);
}

static void a_job_that_is_archived_is_only_counted(void **state)
{
	struct world *world = *state;
	int64_t id = job(world, tenant(world, "lab"), 100), archived = 0;
	catalogue_execute(world, (struct command){ .kind = COMMAND_CANCEL, .id = id });
	catalogue_commit(world);
	world->now_ms += INT64_C(1000) * 60 * 60 * 24;
	catalogue_execute(world, (struct command){ .kind = COMMAND_TIME });
	catalogue_commit(world);
	struct catalogue_job seen;
	struct catalogue_filter filter = { .state = JOB_CANCELLED };
	assert_false(catalogue_job(world->catalogue, id, &seen));
	assert_int_equal(catalogue_count(world->catalogue, &filter, &archived), 0);
	assert_int_equal(archived, 1);
}

static void what_a_node_has_is_found_by_its_name(void **state)
{
	struct world *world = *state;
	const struct gpu_record *const *gpus;
	const struct reservation_record *const *reservations;
	node(world, "one", "GPU-1");
	int64_t id = job(world, tenant(world, "lab"), 100);
	catalogue_execute(world, (struct command){ .kind = COMMAND_PASS, .units = 10 });
	catalogue_commit(world);
	const struct node_record *one = catalogue_node_named(world->catalogue, "one");
	assert_non_null(one);
	assert_int_equal(catalogue_node_gpus(world->catalogue, one->id, &gpus), 1);
	assert_string_equal(gpus[0]->uuid, "GPU-1");
	assert_int_equal(catalogue_node_reservations(world->catalogue, one->id, &reservations), 1);
	assert_int_equal(reservations[0]->job_id, id);
	struct catalogue_job seen;
	assert_true(catalogue_job(world->catalogue, id, &seen));
	assert_int_equal(seen.task_count, 1);
	assert_int_equal(seen.state->state, JOB_SCHEDULED);

	catalogue_execute(world, (struct command){ .kind = COMMAND_TASK_EXITED,
	                                           .task = { .reservation_id = reservations[0]->id,
	                                                     .released = true,
	                                                     .message = "" } });
	catalogue_commit(world);
	assert_int_equal(catalogue_node_reservations(world->catalogue, one->id, &reservations), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nothing_is_seen_before_it_is_durable,
		                                catalogue_set_up, catalogue_tear_down),
		cmocka_unit_test_setup_teardown(jobs_are_listed_by_tenant_state_and_order,
		                                catalogue_set_up, catalogue_tear_down),
		cmocka_unit_test_setup_teardown(a_job_that_is_archived_is_only_counted,
		                                catalogue_set_up, catalogue_tear_down),
		cmocka_unit_test_setup_teardown(what_a_node_has_is_found_by_its_name,
		                                catalogue_set_up, catalogue_tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
