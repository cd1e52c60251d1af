/* slot_request_test.c - who may ask a model's server what, and what it gets to see */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "agent/proxy/outbound.h"
#include "agent/proxy/slot_request.h"

#define CLIENT "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define AGENT "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
#define KEY "authorization: Bearer " CLIENT "\r\n"

static const struct slot_keys keys = { CLIENT, AGENT };

/* What passes of these bytes; `status` is that of the refusal, 0: none. */
static struct buffer pass_request(const char *bytes, enum slot_paths paths, int *status)
{
	struct slot_request request = { .keys = &keys, .paths = paths };
	struct text rest = text_of(bytes), part;
	struct buffer passed = { 0 };
	enum slot_request_event event;

	*status = 0;
	while ((event = slot_request_next(&request, &rest, &part)) != SLOT_REQUEST_MORE) {
		if (event == SLOT_REQUEST_PASS)
			buffer_bytes(&passed, part.data, part.size);
		if (event == SLOT_REQUEST_REFUSED) {
			*status = request.status;
			break;
		}
	}
	slot_request_free(&request);
	buffer_text(&passed, "");
	return passed;
}

static void expect_status(const char *bytes, enum slot_paths paths, int expected)
{
	int status;
	struct buffer passed = pass_request(bytes, paths, &status);

	assert_int_equal(status, expected);
	buffer_free(&passed);
}

static void expect_passed(const char *bytes, const char *expected)
{
	int status;
	struct buffer passed = pass_request(bytes, SLOT_PATHS_INFERENCE, &status);

	assert_int_equal(status, 0);
	assert_string_equal(passed.data, expected);
	buffer_free(&passed);
}

static void all_but_the_key_passes(void **state)
{
	(void)state;
	expect_passed(
	    "POST /v1/x?a=b HTTP/1.1\r\nHost:  h \r\n" KEY "X-A: 1\r\ncontent-length: 3\r\n\r\nabc",
	    "POST /v1/x?a=b HTTP/1.1\r\nHost:  h \r\nX-A: 1\r\ncontent-length: 3\r\n\r\nabc");
	expect_passed("GET /health HTTP/1.1\r\nx-api-key: " CLIENT
	              "\r\nauthorization: Bearer own\r\n"
	              "upgrade: h2c\r\n\r\n",
	              "GET /health HTTP/1.1\r\nauthorization: Bearer own\r\n\r\n");
}

static void chunks_pass_as_they_are(void **state)
{
	(void)state;
	expect_passed("POST /v1/x HTTP/1.1\r\n" KEY "transfer-encoding: chunked\r\n\r\n"
	              "3;note\r\nabc\r\n0\r\nx: y\r\n\r\nGET /v1/y HTTP/1.1\r\n" KEY "\r\n",
	              "POST /v1/x HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n"
	              "3;note\r\nabc\r\n0\r\nx: y\r\n\r\nGET /v1/y HTTP/1.1\r\n\r\n");
}

static void without_the_key_nothing_passes(void **state)
{
	(void)state;
	expect_status("GET /v1/x HTTP/1.1\r\nhost: h\r\n\r\n", SLOT_PATHS_ALL, 401);
	expect_status("GET /v1/x HTTP/1.1\r\nauthorization: Basic " CLIENT "\r\n\r\n",
	              SLOT_PATHS_ALL, 401);
	expect_status("GET /v1/x HTTP/1.1\r\nx-api-key: " CLIENT "0\r\n\r\n", SLOT_PATHS_ALL, 401);
	expect_status("GET /v1/x HTTP/1.1\r\nx-api-key:\r\n\r\n", SLOT_PATHS_ALL, 401);
	/* A later request of the connection needs it too. */
	expect_status("GET /v1/x HTTP/1.1\r\n" KEY "\r\nGET /v1/x HTTP/1.1\r\n\r\n", SLOT_PATHS_ALL,
	              401);
}

static void only_the_agent_reaches_what_is_not_inference(void **state)
{
	static const char *const paths[] = {
		"/sleep?level=2",
		"/v1/../sleep",
		"/v1//sleep",
		"/v1/%2e%2e/sleep",
		"/slots",
		"/metrics",
		"/api/pull",
		"/v1/load_lora_adapter",
		"/",
		"/v1/x;/../y",
		"/api/delete",
		"/v1/unload_lora_adapter",
	};
	char request[512];

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		snprintf(request, sizeof(request), "POST %s HTTP/1.1\r\n" KEY "\r\n", paths[i]);
		expect_status(request, SLOT_PATHS_INFERENCE, 403);
		expect_status(request, SLOT_PATHS_ALL, 0);
		snprintf(request, sizeof(request),
		         "POST %s HTTP/1.1\r\nx-slot-key: " AGENT "\r\n\r\n", paths[i]);
		expect_status(request, SLOT_PATHS_INFERENCE, 0);
	}
}

static void what_may_be_read_in_two_ways_is_refused(void **state)
{
	static const char *const heads[] = {
		"GET /v1/x HTTP/1.1\r\n" KEY
		"content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
		"GET /v1/x HTTP/1.1\r\n" KEY "content-length: 1\r\ncontent-length: 1\r\n\r\n",
		"GET /v1/x HTTP/1.1\r\n" KEY "content-length: +1\r\n\r\n",
		"GET /v1/x HTTP/1.1\r\n" KEY "content-length: 9999999999999999999\r\n\r\n",
		"GET /v1/x HTTP/1.1\r\n" KEY "content-length:\r\n\r\n",
		"GET /v1/x HTTP/1.1\r\n" KEY " folded: 1\r\n\r\n",
		"GET /v1/x HTTP/1.1\r\n" KEY "name : 1\r\n\r\n",
		"GET /v1/x HTTP/1.1\r\n" KEY "a: 1\rb: 2\r\n\r\n",
		"GET /v1/x HTTP/1.1\n" KEY "\r\n",
		"GET /v1/x HTTP/1.1\r\n" KEY "\n\n",
		"GET http://h/v1/x HTTP/1.1\r\n" KEY "\r\n",
		"GET /v1/x HTTP/2.0\r\n" KEY "\r\n",
		"GET  /v1/x HTTP/1.1\r\n" KEY "\r\n",
		"GET /v1/x y HTTP/1.1\r\n" KEY "\r\n",
		"POST /v1/x HTTP/1.1\r\n" KEY "transfer-encoding: chunked\r\n\r\n3\nabc\r\n",
		"POST /v1/x HTTP/1.1\r\n" KEY "transfer-encoding: chunked\r\n\r\n3\r\nabcd\r\n",
		"POST /v1/x HTTP/1.1\r\n" KEY "transfer-encoding: chunked\r\n\r\n ",
		"POST /v1/x HTTP/1.1\r\n" KEY "transfer-encoding: chunked\r\n\r\n1234567890123456",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++)
		expect_status(heads[i], SLOT_PATHS_ALL, 400);
	expect_status("GET /v1/x HTTP/1.1\r\n" KEY "transfer-encoding: gzip\r\n\r\n",
	              SLOT_PATHS_ALL, 501);
	expect_status("GET /v1/x HTTP/1.0\r\n" KEY "transfer-encoding: chunked\r\n\r\n",
	              SLOT_PATHS_ALL, 501);
}

static void a_head_is_bounded(void **state)
{
	struct buffer bytes = { 0 };

	(void)state;
	buffer_text(&bytes, "GET /v1/x HTTP/1.1\r\n" KEY "x: ");
	while (bytes.size < SLOT_REQUEST_HEAD_MAX)
		buffer_text(&bytes, "0123456789");
	expect_status(bytes.data, SLOT_PATHS_ALL, 431);
	buffer_clear(&bytes);
	buffer_text(&bytes, "GET /v1/x HTTP/1.1\r\n" KEY);
	for (int i = 0; i < 300; i++)
		buffer_text(&bytes, "x: y\r\n");
	buffer_text(&bytes, "\r\n");
	expect_status(bytes.data, SLOT_PATHS_ALL, 431);
	buffer_free(&bytes);
}

static void expect_out(const char *head, const char *host, const char *port, const char *request)
{
	struct outbound_target target;
	struct error error = { 0 };

	assert_true(outbound_read(text_of(head), &target, &error));
	assert_string_equal(target.host, host);
	assert_string_equal(target.port, port);
	assert_int_equal(target.is_tunnel, request == NULL);
	buffer_text(&target.request, "");
	if (request)
		assert_string_equal(target.request.data, request);
	buffer_free(&target.request);
}

static void the_way_out_takes_tunnels_and_urls(void **state)
{
	(void)state;
	expect_out("CONNECT huggingface.co:443 HTTP/1.1\r\nhost: x\r\n\r\n", "huggingface.co",
	           "443", NULL);
	expect_out("CONNECT [2001:db8::1]:443 HTTP/1.1\r\n\r\n", "2001:db8::1", "443", NULL);
	expect_out(
	    "GET http://h/a?b HTTP/1.1\r\nHost: h\r\nProxy-Connection: keep-alive\r\nX: y\r\n\r\n",
	    "h", "80", "GET /a?b HTTP/1.1\r\nConnection: close\r\nHost: h\r\nX: y\r\n\r\n");
	expect_out("GET http://h:8080 HTTP/1.1\r\n\r\n", "h", "8080",
	           "GET / HTTP/1.1\r\nConnection: close\r\n\r\n");
}

static void the_way_out_refuses_the_rest(void **state)
{
	static const char *const heads[] = {
		"",
		"CONNECT h HTTP/1.1\r\n\r\n",
		"CONNECT h:0 HTTP/1.1\r\n\r\n",
		"CONNECT h:70000 HTTP/1.1\r\n\r\n",
		"CONNECT h:1x HTTP/1.1\r\n\r\n",
		"CONNECT user@h:1 HTTP/1.1\r\n\r\n",
		"CONNECT [::1:1 HTTP/1.1\r\n\r\n",
		"GET /path HTTP/1.1\r\n\r\n",
		"GET ftp://h/ HTTP/1.1\r\n\r\n",
		"GET http:/// HTTP/1.1\r\n\r\n",
		"GET http://h/\r\n\r\n",
	};
	struct outbound_target target;

	(void)state;
	for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++) {
		struct error error = { 0 };
		assert_false(outbound_read(text_of(heads[i]), &target, &error));
		assert_true(error.text[0] != '\0');
		buffer_free(&target.request);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_but_the_key_passes),
		cmocka_unit_test(chunks_pass_as_they_are),
		cmocka_unit_test(without_the_key_nothing_passes),
		cmocka_unit_test(only_the_agent_reaches_what_is_not_inference),
		cmocka_unit_test(what_may_be_read_in_two_ways_is_refused),
		cmocka_unit_test(a_head_is_bounded),
		cmocka_unit_test(the_way_out_takes_tunnels_and_urls),
		cmocka_unit_test(the_way_out_refuses_the_rest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
