/* url_test.c - tests of targets and queries */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "wire/text/query.h"
#include "wire/text/url.h"

static void a_target_has_a_path_and_maybe_a_query(void **state)
{
	(void)state;
	struct url url;
	assert_true(url_parse(TEXT("/a/b?c=d?e"), &url, NULL));
	assert_true(text_is(url.path, "/a/b"));
	assert_true(text_is(url.query, "c=d?e"));
	assert_null(url.authority.data);
	assert_true(url_parse(TEXT("/"), &url, NULL));
	assert_null(url.query.data);
	assert_true(url_parse(TEXT("https://h:1?q"), &url, NULL));
	assert_true(text_is(url.authority, "h:1"));
	assert_true(text_is(url.path, "/"));
	assert_true(text_is(url.query, "q"));
	assert_true(url_parse(TEXT("*"), &url, NULL));
}

static void a_target_that_is_none_is_refused_with_a_reason(void **state)
{
	(void)state;
	static const char *const bad[] = { "",          "a",     "?a",       "/a b", "/a#b",
		                           "/\xc3\xa9", "/\x7f", "ftp://x/", "**" };
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct url url;
		struct error error = { 0 };
		assert_false(url_parse(text_of(bad[i]), &url, &error));
		assert_int_equal(error.code, ERROR_INVALID);
	}
}

static void segments_are_decoded_and_terminated(void **state)
{
	(void)state;
	struct buffer storage = { 0 };
	struct url_segments segments;
	assert_true(url_segments(TEXT("/api/a%2Fb/%C3%A9+/"), &storage, &segments, NULL));
	assert_int_equal(segments.count, 3);
	assert_string_equal(segments.of[0].data, "api");
	assert_string_equal(segments.of[1].data, "a/b");
	assert_string_equal(segments.of[2].data, "\xc3\xa9+");
	assert_true(url_segments(TEXT("/"), &storage, &segments, NULL));
	assert_int_equal(segments.count, 0);
	buffer_free(&storage);
}

static void segments_that_could_mislead_are_refused(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"/a//b",  "//",   "/.",   "/a/../b", "/%2e%2e",
		"/%2E/x", "/%00", "/%0a", "/%7f",    "/%ff",
		"/%",     "/%4",  "/%4g", "/%c3",    "/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17",
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct buffer storage = { 0 };
		struct url_segments segments;
		struct error error = { 0 };
		assert_false(url_segments(text_of(bad[i]), &storage, &segments, &error));
		assert_int_equal(error.code, ERROR_INVALID);
		buffer_free(&storage);
	}
}

/* A query and the memory it needs. */
struct parsed {
	struct buffer storage;
	struct query_parameter list[QUERY_PARAMETERS_MAX];
	struct query query;
};

static bool parse(struct parsed *parsed, const char *text, struct error *error)
{
	buffer_clear(&parsed->storage);
	return query_parse(text_of(text), &parsed->storage, parsed->list, &parsed->query, error);
}

static void a_query_is_decoded_by_name(void **state)
{
	(void)state;
	struct parsed parsed = { 0 };
	assert_true(parse(&parsed, "a=1&&b=x+y%26z&c&d=&%C3%A9==", NULL));
	assert_int_equal(parsed.query.count, 5);
	assert_string_equal(query_get(&parsed.query, "a").data, "1");
	assert_string_equal(query_get(&parsed.query, "b").data, "x y&z");
	assert_string_equal(query_get(&parsed.query, "c").data, "");
	assert_string_equal(query_get(&parsed.query, "d").data, "");
	assert_string_equal(query_get(&parsed.query, "\xc3\xa9").data, "=");
	assert_null(query_get(&parsed.query, "e").data);
	assert_true(parse(&parsed, "", NULL));
	assert_int_equal(parsed.query.count, 0);
	buffer_free(&parsed.storage);
}

static void a_query_with_a_name_twice_or_none_is_refused(void **state)
{
	(void)state;
	static const char *const bad[] = { "a=1&a=2", "a&%61", "=1", "a=%", "a=%00", "a=%ff" };
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct parsed parsed = { 0 };
		struct error error = { 0 };
		assert_false(parse(&parsed, bad[i], &error));
		assert_int_equal(error.code, ERROR_INVALID);
		buffer_free(&parsed.storage);
	}
}

static void more_parameters_than_there_is_room_for_are_refused(void **state)
{
	(void)state;
	struct buffer text = { 0 };
	struct parsed parsed = { 0 };
	for (int i = 0; i < QUERY_PARAMETERS_MAX; i++)
		buffer_print(&text, "&p%d", i);
	assert_true(parse(&parsed, text.data, NULL));
	assert_int_equal(parsed.query.count, QUERY_PARAMETERS_MAX);
	buffer_text(&text, "&one_more");
	assert_false(parse(&parsed, text.data, NULL));
	buffer_free(&text);
	buffer_free(&parsed.storage);
}

static void numbers_are_read_within_their_range(void **state)
{
	(void)state;
	struct parsed parsed = { 0 };
	struct error error = { 0 };
	int64_t value;
	assert_true(parse(&parsed,
	                  "a=42&b=-7&c=9223372036854775807&d=9223372036854775808&"
	                  "e=-9223372036854775808&f=&g=-&h=1x&i=%2b1",
	                  NULL));
	struct query *query = &parsed.query;
	assert_true(query_integer(query, "a", 0, 100, 5, &value, &error) && value == 42);
	assert_true(query_integer(query, "b", -10, 100, 5, &value, &error) && value == -7);
	assert_true(query_integer(query, "none", 0, 100, 5, &value, &error) && value == 5);
	assert_true(query_integer(query, "c", 0, INT64_MAX, 5, &value, &error));
	assert_true(value == INT64_MAX);
	assert_true(query_integer(query, "e", INT64_MIN, 0, 5, &value, &error));
	assert_true(value == INT64_MIN);
	for (const char *name = "dfghi"; *name; name++) {
		char text[] = { *name, '\0' };
		assert_false(query_integer(query, text, INT64_MIN, INT64_MAX, 5, &value, &error));
		assert_int_equal(error.text[0], *name);
	}
	assert_false(query_integer(query, "a", 0, 41, 5, &value, &error));
	assert_string_equal(error.text, "a is '42', which is not a whole number from 0 to 41");
	buffer_free(&parsed.storage);
}

static void flags_are_words_or_their_name_alone(void **state)
{
	(void)state;
	struct parsed parsed = { 0 };
	struct error error = { 0 };
	bool value;
	assert_true(parse(&parsed, "a&b=1&c=false&d=maybe", NULL));
	assert_true(query_flag(&parsed.query, "a", false, &value, &error) && value);
	assert_true(query_flag(&parsed.query, "b", false, &value, &error) && value);
	assert_true(query_flag(&parsed.query, "c", true, &value, &error) && !value);
	assert_true(query_flag(&parsed.query, "e", true, &value, &error) && value);
	assert_false(query_flag(&parsed.query, "d", true, &value, &error));
	buffer_free(&parsed.storage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_target_has_a_path_and_maybe_a_query),
		cmocka_unit_test(a_target_that_is_none_is_refused_with_a_reason),
		cmocka_unit_test(segments_are_decoded_and_terminated),
		cmocka_unit_test(segments_that_could_mislead_are_refused),
		cmocka_unit_test(a_query_is_decoded_by_name),
		cmocka_unit_test(a_query_with_a_name_twice_or_none_is_refused),
		cmocka_unit_test(more_parameters_than_there_is_room_for_are_refused),
		cmocka_unit_test(numbers_are_read_within_their_range),
		cmocka_unit_test(flags_are_words_or_their_name_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
