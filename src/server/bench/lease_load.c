/* lease_load.c - clients that take a place in a slot of a model and give it back */
#include "lease_load.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

enum { ANSWER_BYTES = 4096, EVENTS_AT_ONCE = 64 };

enum step { STEP_WAITING, STEP_TAKING, STEP_GIVING_BACK };

struct client {
	int socket;
	enum step step;
	int64_t due_us, began_us;
	size_t size;
	char answer[ANSWER_BYTES];
};

struct run {
	const struct lease_load *load;
	struct client *clients;
	int queue; /* of epoll */
	int64_t interval_us;
	double *times_ms;
	size_t count, capacity;
	int64_t failures;
};

static bool client_connect(struct client *client, uint16_t port, int queue)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		                       .sin_port = htons(port),
		                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int one = 1;
	client->socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (client->socket < 0 ||
	    connect(client->socket, (struct sockaddr *)&address, sizeof(address)) != 0)
		return false;
	setsockopt(client->socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = client };
	return epoll_ctl(queue, EPOLL_CTL_ADD, client->socket, &event) == 0;
}

static void client_send(const struct client *client, const char *text, size_t size)
{
	if (write(client->socket, text, size) != (ssize_t)size) {
		perror("the service has closed a connection");
		exit(1);
	}
}

static void client_take(struct client *client, int64_t now_us)
{
	static const char request[] = "POST /api/v1/models/model-1/leases HTTP/1.1\r\n"
				      "Host: localhost\r\nContent-Length: 0\r\n\r\n";
	client->step = STEP_TAKING;
	client->began_us = now_us;
	client_send(client, request, sizeof(request) - 1);
}

/* The answer, where all of it is there: headers, and as much body as they say. */
static const char *client_answer(struct client *client, int *status)
{
	client->answer[client->size] = '\0';
	const char *end = strstr(client->answer, "\r\n\r\n");
	const char *length = end ? strstr(client->answer, "content-length: ") : NULL;
	if (!length || length > end)
		return NULL;
	size_t body = strtoul(length + strlen("content-length: "), NULL, 10);
	if (client->size < (size_t)(end + 4 - client->answer) + body)
		return NULL;
	*status = (int)strtol(client->answer + strlen("HTTP/1.1 "), NULL, 10);
	return end + 4;
}

static void client_give_back(struct client *client, const char *body)
{
	const char *id = strstr(body, "\"lease_id\":\"");
	char request[256];
	int size = snprintf(request, sizeof(request),
	                    "DELETE /api/v1/leases/%.*s HTTP/1.1\r\nHost: localhost\r\n\r\n",
	                    id ? (int)strcspn(id + 12, "\"") : 0, id ? id + 12 : "");
	client->step = STEP_GIVING_BACK;
	client_send(client, request, (size_t)size);
}

static void run_note(struct run *run, double time_ms)
{
	if (run->count == run->capacity) {
		run->capacity = run->capacity ? run->capacity * 2 : 65536;
		run->times_ms = realloc(run->times_ms, run->capacity * sizeof(*run->times_ms));
	}
	run->times_ms[run->count++] = time_ms;
}

/* The next cycle begins at once, or when it is due. */
static void client_next(struct run *run, struct client *client, int64_t now_us)
{
	client->step = STEP_WAITING;
	client->due_us += run->interval_us;
	if (client->due_us <= now_us)
		client_take(client, now_us);
}

static void client_receive(struct run *run, struct client *client)
{
	int status = 0;
	ssize_t size =
	    read(client->socket, client->answer + client->size, ANSWER_BYTES - 1 - client->size);
	if (size <= 0) {
		perror("the service has closed a connection");
		exit(1);
	}
	client->size += (size_t)size;
	const char *body = client_answer(client, &status);
	if (!body)
		return;
	bool is_taken = client->step == STEP_TAKING && status == 201;
	run->failures += !is_taken && !(client->step == STEP_GIVING_BACK && status == 200);
	client->size = 0;
	if (is_taken) {
		client_give_back(client, body);
		return;
	}
	int64_t now_us = clock_steady_us();
	if (client->step == STEP_GIVING_BACK)
		run_note(run, (double)(now_us - client->began_us) / 1000);
	client_next(run, client, now_us);
}

static int compare_times(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Until the time is up; 1 ms is as fine as cycles are spread. */
static void run_clients(struct run *run, int64_t until_us)
{
	struct epoll_event events[EVENTS_AT_ONCE];
	int64_t now_us;
	while ((now_us = clock_steady_us()) < until_us) {
		int count =
		    epoll_wait(run->queue, events, EVENTS_AT_ONCE, run->interval_us > 0 ? 1 : 100);
		for (int i = 0; i < count; i++)
			client_receive(run, events[i].data.ptr);
		for (int i = 0; run->interval_us > 0 && i < run->load->connections; i++)
			if (run->clients[i].step == STEP_WAITING &&
			    run->clients[i].due_us <= now_us)
				client_take(&run->clients[i], now_us);
	}
}

bool lease_load_run(const struct lease_load *load, struct lease_result *result)
{
	struct run run = { .load = load, .queue = epoll_create1(EPOLL_CLOEXEC) };
	bool connected = true;
	size_t connections = (size_t)load->connections;
	run.clients = calloc(connections, sizeof(*run.clients));
	if (load->cycles_per_s > 0)
		run.interval_us = (int64_t)(1e6 * load->connections / load->cycles_per_s);
	int64_t began_us = clock_steady_us();
	for (int i = 0; i < load->connections; i++) {
		run.clients[i].due_us = began_us + run.interval_us * i / load->connections;
		connected = connected && client_connect(&run.clients[i], load->port, run.queue);
	}
	for (int i = 0; connected && run.interval_us == 0 && i < load->connections; i++)
		client_take(&run.clients[i], began_us);
	if (connected)
		run_clients(&run, began_us + (int64_t)(load->seconds * 1e6));
	if (run.count > 0)
		qsort(run.times_ms, run.count, sizeof(*run.times_ms), compare_times);
	*result = (struct lease_result){
		.cycles_per_s = (double)run.count / load->seconds,
		.p99_ms = run.count > 0 ? run.times_ms[run.count * 99 / 100] : -1,
		.failures = run.failures,
	};
	for (int i = 0; i < load->connections; i++)
		if (run.clients[i].socket > 0)
			close(run.clients[i].socket);
	close(run.queue);
	free(run.times_ms);
	free(run.clients);
	return connected;
}
