/* predict_test.c - what is expected of a job after what others took */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/predict/traits.h"
#include "core/queue/predict.h"

#define MINUTE 60000
#define NOW INT64_C(1700000000000)

static struct job_record job_of(int64_t tenant_id, const char *name, int32_t gpus)
{
	return (struct job_record){
		.tenant_id = tenant_id,
		.name = name,
		.gpu_kind = GPU_WHOLE,
		.gpu_count = gpus,
		.tasks = 1,
	};
}

static void ignore(void *context, const struct lesson_record *lesson)
{
	(void)context;
	(void)lesson;
}

static void learn(struct predictor *predictor, struct job_record job, int64_t took_ms)
{
	predict_learn(predictor, &job, &(struct likeness){ 0 }, took_ms, NOW, ignore, NULL);
}

static struct prediction expect(const struct predictor *predictor, struct job_record job)
{
	return predict_job(predictor, &job, &(struct likeness){ 0 });
}

/* Durations are kept as logarithms: a thousandth is lost. */
static void assert_about(int64_t actual, int64_t expected)
{
	assert_in_range(actual, expected - expected / 1000, expected + expected / 1000);
}

static void nothing_is_known_at_first(void **state)
{
	(void)state;
	struct predictor predictor = { 0 };
	struct prediction prediction = expect(&predictor, job_of(1, "train-1", 1));
	assert_int_equal(prediction.expected_ms, 0);
	assert_int_equal(prediction.confidence, 0);
	assert_int_equal(prediction.samples, 0);
	assert_string_equal(prediction.basis, "nothing");
	predict_free(&predictor);
}

static void without_lessons_the_maximum_runtime_is_expected(void **state)
{
	(void)state;
	struct predictor predictor = { 0 };
	struct job_record job = job_of(1, "train-1", 1);
	job.max_runtime_ms = 30 * MINUTE;
	struct prediction prediction = predict_job(&predictor, &job, &(struct likeness){ 0 });
	assert_int_equal(prediction.expected_ms, 30 * MINUTE);
	assert_int_equal(prediction.confidence, 100);
	assert_string_equal(prediction.basis, "maximum runtime");
	predict_free(&predictor);
}

static void a_job_is_expected_to_take_what_those_of_its_name_took(void **state)
{
	(void)state;
	struct predictor predictor = { 0 };
	for (int i = 0; i < 5; i++)
		learn(&predictor, job_of(1, "train-1", 1), 20 * MINUTE);
	struct prediction prediction = expect(&predictor, job_of(1, "train-2", 1));
	assert_about(prediction.expected_ms, 20 * MINUTE);
	assert_int_equal(prediction.samples, 5);
	assert_string_equal(prediction.basis, "tenant and name");
	predict_free(&predictor);
}

static void any_duration_is_learned_to_a_thousandth(void **state)
{
	(void)state;
	uint64_t seed = 3;
	for (int i = 0; i < 2000; i++) {
		struct predictor predictor = { 0 };
		int64_t took_ms = (int64_t)(random_next(&seed) >> (1 + random_below(&seed, 63)));
		took_ms = max64(took_ms, 1);
		learn(&predictor, job_of(1, "x", 1), took_ms);
		int64_t expected_ms = expect(&predictor, job_of(1, "x", 1)).expected_ms;
		assert_true(expected_ms >= 1);
		assert_about(expected_ms, took_ms);
		predict_free(&predictor);
	}
}

static void the_narrowest_kind_with_three_samples_is_used(void **state)
{
	(void)state;
	struct predictor predictor = { 0 };
	const struct job_record own = job_of(1, "train-1", 2);
	for (int i = 0; i < 3; i++)
		learn(&predictor, job_of(9, "other", 2), MINUTE);
	assert_string_equal(expect(&predictor, own).basis, "size");
	assert_about(expect(&predictor, own).expected_ms, MINUTE);

	for (int i = 0; i < 3; i++)
		learn(&predictor, job_of(1, "else", 2), 2 * MINUTE);
	assert_string_equal(expect(&predictor, own).basis, "tenant and size");
	assert_about(expect(&predictor, own).expected_ms, 2 * MINUTE);

	for (int i = 0; i < 3; i++)
		learn(&predictor, job_of(9, "train-7", 64), 4 * MINUTE);
	assert_string_equal(expect(&predictor, own).basis, "name");
	assert_about(expect(&predictor, own).expected_ms, 4 * MINUTE);

	for (int i = 0; i < 2; i++)
		learn(&predictor, own, 8 * MINUTE);
	assert_string_equal(expect(&predictor, own).basis, "name");
	learn(&predictor, own, 8 * MINUTE);
	assert_string_equal(expect(&predictor, own).basis, "tenant and name");
	assert_about(expect(&predictor, own).expected_ms, 8 * MINUTE);
	predict_free(&predictor);
}

static void one_sample_is_better_than_none(void **state)
{
	(void)state;
	struct predictor predictor = { 0 };
	learn(&predictor, job_of(9, "other", 1), MINUTE);
	struct prediction wide = expect(&predictor, job_of(1, "train", 1));
	assert_string_equal(wide.basis, "size");
	assert_int_equal(wide.samples, 1);
	learn(&predictor, job_of(1, "train", 1), 2 * MINUTE);
	struct prediction narrow = expect(&predictor, job_of(1, "train", 1));
	assert_string_equal(narrow.basis, "tenant and name");
	assert_about(narrow.expected_ms, 2 * MINUTE);
	predict_free(&predictor);
}

static void no_more_than_the_maximum_runtime_is_expected(void **state)
{
	(void)state;
	struct predictor predictor = { 0 };
	struct job_record job = job_of(1, "train", 1);
	for (int i = 0; i < 4; i++)
		learn(&predictor, job, 60 * MINUTE);
	job.max_runtime_ms = 10 * MINUTE;
	assert_int_equal(predict_job(&predictor, &job, &(struct likeness){ 0 }).expected_ms,
	                 10 * MINUTE);
	assert_string_equal(predict_job(&predictor, &job, &(struct likeness){ 0 }).basis,
	                    "tenant and name");
	predict_free(&predictor);
}

static void confidence_grows_with_agreement(void **state)
{
	(void)state;
	struct predictor predictor = { 0 };
	int64_t before = 0;
	for (int i = 0; i < 100; i++) {
		learn(&predictor, job_of(1, "train", 1), 20 * MINUTE);
		int64_t confidence = expect(&predictor, job_of(1, "train", 1)).confidence;
		assert_true(confidence > before || confidence > 950);
		assert_true(confidence < 1000);
		before = confidence;
	}
	assert_true(before > 970);
	predict_free(&predictor);
}

/* Alternating durations whose ratio is 2^spread. */
static int64_t confidence_at(int spread)
{
	struct predictor predictor = { 0 };
	for (int i = 0; i < 40; i++)
		learn(&predictor, job_of(1, "train", 1),
		      i % 2 ? MINUTE : (int64_t)MINUTE << spread);
	int64_t confidence = expect(&predictor, job_of(1, "train", 1)).confidence;
	predict_free(&predictor);
	return confidence;
}

static void confidence_falls_with_spread(void **state)
{
	(void)state;
	for (int spread = 0; spread < 16; spread++)
		assert_true(confidence_at(spread) > confidence_at(spread + 1));
	assert_true(confidence_at(16) < 100);
}

static void what_changed_for_good_is_learned_anew(void **state)
{
	(void)state;
	struct predictor predictor = { 0 };
	for (int i = 0; i < 10000; i++)
		learn(&predictor, job_of(1, "train", 1), 60 * MINUTE);
	for (int i = 0; i < 200; i++)
		learn(&predictor, job_of(1, "train", 1), 5 * MINUTE);
	int64_t expected_ms = expect(&predictor, job_of(1, "train", 1)).expected_ms;
	assert_in_range(expected_ms, 5 * MINUTE, 5 * MINUTE + MINUTE / 4);
	predict_free(&predictor);
}

/* The sizes of jobs of different tenants and names are seen through what they share. */
static bool same_size(struct job_record one, struct job_record other)
{
	struct predictor predictor = { 0 };
	one.tenant_id = 1;
	one.name = "one";
	other.tenant_id = 2;
	other.name = "other";
	learn(&predictor, one, MINUTE);
	bool same = expect(&predictor, other).samples == 1;
	predict_free(&predictor);
	return same;
}

static void size_is_the_gpus_asked_for_however_they_are_asked_for(void **state)
{
	(void)state;
	const int64_t uneven[] = { 32768, 32768 };
	struct job_record none = { .gpu_kind = GPU_NONE, .gpu_count = 4, .tasks = 8 };
	struct job_record one = { .gpu_kind = GPU_WHOLE, .gpu_count = 1, .tasks = 1 };
	struct job_record eight = { .gpu_kind = GPU_WHOLE, .gpu_count = 8, .tasks = 1 };
	struct job_record gang = { .gpu_kind = GPU_WHOLE, .gpu_count = 2, .tasks = 4 };
	struct job_record split = { .gpu_kind = GPU_WHOLE, .split_gpus = 8, .tasks = 1 };
	struct job_record half = {
		.gpu_kind = GPU_FRACTION, .gpu_count = 1, .fraction = 500, .tasks = 1
	};
	struct job_record memory = {
		.gpu_kind = GPU_MEMORY, .gpu_count = 2, .memory_mib = 16384, .tasks = 1
	};
	struct job_record parts = {
		.gpu_kind = GPU_UNEVEN, .gpu_count = 2, .uneven = { uneven, 2 }, .tasks = 1
	};
	struct job_record huge = { .gpu_kind = GPU_WHOLE,
		                   .gpu_count = INT32_MAX,
		                   .tasks = INT64_MAX };

	assert_true(same_size(eight, gang));
	assert_true(same_size(eight, split));
	assert_true(same_size(half, memory));
	assert_true(same_size(one, parts));
	assert_true(same_size(huge, huge));
	assert_false(same_size(one, half));
	assert_false(same_size(one, eight));
	assert_false(same_size(one, none));
	assert_false(same_size(half, none));
}

static void any_name_can_be_learned_from(void **state)
{
	(void)state;
	char longest[1000] = "";
	memset(longest, 'q', 999);
	const char *const names[] = { "", "#", "123", "\xff\xfe", longest };
	for (size_t i = 0; i < 5; i++) {
		struct predictor predictor = { 0 };
		for (int n = 0; n < 3; n++)
			learn(&predictor, job_of(1, names[i], 1), MINUTE);
		struct prediction prediction = expect(&predictor, job_of(1, names[i], 1));
		assert_string_equal(prediction.basis, "tenant and name");
		assert_about(prediction.expected_ms, MINUTE);
		predict_free(&predictor);
	}
}

static void a_name_is_never_taken_for_a_size(void **state)
{
	(void)state;
	struct predictor predictor = { 0 };
	learn(&predictor, job_of(1, "size:a", 1), MINUTE);
	assert_int_equal(predictor.lessons.count, 4);
	learn(&predictor, job_of(1, "size:b", 1), MINUTE);
	assert_int_equal(predictor.lessons.count, 6);
	predict_free(&predictor);
}

/* A small store: the last record of each lesson, in the order of first changes. */
struct store {
	struct lesson_record rows[256];
	char patterns[256][140];
	size_t count;
	uint64_t digest; /* of all changes, in order */
};

static void keep(void *context, const struct lesson_record *lesson)
{
	struct store *store = context;
	size_t at = 0;
	while (at < store->count && store->rows[at].id != lesson->id)
		at++;
	assert_true(at < 256);
	store->count += at == store->count;
	store->digest = store->digest * 1000003 + (uint64_t)(lesson->id + lesson->mean);
	store->digest = store->digest * 1000003 + (uint64_t)(lesson->samples + lesson->spread);
	store->rows[at] = *lesson;
	assert_true(strlen(lesson->pattern) < sizeof(store->patterns[at]));
	memcpy(store->patterns[at], lesson->pattern, strlen(lesson->pattern) + 1);
	store->rows[at].pattern = store->patterns[at];
}

static struct job_record any_job(uint64_t *seed)
{
	static const char *const names[] = { "train-1", "eval-2", "3f2a9c1b7", "", "sweep/x" };
	return job_of(1 + (int64_t)random_below(seed, 3), names[random_below(seed, 5)],
	              1 + (int32_t)random_below(seed, 8));
}

static void learn_many(struct predictor *predictor, struct store *store, uint64_t seed, int count)
{
	for (int i = 0; i < count; i++) {
		struct job_record job = any_job(&seed);
		int64_t took_ms = 1 + (int64_t)random_below(&seed, 100 * MINUTE);
		predict_learn(predictor, &job, &(struct likeness){ 0 }, took_ms, NOW + i, keep,
		              store);
	}
}

static void load_all(struct predictor *predictor, const struct store *store)
{
	struct error error;
	for (size_t i = store->count; i-- > 0;)
		assert_true(predict_load(predictor, &store->rows[i], &error));
}

static void a_loaded_predictor_goes_on_as_if_it_had_never_stopped(void **state)
{
	(void)state;
	static struct store store, again;
	struct predictor predictor = { 0 }, loaded = { 0 };
	learn_many(&predictor, &store, 5, 500);
	load_all(&loaded, &store);
	again = store;
	learn_many(&predictor, &store, 6, 500);
	learn_many(&loaded, &again, 6, 500);
	assert_int_equal(store.digest, again.digest);

	uint64_t seed = 7;
	for (int i = 0; i < 200; i++) {
		struct job_record job = any_job(&seed);
		struct prediction one = predict_job(&predictor, &job, &(struct likeness){ 0 });
		struct prediction other = predict_job(&loaded, &job, &(struct likeness){ 0 });
		assert_int_equal(one.expected_ms, other.expected_ms);
		assert_int_equal(one.confidence, other.confidence);
		assert_int_equal(one.samples, other.samples);
		assert_ptr_equal(one.basis, other.basis);
	}
	predict_free(&predictor);
	predict_free(&loaded);
}

/* The numbers are written down: every compiler and machine must find them. */
static void the_same_jobs_teach_the_same_everywhere(void **state)
{
	(void)state;
	static struct store store;
	struct predictor predictor = { 0 };
	const int64_t took_ms[] = { 60000, 90000, 45000, 600000 };
	struct job_record job = job_of(1, "train", 1);
	for (int i = 0; i < 4; i++)
		predict_learn(&predictor, &job, &(struct likeness){ 0 }, took_ms[i], NOW, keep,
		              &store);
	assert_int_equal(store.rows[0].mean, 17148);
	assert_int_equal(store.rows[0].spread, 1167);
	assert_int_equal(predict_job(&predictor, &job, &(struct likeness){ 0 }).expected_ms,
	                 109920);
	assert_int_equal(predict_job(&predictor, &job, &(struct likeness){ 0 }).confidence, 203);
	predict_free(&predictor);
}

static void a_job_changes_its_four_kinds_from_narrow_to_wide(void **state)
{
	(void)state;
	static struct store store;
	struct predictor predictor = { 0 };
	struct job_record job = job_of(7, "Train-12", 4);
	predict_learn(&predictor, &job, &(struct likeness){ 0 }, MINUTE, NOW, keep, &store);
	const char *const patterns[] = { "name:train-#", "name:train-#", "size:12", "size:12" };
	const int64_t tenants[] = { 7, 0, 7, 0 };
	assert_int_equal(store.count, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_true(store.rows[i].id > 0);
		assert_int_equal(store.rows[i].tenant_id, tenants[i]);
		assert_string_equal(store.rows[i].pattern, patterns[i]);
		assert_int_equal(store.rows[i].samples, 1);
		assert_int_equal(store.rows[i].spread, 0);
		assert_int_equal(store.rows[i].last_ms, NOW);
	}
	predict_free(&predictor);
}

static void a_lesson_that_contradicts_itself_is_refused(void **state)
{
	(void)state;
	static struct store store;
	struct predictor predictor = { 0 }, loaded = { 0 };
	struct error error;
	learn_many(&predictor, &store, 9, 1);
	for (int i = 0; i < 6; i++) {
		struct lesson_record bad = store.rows[0];
		int64_t *const fields[] = { &bad.id,      &bad.tenant_id, &bad.samples,
			                    &bad.samples, &bad.mean,      &bad.spread };
		const int64_t values[] = { 5, 99, 0, INT64_MAX, -1, INT64_C(1) << 40 };
		*fields[i] = values[i];
		assert_false(predict_load(&loaded, &bad, &error));
		assert_int_equal(error.code, ERROR_CORRUPT);
	}
	assert_true(predict_load(&loaded, &store.rows[0], &error));
	assert_false(predict_load(&loaded, &store.rows[0], &error));
	assert_int_equal(loaded.lessons.count, 1);
	predict_free(&predictor);
	predict_free(&loaded);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_known_at_first),
		cmocka_unit_test(without_lessons_the_maximum_runtime_is_expected),
		cmocka_unit_test(a_job_is_expected_to_take_what_those_of_its_name_took),
		cmocka_unit_test(any_duration_is_learned_to_a_thousandth),
		cmocka_unit_test(the_narrowest_kind_with_three_samples_is_used),
		cmocka_unit_test(one_sample_is_better_than_none),
		cmocka_unit_test(no_more_than_the_maximum_runtime_is_expected),
		cmocka_unit_test(confidence_grows_with_agreement),
		cmocka_unit_test(confidence_falls_with_spread),
		cmocka_unit_test(what_changed_for_good_is_learned_anew),
		cmocka_unit_test(size_is_the_gpus_asked_for_however_they_are_asked_for),
		cmocka_unit_test(any_name_can_be_learned_from),
		cmocka_unit_test(a_name_is_never_taken_for_a_size),
		cmocka_unit_test(a_loaded_predictor_goes_on_as_if_it_had_never_stopped),
		cmocka_unit_test(the_same_jobs_teach_the_same_everywhere),
		cmocka_unit_test(a_job_changes_its_four_kinds_from_narrow_to_wide),
		cmocka_unit_test(a_lesson_that_contradicts_itself_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
