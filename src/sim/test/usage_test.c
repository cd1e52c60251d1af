/* usage_test.c - GPUs by owner as time goes by, and what is drawn of it */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sim/world/usage.h"

#define DAY INT64_C(86400000)

static int64_t sum_of(const struct usage *usage, size_t owner)
{
	int64_t sum = 0;
	for (size_t i = 0; i < USAGE_SLICES; i++)
		sum += usage->gpu_ms[owner * USAGE_SLICES + i];
	return sum;
}

static void all_gpu_time_inside_counts_and_none_outside(void **state)
{
	struct usage usage;
	(void)state;
	usage_begin(&usage, 1000, 1000 + 10 * DAY, 2);
	usage_add(&usage, 0, 0, 1000 + DAY, 3);
	usage_add(&usage, 0, 1000 + DAY + 7, 1000 + DAY + 12345, 1);
	usage_add(&usage, 1, 1000 + 9 * DAY, 1000 + 20 * DAY, 8);
	usage_add(&usage, 1, 1000 + 10 * DAY, 1000 + 20 * DAY, 8);
	assert_int_equal(sum_of(&usage, 0), 3 * DAY + 12338);
	assert_int_equal(sum_of(&usage, 1), 8 * DAY);
	usage_free(&usage);
}

static void areas_are_stacked_with_the_largest_owner_lowest(void **state)
{
	const char *const names[] = { "small", "large" };
	struct usage_lines lines = { .title = "t" };
	struct buffer buffer = { 0 };
	struct usage usage;
	(void)state;
	usage_begin(&usage, 0, 10 * DAY, 2);
	usage_add(&usage, 0, 0, 10 * DAY, 2);
	usage_add(&usage, 1, 0, 10 * DAY, 4);
	struct chart chart = usage_chart(&usage, names, 8, &lines);
	assert_int_equal(chart.series_count, 2);
	assert_string_equal(chart.series[0].name, "large");
	assert_true(chart.series[0].y[17] == 4 && chart.series[1].y[17] == 6);
	charts_print(&chart, 1, &buffer);
	assert_non_null(strstr(buffer.data, "<polygon"));
	buffer_free(&buffer);
	usage_free(&usage);
}

static void owners_beyond_the_most_that_are_shown_are_one_area(void **state)
{
	const char *names[CHART_SERIES_MAX + 3];
	struct usage_lines lines = { .title = "t" };
	struct usage usage;
	(void)state;
	usage_begin(&usage, 0, 10 * DAY, CHART_SERIES_MAX + 3);
	for (size_t i = 0; i < CHART_SERIES_MAX + 3; i++) {
		names[i] = "owner";
		usage_add(&usage, i, 0, 10 * DAY, 1);
	}
	struct chart chart = usage_chart(&usage, names, 64, &lines);
	assert_int_equal(chart.series_count, CHART_SERIES_MAX);
	assert_string_equal(chart.series[CHART_SERIES_MAX - 1].name, "others");
	assert_true(chart.series[CHART_SERIES_MAX - 1].y[0] == CHART_SERIES_MAX + 3);
	usage_free(&usage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_gpu_time_inside_counts_and_none_outside),
		cmocka_unit_test(areas_are_stacked_with_the_largest_owner_lowest),
		cmocka_unit_test(owners_beyond_the_most_that_are_shown_are_one_area),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
