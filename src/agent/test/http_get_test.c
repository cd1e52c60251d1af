/* http_get_test.c - a health check gets a whole answer in time from this machine, or none */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/uplink/http_get.h"

enum { LONG_MS = 60000, SHORT_MS = 200, FEW_MS = 20 };

/* A server on loopback that reads a request, answers in pieces, and hangs on if it is to. */
struct server {
	int listener, port, wake[2];
	const char *pieces[4];
	bool hangs;
	char head[2048];
	pthread_t thread;
};

static void *http_get_serve(void *context)
{
	struct server *server = context;
	int client = accept(server->listener, NULL, NULL);
	char byte;

	if (client < 0)
		return NULL;
	ssize_t got = recv(client, server->head, sizeof(server->head) - 1, 0);
	server->head[got > 0 ? got : 0] = '\0';
	for (size_t i = 0; i < 4 && server->pieces[i]; i++) {
		(void)!send(client, server->pieces[i], strlen(server->pieces[i]), MSG_NOSIGNAL);
		usleep(FEW_MS * 1000);
	}
	if (server->hangs)
		(void)!read(server->wake[0], &byte, 1);
	close(client);
	return NULL;
}

static void server_start(struct server *server, bool is_v6)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	struct sockaddr *address = is_v6 ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4;
	socklen_t size = is_v6 ? sizeof(v6) : sizeof(v4);

	v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	server->listener = socket(is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM, 0);
	if (is_v6 && bind(server->listener, address, size) != 0)
		skip();
	else if (!is_v6)
		assert_int_equal(bind(server->listener, address, size), 0);
	assert_int_equal(listen(server->listener, 4), 0);
	assert_int_equal(getsockname(server->listener, address, &size), 0);
	server->port = ntohs(is_v6 ? v6.sin6_port : v4.sin_port);
	assert_int_equal(pipe(server->wake), 0);
	assert_int_equal(pthread_create(&server->thread, NULL, http_get_serve, server), 0);
}

static void server_stop(struct server *server)
{
	(void)!write(server->wake[1], "", 1);
	shutdown(server->listener, SHUT_RDWR);
	pthread_join(server->thread, NULL);
	close(server->listener);
	close(server->wake[0]);
	close(server->wake[1]);
}

struct outcome {
	int calls, status;
	char body[64];
};

static void http_get_note(void *context, int status, const char *body)
{
	struct outcome *outcome = context;

	outcome->calls++;
	outcome->status = status;
	strncpy(outcome->body, body, sizeof(outcome->body) - 1);
}

static struct outcome http_get_ask(struct server *server, bool is_v6, int64_t most_ms)
{
	struct outcome outcome = { 0 };
	uv_loop_t loop;

	server_start(server, is_v6);
	uv_loop_init(&loop);
	http_get_start(&loop, server->port, "/health?deep=1", NULL, most_ms, http_get_note,
	               &outcome);
	assert_int_equal(outcome.calls, 0);
	uv_run(&loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&loop), 0);
	server_stop(server);
	assert_int_equal(outcome.calls, 1);
	return outcome;
}

static void servers_are_understood_or_count_as_silent(void **state)
{
	static const struct {
		const char *pieces[4];
		bool hangs, is_v6;
		int64_t most_ms;
		int status;
		const char *body;
	} cases[] = {
		{ { "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" },
		  .most_ms = LONG_MS,
		  .hangs = true,
		  .status = 200,
		  .body = "ok" },
		{ { "HTTP/1.0 503 Busy\r\n\r\nlater" },
		  .most_ms = LONG_MS,
		  .status = 503,
		  .body = "later" },
		{ { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n", "1\r\nk\r\n",
		    "0\r\n\r\n" },
		  .most_ms = LONG_MS,
		  .hangs = true,
		  .status = 200,
		  .body = "ok" },
		{ { "HTTP/1.1 200", " OK\r\nConte", "nt-Length: 2\r\n\r\no", "k" },
		  .most_ms = LONG_MS,
		  .hangs = true,
		  .status = 200,
		  .body = "ok" },
		{ { "HTTP/1.1 302 Found\r\nLocation: http://192.0.2.1/\r\n"
		    "Content-Length: 0\r\n\r\n" },
		  .most_ms = LONG_MS,
		  .hangs = true,
		  .status = 302,
		  .body = "" },
		/* Silent, half an answer, cut off, and something else than HTTP. */
		{ { NULL }, .most_ms = SHORT_MS, .hangs = true, .status = 0, .body = "" },
		{ { "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok" },
		  .most_ms = SHORT_MS,
		  .hangs = true,
		  .status = 0,
		  .body = "" },
		{ { "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok" },
		  .most_ms = LONG_MS,
		  .status = 0,
		  .body = "" },
		{ { "SSH-2.0-OpenSSH\r\n" }, .most_ms = LONG_MS, .status = 0, .body = "" },
		/* Last, as a machine without IPv6 skips the rest. */
		{ { "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" },
		  .is_v6 = true,
		  .most_ms = LONG_MS,
		  .hangs = true,
		  .status = 200,
		  .body = "ok" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct server server = { .hangs = cases[i].hangs };
		memcpy(server.pieces, cases[i].pieces, sizeof(server.pieces));
		struct outcome outcome = http_get_ask(&server, cases[i].is_v6, cases[i].most_ms);
		assert_int_equal(outcome.status, cases[i].status);
		assert_string_equal(outcome.body, cases[i].body);
		assert_ptr_equal(strstr(server.head, "GET /health?deep=1 HTTP/1.1\r\n"),
		                 server.head);
	}
}

static void nobody_there_counts_as_silent(void **state)
{
	struct server server = { 0 };
	struct outcome outcome = { 0 };
	uv_loop_t loop;

	(void)state;
	server_start(&server, false);
	server_stop(&server);
	uv_loop_init(&loop);
	http_get_start(&loop, server.port, "/", NULL, LONG_MS, http_get_note, &outcome);
	uv_run(&loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&loop), 0);
	assert_int_equal(outcome.calls, 1);
	assert_int_equal(outcome.status, 0);
}

static void a_proxy_is_not_asked(void **state)
{
	struct server server = { .pieces = { "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" } };

	(void)state;
	setenv("http_proxy", "http://192.0.2.1:9", 1);
	setenv("no_proxy", "", 1);
	assert_int_equal(http_get_ask(&server, false, LONG_MS).status, 200);
	unsetenv("http_proxy");
	unsetenv("no_proxy");
}

static void what_is_cancelled_calls_nobody(void **state)
{
	struct server server = { .hangs = true };
	struct outcome outcome = { 0 };
	uv_loop_t loop;

	(void)state;
	server_start(&server, false);
	uv_loop_init(&loop);
	http_get_cancel(
	    http_get_start(&loop, server.port, "/", NULL, LONG_MS, http_get_note, &outcome));
	uv_run(&loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&loop), 0);
	server_stop(&server);
	assert_int_equal(outcome.calls, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(servers_are_understood_or_count_as_silent),
		cmocka_unit_test(nobody_there_counts_as_silent),
		cmocka_unit_test(a_proxy_is_not_asked),
		cmocka_unit_test(what_is_cancelled_calls_nobody),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
