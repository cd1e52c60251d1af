/* http_answer_test.c - answers are read in whatever pieces they come */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/client/http_answer.h"

/* Takes the answer in pieces of so many bytes; false: refused. */
static bool take(struct http_answer *answer, const char *text, size_t piece)
{
	struct error error = { 0 };
	size_t size = strlen(text);
	http_answer_begin(answer);
	for (size_t at = 0; at < size; at += piece)
		if (!http_answer_take(answer, text + at, size - at < piece ? size - at : piece,
		                      &error))
			return false;
	return true;
}

static void assert_body(const char *text, int status, const char *body)
{
	for (size_t piece = 1; piece <= strlen(text); piece++) {
		struct http_answer answer = { 0 };
		assert_true(take(&answer, text, piece));
		assert_true(answer.complete);
		assert_int_equal(answer.status, status);
		assert_int_equal(answer.body.size, strlen(body));
		assert_memory_equal(answer.body.data ? answer.body.data : "", body, strlen(body));
		http_answer_free(&answer);
	}
}

static void a_body_of_known_length_is_taken(void **state)
{
	(void)state;
	assert_body("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, "hello");
	assert_body("HTTP/1.1 204 No Content\r\n\r\n", 204, "");
}

static void a_body_in_chunks_is_put_together(void **state)
{
	(void)state;
	assert_body("HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n"
	            "3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
	            404, "hello");
}

static void what_comes_before_the_answer_is_passed_over(void **state)
{
	(void)state;
	assert_body("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
	            200, "ok");
}

static void a_body_without_length_ends_with_the_connection(void **state)
{
	(void)state;
	struct http_answer answer = { 0 };
	struct error error = { 0 };
	assert_true(take(&answer, "HTTP/1.1 200 OK\r\n\r\nhel", 100));
	assert_false(answer.complete);
	assert_true(http_answer_end(&answer, &error));
	assert_false(answer.keeps_alive);
	http_answer_free(&answer);
}

static void an_answer_that_breaks_off_is_refused(void **state)
{
	(void)state;
	struct http_answer answer = { 0 };
	struct error error = { 0 };
	assert_true(take(&answer, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", 100));
	assert_false(http_answer_end(&answer, &error));
	assert_int_equal(error.code, ERROR_UNAVAILABLE);
	http_answer_free(&answer);
}

static void what_is_not_http_is_refused(void **state)
{
	(void)state;
	static const char *const wrong[] = {
		"SSH-2.0-OpenSSH_9.2\r\n",
		"HTTP/1.1 abc\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"\x15\x03\x01\x00\x02\x02\x50",
	};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct http_answer answer = { 0 };
		assert_false(take(&answer, wrong[i], 100));
		http_answer_free(&answer);
	}
}

static void more_than_was_asked_for_is_refused(void **state)
{
	(void)state;
	struct http_answer answer = { 0 };
	struct error error = { 0 };
	http_answer_begin(&answer);
	answer.most_bytes = 4;
	const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
	assert_false(http_answer_take(&answer, text, strlen(text), &error));
	http_answer_free(&answer);
}

static void a_connection_is_kept_where_the_service_says_so(void **state)
{
	(void)state;
	struct http_answer answer = { 0 };
	assert_true(take(&answer, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 100));
	assert_true(answer.keeps_alive);
	http_answer_free(&answer);
	assert_true(take(&answer,
	                 "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", 100));
	assert_false(answer.keeps_alive);
	http_answer_free(&answer);
}

static void what_follows_an_upgrade_is_left_for_others(void **state)
{
	(void)state;
	struct http_answer answer = { 0 };
	assert_true(take(&answer,
	                 "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
	                 "Upgrade: websocket\r\nSec-WebSocket-Accept: abc=\r\n\r\nrest",
	                 1000));
	assert_true(answer.complete);
	assert_true(answer.upgraded);
	assert_string_equal(answer.accept.data, "abc=");
	assert_int_equal(answer.left.size, 4);
	assert_memory_equal(answer.left.data, "rest", 4);
	http_answer_free(&answer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_body_of_known_length_is_taken),
		cmocka_unit_test(a_body_in_chunks_is_put_together),
		cmocka_unit_test(what_comes_before_the_answer_is_passed_over),
		cmocka_unit_test(a_body_without_length_ends_with_the_connection),
		cmocka_unit_test(an_answer_that_breaks_off_is_refused),
		cmocka_unit_test(what_is_not_http_is_refused),
		cmocka_unit_test(more_than_was_asked_for_is_refused),
		cmocka_unit_test(a_connection_is_kept_where_the_service_says_so),
		cmocka_unit_test(what_follows_an_upgrade_is_left_for_others),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
