/* calendar_test.c - tests of dates and times of day */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "base/calendar.h"

static void assert_written(int64_t unix_us, int digits, const char *expected)
{
	char text[CALENDAR_TEXT_MAX];
	assert_int_equal(calendar_write(unix_us, digits, text), strlen(expected));
	assert_string_equal(text, expected);
}

static void times_are_written_with_as_many_digits_as_asked_for(void **state)
{
	(void)state;
	assert_written(0, 0, "1970-01-01T00:00:00Z");
	assert_written(1769860800250001, 0, "2026-01-31T12:00:00Z");
	assert_written(1769860800250001, 3, "2026-01-31T12:00:00.250Z");
	assert_written(1769860800250001, 6, "2026-01-31T12:00:00.250001Z");
}

static void what_is_out_of_range_is_written_as_its_nearest_end(void **state)
{
	(void)state;
	struct buffer buffer = { 0 };
	assert_written(-1, 3, "1970-01-01T00:00:00.000Z");
	assert_written(INT64_MAX, 6, "9999-12-31T23:59:59.999999Z");
	calendar_print(&buffer, INT64_MAX);
	assert_string_equal(buffer.data, "9999-12-31T23:59:59Z");
	buffer_free(&buffer);
}

static void every_day_is_what_the_c_library_says(void **state)
{
	(void)state;
	for (int64_t day = 0; day < 400 * 366; day++) {
		time_t s = (time_t)(day * 86400 + day % 86400);
		struct calendar date = calendar_of(s);
		struct tm parts;
		gmtime_r(&s, &parts);
		assert_int_equal(date.year, parts.tm_year + 1900);
		assert_int_equal(date.month, parts.tm_mon + 1);
		assert_int_equal(date.day, parts.tm_mday);
		assert_int_equal(date.weekday, parts.tm_wday);
		assert_int_equal(date.hour * 3600 + date.minute * 60 + date.second, day % 86400);
	}
}

static void what_was_written_is_read_again(void **state)
{
	(void)state;
	char text[CALENDAR_TEXT_MAX];
	for (int64_t ms = 0; ms < INT64_C(253402300800000); ms += INT64_C(98765432101)) {
		int64_t read = -1;
		calendar_write(ms * 1000, 3, text);
		assert_true(calendar_read(text_of(text), &read));
		assert_int_equal(read, ms);
	}
}

static void mail_has_names_of_days_and_months(void **state)
{
	(void)state;
	struct buffer buffer = { 0 };
	calendar_print_mail(&buffer, 1769860800250);
	assert_string_equal(buffer.data, "Sat, 31 Jan 2026 12:00:00");
	buffer_free(&buffer);
}

static void a_time_is_read_with_its_zone_and_fraction(void **state)
{
	(void)state;
	int64_t ms;
	assert_true(calendar_read(TEXT("2026-01-31T12:00:00.25Z"), &ms));
	assert_int_equal(ms, 1769860800250);
	assert_true(calendar_read(TEXT("2026-01-31 13:30:00+01:30"), &ms));
	assert_int_equal(ms, 1769860800000);
	assert_true(calendar_read(TEXT("2026-01-31t10:30:00.0009999-01:30"), &ms));
	assert_int_equal(ms, 1769860800000);
	assert_true(calendar_read(TEXT("2024-02-29T23:59:60Z"), &ms));
	assert_true(calendar_read_day(TEXT("1970-01-02"), &ms));
	assert_int_equal(ms, 86400000);
}

static void what_is_no_time_is_refused_and_changes_nothing(void **state)
{
	(void)state;
	static const char *const wrong[] = { "",
		                             "2026-01-31",
		                             "2026-02-29T00:00:00Z",
		                             "2100-02-29T00:00:00Z",
		                             "2026-13-01T00:00:00Z",
		                             "2026-00-01T00:00:00Z",
		                             "tomorrow",
		                             "2026-01-31T24:00:00Z",
		                             "2026-01-31T12:00:00",
		                             "2026-01-31T12:00:00.Z",
		                             "1969-12-31T23:59:59Z",
		                             "1970-01-01T00:00:00+01:00",
		                             "2026-01-31T12:00:00Zx" };
	int64_t ms = 77;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(calendar_read(text_of(wrong[i]), &ms));
	assert_false(calendar_read_day(TEXT("2026-01-32"), &ms));
	assert_int_equal(ms, 77);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_are_written_with_as_many_digits_as_asked_for),
		cmocka_unit_test(what_is_out_of_range_is_written_as_its_nearest_end),
		cmocka_unit_test(every_day_is_what_the_c_library_says),
		cmocka_unit_test(what_was_written_is_read_again),
		cmocka_unit_test(mail_has_names_of_days_and_months),
		cmocka_unit_test(a_time_is_read_with_its_zone_and_fraction),
		cmocka_unit_test(what_is_no_time_is_refused_and_changes_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
