/* answer_test.c - tests of reading answers and of finding usage in them */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gateway/text/answer.h"
#include "gateway/text/meter.h"

/* What became of an answer that came in pieces of a size. */
struct result {
	enum answer_event last;
	struct buffer body;
	int status;
	bool keeps;
};

static struct result read_answer(const char *text, size_t piece)
{
	struct answer_reader reader = { 0 };
	struct result result = { 0 };
	struct text rest = text_of(text), part;

	while (rest.size > 0) {
		struct text now = { rest.data, rest.size < piece ? rest.size : piece };
		rest = text_from(rest, now.size);
		do {
			result.last = answer_next(&reader, &now, &part);
			if (result.last == ANSWER_PART)
				buffer_bytes(&result.body, part.data, part.size);
			if (result.last == ANSWER_HEAD)
				result.status = reader.status;
		} while (result.last == ANSWER_PART || result.last == ANSWER_HEAD);
		if (result.last == ANSWER_BAD)
			break;
	}
	if (answer_ended(&reader))
		result.last = ANSWER_END;
	result.keeps = reader.keeps;
	buffer_text(&result.body, "");
	answer_free(&reader);
	return result;
}

static void assert_answer(const char *text, int status, const char *body, bool keeps)
{
	for (size_t piece = 1; piece < 40; piece++) {
		struct result result = read_answer(text, piece);
		assert_int_equal(result.last, ANSWER_END);
		assert_int_equal(result.status, status);
		assert_string_equal(result.body.data, body);
		assert_int_equal(result.keeps, keeps);
		buffer_free(&result.body);
	}
}

static void answers_are_read_in_any_pieces(void **state)
{
	(void)state;
	assert_answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, "hello", true);
	assert_answer(
	    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
	    "\r\n3;x=y\r\nabc\r\n0a\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n",
	    200, "abc0123456789", true);
	assert_answer("HTTP/1.1 503 No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", 503, "",
	              false);
	assert_answer("HTTP/1.1 204 None\r\n\r\n", 204, "", true);
	assert_answer("HTTP/1.0 200 OK\r\n\r\nuntil the end", 200, "until the end", false);
}

static void answers_that_are_unclear_are_refused(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"HTP/1.1 200 OK\r\n\r\n",
		"HTTP/1.1 2x0 OK\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
		"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n11111111111111111\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc",
		"HTTP/1.1 101 Switch\r\n\r\n",
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct result result = read_answer(bad[i], 7);
		if (result.last != ANSWER_BAD)
			fail_msg("accepted: %s", bad[i]);
		buffer_free(&result.body);
	}
}

static void an_answer_that_is_cut_has_not_ended(void **state)
{
	(void)state;
	struct result result =
	    read_answer("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", 100);
	assert_int_equal(result.last, ANSWER_MORE);
	buffer_free(&result.body);
}

static struct meter_counts counted(enum meter_form form, const char *text, size_t piece)
{
	struct meter meter = { 0 };
	struct buffer out = { 0 };
	struct text rest = text_of(text);

	meter_start(&meter, form, false);
	while (rest.size > 0) {
		size_t size = rest.size < piece ? rest.size : piece;
		meter_take(&meter, (struct text){ rest.data, size });
		rest = text_from(rest, size);
	}
	meter_end(&meter, &out);
	struct meter_counts counts = meter.counts;
	meter_free(&meter);
	buffer_free(&out);
	return counts;
}

static void assert_counted(enum meter_form form, const char *text, int64_t prompt, int64_t cached,
                           int64_t completion)
{
	for (size_t piece = 1; piece < 50; piece++) {
		struct meter_counts counts = counted(form, text, piece);
		assert_int_equal(counts.prompt, prompt);
		assert_int_equal(counts.cached, cached);
		assert_int_equal(counts.completion, completion);
	}
}

static void usage_is_found_in_each_servers_words(void **state)
{
	(void)state;
	assert_counted(
	    METER_JSON,
	    "{\"choices\":[{\"usage\":{\"prompt_tokens\":1}}],\"text\":\"\\\"usage\\\":{\","
	    "\"usage\":{\"prompt_tokens\":12,\"completion_tokens\":34,"
	    "\"prompt_tokens_details\":{\"cached_tokens\":8}}}",
	    12, 8, 34);
	assert_counted(METER_EVENTS,
	               "event: message_start\ndata: {\"message\":{\"usage\":{\"input_tokens\":5,"
	               "\"cache_read_input_tokens\":2,\"output_tokens\":1}}}\n\n"
	               "data: {\"usage\":{\"output_tokens\":9}}\n\ndata: [DONE]\n\n",
	               5, 2, 9);
	assert_counted(METER_LINES,
	               "{\"message\":{\"content\":\"a\"}}\n{\"done\":true,\"prompt_eval_count\":3,"
	               "\"eval_count\":4}\n",
	               3, -1, 4);
	assert_counted(
	    METER_EVENTS,
	    "data: {\"response\":{\"usage\":{\"input_tokens\":7,\"output_tokens\":6}}}\r\n\r\n", 7,
	    -1, 6);
	assert_counted(METER_NOTHING, "{\"usage\":{\"prompt_tokens\":1}}", -1, -1, -1);
}

static void an_event_with_nothing_but_usage_is_taken_out(void **state)
{
	(void)state;
	static const char stream[] =
	    ": comment\n\ndata: {\"choices\":[{\"delta\":{}}],\"usage\":null}\n\n"
	    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,"
	    "\"completion_tokens\":4}}\n\ndata: [DONE]\n\n";
	static const char expected[] = ": comment\n\ndata: {\"choices\":[{\"delta\":{}}],"
				       "\"usage\":null}\n\ndata: [DONE]\n\n";
	for (size_t piece = 1; piece < sizeof(stream); piece++) {
		struct meter meter = { 0 };
		struct buffer out = { 0 };
		meter_start(&meter, METER_EVENTS, true);
		for (size_t at = 0; at < sizeof(stream) - 1; at += piece) {
			size_t left = sizeof(stream) - 1 - at;
			meter_cut(&meter, (struct text){ stream + at, left < piece ? left : piece },
			          &out);
		}
		meter_end(&meter, &out);
		buffer_text(&out, "");
		assert_string_equal(out.data, expected);
		assert_int_equal(meter.counts.completion, 4);
		buffer_free(&out);
		meter_free(&meter);
	}
}

static void what_looks_like_usage_and_is_an_answer_stays(void **state)
{
	(void)state;
	static const char stream[] =
	    "data: {\"choices\":[{\"index\":0}],\"usage\":{\"prompt_tokens\":3}}\n\n"
	    "data: {\"choices\":[]}\n\ndata: {\"choices\":[1],\"usage\":{}}\n\n"
	    "data: not ended";
	struct meter meter = { 0 };
	struct buffer out = { 0 };
	meter_start(&meter, METER_EVENTS, true);
	meter_cut(&meter, text_of(stream), &out);
	meter_end(&meter, &out);
	buffer_text(&out, "");
	assert_string_equal(out.data, stream);
	buffer_free(&out);
	meter_free(&meter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_are_read_in_any_pieces),
		cmocka_unit_test(answers_that_are_unclear_are_refused),
		cmocka_unit_test(an_answer_that_is_cut_has_not_ended),
		cmocka_unit_test(usage_is_found_in_each_servers_words),
		cmocka_unit_test(an_event_with_nothing_but_usage_is_taken_out),
		cmocka_unit_test(what_looks_like_usage_and_is_an_answer_stays),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
