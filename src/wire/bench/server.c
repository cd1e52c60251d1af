/* server.c - what the benchmark's clients talk to */
#include "server.h"
#include "base/clock.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "wire/wire.h"

enum { SOCKETS_MAX = 4096 };

/* Requests travel to another thread and back in batches, as they do with the core: the
 * loop's thread fills `asked` and the other answers all of it with one post. */
static struct {
	struct loop *loop;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct exchange **asked;
	size_t asked_count, asked_capacity;

	struct websocket *sockets[SOCKETS_MAX];
	size_t socket_count;
	struct timer tick;
	int64_t tick_us, next_us; /* between events; when the next is due */
	uint64_t sequence;
} server = { .lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER };

struct batch {
	struct post post;
	struct exchange **exchanges;
	size_t count;
};

static void server_answer(struct exchange *exchange)
{
	static const char body[] = "{\"job_id\":\"job-1234567\",\"status\":\"submitted\","
				   "\"message\":\"Job submitted successfully\"}";
	if (exchange->is_grpc)
		grpc_reply(exchange, TEXT("\x0a\x0bjob-1234567\x12\x09submitted"));
	else
		exchange_respond(exchange, &(struct response){
					       .status = 201,
					       .content_type = "application/json",
					       .body = { body, sizeof(body) - 1 },
					   });
}

static void answer_batch(struct post *post)
{
	struct batch *batch = (struct batch *)post;
	for (size_t i = 0; i < batch->count; i++)
		server_answer(batch->exchanges[i]);
	free(batch->exchanges);
	free(batch);
}

static void *server_work(void *nothing)
{
	(void)nothing;
	for (;;) {
		struct batch *batch = NEW(struct batch);
		batch->post.run = answer_batch;
		pthread_mutex_lock(&server.lock);
		while (server.asked_count == 0)
			pthread_cond_wait(&server.wake, &server.lock);
		batch->exchanges = server.asked;
		batch->count = server.asked_count;
		server.asked = NULL;
		server.asked_count = server.asked_capacity = 0;
		pthread_mutex_unlock(&server.lock);
		loop_post(server.loop, &batch->post);
	}
	return NULL;
}

static void server_leave(struct websocket *socket, int code)
{
	(void)code;
	for (size_t i = 0; i < server.socket_count; i++)
		if (server.sockets[i] == socket)
			server.sockets[i] = server.sockets[--server.socket_count];
}

static const struct websocket_events socket_events = { .closed = server_leave };

static void server_request(struct exchange *exchange)
{
	if (exchange->is_websocket && server.socket_count < SOCKETS_MAX) {
		struct websocket *socket = websocket_accept(exchange, &socket_events, NULL, NULL);
		if (socket)
			server.sockets[server.socket_count++] = socket;
		return;
	}
	pthread_mutex_lock(&server.lock);
	array_reserve(server.asked, server.asked_capacity, server.asked_count + 1);
	server.asked[server.asked_count++] = exchange;
	bool is_first = server.asked_count == 1;
	pthread_mutex_unlock(&server.lock);
	if (is_first)
		pthread_cond_signal(&server.wake);
}

/* One event to everyone; its first number is when it was due. */
static void publish_one(int64_t due_us)
{
	char event[256];
	int size = snprintf(event, sizeof(event),
	                    "{\"at_us\":%015lld,\"seq\":%llu,\"type\":\"job\",\"job_id\":"
	                    "\"job-1234567\",\"tenant_id\":\"tenant-12\",\"state\":\"running\"}",
	                    (long long)due_us, (unsigned long long)++server.sequence);
	struct shared *frame = websocket_frame((struct text){ event, (size_t)size }, true);
	for (size_t i = 0; i < server.socket_count; i++)
		websocket_send(server.sockets[i], frame);
	shared_drop(frame);
}

/* Events happen at their rate, however late this is called. */
static void publish(struct timer *timer)
{
	for (; server.next_us <= clock_steady_us(); server.next_us += server.tick_us)
		publish_one(server.next_us);
	loop_timer_set(server.loop, timer, (server.next_us - clock_steady_us()) / 1000 + 1);
}

void server_run(int ready, int events_per_second)
{
	static const struct handler handler = { .request = server_request };
	struct limits limits = limits_default();
	struct error error = { 0 };
	server.loop = loop_new(&limits);
	struct listener *listener = listener_open(
	    server.loop, &(struct listener_options){ .address = "127.0.0.1", .handler = &handler },
	    &error);
	if (!listener) {
		fprintf(stderr, "bench_wire: %s\n", error.text);
		return;
	}
	uint16_t port = listener_port(listener);
	pthread_t worker;
	pthread_create(&worker, NULL, server_work, NULL);
	server.tick = TIMER(publish);
	server.tick_us = 1000000 / events_per_second;
	server.next_us = clock_steady_us();
	loop_timer_set(server.loop, &server.tick, 1);
	if (write(ready, &port, sizeof(port)) != sizeof(port))
		return;
	loop_run(server.loop);
}
