/* cases_test.c - the cases that made this project necessary */
#include "core/test/harness.h"

static void one_gpu_advertised_as_a_hundred_devices_takes_what_one_gpu_takes(void **unused)
{
	struct harness *h = harness_new();
	struct device devices[100];
	int64_t jobs[5];

	(void)unused;
	for (int i = 0; i < 100; i++)
		devices[i] = device_of("GPU-1", 0, 32600);
	must(h, report(h, report_of("n1", devices, 100)));
	assert_int_equal(h->sched->cluster.nodes[0]->gpu_count, 1);
	assert_int_equal(gpu(h, "GPU-1")->r.aliases, 100);
	int64_t lab = put_tenant(h, tenant_named("lab"));
	for (int i = 0; i < 5; i++)
		jobs[i] = submit(h, memory(lab, 8000));
	assert_int_equal(pass(h), 4);
	for (int i = 0; i < 4; i++)
		assert_int_equal(state(h, jobs[i]), JOB_RUNNING);
	assert_int_equal(state(h, jobs[4]), JOB_PENDING);
	assert_non_null(strstr(why(h, jobs[4]), "600 MiB"));
	int64_t all = submit(h, whole(lab, 1));
	assert_int_equal(pass(h), 0);
	assert_int_equal(state(h, all), JOB_PENDING);
	harness_free(h);
}

static void a_shared_gpu_is_filled_emptied_and_filled_again(void **unused)
{
	struct harness *h = harness_new();
	struct device devices[4];
	int64_t jobs[30];

	(void)unused;
	for (int i = 0; i < 4; i++)
		devices[i] = device_of("GPU-1", 0, 46068);
	must(h, report(h, report_of("n1", devices, 4)));
	int64_t lab = put_tenant(h, tenant_named("lab"));
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 30; i++)
			jobs[i] = submit(h, memory(lab, 2000));
		assert_int_equal(pass(h), 23);
		assert_int_equal(gpu(h, "GPU-1")->books.used_mib, 46000);
		for (int i = 0; i < 30; i++)
			must(h, cancel(h, jobs[i]));
		confirm_stops(h);
		assert_int_equal(gpu(h, "GPU-1")->books.used_mib, 0);
		assert_int_equal(gpu(h, "GPU-1")->books.owners, 0);
		assert_int_equal(h->sched->tenants.all[0]->allocated.of[AMOUNT_GPU], 0);
		assert_int_equal(pass(h), 0);
	}
	harness_free(h);
}

static void three_models_of_128_gib_share_two_gpus_of_80_gib(void **unused)
{
	static const int64_t sizes[] = { 76278, 15038, 39936 }; /* 74.49, 14.685 and 39 GiB */

	(void)unused;
	for (int32_t policy = 0; policy < POLICY_COUNT; policy++) {
		struct harness *h = harness_new();
		struct config_record config = config_default();
		config.policy = policy;
		configure(h, config);
		add_node(h, "n1", 2, 81920);
		int64_t lab = put_tenant(h, tenant_named("lab"));
		for (int i = 0; i < 3; i++) {
			submit(h, memory(lab, sizes[i]));
			assert_int_equal(pass(h), 1);
		}
		for (int g = 0; g < 2; g++)
			assert_true(h->sched->cluster.nodes[0]->gpus[g]->books.used_mib <= 81920);
		harness_free(h);
	}
}

static void memory_that_is_releasing_is_claimed_and_not_used_until_it_is_confirmed(void **unused)
{
	struct harness *h = harness_new();

	(void)unused;
	add_node(h, "n1", 1, 80000);
	int64_t lab = put_tenant(h, tenant_named("lab"));
	int64_t first = submit(h, memory(lab, 60000));
	assert_int_equal(pass(h), 1);
	must(h, cancel(h, first));
	int64_t second = submit(h, memory(lab, 50000));
	assert_int_equal(pass(h), 0);
	assert_non_null(job(h, second)->tasks[0].claim);
	assert_int_equal(gpu(h, "n1-gpu0")->books.used_mib, 60000);
	int64_t third = submit(h, memory(lab, 20000)); /* beside the claim */
	assert_int_equal(pass(h), 1);
	assert_int_equal(state(h, third), JOB_RUNNING);
	int64_t fourth = submit(h, memory(lab, 15000)); /* would take what is claimed */
	assert_int_equal(pass(h), 0);
	assert_int_equal(state(h, fourth), JOB_PENDING);
	confirm_stops(h);
	assert_int_equal(pass(h), 1);
	assert_int_equal(state(h, second), JOB_RUNNING);
	assert_int_equal(gpu(h, "n1-gpu0")->books.used_mib, 70000);
	harness_free(h);
}

static void a_pair_that_fits_in_total_but_not_per_gpu_waits(void **unused)
{
	struct harness *h = harness_new();

	(void)unused;
	add_node(h, "n1", 2, 80000);
	int64_t lab = put_tenant(h, tenant_named("lab"));
	submit(h, memory(lab, 50000));
	submit(h, memory(lab, 31000));
	assert_int_equal(pass(h), 2);
	struct job_record pair = job_of(lab, GPU_MEMORY, 2);
	pair.memory_mib = 39000; /* 30000 and 49000 are free, or 0 and 79000 */
	int64_t waits = submit(h, pair);
	assert_int_equal(pass(h), 0);
	assert_int_equal(state(h, waits), JOB_PENDING);
	harness_free(h);
}

static void uneven_parts_go_where_each_fits(void **unused)
{
	struct harness *h = harness_new();
	static const int64_t parts[] = { 20000, 60000 };

	(void)unused;
	add_node(h, "n1", 2, 80000);
	int64_t lab = put_tenant(h, tenant_named("lab"));
	submit(h, memory(lab, 50000));
	assert_int_equal(pass(h), 1);
	struct job_record uneven = job_of(lab, GPU_UNEVEN, 2);
	uneven.uneven = (struct rows){ parts, 2 };
	int64_t id = submit(h, uneven);
	assert_int_equal(pass(h), 1);
	assert_int_equal(state(h, id), JOB_RUNNING);
	assert_int_equal(gpu(h, "n1-gpu0")->books.used_mib, 70000);
	assert_int_equal(gpu(h, "n1-gpu1")->books.used_mib, 60000);
	harness_free(h);
}

static void two_halves_of_any_gpu_fit(void **unused)
{
	struct harness *h = harness_new();

	(void)unused;
	add_node(h, "n1", 1, 32607);
	int64_t lab = put_tenant(h, tenant_named("lab"));
	submit(h, fraction(lab, 500));
	submit(h, fraction(lab, 500));
	assert_int_equal(pass(h), 2);
	harness_free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_gpu_advertised_as_a_hundred_devices_takes_what_one_gpu_takes),
		cmocka_unit_test(a_shared_gpu_is_filled_emptied_and_filled_again),
		cmocka_unit_test(three_models_of_128_gib_share_two_gpus_of_80_gib),
		cmocka_unit_test(
		    memory_that_is_releasing_is_claimed_and_not_used_until_it_is_confirmed),
		cmocka_unit_test(a_pair_that_fits_in_total_but_not_per_gpu_waits),
		cmocka_unit_test(uneven_parts_go_where_each_fits),
		cmocka_unit_test(two_halves_of_any_gpu_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
