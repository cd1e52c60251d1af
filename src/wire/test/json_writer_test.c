/* json_writer_test.c - JSON is written in its form, with exact decimals and times */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "wire/text/json_plain.h"
#include "wire/text/json_writer.h"

static void assert_written(struct buffer *buffer, const char *wanted)
{
	buffer_bytes(buffer, "", 1);
	assert_string_equal(buffer->data, wanted);
	buffer_clear(buffer);
}

static void everything_is_written_in_its_form(void **state)
{
	(void)state;
	struct buffer buffer = { 0 };
	struct json_writer json = json_writer_to(&buffer);
	json_open_object(&json, NULL);
	json_put_string(&json, "text", "a\"b\\c\n\x01\x7f\xc3\xa9");
	json_put_string(&json, "none", NULL);
	json_put_integer(&json, "least", INT64_MIN);
	json_put_unsigned(&json, "most", UINT64_MAX);
	json_put_flag(&json, "yes", true);
	json_open_array(&json, "list");
	json_open_object(&json, NULL);
	json_close(&json);
	json_put_real(&json, NULL, 0.1);
	json_put_real(&json, NULL, 0.1 + 0.2);
	json_put_real(&json, NULL, NAN);
	json_put_raw(&json, NULL, TEXT("[1]"));
	json_close(&json);
	json_put_null(&json, "end\"");
	json_close(&json);
	assert_written(&buffer, "{\"text\":\"a\\\"b\\\\c\\n\\u0001\\u007f\xc3\xa9\",\"none\":null,"
	                        "\"least\":-9223372036854775808,\"most\":18446744073709551615,"
	                        "\"yes\":true,\"list\":[{},0.1,0.30000000000000004,null,[1]],"
	                        "\"end\\\"\":null}");
	buffer_free(&buffer);
}

static void what_is_not_utf8_is_replaced(void **state)
{
	(void)state;
	struct buffer buffer = { 0 };
	json_escape(&buffer, TEXT("a\xff\xc3(\xe2\x82"));
	assert_written(&buffer, "a\xef\xbf\xbd\xef\xbf\xbd(\xef\xbf\xbd\xef\xbf\xbd");
	buffer_free(&buffer);
}

static void decimals_are_exact(void **state)
{
	(void)state;
	static const struct {
		int64_t value;
		int digits;
		const char *text;
	} cases[] = {
		{ 0, 3, "0" },          { 1500, 3, "1.5" },
		{ -1, 3, "-0.001" },    { 1000, 3, "1" },
		{ 12345, 2, "123.45" }, { 7, 0, "7" },
		{ -120, 2, "-1.2" },    { INT64_MIN, 18, "-9.223372036854775808" },
	};
	struct buffer buffer = { 0 };
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct json_writer json = json_writer_to(&buffer);
		json_put_decimal(&json, NULL, cases[i].value, cases[i].digits);
		assert_written(&buffer, cases[i].text);
	}
	buffer_free(&buffer);
}

static void times_are_rfc_3339_in_utc(void **state)
{
	(void)state;
	static const struct {
		int64_t unix_us;
		const char *text;
	} cases[] = {
		{ 0, "\"1970-01-01T00:00:00.000Z\"" },
		{ INT64_C(951782400000000), "\"2000-02-29T00:00:00.000Z\"" },
		{ INT64_C(1767225599250000), "\"2025-12-31T23:59:59.250Z\"" },
		{ INT64_C(4107542400000001), "\"2100-03-01T00:00:00.000001Z\"" },
		{ INT64_MAX, "\"9999-12-31T23:59:59.999999Z\"" },
		{ -1, "\"1970-01-01T00:00:00.000Z\"" },
	};
	struct buffer buffer = { 0 };
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct json_writer json = json_writer_to(&buffer);
		json_put_time(&json, NULL, cases[i].unix_us);
		assert_written(&buffer, cases[i].text);
	}
	buffer_free(&buffer);
}

static void the_first_special_byte_is_found_at_every_place(void **state)
{
	enum { SIZE = 19 };
	char bytes[SIZE];
	(void)state;

	for (int value = 0; value < 256; value++)
		for (size_t place = 0; place < SIZE; place++) {
			char byte = (char)(unsigned char)value;
			size_t wanted = json_is_plain(byte) ? SIZE : place;
			memset(bytes, 'x', SIZE);
			bytes[place] = byte;
			assert_int_equal(json_plain_prefix(bytes, SIZE), wanted);
			/* What follows the first does not hide it. */
			memset(bytes + place, byte, SIZE - place);
			assert_int_equal(json_plain_prefix(bytes, SIZE), wanted);
		}
	assert_int_equal(json_plain_prefix(NULL, 0), 0);
}

static void a_key_may_come_before_its_value(void **state)
{
	struct buffer buffer = { 0 };
	struct json_writer json = json_writer_to(&buffer);
	(void)state;

	json_open_object(&json, NULL);
	json_put_key(&json, TEXT("one"));
	json_put_integer(&json, NULL, 1);
	json_put_key(&json, TEXT("list"));
	json_open_array(&json, NULL);
	json_put_flag(&json, NULL, true);
	json_close(&json);
	json_put_null(&json, "none");
	json_close(&json);
	assert_written(&buffer, "{\"one\":1,\"list\":[true],\"none\":null}");
	buffer_free(&buffer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_is_written_in_its_form),
		cmocka_unit_test(what_is_not_utf8_is_replaced),
		cmocka_unit_test(decimals_are_exact),
		cmocka_unit_test(times_are_rfc_3339_in_utc),
		cmocka_unit_test(the_first_special_byte_is_found_at_every_place),
		cmocka_unit_test(a_key_may_come_before_its_value),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
