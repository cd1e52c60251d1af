/* workload_mix_test.c - fragmentation by its definition, and what the mix learns */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/place/workload_mix.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static int workload_mix_set_up(void **state)
{
	struct workload_mix *mix = NEW(struct workload_mix);
	workload_mix_init(mix);
	*state = mix;
	return 0;
}

static int workload_mix_tear_down(void **state)
{
	workload_mix_free(*state);
	free(*state);
	return 0;
}

static void fix(struct workload_mix *mix, const struct workload_kind *kinds, size_t count)
{
	struct error error;
	const struct rows rows = { .at = (const int64_t *)kinds, .count = (int64_t)count };
	assert_true(workload_mix_fix(mix, rows, &error));
}

/* Whether the node can take a task of the kind. */
static bool can_take(const struct workload_kind *kind, int64_t cpu_milli, const int32_t *free_milli,
                     int gpu_count)
{
	int fitting = 0;
	for (int g = 0; g < gpu_count; g++)
		fitting += free_milli[g] >= kind->gpu_milli;
	return kind->gpu_count > 0 && fitting >= kind->gpu_count && cpu_milli >= kind->cpu_milli;
}

/* The definition, word for word. */
static int64_t defined(const struct workload_kind *kinds, size_t count, int64_t cpu_milli,
                       const int32_t *free_milli, int gpu_count)
{
	int64_t total = 0, sum = 0;
	for (size_t i = 0; i < count; i++)
		total += kinds[i].times;
	for (size_t i = 0; i < count; i++) {
		bool taken = can_take(&kinds[i], cpu_milli, free_milli, gpu_count);
		int64_t fragmented = 0;
		for (int g = 0; g < gpu_count; g++) {
			if (!taken || free_milli[g] < kinds[i].gpu_milli)
				fragmented += free_milli[g];
		}
		sum += kinds[i].times * MIX_UNIT / total * fragmented;
	}
	return sum;
}

static int64_t below(uint64_t *seed, uint64_t bound)
{
	return (int64_t)random_below(seed, bound);
}

static struct workload_kind any_kind(uint64_t *seed)
{
	static const int64_t sizes[] = { 1, 160, 250, 333, 500, 810, 999, 1000, 1000, 1000 };
	static const int64_t counts[] = { 0, 1, 1, 1, 1, 2, 3, 4, 8 };
	struct workload_kind kind = {
		.gpu_milli = sizes[below(seed, COUNT(sizes))],
		.gpu_count = counts[below(seed, COUNT(counts))],
		.cpu_milli = below(seed, 30) * 1000,
		.times = 1 + below(seed, 1000),
	};
	if (kind.gpu_count > 1 && below(seed, 4) > 0)
		kind.gpu_milli = WHOLE_GPU;
	return kind;
}

/* Most GPUs are free, full, or at the size of some kind. */
static int any_node(uint64_t *seed, int32_t *free_milli)
{
	static const int32_t sizes[] = { 0, 1, 249, 250, 500, 810, 999, 1000, 1000, 1000 };
	int gpu_count = (int)below(seed, 10);
	for (int g = 0; g < gpu_count; g++)
		free_milli[g] =
		    below(seed, 4) ? sizes[below(seed, COUNT(sizes))] : (int32_t)below(seed, 1001);
	return gpu_count;
}

static void fragmentation_is_as_defined(void **state)
{
	struct workload_mix *mix = *state;
	uint64_t seed = 1;
	for (int i = 0; i < 300; i++) {
		struct workload_kind kinds[30];
		size_t count = 2 + (size_t)below(&seed, 29);
		for (size_t k = 0; k < count; k++)
			kinds[k] = any_kind(&seed);
		kinds[0].gpu_count = 1;
		fix(mix, kinds, count);
		for (int j = 0; j < 100; j++) {
			int32_t free_milli[GPUS_PER_NODE_MAX];
			int gpu_count = any_node(&seed, free_milli);
			int64_t cpu_milli = below(&seed, 33) * 1000 - below(&seed, 3);
			assert_int_equal(
			    workload_mix_fragmentation(mix, cpu_milli, free_milli, gpu_count),
			    defined(kinds, count, cpu_milli, free_milli, gpu_count));
		}
	}
}

static void small_rests_count_for_the_kinds_that_they_are_too_small_for(void **state)
{
	struct workload_mix *mix = *state;
	const struct workload_kind kinds[] = { { 1000, 1, 0, 1 }, { 500, 1, 0, 1 } };
	fix(mix, kinds, COUNT(kinds));
	assert_int_equal(workload_mix_fragmentation(mix, 0, (int32_t[]){ 1000, 500, 190 }, 3),
	                 (690 + 190) * (MIX_UNIT / 2));
}

static void all_of_a_node_counts_for_kinds_that_it_cannot_take(void **state)
{
	struct workload_mix *mix = *state;
	const struct workload_kind kinds[] = { { 1000, 2, 4000, 1 } };
	const int32_t two[] = { 1000, 1000, 500 }, one[] = { 1000, 999, 500 };
	fix(mix, kinds, COUNT(kinds));
	assert_int_equal(workload_mix_fragmentation(mix, 4000, two, 3), INT64_C(500) * MIX_UNIT);
	assert_int_equal(workload_mix_fragmentation(mix, 4000, one, 3), INT64_C(2499) * MIX_UNIT);
	assert_int_equal(workload_mix_fragmentation(mix, 3999, two, 3), INT64_C(2500) * MIX_UNIT);
	assert_int_equal(workload_mix_fragmentation(mix, INT64_MAX, two, 3),
	                 INT64_C(500) * MIX_UNIT);
}

static void a_node_that_owes_cpu_takes_nothing(void **state)
{
	struct workload_mix *mix = *state;
	const struct workload_kind kinds[] = { { 500, 1, 0, 1 } };
	fix(mix, kinds, COUNT(kinds));
	assert_int_equal(workload_mix_fragmentation(mix, 0, (int32_t[]){ 1000 }, 1), 0);
	assert_int_equal(workload_mix_fragmentation(mix, -1, (int32_t[]){ 1000 }, 1),
	                 INT64_C(1000) * MIX_UNIT);
}

static void nothing_is_fragmented_if_nothing_needs_a_gpu(void **state)
{
	struct workload_mix *mix = *state;
	const struct workload_kind kinds[] = { { 0, 0, 1000, 5 }, { 0, 0, 2000, 5 } };
	fix(mix, kinds, COUNT(kinds));
	assert_int_equal(workload_mix_fragmentation(mix, 0, (int32_t[]){ 1000, 300 }, 2), 0);
}

static void an_empty_mix_is_taken_to_be_the_usual_one(void **state)
{
	struct workload_mix *mix = *state;
	const struct workload_kind usual[] = {
		{ 1000, 1, 0, 40 }, { 1000, 2, 0, 10 }, { 1000, 4, 0, 10 },
		{ 1000, 8, 0, 10 }, { 500, 1, 0, 15 },  { 250, 1, 0, 15 },
	};
	uint64_t seed = 1;
	for (int i = 0; i < 100; i++) {
		int32_t free_milli[GPUS_PER_NODE_MAX];
		int gpu_count = any_node(&seed, free_milli);
		assert_int_equal(workload_mix_fragmentation(mix, 8000, free_milli, gpu_count),
		                 defined(usual, COUNT(usual), 8000, free_milli, gpu_count));
	}
}

static void only_the_most_frequent_needs_are_weighed(void **state)
{
	struct workload_mix *mix = *state;
	struct workload_kind kinds[MIX_NEEDS + 8];
	for (int i = 0; i < MIX_NEEDS + 8; i++)
		kinds[i] = (struct workload_kind){ 10 + i * 10, 1, 0, i < 8 ? 1 : 2 };
	fix(mix, kinds, COUNT(kinds));
	uint64_t seed = 1;
	for (int i = 0; i < 100; i++) {
		int32_t free_milli[GPUS_PER_NODE_MAX];
		int gpu_count = any_node(&seed, free_milli);
		assert_int_equal(workload_mix_fragmentation(mix, 0, free_milli, gpu_count),
		                 defined(kinds + 8, MIX_NEEDS, 0, free_milli, gpu_count));
	}
}

static void rare_needs_of_cpu_are_rounded_up_to_the_next(void **state)
{
	struct workload_mix *mix = *state;
	struct workload_kind kinds[2 * MIX_CPUS];
	/* Odd ones are rare, and one frequent need has to give way as well. */
	for (int i = 0; i < 2 * MIX_CPUS; i++)
		kinds[i] = (struct workload_kind){ 500, 1, i * 100 + 100, i % 2 ? 1000 + i : 1 };
	fix(mix, kinds, COUNT(kinds));
	for (int i = 0; i < 2 * MIX_CPUS; i++)
		kinds[i].cpu_milli = max64((i + 2) / 2 * 200, 400);
	uint64_t seed = 1;
	for (int i = 0; i < 300; i++) {
		int32_t free_milli[GPUS_PER_NODE_MAX];
		int gpu_count = any_node(&seed, free_milli);
		int64_t cpu_milli = below(&seed, 100) * 100;
		assert_int_equal(workload_mix_fragmentation(mix, cpu_milli, free_milli, gpu_count),
		                 defined(kinds, COUNT(kinds), cpu_milli, free_milli, gpu_count));
	}
}

static void fragmentation_is_by_the_most_frequent_kinds_up_to_95_in_100(void **state)
{
	struct workload_mix *mix = *state;
	workload_mix_learn(mix, 1, 1000, 1, 4000, 60, "");
	workload_mix_learn(mix, 2, 250, 1, 1000, 4, "");
	workload_mix_learn(mix, 3, 0, 0, 1000, 1, "");
	workload_mix_learn(mix, 4, 500, 1, 1000, 35, "");
	assert_int_equal(mix->r.seen.count, 4);
	assert_int_equal(mix->r.derived_at, 100);
	assert_int_equal(mix->r.classes.count, 4);
	assert_int_equal(mix->classes[0].times, 60);
	assert_int_equal(mix->classes[1].gpu_milli, 500);
	const struct workload_kind both[] = { { 1000, 1, 4000, 60 }, { 500, 1, 1000, 35 } };
	for (int32_t milli = 0; milli <= WHOLE_GPU; milli += 50)
		assert_int_equal(workload_mix_fragmentation(mix, 8000, &milli, 1),
		                 defined(both, COUNT(both), 8000, &milli, 1));
}

static void classes_are_derived_when_a_quarter_more_was_seen(void **state)
{
	struct workload_mix *mix = *state;
	workload_mix_learn(mix, 1, 1000, 1, 4000, 100, "");
	uint64_t version = mix->version;
	workload_mix_learn(mix, 2, 500, 1, 4000, 24, "");
	assert_int_equal(mix->r.derived_at, 100);
	assert_int_equal(mix->version, version);
	workload_mix_learn(mix, 3, 500, 1, 4000, 1, "");
	assert_int_equal(mix->r.derived_at, 125);
	assert_true(mix->version != version);
}

static void after_the_first_tasks_one_job_in_sixteen_changes_the_record(void **state)
{
	struct workload_mix *mix = *state;
	int changes = 0;
	workload_mix_learn(mix, 1, 1000, 1, 4000, 1024, "");
	for (int64_t number = 1; number <= 16000; number++) {
		mix->dirty = false;
		int64_t arrivals = mix->r.arrivals;
		workload_mix_learn(mix, number, 1000, 1, 4000, 1, "");
		assert_int_equal(mix->dirty, mix->r.arrivals != arrivals);
		changes += mix->dirty;
	}
	assert_in_range(changes, 900, 1100);
}

static void no_more_kinds_are_kept_than_fit_and_frequent_ones_stay(void **state)
{
	struct workload_mix *mix = *state;
	int64_t frequent = 0;
	for (int64_t i = 0; i < 20000; i++) {
		workload_mix_learn(mix, i, 1000, 1, 1, 1, "");
		workload_mix_learn(mix, i, 500, 1, i, 1, "");
		assert_true(mix->r.seen.count <= MIX_SEEN);
	}
	for (int64_t i = 0; i < mix->r.seen.count; i++)
		frequent += mix->seen[i].gpu_milli == 1000;
	assert_int_equal(frequent, 1);
	assert_int_equal(mix->classes[0].gpu_milli, 1000);
}

static void a_mix_follows_a_change_of_what_arrives(void **state)
{
	struct workload_mix *mix = *state;
	for (int64_t i = 0; i < 10000; i++)
		workload_mix_learn(mix, i, 1000, 8, 1000, 1000, "");
	for (int64_t i = 0; i < 10000; i++)
		workload_mix_learn(mix, i, 500, 1, 1000, 1000, "");
	assert_int_equal(mix->classes[0].gpu_milli, 500);
	assert_int_equal(mix->r.classes.count, 1);
}

static void a_fixed_mix_does_not_learn_until_it_is_freed(void **state)
{
	struct workload_mix *mix = *state;
	const struct workload_kind kinds[] = { { 500, 1, 0, 1 } };
	workload_mix_learn(mix, 1, 1000, 4, 1000, 20, "");
	fix(mix, kinds, 1);
	mix->dirty = false;
	workload_mix_learn(mix, 2, 250, 1, 1000, 1000, "");
	assert_false(mix->dirty);
	assert_true(mix->r.fixed);
	assert_int_equal(mix->classes[0].gpu_milli, 500);
	fix(mix, NULL, 0);
	assert_true(mix->dirty);
	assert_false(mix->r.fixed);
	assert_int_equal(mix->r.classes.count, 1);
	assert_int_equal(mix->classes[0].gpu_count, 4);
}

static void what_jobs_insist_on_is_a_part_of_what_was_asked_for(void **state)
{
	struct workload_mix *mix = *state;
	workload_mix_learn(mix, 1, 500, 2, 0, 3, "A100");
	workload_mix_learn(mix, 2, 1000, 1, 0, 5, "");
	workload_mix_learn(mix, 3, 0, 0, 0, 5, "A100");
	assert_int_equal(mix->r.asked_milli, 8000);
	assert_string_equal(mix->r.insisted, "A100");
	assert_int_equal(mix->r.insisted_milli.count, 1);
	assert_int_equal(mix->r.insisted_milli.at[0], 3000);
}

static void what_jobs_insist_on_is_forgotten_with_the_rest(void **state)
{
	struct workload_mix *mix = *state;
	workload_mix_learn(mix, 1, 1000, 1, 0, 100, "A100");
	const int64_t insisted = mix->r.insisted_milli.at[0];
	for (int64_t i = 0; i < 3000; i++)
		workload_mix_learn(mix, i, 1000, 1, 0, 1000, "");
	assert_true(mix->r.insisted_milli.count == 0 || mix->r.insisted_milli.at[0] < insisted);
	assert_true(mix->r.asked_milli < INT64_C(66000) * 1000);
}

static void a_loaded_mix_goes_on_like_the_one_that_wrote_the_record(void **state)
{
	struct workload_mix *mix = *state, loaded;
	uint64_t seed = 1;
	struct error error;
	struct arena arena = { 0 };
	for (int64_t number = 1; number < 600; number++) {
		struct workload_kind kind = any_kind(&seed);
		const char *models = number % 3 == 0 ? "A100|H100" : number % 5 == 0 ? "L4" : "";
		if (number % 50 == 0 || number < 30) {
			workload_mix_init(&loaded);
			assert_true(workload_mix_load(
			    &loaded, record_copy(&arena, RECORD_MIX, &mix->r), &error));
			for (int i = 0; i < 20; i++) {
				int32_t milli[GPUS_PER_NODE_MAX];
				int gpu_count = any_node(&seed, milli);
				assert_int_equal(
				    workload_mix_fragmentation(&loaded, 9000, milli, gpu_count),
				    workload_mix_fragmentation(mix, 9000, milli, gpu_count));
			}
			workload_mix_learn(&loaded, number, kind.gpu_milli, kind.gpu_count,
			                   kind.cpu_milli, 3, models);
		}
		workload_mix_learn(mix, number, kind.gpu_milli, kind.gpu_count, kind.cpu_milli, 3,
		                   models);
		if (number % 50 == 0 || number < 30) {
			assert_true(record_equal(RECORD_MIX, &loaded.r, &mix->r));
			workload_mix_free(&loaded);
		}
	}
	arena_free(&arena);
}

static void kinds_that_make_no_sense_are_refused_and_change_nothing(void **state)
{
	struct workload_mix *mix = *state;
	const struct workload_kind wrong[] = {
		{ 1001, 1, 0, 1 },  { 0, 1, 0, 1 },
		{ -1, 0, 0, 1 },    { 1000, -1, 0, 1 },
		{ 1000, 65, 0, 1 }, { 1000, 1, -1, 1 },
		{ 1000, 1, 0, 0 },  { 1000, 1, 0, INT64_MAX },
	};
	const uint64_t version = mix->version;
	for (size_t i = 0; i < COUNT(wrong); i++) {
		struct error error = { 0 };
		const struct rows rows = { .at = (const int64_t *)&wrong[i], .count = 1 };
		assert_false(workload_mix_fix(mix, rows, &error));
		assert_int_equal(error.code, ERROR_INVALID);
		assert_ptr_not_equal(strstr(error.text, "kind 1 of the mix has "), NULL);
	}
	assert_int_equal(mix->version, version);
	assert_false(mix->dirty);
}

static void records_that_contradict_themselves_are_refused(void **state)
{
	struct workload_mix *mix = *state;
	const struct workload_kind negative = { 1000, 1, 0, -5 };
	const struct rows rows = { .at = (const int64_t *)&negative, .count = 1 };
	const struct mix_record wrong[] = {
		{ .id = 1, .fixed = true },
		{ .id = 1, .arrivals = 1, .derived_at = 2 },
		{ .id = 1, .derived_at = -1 },
		{ .id = 1, .seen = rows },
		{ .id = 1, .classes = rows },
		{ .id = 1, .seen = { .at = rows.at, .count = MIX_SEEN + 1 } },
		{ .id = 1, .asked_milli = -1 },
		{ .id = 1, .asked_milli = 9, .insisted = "A100" },
	};
	for (size_t i = 0; i < COUNT(wrong); i++) {
		struct error error = { 0 };
		assert_false(workload_mix_load(mix, &wrong[i], &error));
		assert_int_equal(error.code, ERROR_CORRUPT);
	}
}

#define TEST(name)                                                                                 \
	cmocka_unit_test_setup_teardown(name, workload_mix_set_up, workload_mix_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(fragmentation_is_as_defined),
		TEST(small_rests_count_for_the_kinds_that_they_are_too_small_for),
		TEST(all_of_a_node_counts_for_kinds_that_it_cannot_take),
		TEST(a_node_that_owes_cpu_takes_nothing),
		TEST(nothing_is_fragmented_if_nothing_needs_a_gpu),
		TEST(an_empty_mix_is_taken_to_be_the_usual_one),
		TEST(only_the_most_frequent_needs_are_weighed),
		TEST(rare_needs_of_cpu_are_rounded_up_to_the_next),
		TEST(fragmentation_is_by_the_most_frequent_kinds_up_to_95_in_100),
		TEST(classes_are_derived_when_a_quarter_more_was_seen),
		TEST(after_the_first_tasks_one_job_in_sixteen_changes_the_record),
		TEST(no_more_kinds_are_kept_than_fit_and_frequent_ones_stay),
		TEST(a_mix_follows_a_change_of_what_arrives),
		TEST(a_fixed_mix_does_not_learn_until_it_is_freed),
		TEST(what_jobs_insist_on_is_a_part_of_what_was_asked_for),
		TEST(what_jobs_insist_on_is_forgotten_with_the_rest),
		TEST(a_loaded_mix_goes_on_like_the_one_that_wrote_the_record),
		TEST(kinds_that_make_no_sense_are_refused_and_change_nothing),
		TEST(records_that_contradict_themselves_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
