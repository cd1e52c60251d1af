/* place_test.c - which node and which GPUs a task gets */
#include "core/test/harness.h"

struct lab {
	struct harness *h;
	int64_t tenant;
};

static struct lab place_lab_new(enum policy policy)
{
	struct lab lab = { .h = harness_new() };
	struct config_record config = config_default();

	config.policy = (int32_t)policy;
	configure(lab.h, config);
	lab.tenant = put_tenant(lab.h, tenant_named("lab"));
	return lab;
}

/* Submits it and sees it start. */
static int64_t place_run(struct lab lab, struct job_record job_record)
{
	int64_t id = submit(lab.h, job_record);

	assert_int_equal(pass(lab.h), 1);
	return id;
}

static void must_wait(struct lab lab, struct job_record job_record)
{
	int64_t id = submit(lab.h, job_record);

	assert_int_equal(pass(lab.h), 0);
	must(lab.h, cancel(lab.h, id));
}

static const char *place_gpu_of(const struct harness *h, int64_t id, int part)
{
	return job(h, id)->tasks[0].reservation->parts[part].gpu->r.uuid;
}

static int64_t place_used(const struct harness *h, const char *uuid)
{
	return gpu(h, uuid)->books.used_mib;
}

/* Policies. */

static void pack_fills_the_gpu_that_has_least_left(void **unused)
{
	struct lab lab = place_lab_new(POLICY_PACK);

	(void)unused;
	add_node(lab.h, "n1", 2, 80000);
	add_node(lab.h, "n2", 2, 80000);
	place_run(lab, memory(lab.tenant, 50000));
	assert_int_equal(place_used(lab.h, "n1-gpu0"), 50000);
	place_run(lab, memory(lab.tenant, 40000));
	assert_int_equal(place_used(lab.h, "n1-gpu1"), 40000);
	place_run(lab, memory(lab.tenant, 30000));
	assert_int_equal(place_used(lab.h, "n1-gpu0"), 80000);
	place_run(lab, memory(lab.tenant, 30000));
	assert_int_equal(place_used(lab.h, "n1-gpu1"), 70000);
	harness_free(lab.h);
}

static void pack_takes_whole_gpus_of_the_node_that_has_fewest_left(void **unused)
{
	struct lab lab = place_lab_new(POLICY_PACK);

	(void)unused;
	add_node(lab.h, "n1", 8, 80000);
	add_node(lab.h, "n2", 4, 80000);
	int64_t first = place_run(lab, whole(lab.tenant, 1)),
		second = place_run(lab, whole(lab.tenant, 3));
	assert_string_equal(node_of(lab.h, first), "n2");
	assert_string_equal(node_of(lab.h, second), "n2");
	harness_free(lab.h);
}

static void spread_uses_the_gpu_that_has_most_left(void **unused)
{
	struct lab lab = place_lab_new(POLICY_SPREAD);

	(void)unused;
	add_node(lab.h, "n1", 2, 80000);
	add_node(lab.h, "n2", 1, 80000);
	for (int i = 0; i < 3; i++)
		place_run(lab, memory(lab.tenant, 20000));
	assert_int_equal(place_used(lab.h, "n1-gpu0"), 20000);
	assert_int_equal(place_used(lab.h, "n1-gpu1"), 20000);
	assert_int_equal(place_used(lab.h, "n2-gpu0"), 20000);
	harness_free(lab.h);
}

static void spread_takes_whole_gpus_of_the_node_that_has_most_left(void **unused)
{
	struct lab lab = place_lab_new(POLICY_SPREAD);

	(void)unused;
	add_node(lab.h, "n1", 2, 80000);
	add_node(lab.h, "n2", 4, 80000);
	int64_t first = place_run(lab, whole(lab.tenant, 1)),
		second = place_run(lab, whole(lab.tenant, 1));
	int64_t third = place_run(lab, whole(lab.tenant, 1));
	assert_string_equal(node_of(lab.h, first), "n2");
	assert_string_equal(node_of(lab.h, second), "n2");
	assert_string_equal(node_of(lab.h, third), "n1");
	harness_free(lab.h);
}

static void fragment_puts_halves_together_where_whole_gpus_are_asked_for_too(void **unused)
{
	struct lab lab = place_lab_new(POLICY_FRAGMENT);
	static const int64_t kinds[] = { 500, 1, 1000, 50, 1000, 1, 1000, 50 };

	(void)unused;
	add_node(lab.h, "n1", 2, 80000);
	add_node(lab.h, "n2", 2, 80000);
	must(lab.h,
	     harness_apply(lab.h, (struct command){ .kind = COMMAND_MIX, .mix = { kinds, 2 } }));
	int64_t first = place_run(lab, fraction(lab.tenant, 500)),
		second = place_run(lab, fraction(lab.tenant, 500));
	assert_string_equal(place_gpu_of(lab.h, first, 0), place_gpu_of(lab.h, second, 0));
	harness_free(lab.h);
}

static void fragment_takes_what_the_expected_tasks_cannot_use(void **unused)
{
	struct lab lab = place_lab_new(POLICY_FRAGMENT);
	static const int64_t kinds[] = { 1000, 2, 1000, 100 };

	(void)unused;
	add_node(lab.h, "n1", 2, 80000);
	add_node(lab.h, "n2", 3, 80000);
	must(lab.h,
	     harness_apply(lab.h, (struct command){ .kind = COMMAND_MIX, .mix = { kinds, 1 } }));
	int64_t single = place_run(lab, whole(lab.tenant, 1));
	assert_string_equal(node_of(lab.h, single), "n2"); /* of which one GPU has no partner */
	harness_free(lab.h);
}

static void a_new_policy_counts_from_the_next_placement_on(void **unused)
{
	struct lab lab = place_lab_new(POLICY_PACK);
	struct config_record config = config_default();

	(void)unused;
	add_node(lab.h, "n1", 4, 80000);
	place_run(lab, memory(lab.tenant, 10000));
	place_run(lab, memory(lab.tenant, 10000));
	assert_int_equal(place_used(lab.h, "n1-gpu0"), 20000);
	config.policy = POLICY_SPREAD;
	configure(lab.h, config);
	place_run(lab, memory(lab.tenant, 10000));
	assert_int_equal(place_used(lab.h, "n1-gpu0"), 20000);
	harness_free(lab.h);
}

static void ties_are_broken_by_the_name_of_the_node_and_the_place_of_the_gpu(void **unused)
{
	(void)unused;
	for (int policy = 0; policy < POLICY_COUNT; policy++) {
		struct lab lab = place_lab_new((enum policy)policy);
		add_node(lab.h, "c", 2, 80000);
		add_node(lab.h, "a", 2, 80000);
		add_node(lab.h, "b", 2, 80000);
		int64_t id = place_run(lab, memory(lab.tenant, 20000));
		assert_string_equal(place_gpu_of(lab.h, id, 0), "a-gpu0");
		harness_free(lab.h);
	}
}

/* Beside 350, 470 would leave 180 that nothing fits, where 650 leaves nothing. */
static void worth_keeps_a_rest_for_what_fills_it_in_the_end(void **unused)
{
	struct lab lab = place_lab_new(POLICY_WORTH);
	static const int64_t kinds[] = { 650, 1, 0, 1, 350, 1, 0, 1, 470, 1, 0, 2 };

	(void)unused;
	must(lab.h,
	     harness_apply(lab.h, (struct command){ .kind = COMMAND_MIX, .mix = { kinds, 3 } }));
	add_node(lab.h, "n1", 1, 80000);
	add_node(lab.h, "n2", 1, 80000);
	place_run(lab, fraction(lab.tenant, 350));
	assert_int_equal(place_used(lab.h, "n1-gpu0"), 28000);
	place_run(lab, fraction(lab.tenant, 470));
	assert_int_equal(place_used(lab.h, "n2-gpu0"), 37600);
	place_run(lab, fraction(lab.tenant, 650));
	assert_int_equal(place_used(lab.h, "n1-gpu0"), 80000);
	harness_free(lab.h);
}

/* All of the first node's CPU will be needed by the work on its GPUs. */
static void worth_keeps_a_large_gpu_for_large_amounts_of_memory(void **unused)
{
	struct lab lab = place_lab_new(POLICY_WORTH);
	struct device devices[] = { device_of("large", 0, 81920), device_of("small-0", 1, 20096),
		                    device_of("small-1", 2, 20096) };

	(void)unused;
	must(lab.h, report(lab.h, report_of("node-a", devices, 3)));
	add_node(lab.h, "node-b", 1, 24576);
	for (int i = 0; i < 2; i++) {
		int64_t id = place_run(lab, memory(lab.tenant, 20000));
		assert_string_equal(node_of(lab.h, id), "node-a");
		assert_string_not_equal(place_gpu_of(lab.h, id, 0), "large");
	}
	int64_t fits_less_well = place_run(lab, memory(lab.tenant, 20000));
	assert_string_equal(node_of(lab.h, fits_less_well), "node-b");
	int64_t large = place_run(lab, memory(lab.tenant, 70000));
	assert_string_equal(place_gpu_of(lab.h, large, 0), "large");
	harness_free(lab.h);
}

static void worth_keeps_cpu_for_the_gpus_that_need_it(void **unused)
{
	struct lab lab = place_lab_new(POLICY_WORTH);
	static const int64_t kinds[] = { 1000, 1, 32000, 3, 0, 0, 40000, 1 };
	struct job_record host = job_of(lab.tenant, GPU_NONE, 0);

	(void)unused;
	must(lab.h,
	     harness_apply(lab.h, (struct command){ .kind = COMMAND_MIX, .mix = { kinds, 2 } }));
	add_node(lab.h, "a", 4, 80000);
	add_node(lab.h, "b", 1, 80000);
	host.cpu_milli = 40000;
	assert_string_equal(node_of(lab.h, place_run(lab, host)), "b");
	assert_string_equal(node_of(lab.h, place_run(lab, host)), "b");
	harness_free(lab.h);
}

/* Constraints. */

static void a_job_gets_a_gpu_of_a_model_that_it_allows(void **unused)
{
	struct lab lab = place_lab_new(POLICY_FRAGMENT);
	struct device devices[] = { device_of("a", 0, 80000), device_of("b", 1, 80000),
		                    device_of("c", 2, 80000) };
	struct job_record picky = whole(lab.tenant, 1);

	(void)unused;
	devices[1].model = "A100";
	devices[2].model = "L4";
	must(lab.h, report(lab.h, report_of("n1", devices, 3)));
	picky.gpu_models = "A100|L40";
	int64_t id = place_run(lab, picky);
	assert_string_equal(place_gpu_of(lab.h, id, 0), "b");
	must_wait(lab, picky);
	picky.gpu_models = "B200";
	must_wait(lab, picky);
	harness_free(lab.h);
}

static void a_job_waits_for_a_model_that_is_yet_to_come(void **unused)
{
	struct lab lab = place_lab_new(POLICY_FRAGMENT);
	struct device device = device_of("b", 0, 80000);
	struct job_record picky = whole(lab.tenant, 1);

	(void)unused;
	add_node(lab.h, "n1", 1, 80000);
	picky.gpu_models = "B200";
	int64_t id = submit(lab.h, picky);
	assert_int_equal(pass(lab.h), 0);
	device.model = "B200";
	must(lab.h, report(lab.h, report_of("n2", &device, 1)));
	assert_int_equal(pass(lab.h), 1);
	assert_string_equal(node_of(lab.h, id), "n2");
	harness_free(lab.h);
}

static void a_job_gets_a_node_with_all_the_labels_that_it_asks_for(void **unused)
{
	struct lab lab = place_lab_new(POLICY_FRAGMENT);
	struct device one = device_of("a", 0, 80000), other = device_of("b", 0, 80000);
	struct node_report_command first = report_of("n1", &one, 1),
				   second = report_of("n2", &other, 1);
	struct job_record picky = whole(lab.tenant, 1);

	(void)unused;
	first.labels = "disk=fast";
	second.labels = "disk=fast\nnet=ib";
	must(lab.h, report(lab.h, first));
	must(lab.h, report(lab.h, second));
	picky.node_labels = "disk=fast\nnet=ib";
	int64_t id = place_run(lab, picky);
	assert_string_equal(node_of(lab.h, id), "n2");
	must_wait(lab, picky);
	first.labels = "disk=fast\nnet=ib";
	must(lab.h, report(lab.h, first));
	place_run(lab, picky);
	harness_free(lab.h);
}

static void a_job_that_needs_no_gpu_gets_cpu_and_memory(void **unused)
{
	struct lab lab = place_lab_new(POLICY_FRAGMENT);
	struct job_record plain = job_of(lab.tenant, GPU_NONE, 0);

	(void)unused;
	must(lab.h, report(lab.h, report_of("n1", NULL, 0)));
	plain.cpu_milli = 100000;
	plain.host_bytes = INT64_C(1) << 39;
	place_run(lab, plain);
	must_wait(lab, plain);
	plain.cpu_milli = 28000;
	place_run(lab, plain);
	must_wait(lab, plain);
	harness_free(lab.h);
}

static void a_gpu_is_of_no_use_without_the_cpu_that_is_asked_for(void **unused)
{
	struct lab lab = place_lab_new(POLICY_FRAGMENT);
	struct job_record hungry = whole(lab.tenant, 1);

	(void)unused;
	add_node(lab.h, "n1", 2, 80000);
	hungry.cpu_milli = 100000;
	place_run(lab, hungry);
	must_wait(lab, hungry);
	harness_free(lab.h);
}

/* Whole GPUs. */

static void a_whole_gpu_is_one_with_nothing_on_it(void **unused)
{
	struct lab lab = place_lab_new(POLICY_PACK);

	(void)unused;
	add_node(lab.h, "n1", 2, 80000);
	place_run(lab, memory(lab.tenant, 1));
	must_wait(lab, whole(lab.tenant, 2));
	int64_t id = place_run(lab, whole(lab.tenant, 1));
	assert_string_equal(place_gpu_of(lab.h, id, 0), "n1-gpu1");
	harness_free(lab.h);
}

static void a_gpu_given_whole_takes_nothing_else(void **unused)
{
	struct lab lab = place_lab_new(POLICY_PACK);
	struct job_record small = whole(lab.tenant, 1);

	(void)unused;
	add_node(lab.h, "n1", 1, 80000);
	small.memory_mib = 1000;
	place_run(lab, small);
	must_wait(lab, memory(lab.tenant, 1));
	must_wait(lab, fraction(lab.tenant, 1));
	harness_free(lab.h);
}

static void a_gpu_given_whole_takes_nothing_else_even_if_it_grows(void **unused)
{
	struct lab lab = place_lab_new(POLICY_PACK);

	(void)unused;
	add_node(lab.h, "n1", 1, 80000);
	place_run(lab, whole(lab.tenant, 1));
	add_node(lab.h, "n1", 1, 90000);
	must_wait(lab, memory(lab.tenant, 1));
	harness_free(lab.h);
}

static void a_whole_gpu_has_at_least_the_memory_that_is_asked_for(void **unused)
{
	struct lab lab = place_lab_new(POLICY_PACK);
	struct job_record large = whole(lab.tenant, 1);

	(void)unused;
	add_node(lab.h, "n1", 2, 40000);
	add_node(lab.h, "n2", 1, 80000);
	large.memory_mib = 40001;
	int64_t id = place_run(lab, large);
	assert_string_equal(node_of(lab.h, id), "n2");
	must_wait(lab, large);
	harness_free(lab.h);
}

static void a_gpu_with_foreign_memory_is_not_given_whole(void **unused)
{
	struct lab lab = place_lab_new(POLICY_PACK);
	struct config_record config = config_default();

	(void)unused;
	add_node(lab.h, "n1", 1, 80000);
	report_gpu(lab.h, "n1-gpu0", 100, 40, true);
	must_wait(lab, whole(lab.tenant, 1));
	config.foreign_tolerance_mib = 100;
	configure(lab.h, config);
	int64_t id = place_run(lab, whole(lab.tenant, 1));
	assert_int_equal(job(lab.h, id)->tasks[0].reservation->parts[0].mib, 79900);
	harness_free(lab.h);
}

static void as_many_whole_gpus_as_asked_for_are_on_one_node(void **unused)
{
	struct lab lab = place_lab_new(POLICY_PACK);

	(void)unused;
	add_node(lab.h, "n1", 2, 80000);
	add_node(lab.h, "n2", 2, 80000);
	must_wait(lab, whole(lab.tenant, 3));
	add_node(lab.h, "n3", 3, 80000);
	int64_t id = place_run(lab, whole(lab.tenant, 3));
	assert_string_equal(node_of(lab.h, id), "n3");
	harness_free(lab.h);
}

/* Parts of GPUs. */

static void a_fraction_is_of_the_usable_memory_of_its_gpu_rounded_down(void **unused)
{
	struct lab lab = place_lab_new(POLICY_PACK);
	struct device device = device_of("a", 0, 32607);

	(void)unused;
	device.overhead_mib = 600;
	must(lab.h, report(lab.h, report_of("n1", &device, 1)));
	int64_t id = place_run(lab, fraction(lab.tenant, 333));
	assert_int_equal(job(lab.h, id)->tasks[0].reservation->parts[0].mib, 333 * 32007 / 1000);
	place_run(lab, fraction(lab.tenant, 333));
	place_run(lab, fraction(lab.tenant, 334));
	must_wait(lab, fraction(lab.tenant, 1));
	harness_free(lab.h);
}

static void several_fractions_are_on_different_gpus(void **unused)
{
	struct lab lab = place_lab_new(POLICY_PACK);
	struct job_record halves = job_of(lab.tenant, GPU_FRACTION, 2);

	(void)unused;
	halves.fraction = 500;
	add_node(lab.h, "n1", 1, 80000);
	must_wait(lab, halves);
	add_node(lab.h, "n2", 2, 80000);
	int64_t id = place_run(lab, halves);
	assert_string_equal(place_gpu_of(lab.h, id, 0), "n2-gpu0");
	assert_string_equal(place_gpu_of(lab.h, id, 1), "n2-gpu1");
	place_run(lab, halves);
	must_wait(lab, halves);
	harness_free(lab.h);
}

static void share_is_never_a_reason_to_refuse(void **unused)
{
	struct lab lab = place_lab_new(POLICY_PACK);

	(void)unused;
	add_node(lab.h, "n1", 1, 1000);
	for (int i = 0; i < 3; i++)
		place_run(lab, memory(lab.tenant, 333)); /* each is rounded up to 333 thousandths
		                                          * and more
		                                          */
	place_run(lab, memory(lab.tenant, 1));
	must_wait(lab, memory(lab.tenant, 1));
	harness_free(lab.h);
}

static void uneven_parts_fit_in_one_linked_group_or_in_another(void **unused)
{
	struct lab lab = place_lab_new(POLICY_PACK);
	static const int64_t parts[] = { 60000, 20000 };
	struct device devices[5];
	static const char *const uuids[] = { "a", "b", "c", "d", "e" };
	struct job_record uneven = job_of(lab.tenant, GPU_UNEVEN, 2);

	(void)unused;
	for (int i = 0; i < 5; i++) {
		devices[i] = device_of(uuids[i], i, i < 2 ? 30000 : 80000);
		devices[i].nvlink_group = i < 2 ? 1 : 2;
	}
	must(lab.h, report(lab.h, report_of("n1", devices, 5)));
	uneven.uneven = (struct rows){ parts, 2 };
	place_run(lab, uneven);
	harness_free(lab.h);
}

static void uneven_parts_fit_across_linked_groups_where_they_must(void **unused)
{
	struct lab lab = place_lab_new(POLICY_PACK);
	static const int64_t parts[] = { 60000, 20000 };
	struct device devices[3];
	static const char *const uuids[] = { "a", "b", "c" };
	struct job_record uneven = job_of(lab.tenant, GPU_UNEVEN, 2);

	(void)unused;
	for (int i = 0; i < 3; i++) {
		devices[i] = device_of(uuids[i], i, i < 2 ? 30000 : 80000);
		devices[i].nvlink_group = i < 2 ? 1 : 2;
	}
	must(lab.h, report(lab.h, report_of("n1", devices, 3)));
	uneven.uneven = (struct rows){ parts, 2 };
	place_run(lab, uneven);
	harness_free(lab.h);
}

static void what_could_never_run_on_this_hardware_is_refused_when_asked_to_check(void **unused)
{
	struct lab lab = place_lab_new(POLICY_PACK);
	struct submit_command checked = { .job = whole(lab.tenant, 3), .check_possible = true };

	(void)unused;
	add_node(lab.h, "n1", 2, 80000);
	must_not(
	    lab.h,
	    harness_apply(lab.h, (struct command){ .kind = COMMAND_SUBMIT, .submit = checked }),
	    ERROR_IMPOSSIBLE, "GPU");
	submit(lab.h, whole(lab.tenant, 3));
	place_run(lab, whole(lab.tenant, 2));
	checked.job = whole(lab.tenant, 2);
	must(lab.h,
	     harness_apply(lab.h, (struct command){ .kind = COMMAND_SUBMIT, .submit = checked }));
	harness_free(lab.h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pack_fills_the_gpu_that_has_least_left),
		cmocka_unit_test(pack_takes_whole_gpus_of_the_node_that_has_fewest_left),
		cmocka_unit_test(spread_uses_the_gpu_that_has_most_left),
		cmocka_unit_test(spread_takes_whole_gpus_of_the_node_that_has_most_left),
		cmocka_unit_test(fragment_puts_halves_together_where_whole_gpus_are_asked_for_too),
		cmocka_unit_test(fragment_takes_what_the_expected_tasks_cannot_use),
		cmocka_unit_test(worth_keeps_a_rest_for_what_fills_it_in_the_end),
		cmocka_unit_test(worth_keeps_a_large_gpu_for_large_amounts_of_memory),
		cmocka_unit_test(worth_keeps_cpu_for_the_gpus_that_need_it),
		cmocka_unit_test(a_new_policy_counts_from_the_next_placement_on),
		cmocka_unit_test(ties_are_broken_by_the_name_of_the_node_and_the_place_of_the_gpu),
		cmocka_unit_test(a_job_gets_a_gpu_of_a_model_that_it_allows),
		cmocka_unit_test(a_job_waits_for_a_model_that_is_yet_to_come),
		cmocka_unit_test(a_job_gets_a_node_with_all_the_labels_that_it_asks_for),
		cmocka_unit_test(a_job_that_needs_no_gpu_gets_cpu_and_memory),
		cmocka_unit_test(a_gpu_is_of_no_use_without_the_cpu_that_is_asked_for),
		cmocka_unit_test(a_whole_gpu_is_one_with_nothing_on_it),
		cmocka_unit_test(a_gpu_given_whole_takes_nothing_else),
		cmocka_unit_test(a_gpu_given_whole_takes_nothing_else_even_if_it_grows),
		cmocka_unit_test(a_whole_gpu_has_at_least_the_memory_that_is_asked_for),
		cmocka_unit_test(a_gpu_with_foreign_memory_is_not_given_whole),
		cmocka_unit_test(as_many_whole_gpus_as_asked_for_are_on_one_node),
		cmocka_unit_test(a_fraction_is_of_the_usable_memory_of_its_gpu_rounded_down),
		cmocka_unit_test(several_fractions_are_on_different_gpus),
		cmocka_unit_test(share_is_never_a_reason_to_refuse),
		cmocka_unit_test(uneven_parts_fit_in_one_linked_group_or_in_another),
		cmocka_unit_test(uneven_parts_fit_across_linked_groups_where_they_must),
		cmocka_unit_test(
		    what_could_never_run_on_this_hardware_is_refused_when_asked_to_check),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
