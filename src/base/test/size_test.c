/* size_test.c - tests of amounts of memory */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/size.h"

static int64_t size(const char *text)
{
	int64_t mib = -1;
	size_read(text_of(text), &mib);
	return mib;
}

static void sizes_are_mib_unless_they_have_a_unit(void **state)
{
	(void)state;
	assert_int_equal(size("20000"), 20000);
	assert_int_equal(size("512M"), 512);
	assert_int_equal(size("20g"), 20480);
	assert_int_equal(size("20GB"), 20480);
	assert_int_equal(size("20GiB"), 20480);
	assert_int_equal(size("20Gi"), 20480);
	assert_int_equal(size("1.5T"), 1572864);
	assert_int_equal(size(".5G"), 512);
}

static void sizes_round_up_to_a_mib(void **state)
{
	(void)state;
	assert_int_equal(size("1k"), 1);
	assert_int_equal(size("1025k"), 2);
	assert_int_equal(size("0.001G"), 2);
}

static void what_is_no_size_is_refused_and_changes_nothing(void **state)
{
	(void)state;
	static const char *const wrong[] = {
		"",         "G",       "20Q", "-1G", "20 G", "20GG", "0",
		"1.G",      "1.2345G", ".G",  "2e3", "20Gx", "0G",   "99999999999999999999",
		"2000000T", "0.5",     "1.5"
	};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(size(wrong[i]), -1);
}

static void assert_printed(int64_t mib, const char *text)
{
	struct buffer buffer = { 0 };
	size_print(&buffer, mib);
	assert_string_equal(buffer.data, text);
	buffer_free(&buffer);
}

static void sizes_are_written_short(void **state)
{
	(void)state;
	assert_printed(0, "0");
	assert_printed(512, "512M");
	assert_printed(1024, "1G");
	assert_printed(81920, "80G");
	assert_printed(8000, "7.8G");
	assert_printed(1310720, "1.2T");
	assert_printed(INT64_C(200) << 20, "200T");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_are_mib_unless_they_have_a_unit),
		cmocka_unit_test(sizes_round_up_to_a_mib),
		cmocka_unit_test(what_is_no_size_is_refused_and_changes_nothing),
		cmocka_unit_test(sizes_are_written_short),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
