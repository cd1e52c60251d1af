/* quantity_test.c - sizes and durations are read as people write them, and written so */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "cli/text/quantity.h"

static int64_t memory(const char *text)
{
	struct error error = { 0 };
	int64_t mib = 0;
	return quantity_memory("--m", text, &mib, &error) ? mib : -1;
}

static int64_t duration(const char *text)
{
	struct error error = { 0 };
	int64_t ms = 0;
	return quantity_duration("--d", text, &ms, &error) ? ms : -1;
}

static void sizes_are_mib_unless_they_have_a_unit(void **state)
{
	(void)state;
	assert_int_equal(memory("20000"), 20000);
	assert_int_equal(memory("512M"), 512);
	assert_int_equal(memory("20G"), 20480);
	assert_int_equal(memory("20g"), 20480);
	assert_int_equal(memory("20GB"), 20480);
	assert_int_equal(memory("20GiB"), 20480);
	assert_int_equal(memory("20Gi"), 20480);
	assert_int_equal(memory("1.5T"), 1572864);
	assert_int_equal(memory("0.5G"), 512);
	assert_int_equal(memory(".5G"), 512);
}

static void sizes_round_up_to_a_mib(void **state)
{
	(void)state;
	assert_int_equal(memory("1k"), 1);
	assert_int_equal(memory("1025k"), 2);
	assert_int_equal(memory("0.001G"), 2);
}

static void what_is_no_size_is_refused_with_an_example(void **state)
{
	(void)state;
	static const char *const wrong[] = {
		"",         "G",       "20Q", "-1G", "20 G", "20GG", "0",
		"1.G",      "1.2345G", ".G",  "2e3", "20Gx", "0G",   "99999999999999999999",
		"2000000T", "0.5",     "1.5"
	};
	struct error error = { 0 };
	int64_t mib;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(memory(wrong[i]), -1);
	assert_false(quantity_memory("--gpu-memory", "20Q", &mib, &error));
	assert_string_equal(
	    error.text, "invalid --gpu-memory '20Q': expected a size such as 20G, 512M or 1.5T");
}

static void durations_are_parts_with_units_or_seconds(void **state)
{
	(void)state;
	assert_int_equal(duration("90"), 90000);
	assert_int_equal(duration("90m"), 5400000);
	assert_int_equal(duration("2h30m"), 9000000);
	assert_int_equal(duration("1d"), 86400000);
	assert_int_equal(duration("1d12h"), 129600000);
	assert_int_equal(duration("1.5h"), 5400000);
	assert_int_equal(duration("250ms"), 250);
	assert_int_equal(duration("1w"), 604800000);
}

static void durations_are_read_as_slurm_writes_them(void **state)
{
	(void)state;
	assert_int_equal(duration("2:00:00"), 7200000);
	assert_int_equal(duration("100:30:05"), 361805000);
	assert_int_equal(duration("1-12:00:00"), 129600000);
	/* Minutes and seconds there, hours and minutes elsewhere. */
	assert_int_equal(duration("10:00"), -1);
	assert_int_equal(duration("2:60:00"), -1);
	assert_int_equal(duration("1-24:00:00"), -1);
	assert_int_equal(duration("2:00:00x"), -1);
	assert_int_equal(duration("2:-1:00"), -1);
	assert_int_equal(duration("0:00:00"), -1);
}

static void what_is_no_duration_is_refused(void **state)
{
	(void)state;
	static const char *const wrong[] = { "",         "0",    "0s",   "h",
		                             "2x",       "2h30", "-1h",  "2 h",
		                             "2H",       "h2",   "1e9d", "99999999999999999999",
		                             "99999999d" };
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(duration(wrong[i]), -1);
}

static void whole_numbers_and_parts_have_bounds(void **state)
{
	(void)state;
	struct error error = { 0 };
	int64_t number;
	assert_true(quantity_integer("--n", "-5", -10, 10, &number, &error));
	assert_int_equal(number, -5);
	assert_false(quantity_integer("--n", "11", -10, 10, &number, &error));
	assert_false(quantity_integer("--n", "1.0", -10, 10, &number, &error));
	assert_false(quantity_integer("--n", "", -10, 10, &number, &error));
	assert_false(quantity_integer("--n", "-", -10, 10, &number, &error));
	assert_true(quantity_thousandths("--n", "0.5", 1000, &number, &error));
	assert_int_equal(number, 500);
	assert_false(quantity_thousandths("--n", "0.0005", 1000, &number, &error));
	assert_false(quantity_thousandths("--n", "1.001", 1000, &number, &error));
}

static void moments_are_read_from_rfc_3339(void **state)
{
	(void)state;
	assert_int_equal(quantity_moment("1970-01-01T00:00:01Z"), 1000);
	assert_int_equal(quantity_moment("2026-11-15T21:37:39.636Z"), 1794778659636);
	assert_int_equal(quantity_moment("2026-11-15T21:37:39.5Z"), 1794778659500);
	assert_int_equal(quantity_moment("2026-11-15"), -1);
	assert_int_equal(quantity_moment("2026-11-15T21:37:39"), -1);
	assert_int_equal(quantity_moment(NULL), -1);
	setenv("TZ", "Europe/Berlin", 1);
	tzset();
	assert_int_equal(quantity_local_moment("2026-11-15T21:37:39Z"), 1794778659000);
	assert_int_equal(quantity_local_moment("2026-11-15T22:37:39"), 1794778659000);
	assert_int_equal(quantity_local_moment("2026-11-15 22:37"), 1794778620000);
	assert_int_equal(quantity_local_moment("2026-02-30T12:00"), -1);
	assert_int_equal(quantity_local_moment("2026-11-15"), -1);
	assert_int_equal(quantity_local_moment(NULL), -1);
	unsetenv("TZ");
	tzset();
}

static const char *sentence(struct buffer *to, const char *text)
{
	buffer_clear(to);
	buffer_text(to, "");
	quantity_print_sentence(to, text);
	return to->data;
}

static void moments_in_sentences_are_those_of_the_machine(void **state)
{
	(void)state;
	struct buffer text = { 0 };
	setenv("TZ", "America/New_York", 1);
	tzset();
	assert_string_equal(sentence(&text, "expected by 2019-11-15T03:37:39Z on GPU 0"),
	                    "expected by 2019-11-14 on GPU 0");
	assert_string_equal(sentence(&text, "from 2019-11-15T12:00:00.250Z: T-7 waits."),
	                    "from 2019-11-15: T-7 waits.");
	assert_string_equal(sentence(&text, "no moment: 2019-11-15T03 1:2:3\x1b[2J"),
	                    "no moment: 2019-11-15T03 1:2:3?[2J");
	assert_string_equal(sentence(&text, NULL), "");
	unsetenv("TZ");
	tzset();
	buffer_free(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_are_mib_unless_they_have_a_unit),
		cmocka_unit_test(sizes_round_up_to_a_mib),
		cmocka_unit_test(what_is_no_size_is_refused_with_an_example),
		cmocka_unit_test(durations_are_parts_with_units_or_seconds),
		cmocka_unit_test(durations_are_read_as_slurm_writes_them),
		cmocka_unit_test(what_is_no_duration_is_refused),
		cmocka_unit_test(whole_numbers_and_parts_have_bounds),
		cmocka_unit_test(moments_are_read_from_rfc_3339),
		cmocka_unit_test(moments_in_sentences_are_those_of_the_machine),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
