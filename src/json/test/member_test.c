/* member_test.c - members read leniently: what is missing or of another type reads as nothing */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "json/member.h"

static json_t *members(void)
{
	json_t *object =
	    json_loads("{\"t\":\"text\",\"n\":7,\"r\":2.5,\"f\":true,\"big\":1e300,\"none\":null,"
	               "\"at\":\"2026-01-31T12:00:00.25Z\"}",
	               0, NULL);
	assert_non_null(object);
	return object;
}

static void members_read_as_what_they_are(void **state)
{
	(void)state;
	json_t *object = members();
	assert_string_equal(member_text(object, "t"), "text");
	assert_int_equal(member_integer(object, "n"), 7);
	assert_int_equal(member_integer(object, "r"), 2);
	assert_int_equal(member_integer(object, "big"), 0);
	assert_true(member_number(object, "r") == 2.5);
	assert_true(member_number(object, "n") == 7);
	assert_true(member_flag(object, "f"));
	assert_int_equal(member_moment(object, "at"), INT64_C(1769860800250));
	assert_true(member_has(object, "t"));
	json_decref(object);
}

static void assert_reads_as_nothing(const json_t *object, const char *name)
{
	assert_string_equal(member_text(object, name), "");
	assert_int_equal(member_integer(object, name), 0);
	assert_true(member_number(object, name) == 0);
	assert_false(member_flag(object, name));
	assert_int_equal(member_moment(object, name), -1);
	assert_false(member_has(object, name));
}

static void missing_and_null_members_read_as_nothing(void **state)
{
	(void)state;
	json_t *object = members(), *array = json_array();
	assert_reads_as_nothing(object, "missing");
	assert_reads_as_nothing(object, "none");
	assert_reads_as_nothing(array, "t");
	assert_reads_as_nothing(NULL, "t");
	json_decref(array);
	json_decref(object);
}

static void members_of_another_type_read_as_nothing(void **state)
{
	(void)state;
	json_t *object = members();
	assert_string_equal(member_text(object, "n"), "");
	assert_int_equal(member_integer(object, "t"), 0);
	assert_false(member_flag(object, "n"));
	assert_int_equal(member_moment(object, "t"), -1);
	assert_int_equal(member_moment(object, "n"), -1);
	json_decref(object);
}

static void the_first_name_that_has_a_value_is_found(void **state)
{
	(void)state;
	json_t *object = members();
	assert_string_equal(member_first(object, MEMBER_NAMES("missing", "none", "n", "t")), "n");
	assert_null(member_first(object, MEMBER_NAMES("missing", "none")));
	assert_null(member_first(NULL, MEMBER_NAMES("n")));
	json_decref(object);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_read_as_what_they_are),
		cmocka_unit_test(missing_and_null_members_read_as_nothing),
		cmocka_unit_test(members_of_another_type_read_as_nothing),
		cmocka_unit_test(the_first_name_that_has_a_value_is_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
