/* fetch_test.c - answers come whole or over time, and addresses can be refused */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "fetch/fetch.h"

enum { REQUESTS = 200, WAIT_MS = 60000 };

/* A server that gives every connection the same answer, and closes it. */
struct server {
	int listener;
	char url[64];
	const char *answer;
	pthread_t thread;
};

static void *fetch_serve(void *context)
{
	const struct server *server = context;
	int client;

	while ((client = accept(server->listener, NULL, NULL)) >= 0) {
		char request[4096];
		if (recv(client, request, sizeof(request), 0) > 0)
			(void)!send(client, server->answer, strlen(server->answer), MSG_NOSIGNAL);
		close(client);
	}
	return NULL;
}

static void server_start(struct server *server, const char *answer)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t size = sizeof(address);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	server->answer = answer;
	server->listener = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(server->listener, (struct sockaddr *)&address, size), 0);
	assert_int_equal(listen(server->listener, 16), 0);
	assert_int_equal(getsockname(server->listener, (struct sockaddr *)&address, &size), 0);
	snprintf(server->url, sizeof(server->url), "http://127.0.0.1:%d/", ntohs(address.sin_port));
	assert_int_equal(pthread_create(&server->thread, NULL, fetch_serve, server), 0);
}

static void server_stop(struct server *server)
{
	shutdown(server->listener, SHUT_RDWR);
	pthread_join(server->thread, NULL);
	close(server->listener);
}

static void fetch_take(void *context, const char *data, size_t size)
{
	buffer_bytes(context, data, size);
}

static enum fetch_state fetch_read_all(struct fetch_stream *stream)
{
	struct error error = { 0 };
	enum fetch_state state = FETCH_RUNS;

	for (int wait = 0; wait < WAIT_MS; wait += 100) {
		state = fetch_advance(stream, &error);
		if (state != FETCH_RUNS)
			break;
		fetch_wait(stream, 100);
	}
	return state;
}

/* The answer may be there before the request was seen to be sent. */
static void a_stream_ends_however_soon_its_answer_comes(void **state)
{
	struct server server;

	(void)state;
	server_start(&server, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
	for (int i = 0; i < REQUESTS; i++) {
		struct buffer body = { 0 };
		struct fetch_answer answer = { 0 };
		struct error error = { 0 };
		struct fetch_request request = { .url = server.url,
			                         .server = "the server",
			                         .connect_ms = WAIT_MS,
			                         .part = fetch_take,
			                         .context = &body };
		struct fetch_stream *stream = fetch_open(&request, &answer, &error);
		assert_non_null(stream);
		assert_int_equal(fetch_read_all(stream), FETCH_COMPLETE);
		assert_int_equal(fetch_advance(stream, &error), FETCH_COMPLETE);
		assert_int_equal(answer.status, 200);
		assert_int_equal(body.size, 5);
		fetch_close(stream);
		fetch_answer_free(&answer);
		buffer_free(&body);
	}
	server_stop(&server);
}

static bool is_public(void *context, const struct sockaddr *address)
{
	(void)context;
	return !fetch_is_private(address);
}

/* Asks the server once; false with a reason. */
static bool fetch_ask(const struct server *server, bool (*allows)(void *, const struct sockaddr *),
                      size_t answer_bytes, struct error *error)
{
	struct fetch_request request = { .url = server->url,
		                         .server = "the server",
		                         .connect_ms = WAIT_MS,
		                         .total_ms = WAIT_MS,
		                         .answer_bytes = answer_bytes,
		                         .is_direct = true,
		                         .allows = allows };
	struct fetch_answer answer = { 0 };
	struct fetcher *fetcher = fetcher_new();
	bool good = fetcher_ask(fetcher, &request, &answer, error);

	fetch_answer_free(&answer);
	fetcher_free(fetcher);
	return good;
}

static void no_connection_is_made_to_an_address_that_is_refused(void **state)
{
	struct server server;
	struct error error = { 0 };

	(void)state;
	server_start(&server, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	assert_true(fetch_ask(&server, NULL, 0, &error));
	assert_false(fetch_ask(&server, is_public, 0, &error));
	assert_int_equal(error.code, ERROR_FORBIDDEN);
	server_stop(&server);
}

static void an_answer_that_is_too_large_is_refused(void **state)
{
	struct server server;
	struct error error = { 0 };

	(void)state;
	server_start(&server, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
	assert_true(fetch_ask(&server, NULL, 5, &error));
	assert_false(fetch_ask(&server, NULL, 4, &error));
	assert_non_null(strstr(error.text, "larger than"));
	server_stop(&server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stream_ends_however_soon_its_answer_comes),
		cmocka_unit_test(no_connection_is_made_to_an_address_that_is_refused),
		cmocka_unit_test(an_answer_that_is_too_large_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
