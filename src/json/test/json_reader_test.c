/* json_reader_test.c - JSON is parsed strictly, and its fields are read with their bounds */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "json/json_reader.h"

static void what_is_not_strict_json_is_refused(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"",
		"1",
		"\"a\"",
		"{\"a\":1,}",
		"[1 2]",
		"{a:1}",
		"[01]",
		"[NaN]",
		"['a']",
		"[1]x",
		"{\"a\":1,\"a\":2}",
		"[\"\xff\"]",
		"[\"\\ud800\"]",
		"[\"\\u0000\"]",
		"[1e999]",
		"[9223372036854775808]",
		"[\"\n\"]",
		"// c\n[]",
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct error error = { 0 };
		assert_null(json_read(text_of(bad[i]), NULL, &error));
		assert_int_equal(error.code, ERROR_INVALID);
	}
	struct error error = { 0 };
	assert_null(json_read(TEXT("[90\0]"), NULL, &error));
	assert_int_equal(error.code, ERROR_INVALID);
}

static void depth_is_bounded_before_anything_is_built(void **state)
{
	(void)state;
	static char deep[200000];
	memset(deep, '[', sizeof(deep));
	struct error error = { 0 };
	assert_null(json_read((struct text){ deep, sizeof(deep) }, NULL, &error));
	assert_string_equal(error.text, "the JSON is nested more than 32 levels deep");
	struct json_limits limits = { .bytes = 100, .depth = 2, .values = 5 };
	json_t *json = json_read(TEXT("[[1],[\"[[[[\\\"[[[\"]]"), &limits, &error);
	assert_non_null(json);
	json_decref(json);
	assert_null(json_read(TEXT("[[[]]]"), &limits, &error));
	assert_null(json_read(TEXT("[1,2,3,4,5,6,7]"), &limits, &error));
	assert_string_equal(error.text, "the JSON has more than 5 values");
}

static void fields_are_read_with_their_bounds(void **state)
{
	(void)state;
	static const char *const words[] = { "low", "high", NULL };
	struct error error = { 0 };
	json_t *json = json_read(TEXT("{\"n\":5,\"f\":true,\"t\":\"text\",\"d\":0.125,"
	                              "\"w\":\"high\",\"o\":{},\"a\":[1,2],\"x\":null,\"i\":2}"),
	                         NULL, &error);
	struct json_reader reader = json_reader_of(json, "", &error);
	assert_int_equal(json_get_integer(&reader, "n", 0, 10, 1), 5);
	assert_int_equal(json_get_integer(&reader, "x", 0, 10, 1), 1);
	assert_int_equal(json_get_integer(&reader, "missing", 0, 10, 1), 1);
	assert_true(json_get_flag(&reader, "f", false));
	assert_true(text_is(json_get_text(&reader, "t", 4), "text"));
	assert_int_equal(json_get_decimal(&reader, "d", 3, 0, 1000, 0), 125);
	assert_int_equal(json_get_decimal(&reader, "i", 3, 0, 5000, 0), 2000);
	assert_int_equal(json_get_word(&reader, "w", words, 0), 1);
	assert_non_null(json_get_object(&reader, "o"));
	assert_int_equal(json_array_size(json_get_array(&reader, "a", 2)), 2);
	assert_true(json_has(&reader, "n") && !json_has(&reader, "x"));
	assert_true(json_reader_end(&reader, NULL));
	json_decref(json);
}

/* Reads a field that is wrong; the reason is then in `error`. */
#define READ_WRONG(text, call)                                                                     \
	do {                                                                                       \
		json_t *wrong = json_read(TEXT(text), NULL, &error);                               \
		reader = json_reader_of(wrong, "tasks[1].", &error);                               \
		(void)(call);                                                                      \
		assert_true(reader.failed);                                                        \
		json_decref(wrong);                                                                \
	} while (0)

static void what_is_wrong_is_named_with_what_would_be_right(void **state)
{
	(void)state;
	static const char *const words[] = { "low", "high", NULL };
	static const char *const known[] = { "a", NULL };
	struct error error = { 0 };
	struct json_reader reader;
	READ_WRONG("{\"n\":11}", json_get_integer(&reader, "n", 0, 10, 1));
	assert_string_equal(error.text, "tasks[1].n must be a whole number from 0 to 10");
	READ_WRONG("{\"n\":1.5}", json_get_integer(&reader, "n", 0, 10, 1));
	READ_WRONG("{\"c\":\"ls\"}", json_get_array(&reader, "c", 9));
	assert_string_equal(error.text,
	                    "tasks[1].c must be an array, [...], of at most 9 elements");
	READ_WRONG("{\"d\":0.1234}", json_get_decimal(&reader, "d", 3, 0, 1000, 0));
	assert_string_equal(error.text,
	                    "tasks[1].d must be a number from 0 to 1 with at most 3 decimals");
	READ_WRONG("{\"d\":2.5e-42}", json_get_decimal(&reader, "d", 0, 0, 1000, 0));
	READ_WRONG("{\"w\":\"medium\"}", json_get_word(&reader, "w", words, 0));
	assert_string_equal(error.text, "tasks[1].w must be one of: low, high");
	READ_WRONG("{\"t\":\"12345\"}", json_get_text(&reader, "t", 4).data);
	READ_WRONG("{\"f\":1}", json_get_flag(&reader, "f", true));
	READ_WRONG("{\"o\":[]}", json_get_object(&reader, "o"));
	READ_WRONG("{\"a\":1,\"b\":2}", json_reader_end(&reader, known));
	assert_string_equal(error.text, "tasks[1].b is not a field that is known here");
	READ_WRONG("[]", 0);
	assert_string_equal(error.text, "tasks[1] must be a JSON object, {...}");
}

static void the_first_thing_that_is_wrong_is_kept(void **state)
{
	(void)state;
	struct error error = { 0 };
	json_t *json = json_read(TEXT("{\"a\":\"x\",\"b\":\"y\"}"), NULL, &error);
	struct json_reader reader = json_reader_of(json, "", &error);
	json_get_integer(&reader, "a", 0, 1, 0);
	json_get_integer(&reader, "b", 0, 1, 0);
	assert_memory_equal(error.text, "a ", 2);
	assert_false(json_reader_end(&reader, NULL));
	json_decref(json);
}

static void fields_that_are_needed_must_be_there(void **state)
{
	(void)state;
	struct error error = { 0 };
	struct json_reader reader;
	READ_WRONG("{\"n\":null}", json_need_integer(&reader, "n", 2, 10));
	assert_string_equal(error.text, "tasks[1].n is missing");
	READ_WRONG("{}", json_need_string(&reader, "t"));
	READ_WRONG("{\"t\":\"\"}", json_need_string(&reader, "t"));
	assert_string_equal(error.text, "tasks[1].t must be a non-empty string");
	READ_WRONG("{\"t\":7}", json_get_string(&reader, "t", NULL));
	READ_WRONG("{}", json_need_object(&reader, "o"));
	READ_WRONG("{}", json_need_array(&reader, "a", 1));
	READ_WRONG("{\"a\":{}}", json_need_array(&reader, "a", SIZE_MAX));
	assert_string_equal(error.text, "tasks[1].a must be an array, [...]");
	json_t *json = json_read(TEXT("{\"n\":5,\"t\":\"x\",\"a\":[1]}"), NULL, &error);
	reader = json_reader_of(json, "", &error);
	assert_int_equal(json_need_integer(&reader, "n", 0, 10), 5);
	assert_string_equal(json_need_string(&reader, "t"), "x");
	assert_string_equal(json_get_string(&reader, "missing", "y"), "y");
	assert_int_equal(json_array_size(json_need_array(&reader, "a", 1)), 1);
	assert_false(reader.failed);
	json_decref(json);
}

static void a_reader_names_the_object_that_it_has_entered(void **state)
{
	(void)state;
	struct error error = { 0 };
	json_t *json = json_read(TEXT("{\"tasks\":[{\"n\":1},{},7]}"), NULL, &error);
	const json_t *tasks = json_object_get(json, "tasks");
	struct json_reader reader = json_reader_of(json, "", &error);
	json_reader_enter(&reader, json_array_get(tasks, 0), "tasks[%d].", 0);
	assert_int_equal(json_need_integer(&reader, "n", 0, 10), 1);
	json_reader_enter(&reader, json_array_get(tasks, 1), "tasks[%d].", 1);
	assert_int_equal(json_need_integer(&reader, "n", 2, 10), 2);
	assert_string_equal(error.text, "tasks[1].n is missing");
	json_reader_enter(&reader, json_array_get(tasks, 2), "tasks[%d].", 2);
	assert_string_equal(error.text, "tasks[1].n is missing");
	reader = json_reader_of(json_array_get(tasks, 2), "tasks[2].", &error);
	assert_true(reader.failed);
	assert_string_equal(error.text, "tasks[2] must be a JSON object, {...}");
	json_decref(json);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_not_strict_json_is_refused),
		cmocka_unit_test(depth_is_bounded_before_anything_is_built),
		cmocka_unit_test(fields_are_read_with_their_bounds),
		cmocka_unit_test(what_is_wrong_is_named_with_what_would_be_right),
		cmocka_unit_test(the_first_thing_that_is_wrong_is_kept),
		cmocka_unit_test(fields_that_are_needed_must_be_there),
		cmocka_unit_test(a_reader_names_the_object_that_it_has_entered),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
