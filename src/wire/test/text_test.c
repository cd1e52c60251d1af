/* text_test.c - tests of texts, UTF-8 and headers */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "wire/text/headers.h"
#include "wire/text/utf8.h"

static void a_list_is_taken_apart_and_trimmed(void **state)
{
	(void)state;
	struct text list = TEXT(" gzip ,\tbr;q=1,,x "), item;
	const char *const wanted[] = { "gzip", "br;q=1", "", "x" };
	for (size_t i = 0; i < 4; i++) {
		assert_true(text_next(&list, ',', &item));
		assert_true(text_is(item, wanted[i]));
	}
	assert_false(text_next(&list, ',', &item));
}

static void utf8_is_valid_in_its_shortest_form_only(void **state)
{
	(void)state;
	static const char *const fine[] = {
		"",
		"plain text, longer than a word",
		"\xc2\x80",
		"\xdf\xbf",
		"\xe0\xa0\x80",
		"\xed\x9f\xbf",
		"\xee\x80\x80",
		"\xf0\x90\x80\x80",
		"\xf4\x8f\xbf\xbf",
	};
	static const char *const bad[] = {
		"\x80",
		"\xc0\xaf",
		"\xc1\xbf",
		"\xc2",
		"\xe0\x9f\xbf",
		"\xed\xa0\x80",
		"\xf0\x8f\xbf\xbf",
		"\xf4\x90\x80\x80",
		"\xf5\x80\x80\x80",
		"\xe2\x82",
		"\xff",
	};
	for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++)
		assert_true(utf8_is_valid(text_of(fine[i])));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char text[32] = "12345678";
		strcat(text, bad[i]);
		assert_int_equal(utf8_valid_prefix(text_of(text)), 8);
	}
}

static void control_characters_are_found_in_utf8(void **state)
{
	(void)state;
	const char *const fine[] = { "", "lab 7", "\xc3\xbc", "\xc2\xa0", "\xe2\x82\x9f", "\xc2" };
	const char *const bad[] = { "\x1b[2J", "a\nb", "\t", "a\x7f", "\xc2\x80", "\xc2\x9b[2J" };
	for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++)
		assert_false(text_has_control(text_of(fine[i])));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_true(text_has_control(text_of(bad[i])));
}

static void a_token_is_found_in_any_header_of_the_name(void **state)
{
	(void)state;
	const struct header list[] = {
		{ TEXT("accept-encoding"), TEXT("br, deflate;q=0.5") },
		{ TEXT("other"), TEXT("zstd") },
		{ TEXT("accept-encoding"), TEXT("GZIP ; q=0.001 , identity;q=0, x;q=0.000") },
	};
	const struct headers headers = { list, 3 };
	assert_true(headers_has_token(&headers, "accept-encoding", "gzip"));
	assert_true(headers_has_token(&headers, "accept-encoding", "deflate"));
	assert_false(headers_has_token(&headers, "accept-encoding", "identity"));
	assert_false(headers_has_token(&headers, "accept-encoding", "x"));
	assert_false(headers_has_token(&headers, "accept-encoding", "zstd"));
	assert_int_equal(headers_count(&headers, "accept-encoding"), 2);
	assert_true(text_is(headers_get(&headers, "other"), "zstd"));
	assert_null(headers_get(&headers, "none").data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_is_taken_apart_and_trimmed),
		cmocka_unit_test(utf8_is_valid_in_its_shortest_form_only),
		cmocka_unit_test(control_characters_are_found_in_utf8),
		cmocka_unit_test(a_token_is_found_in_any_header_of_the_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
