/* body_test.c - tests of the scan of bodies and forms */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "base/memory.h"
#include "gateway/text/body.h"
#include "gateway/text/endpoint.h"
#include "gateway/text/form.h"

static struct body_scan scanned(const char *text)
{
	struct body_scan scan;
	struct error error = { 0 };

	if (!body_scan(text_of(text), &scan, &error))
		fail_msg("%s: %s", text, error.text);
	return scan;
}

static void assert_refused(const char *text)
{
	struct body_scan scan;
	struct error error = { 0 };

	if (body_scan(text_of(text), &scan, &error))
		fail_msg("accepted: %s", text);
	assert_int_equal(error.code, ERROR_INVALID);
}

static void assert_edited(const char *text, const char *model, bool usage, const char *expected)
{
	struct body_scan scan = scanned(text);
	struct body_edits edits = { 0 };
	struct buffer out = { 0 };

	body_edit(&scan, model, usage, &edits);
	body_write(text_of(text), &edits, &out);
	buffer_text(&out, "");
	assert_string_equal(out.data, expected);
	assert_int_equal(out.size, body_edited_size(text_of(text), &edits));
	buffer_free(&out);
	body_edits_free(&edits);
}

static void model_and_stream_are_found_wherever_they_stand(void **state)
{
	(void)state;
	struct body_scan scan = scanned(" {\"messages\":[{\"model\":\"no\",\"stream\":true}],\n"
	                                "\"model\" : \"q\\u0077en\\/7b\", \"stream\":false,"
	                                "\"max_tokens\": 17} ");
	assert_string_equal(scan.model, "qwen/7b");
	assert_int_equal(scan.stream, BODY_STREAM_NO);
	assert_int_equal(scan.answer_tokens, 17);
	assert_int_equal(scanned("{\"m\\u006fdel\":\"x\"}").model[0], 'x');
	assert_int_equal(scanned("{}").model[0], '\0');
}

static void a_name_that_is_there_twice_is_refused(void **state)
{
	(void)state;
	assert_refused("{\"model\":\"a\",\"model\":\"b\"}");
	assert_refused("{\"model\":\"a\",\"m\\u006fdel\":\"b\"}");
	assert_refused("{\"model\":\"a\",\"Model\":\"b\"}");
	assert_refused("{\"stream\":true,\"stream\":false}");
	assert_refused("{\"stream_options\":{\"include_usage\":true,\"include_usage\":false}}");
}

static void what_is_no_object_is_refused(void **state)
{
	(void)state;
	static const char *const bad[] = { "",
		                           "[]",
		                           "null",
		                           "{",
		                           "{\"a\"}",
		                           "{\"a\":}",
		                           "{\"a\":1,}",
		                           "{\"a\":1}{}",
		                           "{a:1}",
		                           "{\"a\":[}]}",
		                           "{\"a\":\"x",
		                           "{\"a\":1 \"b\":2}",
		                           "{\"model\":7}",
		                           "{\"model\":\"\\ud800\"}" };
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_refused(bad[i]);
}

static void nesting_beyond_the_limit_is_refused(void **state)
{
	(void)state;
	struct buffer text = { 0 };
	buffer_text(&text, "{\"a\":");
	for (int i = 0; i < BODY_DEPTH_MAX + 1; i++)
		buffer_text(&text, "[");
	assert_refused(text.data);
	buffer_free(&text);
}

static void a_million_names_are_scanned(void **state)
{
	(void)state;
	struct buffer text = { 0 };
	buffer_text(&text, "{");
	for (int i = 0; i < 1000000; i++)
		buffer_print(&text, "\"k%d\":%d,", i, i);
	buffer_text(&text, "\"model\":\"m\"}");
	assert_string_equal(scanned(text.data).model, "m");
	buffer_free(&text);
}

static void the_model_is_replaced_and_all_else_stays(void **state)
{
	(void)state;
	assert_edited("{\"x\":1, \"model\" : \"alias\",\"y\":[1.50e3]}", "real\"one", false,
	              "{\"x\":1, \"model\" : \"real\\\"one\",\"y\":[1.50e3]}");
	assert_edited("{\"model\":\"a\"}", NULL, false, "{\"model\":\"a\"}");
}

static void usage_is_asked_for_whatever_the_options_are(void **state)
{
	(void)state;
	assert_edited(
	    "{\"model\":\"a\",\"stream\":true}", NULL, true,
	    "{\"stream_options\":{\"include_usage\":true},\"model\":\"a\",\"stream\":true}");
	assert_edited("{\"model\":\"a\",\"stream_options\":{}}", NULL, true,
	              "{\"model\":\"a\",\"stream_options\":{\"include_usage\":true}}");
	assert_edited("{\"model\":\"a\",\"stream_options\":null}", NULL, true,
	              "{\"model\":\"a\",\"stream_options\":{\"include_usage\":true}}");
	assert_edited("{\"stream_options\":{\"x\":1},\"model\":\"a\"}", "b", true,
	              "{\"stream_options\":{\"include_usage\":true,\"x\":1},\"model\":\"b\"}");
	assert_edited("{\"stream_options\":{\"include_usage\":false}}", NULL, true,
	              "{\"stream_options\":{\"include_usage\":true}}");
	assert_edited("{\"stream_options\":{\"include_usage\":true}}", NULL, true,
	              "{\"stream_options\":{\"include_usage\":true}}");
	assert_edited("{\"stream_options\":{ }}", NULL, true,
	              "{\"stream_options\":{\"include_usage\":true}}");
}

static void images_do_not_count_as_tokens(void **state)
{
	(void)state;
	struct buffer text = { 0 };
	buffer_text(&text, "{\"model\":\"m\",\"messages\":[\"data:image/png;base64,");
	for (int i = 0; i < 100000; i++)
		buffer_text(&text, "AAAAAAAAAA");
	buffer_text(&text, "\"]}");
	struct body_scan scan = scanned(text.data);
	assert_true(body_prompt_tokens(&scan) < 20);
	buffer_free(&text);
}

static void a_conversation_that_goes_on_has_the_same_first_blocks(void **state)
{
	(void)state;
	uint64_t before[8], after[8];
	struct buffer first = { 0 }, second = { 0 };
	buffer_print(&first, "{\"model\":\"m\",\"messages\":[\"%01000d\"]}", 0);
	buffer_print(&second,
	             "{\"temperature\":1,\"model\":\"m\",\"messages\":[\"%01000d\",\"%0300d\"]}", 0,
	             7);
	struct body_scan one = scanned(first.data), two = scanned(second.data);
	int count = body_prefix(text_of(first.data), &one, 1, before, 8);
	assert_int_equal(count, 3);
	assert_int_equal(body_prefix(text_of(second.data), &two, 1, after, 8), 5);
	assert_memory_equal(before, after, 3 * sizeof(*before));
	assert_int_equal(body_prefix(text_of(first.data), &one, 2, after, 8), 3);
	assert_memory_not_equal(before, after, 3 * sizeof(*before));
	buffer_free(&first);
	buffer_free(&second);
}

static const char form[] =
    "--x\r\nContent-Disposition: form-data; name=\"file\"; "
    "filename=\"model\"\r\n\r\nmodel\r\n--y\r\n"
    "--x\r\ncontent-disposition: form-data; name=\"model\"\r\n\r\nwhisper\r\n--x--\r\n";

static void the_model_of_a_form_is_found_and_replaced(void **state)
{
	(void)state;
	struct body_scan scan;
	struct error error = { 0 };
	struct body_edits edits = { 0 };
	struct buffer out = { 0 };
	struct text body = text_of(form);
	assert_true(form_is(TEXT("multipart/form-data; boundary=x")));
	assert_false(form_is(TEXT("application/json")));
	assert_true(form_scan(body, TEXT("multipart/form-data; boundary=\"x\""), &scan, &error));
	assert_string_equal(scan.model, "whisper");
	form_edit(&scan, "large", &edits);
	body_write(body, &edits, &out);
	buffer_text(&out, "");
	assert_non_null(strstr(out.data, "\r\n\r\nlarge\r\n--x--"));
	assert_non_null(strstr(out.data, "filename=\"model\"\r\n\r\nmodel\r\n--y\r\n"));
	buffer_free(&out);
	body_edits_free(&edits);
}

static void a_form_that_is_cut_or_ambiguous_is_refused(void **state)
{
	(void)state;
	struct body_scan scan;
	struct error error = { 0 };
	struct text type = TEXT("multipart/form-data; boundary=x");
	for (size_t size = 0; size < sizeof(form) - 5; size++)
		assert_false(form_scan((struct text){ form, size }, type, &scan, &error));
	assert_false(
	    form_scan(TEXT("--x\r\nContent-Disposition: form-data; name=model\r\n\r\na\r\n"
	                   "--x\r\nContent-Disposition: form-data; name=model\r\n\r\nb\r\n--x--"),
	              type, &scan, &error));
	assert_false(form_scan(text_of(form), TEXT("multipart/form-data"), &scan, &error));
}

static void paths_are_known_with_what_follows_them(void **state)
{
	(void)state;
	struct text rest;
	assert_int_equal(endpoint_find(TEXT("/v1/models/a/b"), &rest)->kind, ENDPOINT_MODEL);
	assert_true(text_is(rest, "a/b"));
	assert_int_equal(endpoint_find(TEXT("/v1/chat/completions"), &rest)->kind, ENDPOINT_PASS);
	assert_int_equal(endpoint_find(TEXT("/sleep"), &rest)->kind, ENDPOINT_UNKNOWN);
	assert_int_equal(endpoint_find(TEXT("/v1/models/"), &rest)->kind, ENDPOINT_UNKNOWN);
	for (int i = 0; endpoint_at(i); i++)
		assert_int_not_equal(endpoint_at(i)->kind, ENDPOINT_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(model_and_stream_are_found_wherever_they_stand),
		cmocka_unit_test(a_name_that_is_there_twice_is_refused),
		cmocka_unit_test(what_is_no_object_is_refused),
		cmocka_unit_test(nesting_beyond_the_limit_is_refused),
		cmocka_unit_test(a_million_names_are_scanned),
		cmocka_unit_test(the_model_is_replaced_and_all_else_stays),
		cmocka_unit_test(usage_is_asked_for_whatever_the_options_are),
		cmocka_unit_test(images_do_not_count_as_tokens),
		cmocka_unit_test(a_conversation_that_goes_on_has_the_same_first_blocks),
		cmocka_unit_test(the_model_of_a_form_is_found_and_replaced),
		cmocka_unit_test(a_form_that_is_cut_or_ambiguous_is_refused),
		cmocka_unit_test(paths_are_known_with_what_follows_them),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
