/* ids_test.c - ids, times, durations and ranges as people write them */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/text/array_range.h"
#include "api/text/ids.h"
#include "api/text/times.h"

static void an_id_is_read_with_its_prefix_or_bare(void **state)
{
	(void)state;
	int64_t id = 0;
	assert_true(id_read(TEXT("job-12"), ID_JOB, &id));
	assert_int_equal(id, 12);
	assert_true(id_read(TEXT("9223372036854775807"), ID_JOB, &id));
	assert_true(id == INT64_MAX);
}

static void what_is_no_id_is_refused(void **state)
{
	(void)state;
	static const char *const texts[] = {
		"",       "job-", "job-0",  "job-01", "job-1x",
		"slot-3", "-1",   "job--1", " 1",     "job-9223372036854775808",
		"1e3"
	};
	int64_t id;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_false(id_read(text_of(texts[i]), ID_JOB, &id));
}

static void an_id_is_written_as_it_is_read(void **state)
{
	(void)state;
	char text[ID_TEXT_MAX];
	int64_t id;
	assert_int_equal(id_write(text, ID_TENANT, INT64_MAX), 26);
	assert_true(id_read(text_of(text), ID_TENANT, &id));
	assert_true(id == INT64_MAX);
	id_write(text, ID_JOB, 10);
	assert_string_equal(text, "job-10");
}

static void a_time_is_read_with_its_zone_and_fraction(void **state)
{
	(void)state;
	int64_t ms;
	assert_true(calendar_read(TEXT("1970-01-01T00:00:00Z"), &ms));
	assert_int_equal(ms, 0);
	assert_true(calendar_read(TEXT("2026-01-31T12:00:00.25Z"), &ms));
	assert_int_equal(ms, 1769860800250);
	assert_true(calendar_read(TEXT("2026-01-31T13:30:00+01:30"), &ms));
	assert_int_equal(ms, 1769860800000);
	assert_true(calendar_read(TEXT("2024-02-29T00:00:00Z"), &ms));
	assert_true(calendar_read_day(TEXT("1970-01-02"), &ms));
	assert_int_equal(ms, 86400000);
}

static void what_is_no_time_is_refused(void **state)
{
	(void)state;
	static const char *const texts[] = { "",
		                             "2026-01-31",
		                             "2026-02-29T00:00:00Z",
		                             "2026-13-01T00:00:00Z",
		                             "tomorrow",
		                             "2026-01-31T24:00:00Z",
		                             "2026-01-31T12:00:00",
		                             "2026-01-31T12:00:00.Z",
		                             "1969-12-31T23:59:59Z",
		                             "1970-01-01T00:00:00+01:00",
		                             "2026-01-31T12:00:00Zx" };
	int64_t ms;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_false(calendar_read(text_of(texts[i]), &ms));
}

static void a_duration_adds_up_its_units(void **state)
{
	(void)state;
	int64_t ms;
	assert_true(duration_read(TEXT("1h2m3s"), DURATION_MAX_MS, &ms));
	assert_int_equal(ms, 3723000);
	assert_true(duration_read(TEXT("1.5h"), DURATION_MAX_MS, &ms));
	assert_int_equal(ms, 5400000);
	assert_true(duration_read(TEXT("250ms"), DURATION_MAX_MS, &ms));
	assert_int_equal(ms, 250);
	assert_true(duration_read(TEXT("30"), DURATION_MAX_MS, &ms));
	assert_int_equal(ms, 30000);
}

static void what_is_no_duration_is_refused(void **state)
{
	(void)state;
	static const char *const texts[] = {
		"", "h", "1x", "-1s", "1.h", "20000d", "99999999999999999999s"
	};
	int64_t ms;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_false(duration_read(text_of(texts[i]), DURATION_MAX_MS, &ms));
}

static bool array_of(const char *text, struct arena *arena, struct array_range *range)
{
	struct error error = { 0 };
	return array_range_read(text_of(text), arena, range, &error);
}

static void a_range_has_both_ends_and_perhaps_a_limit(void **state)
{
	(void)state;
	struct arena arena = { 0 };
	struct array_range range;
	assert_true(array_of("1-100%8", &arena, &range));
	assert_int_equal(range.from, 1);
	assert_int_equal(range.to, 100);
	assert_int_equal(range.limit, 8);
	assert_int_equal(range.count, 100);
	assert_null(range.indices);
	assert_true(array_of("0-3", &arena, &range));
	assert_int_equal(range.limit, 0);
	arena_free(&arena);
}

static void an_array_may_have_steps_and_single_indices(void **state)
{
	(void)state;
	struct arena arena = { 0 };
	struct array_range range;
	assert_true(array_of("0-90:10", &arena, &range));
	assert_int_equal(range.count, 10);
	assert_int_equal(range.indices[9], 90);
	assert_true(array_of("7,1,3-5,4%2", &arena, &range));
	assert_int_equal(range.count, 5);
	assert_int_equal(range.from, 1);
	assert_int_equal(range.to, 7);
	assert_int_equal(range.limit, 2);
	static const int64_t expected[] = { 1, 3, 4, 5, 7 };
	assert_memory_equal(range.indices, expected, sizeof(expected));
	assert_true(array_of("5", &arena, &range));
	assert_int_equal(range.count, 1);
	arena_free(&arena);
}

static void what_is_no_range_is_refused_with_an_example(void **state)
{
	(void)state;
	static const char *const texts[] = { "",       "1-",   "-5",      "1-5%", "1-5%0",  "5-1",
		                             "0-0",    "0",    "1-20000", "1-5x", "1-5:0",  "1,,2",
		                             "1-9:1:", "1,2,", "1:2",     ",1",   "1-2%2,5" };
	struct arena arena = { 0 };
	struct array_range range;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct error error = { 0 };
		assert_false(array_range_read(text_of(texts[i]), &arena, &range, &error));
		assert_int_equal(error.code, ERROR_INVALID);
	}
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_id_is_read_with_its_prefix_or_bare),
		cmocka_unit_test(what_is_no_id_is_refused),
		cmocka_unit_test(an_id_is_written_as_it_is_read),
		cmocka_unit_test(a_time_is_read_with_its_zone_and_fraction),
		cmocka_unit_test(what_is_no_time_is_refused),
		cmocka_unit_test(a_duration_adds_up_its_units),
		cmocka_unit_test(what_is_no_duration_is_refused),
		cmocka_unit_test(a_range_has_both_ends_and_perhaps_a_limit),
		cmocka_unit_test(an_array_may_have_steps_and_single_indices),
		cmocka_unit_test(what_is_no_range_is_refused_with_an_example),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
