/* detach_keys_test.c - what is typed arrives, and the keys are found */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/job/detach_keys.h"

/* What is passed on of these keys, typed one by one. */
static bool type(const char *typed, char *passed, size_t room)
{
	struct detach_keys keys = { 0 };
	struct buffer out = { 0 };
	bool left = false;

	for (; *typed && !left; typed++)
		left = detach_keys_filter(&keys, typed, 1, &out);
	assert_true(out.size < room);
	memcpy(passed, out.data ? out.data : "", out.size);
	passed[out.size] = '\0';
	buffer_free(&out);
	return left;
}

static void keys_that_leave_are_found(void **state)
{
	char passed[32];

	(void)state;
	assert_true(type("~.", passed, sizeof(passed)));
	assert_string_equal(passed, "");
	assert_true(type("ls\r~.x", passed, sizeof(passed)));
	assert_string_equal(passed, "ls\r");
	assert_true(type("a\x10\x11", passed, sizeof(passed)));
	assert_string_equal(passed, "a");
}

static void all_else_passes(void **state)
{
	static const char *const typed[] = { "cd ~\r", "a~.", "\x10x\x11", "x\r\n" };
	char passed[32];

	(void)state;
	for (size_t i = 0; i < sizeof(typed) / sizeof(*typed); i++) {
		assert_false(type(typed[i], passed, sizeof(passed)));
		assert_string_equal(passed, typed[i]);
	}
	assert_false(type("~~.", passed, sizeof(passed)));
	assert_string_equal(passed, "~.");
	assert_false(type("~/bin\r", passed, sizeof(passed)));
	assert_string_equal(passed, "~/bin\r");
}

static void a_key_that_nothing_follows_is_passed_on(void **state)
{
	struct detach_keys keys = { 0 };
	struct buffer out = { 0 };

	(void)state;
	assert_false(detach_keys_filter(&keys, "\x10", 1, &out));
	assert_true(detach_keys_are_waiting(&keys));
	assert_int_equal(out.size, 0);
	detach_keys_flush(&keys, &out);
	assert_false(detach_keys_are_waiting(&keys));
	assert_false(detach_keys_filter(&keys, "\x11", 1, &out));
	assert_int_equal(out.size, 2);
	assert_memory_equal(out.data, "\x10\x11", 2);
	buffer_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_that_leave_are_found),
		cmocka_unit_test(all_else_passes),
		cmocka_unit_test(a_key_that_nothing_follows_is_passed_on),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
