/* servers_test.c - webhooks and mail against servers that do not behave, each in one row */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
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

#include "api/notify/smtp.h"
#include "api/notify/webhook.h"

enum { LONG_MS = 60000, SHORT_MS = 300, PAUSE_MS = 20, STEPS_MAX = 10, HEARD_MAX = 8192 };

/* Waits until what it heard since the last step ends with `after`, then says `say`. */
struct step {
	const char *after, *say;
};

/* A server on loopback that takes its steps with the first connection, and then hangs until the
 * test ends, or closes. */
struct server {
	struct step steps[STEPS_MAX];
	bool hangs, is_v6;
	int listener, wake[2], connections;
	int64_t port;
	char heard[HEARD_MAX];
	pthread_t thread;
};

/* False when the test ends first. */
static bool servers_wait_for(const struct server *server, int file)
{
	struct pollfd files[] = { { .fd = file, .events = POLLIN },
		                  { .fd = server->wake[0], .events = POLLIN } };

	return poll(files, 2, -1) > 0 && !files[1].revents;
}

static bool servers_hear(struct server *server, int client, const char *ending)
{
	size_t start = strlen(server->heard), size = start, length = strlen(ending);

	while (size < start + length || strcmp(server->heard + size - length, ending) != 0) {
		if (!servers_wait_for(server, client))
			return false;
		ssize_t got = recv(client, server->heard + size, HEARD_MAX - 1 - size, 0);
		if (got <= 0)
			return false;
		size += (size_t)got;
		server->heard[size] = '\0';
	}
	return true;
}

static void take_steps(struct server *server, int client)
{
	for (const struct step *step = server->steps; step->say; step++) {
		if (*step->after && !servers_hear(server, client, step->after))
			return;
		usleep(PAUSE_MS * 1000);
		(void)!send(client, step->say, strlen(step->say), MSG_NOSIGNAL);
	}
	if (server->hangs)
		servers_wait_for(server, -1);
}

static void *servers_serve(void *context)
{
	struct server *server = context;

	while (servers_wait_for(server, server->listener)) {
		int client = accept(server->listener, NULL, NULL);
		server->connections++;
		take_steps(server, client);
		close(client);
	}
	return NULL;
}

/* False: this machine has no IPv6. */
static bool server_start(struct server *server)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	struct sockaddr *address = server->is_v6 ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4;
	socklen_t size = server->is_v6 ? sizeof(v6) : sizeof(v4);

	v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	server->listener = socket(address->sa_family, SOCK_STREAM, 0);
	if (bind(server->listener, address, size) != 0) {
		assert_true(server->is_v6);
		close(server->listener);
		return false;
	}
	assert_int_equal(listen(server->listener, 4), 0);
	assert_int_equal(getsockname(server->listener, address, &size), 0);
	server->port = ntohs(server->is_v6 ? v6.sin6_port : v4.sin_port);
	assert_int_equal(pipe(server->wake), 0);
	assert_int_equal(pthread_create(&server->thread, NULL, servers_serve, server), 0);
	return true;
}

static void server_stop(struct server *server)
{
	(void)!write(server->wake[1], "", 1);
	pthread_join(server->thread, NULL);
	close(server->listener);
	close(server->wake[0]);
	close(server->wake[1]);
}

/* What is sent to a server, and what must come of it. */
struct trial {
	const char *name;
	struct server server;
	int64_t timeout_ms;
	bool only_public, succeeds;
	enum error_code code;
};

static bool post(const struct trial *trial, struct error *error)
{
	char url[64];

	snprintf(url, sizeof(url), "http://%s:%lld/hook",
	         trial->server.is_v6 ? "[::1]" : "127.0.0.1", (long long)trial->server.port);
	return webhook_post(&(struct webhook){ .url = url,
	                                       .event = "job.completed",
	                                       .number = 1,
	                                       .body = TEXT("{\"a\":1}"),
	                                       .only_public = trial->only_public,
	                                       .timeout_ms = trial->timeout_ms },
	                    error);
}

static bool mail(const struct trial *trial, struct error *error)
{
	return smtp_send(&(struct smtp_mail){ .host = trial->server.is_v6 ? "::1" : "127.0.0.1",
	                                      .port = trial->server.port,
	                                      .security = SMTP_PLAIN,
	                                      .from = "gpu@example.org",
	                                      .to = "ops@example.org",
	                                      .subject = "a node is lost",
	                                      .body = "n1",
	                                      .number = 1,
	                                      .timeout_ms = trial->timeout_ms },
	                 error);
}

static void try_each(const struct trial *trials, size_t count,
                     bool (*send_to)(const struct trial *, struct error *))
{
	for (size_t i = 0; i < count; i++) {
		struct trial trial = trials[i];
		struct error error = { 0 };
		if (!server_start(&trial.server))
			continue;
		bool succeeds = send_to(&trial, &error);
		server_stop(&trial.server);
		if (succeeds != trial.succeeds || error.code != trial.code)
			fail_msg("%s: %d, %s", trial.name, succeeds, error.text);
		assert_int_equal(trial.server.connections, trial.only_public ? 0 : 1);
	}
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define BODY "{\"a\":1}"

static void a_webhook_is_delivered_or_fails_in_time(void **state)
{
	static const struct trial trials[] = {
		{ "fine",
		  { .steps = { { BODY, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" } },
		    .hangs = true },
		  LONG_MS,
		  .succeeds = true },
		{ "slow",
		  { .steps = { { BODY, "HTTP/1.1 2" }, { "", "04 Fine\r\n" }, { "", "\r\n" } },
		    .hangs = true },
		  LONG_MS,
		  .succeeds = true },
		{ "chunked",
		  { .steps = { { BODY, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" },
		               { "", "2\r\nok\r\n" },
		               { "", "0\r\n\r\n" } },
		    .hangs = true },
		  LONG_MS,
		  .succeeds = true },
		{ "redirecting",
		  { .steps = { { BODY, "HTTP/1.1 307 Away\r\nLocation: http://192.0.2.1/\r\n"
		                       "Content-Length: 0\r\n\r\n" } },
		    .hangs = true },
		  LONG_MS,
		  .code = ERROR_UNAVAILABLE },
		{ "gone for good",
		  { .steps = { { BODY, "HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n" } } },
		  LONG_MS,
		  .code = ERROR_NOT_FOUND },
		{ "silent", { .hangs = true }, SHORT_MS, .code = ERROR_UNAVAILABLE },
		{ "silent after a part",
		  { .steps = { { BODY, "HTTP/1.1 2" } }, .hangs = true },
		  SHORT_MS,
		  .code = ERROR_UNAVAILABLE },
		{ "closing at once", { .hangs = false }, LONG_MS, .code = ERROR_UNAVAILABLE },
		{ "not HTTP",
		  { .steps = { { BODY, "220 mail\r\n" } } },
		  LONG_MS,
		  .code = ERROR_UNAVAILABLE },
		{ "an address inside",
		  { .hangs = true },
		  LONG_MS,
		  .only_public = true,
		  .code = ERROR_FORBIDDEN },
		{ "IPv6 only",
		  { .steps = { { BODY, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" } },
		    .hangs = true,
		    .is_v6 = true },
		  LONG_MS,
		  .succeeds = true },
	};
	(void)state;
	try_each(trials, COUNT(trials), post);
}

#define DIALOG                                                                                     \
	{ "", "220 mail\r\n" }, { "\r\n", "250 mail\r\n" }, { "\r\n", "250 ok\r\n" },              \
	    { "\r\n", "250 ok\r\n" }, { "\r\n", "354 ready\r\n" }, { "\r\n.\r\n", "250 ok\r\n" },  \
	{                                                                                          \
		"\r\n", "221 bye\r\n"                                                              \
	}

static void a_mail_is_delivered_or_fails_in_time(void **state)
{
	static const struct trial trials[] = {
		{ "fine", { .steps = { DIALOG } }, LONG_MS, .succeeds = true },
		{ "slow",
		  { .steps = { { "", "220-ma" }, { "", "il\r\n" }, DIALOG } },
		  LONG_MS,
		  .succeeds = true },
		{ "silent", { .hangs = true }, SHORT_MS, .code = ERROR_UNAVAILABLE },
		{ "silent after the greeting",
		  { .steps = { { "", "220 mail\r\n" } }, .hangs = true },
		  SHORT_MS,
		  .code = ERROR_UNAVAILABLE },
		{ "closing at once", { .hangs = false }, LONG_MS, .code = ERROR_UNAVAILABLE },
		{ "busy",
		  { .steps = { { "", "220 mail\r\n" },
		               { "\r\n", "250 mail\r\n" },
		               { "\r\n", "451 later\r\n" } } },
		  LONG_MS,
		  .code = ERROR_UNAVAILABLE },
		{ "rejecting",
		  { .steps = { { "", "220 mail\r\n" },
		               { "\r\n", "250 mail\r\n" },
		               { "\r\n", "550 never\r\n" } } },
		  LONG_MS,
		  .code = ERROR_NOT_FOUND },
		{ "IPv6 only", { .steps = { DIALOG }, .is_v6 = true }, LONG_MS, .succeeds = true },
	};
	(void)state;
	try_each(trials, COUNT(trials), mail);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_webhook_is_delivered_or_fails_in_time),
		cmocka_unit_test(a_mail_is_delivered_or_fails_in_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
