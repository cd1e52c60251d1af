/* track_test.c - numbers over a day and a week */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/live/track.h"

enum { STEP_MS = 300000 };

static const int64_t begin_ms = 1900000000000 / STEP_MS * STEP_MS;

static int32_t at(const struct track *track, int64_t unix_ms)
{
	return track_at(track, TRACK_DAY, unix_ms / STEP_MS);
}

static void a_step_has_the_mean_of_its_samples(void **state)
{
	(void)state;
	struct track track;
	track_clear(&track);
	track_add(&track, begin_ms, 10);
	assert_int_equal(at(&track, begin_ms), 10);
	track_add(&track, begin_ms + 1000, 20);
	track_add(&track, begin_ms + STEP_MS, 100);
	assert_int_equal(at(&track, begin_ms), 15);
	assert_int_equal(at(&track, begin_ms + STEP_MS), 100);
	assert_int_equal(at(&track, begin_ms - STEP_MS), TRACK_NONE);
	assert_int_equal(at(&track, begin_ms + 2 * STEP_MS), TRACK_NONE);
}

static void a_gap_has_nothing_and_a_day_later_all_is_gone(void **state)
{
	(void)state;
	struct track track;
	track_clear(&track);
	track_add(&track, begin_ms, 1);
	track_add(&track, begin_ms + 3 * STEP_MS, 2);
	assert_int_equal(at(&track, begin_ms + STEP_MS), TRACK_NONE);
	assert_int_equal(at(&track, begin_ms), 1);
	track_add(&track, begin_ms + (int64_t)TRACK_DAY_STEPS * STEP_MS, 3);
	assert_int_equal(at(&track, begin_ms), TRACK_NONE);
	assert_int_equal(at(&track, begin_ms + 3 * STEP_MS), 2);
	int64_t half_hour = track_step_ms(TRACK_WEEK);
	assert_int_equal(track_at(&track, TRACK_WEEK, begin_ms / half_hour), 1);
}

static void a_clock_that_goes_back_adds_to_the_newest_step(void **state)
{
	(void)state;
	struct track track;
	track_clear(&track);
	track_add(&track, begin_ms, 10);
	track_add(&track, begin_ms - 10 * STEP_MS, 30);
	assert_int_equal(at(&track, begin_ms), 20);
	assert_int_equal(at(&track, begin_ms - 10 * STEP_MS), TRACK_NONE);
}

static void what_is_written_reads_back_the_same(void **state)
{
	(void)state;
	struct track track, again;
	struct buffer text = { 0 };
	struct error error = { 0 };
	track_clear(&track);
	for (int64_t i = 0; i < 500; i++)
		if (i % 7 < 4)
			track_add(&track, begin_ms + i * STEP_MS, i - 250);
	track_write(&track, &text);
	track_write(&track, &text);
	struct text rest = { text.data, text.size };
	assert_true(track_read(&again, &rest, &error));
	assert_memory_equal(&track, &again, sizeof(track));
	assert_true(track_read(&again, &rest, &error));
	assert_int_equal(rest.size, 0);
	/* The next step is added behind it. */
	track_add(&again, begin_ms + 500 * STEP_MS, 1000);
	assert_int_equal(at(&again, begin_ms + 500 * STEP_MS), 1000);
	buffer_free(&text);
}

static void what_is_not_readable_is_refused_and_empty(void **state)
{
	(void)state;
	static const char *const texts[] = {
		"", "x", "5 0 0;", "-1 0 0;", "-1 0 0 1;;", "400 0 0 _289;", "400 0 0 _;-1 0 0;"
	};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct text rest = text_of(texts[i]);
		struct error error = { 0 };
		struct track track;
		assert_false(track_read(&track, &rest, &error));
		assert_int_equal(error.code, ERROR_INVALID);
		assert_int_equal(track.last[TRACK_DAY], -1);
	}
	struct text none = TEXT("-1 0 0;-1 0 0;");
	struct error error = { 0 };
	struct track track;
	assert_true(track_read(&track, &none, &error));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_has_the_mean_of_its_samples),
		cmocka_unit_test(a_gap_has_nothing_and_a_day_later_all_is_gone),
		cmocka_unit_test(a_clock_that_goes_back_adds_to_the_newest_step),
		cmocka_unit_test(what_is_written_reads_back_the_same),
		cmocka_unit_test(what_is_not_readable_is_refused_and_empty),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
