/* node_report_test.c - what nodes tell of their GPUs: always recorded, however unwelcome */
#include "core/record/orchestrator.h"
#include "core/test/harness.h"

/* A tenant, and a node n1 whose two GPUs are n1-gpu0 and n1-gpu1. */
struct lab {
	struct harness *h;
	int64_t tenant;
};

static struct lab node_report_lab_new(void)
{
	struct lab lab = { .h = harness_new() };

	add_node(lab.h, "n1", 2, 80000);
	lab.tenant = put_tenant(lab.h, tenant_named("lab"));
	return lab;
}

/* n1 reports its first GPU with this capacity and this foreign memory, and no other. */
static void report_first(struct lab lab, int64_t capacity_mib, int64_t foreign_mib)
{
	struct device device = device_of("n1-gpu0", 0, capacity_mib);

	device.foreign_mib = foreign_mib;
	must(lab.h, report(lab.h, report_of("n1", &device, 1)));
}

static void node_report_measured(struct lab lab, int64_t reservation_id, const char *uuid,
                                 int64_t memory_mib)
{
	struct measurement measurement = { reservation_id, uuid, memory_mib };
	struct gpu_report_command told = { .uuid = uuid,
		                           .temperature_c = 40,
		                           .healthy = true,
		                           .measurements = &measurement,
		                           .measurement_count = 1 };

	must(lab.h,
	     harness_apply(lab.h, (struct command){ .kind = COMMAND_GPU_REPORT, .gpu = told }));
}

static bool has_event(const struct harness *h, enum event_kind kind)
{
	for (size_t i = 0; i < h->effects.count; i++)
		if (h->effects.at[i].kind == EFFECT_EVENT && h->effects.at[i].event.kind == kind)
			return true;
	return false;
}

/* Reports. */

static void a_report_that_says_nothing_new_has_no_effects(void **unused)
{
	struct lab lab = node_report_lab_new();

	(void)unused;
	add_node(lab.h, "n1", 2, 80000);
	assert_int_equal(lab.h->effects.count, 0);
	report_gpu(lab.h, "n1-gpu0", 0, 40, true);
	assert_int_equal(lab.h->effects.count, 0);
	harness_free(lab.h);
}

static void aliases_of_one_uuid_are_one_gpu(void **unused)
{
	struct harness *h = harness_new();
	struct device devices[] = { device_of("a", 0, 80000), device_of("a", 1, 80000),
		                    device_of("b", 2, 80000) };

	(void)unused;
	devices[1].temperature_c = 80;
	must(h, report(h, report_of("n1", devices, 3)));
	assert_int_equal(h->sched->cluster.nodes[0]->gpu_count, 2);
	assert_int_equal(gpu(h, "a")->r.aliases, 2);
	assert_int_equal(gpu(h, "a")->r.temperature_c, 80);
	assert_int_equal(gpu(h, "b")->r.aliases, 1);
	harness_free(h);
}

static void a_node_with_an_agent_is_reported_by_its_agent_alone(void **unused)
{
	struct lab lab = node_report_lab_new();
	struct device device = device_of("made-up", 0, 1024);
	struct node_report_command late = report_of("n1", &device, 1);

	(void)unused;
	late.boot = NODE_BOOT_KUBERNETES;
	must_not(lab.h, report(lab.h, late), ERROR_CONFLICT, "node n1 has an agent");
	assert_null(gpu(lab.h, "made-up"));
	late.name = "n9";
	must(lab.h, report(lab.h, late));
	assert_non_null(gpu(lab.h, "made-up"));
	harness_free(lab.h);
}

static void a_report_that_contradicts_itself_is_refused_whole(void **unused)
{
	struct lab lab = node_report_lab_new();
	struct device devices[] = { device_of("n1-gpu0", 0, 70000), device_of("n1-gpu2", 1, 80000),
		                    device_of("n1-gpu2", 1, 81000) };

	(void)unused;
	must_not(lab.h, report(lab.h, report_of("n1", devices, 3)), ERROR_INVALID,
	         "n1-gpu2 is there twice, with 80000 and 81000 MiB of capacity");
	assert_int_equal(gpu(lab.h, "n1-gpu0")->r.capacity_mib, 80000);
	assert_null(gpu(lab.h, "n1-gpu2"));
	assert_true(gpu(lab.h, "n1-gpu1")->r.present);
	harness_free(lab.h);
}

static void negative_memory_is_refused(void **unused)
{
	struct lab lab = node_report_lab_new();
	struct device device = device_of("n1-gpu0", 0, -1);

	(void)unused;
	must_not(lab.h, report(lab.h, report_of("n1", &device, 1)), ERROR_INVALID, "-1");
	device = device_of("n1-gpu0", 0, 80000);
	device.foreign_mib = -5;
	must_not(lab.h, report(lab.h, report_of("n1", &device, 1)), ERROR_INVALID, "-5");
	harness_free(lab.h);
}

static void memory_that_no_gpu_has_is_refused(void **unused)
{
	struct lab lab = node_report_lab_new();
	struct gpu_report_command told = { .uuid = "n1-gpu0",
		                           .temperature_c = 40,
		                           .healthy = true };
	struct measurement measurement = { .uuid = "n1-gpu0", .memory_mib = INT64_MAX };
	struct command command = { .kind = COMMAND_GPU_REPORT };

	(void)unused;
	submit(lab.h, memory(lab.tenant, 1000));
	pass(lab.h);
	told.foreign_mib = INT64_MAX;
	command.gpu = told;
	must_not(lab.h, harness_apply(lab.h, command), ERROR_INVALID, "foreign memory");
	told.foreign_mib = 0;
	told.measurements = &measurement;
	told.measurement_count = 1;
	measurement.reservation_id = right_of(lab.h, 1, 0);
	command.gpu = told;
	must_not(lab.h, harness_apply(lab.h, command), ERROR_INVALID, "memory used");
	measurement.memory_mib = -1;
	must_not(lab.h, harness_apply(lab.h, command), ERROR_INVALID, "memory used");
	harness_free(lab.h);
}

static void one_uuid_cannot_be_on_two_nodes_that_are_online(void **unused)
{
	struct lab lab = node_report_lab_new();
	struct device device = device_of("n1-gpu0", 0, 80000);

	(void)unused;
	must_not(lab.h, report(lab.h, report_of("n2", &device, 1)), ERROR_CONFLICT,
	         "node n2 reports n1-gpu0, which is on node n1, and that is online");
	assert_null(cluster_node(&lab.h->sched->cluster, "n2"));
	harness_free(lab.h);
}

static void a_gpu_of_a_silent_node_without_work_may_turn_up_elsewhere(void **unused)
{
	struct lab lab = node_report_lab_new();
	struct device device = device_of("n1-gpu0", 0, 80000);

	(void)unused;
	set_node_state(lab.h, "n1", NODE_UNKNOWN);
	must(lab.h, report(lab.h, report_of("n2", &device, 1)));
	assert_string_equal(gpu(lab.h, "n1-gpu0")->node->r.name, "n2");
	assert_int_equal(cluster_node(&lab.h->sched->cluster, "n1")->gpu_count, 1);
	harness_free(lab.h);
}

static void a_gpu_of_a_silent_node_with_work_on_it_may_not(void **unused)
{
	struct lab lab = node_report_lab_new();
	struct device device = device_of("n1-gpu0", 0, 80000);

	(void)unused;
	submit(lab.h, whole(lab.tenant, 2));
	pass(lab.h);
	set_node_state(lab.h, "n1", NODE_LOST);
	must_not(lab.h, report(lab.h, report_of("n2", &device, 1)), ERROR_CONFLICT,
	         "declare that node dead first");
	must(lab.h, apply_to_node(lab.h, COMMAND_NODE_DEAD, "n1"));
	must(lab.h, report(lab.h, report_of("n2", &device, 1)));
	harness_free(lab.h);
}

/* Unwelcome facts. */

static void a_gpu_that_shrinks_below_what_is_reserved_is_over_and_takes_nothing(void **unused)
{
	struct lab lab = node_report_lab_new();

	(void)unused;
	report_first(lab, 80000, 0);
	int64_t first = submit(lab.h, memory(lab.tenant, 50000));
	int64_t second = submit(lab.h, memory(lab.tenant, 20000));
	assert_int_equal(pass(lab.h), 2);
	report_first(lab, 60000, 0);
	assert_true(has_event(lab.h, EVENT_GPU_OVER));
	assert_true(gpu_is_over(gpu(lab.h, "n1-gpu0")));
	assert_int_equal(gpu(lab.h, "n1-gpu0")->books.used_mib, 70000);
	assert_int_equal(state(lab.h, first), JOB_RUNNING);
	submit(lab.h, memory(lab.tenant, 1));
	assert_int_equal(pass(lab.h), 0);
	end_job(lab.h, second, 0);
	assert_false(gpu_is_over(gpu(lab.h, "n1-gpu0")));
	assert_int_equal(pass(lab.h), 1);
	harness_free(lab.h);
}

static void it_is_told_when_a_gpu_is_not_over_any_more(void **unused)
{
	struct lab lab = node_report_lab_new();

	(void)unused;
	report_first(lab, 80000, 0);
	int64_t id = submit(lab.h, memory(lab.tenant, 50000));
	pass(lab.h);
	report_first(lab, 80000, 40000);
	assert_true(has_event(lab.h, EVENT_GPU_OVER));
	report_first(lab, 80000, 30000);
	assert_true(has_event(lab.h, EVENT_GPU_FREE_AGAIN));
	report_first(lab, 80000, 40000);
	must(lab.h, to_task(lab.h, COMMAND_TASK_EXITED, right_of(lab.h, id, 0), 0, true));
	assert_true(has_event(lab.h, EVENT_GPU_FREE_AGAIN));
	harness_free(lab.h);
}

static void foreign_memory_is_not_given_out(void **unused)
{
	struct lab lab = node_report_lab_new();

	(void)unused;
	report_first(lab, 80000, 30000);
	submit(lab.h, memory(lab.tenant, 50001));
	assert_int_equal(pass(lab.h), 0);
	submit(lab.h, memory(lab.tenant, 50000));
	assert_int_equal(pass(lab.h), 1);
	harness_free(lab.h);
}

static void overhead_is_not_given_out(void **unused)
{
	struct lab lab = node_report_lab_new();
	struct device device = device_of("n1-gpu0", 0, 80000);

	(void)unused;
	device.overhead_mib = 600;
	must(lab.h, report(lab.h, report_of("n1", &device, 1)));
	submit(lab.h, memory(lab.tenant, 79401));
	assert_int_equal(pass(lab.h), 0);
	submit(lab.h, memory(lab.tenant, 79400));
	assert_int_equal(pass(lab.h), 1);
	harness_free(lab.h);
}

static void an_owner_that_uses_more_than_it_reserved_counts_with_that(void **unused)
{
	struct lab lab = node_report_lab_new();

	(void)unused;
	report_first(lab, 80000, 0);
	int64_t id = submit(lab.h, memory(lab.tenant, 30000));
	pass(lab.h);
	node_report_measured(lab, right_of(lab.h, id, 0), "n1-gpu0", 45000);
	assert_int_equal(gpu(lab.h, "n1-gpu0")->books.used_mib, 45000);
	submit(lab.h, memory(lab.tenant, 40000));
	assert_int_equal(pass(lab.h), 0);
	node_report_measured(lab, right_of(lab.h, id, 0), "n1-gpu0", 10000);
	assert_int_equal(gpu(lab.h, "n1-gpu0")->books.used_mib, 30000);
	assert_int_equal(pass(lab.h), 1);
	harness_free(lab.h);
}

static void an_owner_that_uses_more_than_the_gpu_has_makes_it_over(void **unused)
{
	struct lab lab = node_report_lab_new();

	(void)unused;
	report_first(lab, 80000, 0);
	int64_t id = submit(lab.h, memory(lab.tenant, 30000));
	pass(lab.h);
	node_report_measured(lab, right_of(lab.h, id, 0), "n1-gpu0", 80001);
	assert_true(has_event(lab.h, EVENT_GPU_OVER));
	submit(lab.h, memory(lab.tenant, 1));
	assert_int_equal(pass(lab.h), 0);
	harness_free(lab.h);
}

static void memory_of_work_that_was_given_up_counts_until_it_is_gone(void **unused)
{
	struct lab lab = node_report_lab_new();

	(void)unused;
	report_first(lab, 80000, 0);
	int64_t id = submit(lab.h, memory(lab.tenant, 30000));
	pass(lab.h);
	int64_t right = right_of(lab.h, id, 0);
	must(lab.h, apply_to_node(lab.h, COMMAND_NODE_DEAD, "n1"));
	must(lab.h, cancel(lab.h, id));
	report_first(lab, 80000, 0);
	node_report_measured(lab, right, "n1-gpu0", 25000);
	assert_int_equal(gpu(lab.h, "n1-gpu0")->r.foreign_mib, 25000);
	submit(lab.h, memory(lab.tenant, 60000));
	assert_int_equal(pass(lab.h), 0);
	report_first(lab, 80000, 0);
	assert_int_equal(pass(lab.h), 1);
	harness_free(lab.h);
}

static void memory_on_a_gpu_that_its_owner_was_not_given_counts_as_foreign(void **unused)
{
	struct lab lab = node_report_lab_new();

	(void)unused;
	int64_t id = submit(lab.h, whole(lab.tenant, 1));
	pass(lab.h);
	node_report_measured(lab, right_of(lab.h, id, 0), "n1-gpu1", 9000);
	assert_int_equal(gpu(lab.h, "n1-gpu1")->r.foreign_mib, 9000);
	assert_int_equal(gpu(lab.h, "n1-gpu0")->r.foreign_mib, 0);
	harness_free(lab.h);
}

/* MIG. */

static void a_gpu_in_mig_mode_takes_nothing_and_its_instances_do(void **unused)
{
	struct harness *h = harness_new();
	struct device devices[] = { device_of("GPU-1", 0, 80000), device_of("MIG-1", 1, 40000),
		                    device_of("MIG-2", 2, 20000) };

	(void)unused;
	devices[0].mig_mode = true;
	devices[1].mig_parent = devices[2].mig_parent = "GPU-1";
	must(h, report(h, report_of("n1", devices, 3)));
	int64_t tenant = put_tenant(h, tenant_named("lab"));
	for (int i = 0; i < 3; i++)
		submit(h, whole(tenant, 1));
	assert_int_equal(pass(h), 2);
	assert_int_equal(gpu(h, "GPU-1")->books.owners, 0);
	assert_int_equal(gpu(h, "MIG-1")->books.owners, 1);
	assert_int_equal(gpu(h, "MIG-2")->books.owners, 1);
	harness_free(h);
}

/* GPUs that vanish. */

static void a_gpu_that_vanishes_empty_is_forgotten(void **unused)
{
	struct lab lab = node_report_lab_new();

	(void)unused;
	report_first(lab, 80000, 0);
	assert_null(gpu(lab.h, "n1-gpu1"));
	harness_free(lab.h);
}

static void a_gpu_that_vanishes_with_work_on_it_keeps_its_books_and_takes_nothing(void **unused)
{
	struct lab lab = node_report_lab_new();
	struct device device = device_of("n1-gpu1", 1, 80000);

	(void)unused;
	int64_t id = submit(lab.h, memory(lab.tenant, 30000));
	pass(lab.h);
	must(lab.h, report(lab.h, report_of("n1", &device, 1)));
	assert_false(gpu(lab.h, "n1-gpu0")->r.present);
	assert_int_equal(gpu(lab.h, "n1-gpu0")->books.used_mib, 30000);
	assert_int_equal(state(lab.h, id), JOB_RUNNING);
	int64_t other = submit(lab.h, whole(lab.tenant, 1)),
		third = submit(lab.h, memory(lab.tenant, 1));
	assert_int_equal(pass(lab.h), 1);
	assert_int_equal(state(lab.h, other), JOB_RUNNING);
	assert_int_equal(state(lab.h, third), JOB_PENDING);
	harness_free(lab.h);
}

static void a_gpu_that_returns_goes_on_with_its_books(void **unused)
{
	struct lab lab = node_report_lab_new();
	struct device device = device_of("n1-gpu1", 1, 80000);

	(void)unused;
	submit(lab.h, memory(lab.tenant, 30000));
	pass(lab.h);
	must(lab.h, report(lab.h, report_of("n1", &device, 1)));
	add_node(lab.h, "n1", 2, 80000);
	assert_true(gpu(lab.h, "n1-gpu0")->r.present);
	submit(lab.h, memory(lab.tenant, 60000));
	submit(lab.h, memory(lab.tenant, 50000));
	assert_int_equal(pass(lab.h), 2);
	assert_int_equal(gpu(lab.h, "n1-gpu0")->books.used_mib, 80000);
	harness_free(lab.h);
}

static void a_gpu_that_stays_away_is_forgotten_when_its_work_has_left(void **unused)
{
	struct lab lab = node_report_lab_new();
	struct device device = device_of("n1-gpu1", 1, 80000);

	(void)unused;
	int64_t id = submit(lab.h, memory(lab.tenant, 30000));
	pass(lab.h);
	must(lab.h, report(lab.h, report_of("n1", &device, 1)));
	end_job(lab.h, id, 0);
	must(lab.h, report(lab.h, report_of("n1", &device, 1)));
	assert_null(gpu(lab.h, "n1-gpu0"));
	harness_free(lab.h);
}

/* Heat and health. */

static void a_gpu_at_75_degrees_takes_nothing_until_it_is_at_70(void **unused)
{
	struct lab lab = node_report_lab_new();

	(void)unused;
	report_gpu(lab.h, "n1-gpu0", 0, 74, true);
	assert_false(gpu(lab.h, "n1-gpu0")->r.hot);
	report_gpu(lab.h, "n1-gpu0", 0, 75, true);
	submit(lab.h, whole(lab.tenant, 2));
	assert_int_equal(pass(lab.h), 0);
	report_gpu(lab.h, "n1-gpu0", 0, 71, true);
	assert_int_equal(pass(lab.h), 0);
	report_gpu(lab.h, "n1-gpu0", 0, 70, true);
	assert_int_equal(pass(lab.h), 1);
	harness_free(lab.h);
}

static void assert_hot(const struct lab *lab, const char *uuid, int64_t temperature_c, bool hot)
{
	report_gpu(lab->h, uuid, 0, temperature_c, true);
	assert_int_equal(gpu(lab->h, uuid)->r.hot, hot);
}

static void without_a_threshold_a_gpu_is_hot_5_degrees_below_its_slowdown(void **unused)
{
	struct lab lab = node_report_lab_new();
	struct config_record config = config_default();
	struct device devices[] = { device_of("n1-gpu0", 0, 80000),
		                    device_of("n1-gpu1", 1, 80000) };
	const int64_t slowdowns_c[] = { 90, 0 };
	struct node_report_command told = report_of("n1", devices, 2);

	(void)unused;
	config.thermal_threshold_c = config.thermal_resume_c = 0;
	configure(lab.h, config);
	told.slowdowns_c = (struct rows){ slowdowns_c, 2 };
	must(lab.h, report(lab.h, told));
	assert_hot(&lab, "n1-gpu0", 84, false);
	assert_hot(&lab, "n1-gpu0", 85, true);
	assert_hot(&lab, "n1-gpu0", 81, true);
	assert_hot(&lab, "n1-gpu0", 80, false);
	/* 75 where the node does not say. */
	assert_hot(&lab, "n1-gpu1", 74, false);
	assert_hot(&lab, "n1-gpu1", 75, true);
	/* What is configured wins. */
	config.thermal_threshold_c = 60;
	configure(lab.h, config);
	assert_hot(&lab, "n1-gpu0", 60, true);
	harness_free(lab.h);
}

static void a_hot_gpu_is_used_where_heat_does_not_matter(void **unused)
{
	struct lab lab = node_report_lab_new();
	struct config_record config = config_default();

	(void)unused;
	report_gpu(lab.h, "n1-gpu0", 0, 90, true);
	config.enable_thermal = false;
	configure(lab.h, config);
	submit(lab.h, whole(lab.tenant, 2));
	assert_int_equal(pass(lab.h), 1);
	harness_free(lab.h);
}

static void what_runs_on_a_hot_gpu_stays(void **unused)
{
	struct lab lab = node_report_lab_new();

	(void)unused;
	int64_t id = submit(lab.h, whole(lab.tenant, 2));
	pass(lab.h);
	report_gpu(lab.h, "n1-gpu0", 0, 95, true);
	assert_int_equal(pass(lab.h), 0);
	assert_int_equal(state(lab.h, id), JOB_RUNNING);
	harness_free(lab.h);
}

static void an_unhealthy_gpu_takes_nothing_until_it_is_healthy(void **unused)
{
	struct lab lab = node_report_lab_new();

	(void)unused;
	report_gpu(lab.h, "n1-gpu0", 0, 40, false);
	submit(lab.h, whole(lab.tenant, 2));
	assert_int_equal(pass(lab.h), 0);
	report_gpu(lab.h, "n1-gpu0", 0, 40, true);
	assert_int_equal(pass(lab.h), 1);
	harness_free(lab.h);
}

static void measurements_of_a_gpu_that_nobody_knows_are_refused(void **unused)
{
	struct lab lab = node_report_lab_new();
	struct gpu_report_command told = { .uuid = "GPU-x" };

	(void)unused;
	must_not(lab.h,
	         harness_apply(lab.h, (struct command){ .kind = COMMAND_GPU_REPORT, .gpu = told }),
	         ERROR_NOT_FOUND, "GPU GPU-x is not known");
	harness_free(lab.h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_report_that_says_nothing_new_has_no_effects),
		cmocka_unit_test(aliases_of_one_uuid_are_one_gpu),
		cmocka_unit_test(a_node_with_an_agent_is_reported_by_its_agent_alone),
		cmocka_unit_test(a_report_that_contradicts_itself_is_refused_whole),
		cmocka_unit_test(negative_memory_is_refused),
		cmocka_unit_test(memory_that_no_gpu_has_is_refused),
		cmocka_unit_test(one_uuid_cannot_be_on_two_nodes_that_are_online),
		cmocka_unit_test(a_gpu_of_a_silent_node_without_work_may_turn_up_elsewhere),
		cmocka_unit_test(a_gpu_of_a_silent_node_with_work_on_it_may_not),
		cmocka_unit_test(
		    a_gpu_that_shrinks_below_what_is_reserved_is_over_and_takes_nothing),
		cmocka_unit_test(it_is_told_when_a_gpu_is_not_over_any_more),
		cmocka_unit_test(foreign_memory_is_not_given_out),
		cmocka_unit_test(overhead_is_not_given_out),
		cmocka_unit_test(an_owner_that_uses_more_than_it_reserved_counts_with_that),
		cmocka_unit_test(an_owner_that_uses_more_than_the_gpu_has_makes_it_over),
		cmocka_unit_test(memory_of_work_that_was_given_up_counts_until_it_is_gone),
		cmocka_unit_test(memory_on_a_gpu_that_its_owner_was_not_given_counts_as_foreign),
		cmocka_unit_test(a_gpu_in_mig_mode_takes_nothing_and_its_instances_do),
		cmocka_unit_test(a_gpu_that_vanishes_empty_is_forgotten),
		cmocka_unit_test(
		    a_gpu_that_vanishes_with_work_on_it_keeps_its_books_and_takes_nothing),
		cmocka_unit_test(a_gpu_that_returns_goes_on_with_its_books),
		cmocka_unit_test(a_gpu_that_stays_away_is_forgotten_when_its_work_has_left),
		cmocka_unit_test(a_gpu_at_75_degrees_takes_nothing_until_it_is_at_70),
		cmocka_unit_test(without_a_threshold_a_gpu_is_hot_5_degrees_below_its_slowdown),
		cmocka_unit_test(a_hot_gpu_is_used_where_heat_does_not_matter),
		cmocka_unit_test(what_runs_on_a_hot_gpu_stays),
		cmocka_unit_test(an_unhealthy_gpu_takes_nothing_until_it_is_healthy),
		cmocka_unit_test(measurements_of_a_gpu_that_nobody_knows_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
