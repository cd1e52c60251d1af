/* gpu_value_test.c - what rests of GPUs are learned to be worth */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/place/workload_mix.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define LEARN(worth, kinds) gpu_value_learn(worth, kinds, COUNT(kinds))

/* Thousandths of a remainder that are used in the end. */
static int gpu_value_used(const struct gpu_value *worth, int milli)
{
	return (int)(worth->value[milli] / GPU_VALUE_UNIT);
}

static struct gpu_value_sum gpu_value_gpu_of(const struct gpu_value *worth, int32_t milli)
{
	struct gpu_value_sum sum = { 0 };
	gpu_value_sum_add(&sum, worth, milli, 0, 1);
	return sum;
}

static void a_rest_that_nothing_fits_is_worth_nothing(void **state)
{
	static const struct workload_kind kinds[] = { { 810, 1, 4000, 1 } };
	static struct gpu_value worth;
	(void)state;
	LEARN(&worth, kinds);
	assert_int_equal(gpu_value_used(&worth, 190), 0);
	assert_in_range(gpu_value_used(&worth, 1000), 800, 810);
	assert_int_equal(gpu_value_used(&worth, 0), 0);
}

static void a_rest_that_is_always_filled_is_worth_its_size(void **state)
{
	static const struct workload_kind kinds[] = { { 500, 1, 4000, 1 } };
	static struct gpu_value worth;
	(void)state;
	LEARN(&worth, kinds);
	assert_in_range(gpu_value_used(&worth, 500), 495, 500);
	assert_in_range(gpu_value_used(&worth, 1000), 990, 1000);
	assert_in_range(worth.cpu_milli[1000], 7900, 8000);
	assert_in_range(worth.cpu_milli[500], 3950, 4000);
}

/* There are a hundred rests of 190 for each task that is small enough. */
static void a_rest_for_which_little_arrives_is_worth_little(void **state)
{
	static const struct workload_kind kinds[] = { { 810, 1, 4000, 100 }, { 190, 1, 1000, 1 } };
	static struct gpu_value worth;
	(void)state;
	LEARN(&worth, kinds);
	assert_in_range(gpu_value_used(&worth, 190), 0, 30);
	assert_true(worth.value[1000] > worth.value[190]);
}

static void gpus_of_several_count_one_by_one_with_their_part_of_the_cpu(void **state)
{
	static const struct workload_kind kinds[] = { { 1000, 8, 64000, 1 } };
	static struct gpu_value worth;
	(void)state;
	LEARN(&worth, kinds);
	assert_in_range(gpu_value_used(&worth, 1000), 990, 1000);
	assert_in_range(worth.cpu_milli[1000], 7900, 8000);
}

static void the_same_kinds_give_the_same_worth(void **state)
{
	static const struct workload_kind kinds[] = { { 810, 1, 11300, 13 },
		                                      { 470, 1, 4000, 9 },
		                                      { 1000, 1, 11908, 48 },
		                                      { 0, 0, 32000, 4 } };
	static struct gpu_value one, other;
	(void)state;
	LEARN(&one, kinds);
	memset(&other, 0xff, sizeof(other));
	LEARN(&other, kinds);
	assert_memory_equal(&one, &other, sizeof(one));
}

static void without_any_need_of_gpus_nothing_is_worth_anything(void **state)
{
	static const struct workload_kind kinds[] = { { 0, 0, 32000, 4 } };
	static struct gpu_value worth;
	(void)state;
	LEARN(&worth, kinds);
	struct gpu_value_sum sum = gpu_value_gpu_of(&worth, 1000);
	assert_int_equal(gpu_value_sum_with(&sum, 1000), 0);
}

static void the_largest_numbers_do_not_overflow(void **state)
{
	static const struct workload_kind kinds[] = { { 1, 64, INT64_C(1) << 40, INT64_C(1) << 40 },
		                                      { 1000, 1, INT64_C(1) << 40,
		                                        INT64_C(1) << 40 } };
	static struct gpu_value worth;
	(void)state;
	LEARN(&worth, kinds);
	struct gpu_value_sum sum = { 0 };
	for (int i = 0; i < GPUS_PER_NODE_MAX; i++)
		gpu_value_sum_add(&sum, &worth, 1000, 0, 1);
	assert_in_range(gpu_value_sum_with(&sum, INT64_C(1) << 40), 0, sum.value);
	assert_in_range(gpu_value_sum_with(&sum, 0), 0, sum.value);
}

static void worth_falls_with_the_cpu_that_is_missing(void **state)
{
	static const struct workload_kind kinds[] = { { 1000, 1, 4000, 1 }, { 1000, 1, 12000, 1 } };
	static struct gpu_value worth;
	int64_t last = -1;
	(void)state;
	LEARN(&worth, kinds);
	struct gpu_value_sum sum = gpu_value_gpu_of(&worth, 1000);
	for (int64_t cpu = 0; cpu <= 20000; cpu += 100) {
		int64_t now = gpu_value_sum_with(&sum, cpu);
		assert_true(now >= last && now <= sum.value);
		last = now;
	}
	assert_int_equal(last, sum.value);
	assert_int_equal(gpu_value_sum_with(&sum, -5), gpu_value_sum_with(&sum, 0));
	assert_in_range(gpu_value_sum_with(&sum, 0), 0, sum.value / 100);
	/* Half of them would miss half of 8000 if there were 4000. */
	assert_in_range(gpu_value_sum_with(&sum, 4000) * 100 / sum.value, 40, 60);
}

static void a_mix_learns_the_worth_of_its_classes_when_they_change(void **state)
{
	struct workload_mix mix;
	(void)state;
	workload_mix_init(&mix);
	workload_mix_learn(&mix, 1, 810, 1, 4000, 100, "");
	assert_int_equal(gpu_value_used(workload_mix_gpu_value(&mix), 190), 0);
	workload_mix_learn(&mix, 2, 190, 1, 4000, 400, "");
	assert_in_range(gpu_value_used(workload_mix_gpu_value(&mix), 190), 150, 190);
	workload_mix_free(&mix);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rest_that_nothing_fits_is_worth_nothing),
		cmocka_unit_test(a_rest_that_is_always_filled_is_worth_its_size),
		cmocka_unit_test(a_rest_for_which_little_arrives_is_worth_little),
		cmocka_unit_test(gpus_of_several_count_one_by_one_with_their_part_of_the_cpu),
		cmocka_unit_test(the_same_kinds_give_the_same_worth),
		cmocka_unit_test(without_any_need_of_gpus_nothing_is_worth_anything),
		cmocka_unit_test(the_largest_numbers_do_not_overflow),
		cmocka_unit_test(worth_falls_with_the_cpu_that_is_missing),
		cmocka_unit_test(a_mix_learns_the_worth_of_its_classes_when_they_change),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
