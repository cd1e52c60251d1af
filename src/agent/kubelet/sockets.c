/* sockets.c - the two UNIX sockets by which a kubelet finds a driver and calls it */
#include "agent/kubelet/sockets.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "agent/host/file.h"
#include "base/buffer.h"
#include "base/memory.h"
#include "wire/wire.h"

enum {
	STOP_MS = 100,
	IDLE_MS = INT32_MAX, /* a kubelet takes a closed connection for a driver that has gone */
	CONNECTIONS_MAX = 64,
	MESSAGE_MAX = 1 << 20,
};

/* Belongs to the thread of the wire until it is in `arrived`, then to the agent's, and after an
 * answer to the wire's again. */
struct sockets_call {
	struct post post;
	struct sockets *sockets;
	struct exchange *exchange;
	bool registration;
	char *service, *method;
	struct buffer body, answer;
	bool refused;
	enum grpc_status status;
	struct sockets_call *next, *previous; /* in `arrived`, then in `open` */
};

/* A stream that the other side holds open: the wire's. */
struct held {
	struct held *next;
	struct exchange *exchange;
};

struct sockets {
	struct sockets_settings settings;
	struct held *held;
	struct loop *wire;
	struct handler registration, service;
	pthread_t thread;
	uv_async_t wake;
	struct post stop;
	bool stopping; /* the wire's */
	pthread_mutex_t lock;
	struct sockets_call *arrived, **arrived_end; /* under the lock */
	struct sockets_call *open;                   /* told, and not answered */
};

static void call_free(struct sockets_call *call)
{
	buffer_free(&call->body);
	buffer_free(&call->answer);
	free(call->service);
	free(call->method);
	free(call);
}

/* In the thread of the wire. */
static void call_end(struct post *post)
{
	struct sockets_call *call = (struct sockets_call *)post;

	if (call->refused)
		grpc_finish(call->exchange, call->status,
		            call->answer.size > 0 ? call->answer.data : NULL);
	else
		grpc_reply(call->exchange, (struct text){ call->answer.data, call->answer.size });
	call_free(call);
}

/* In the thread of the wire, as all of streams. */
static void stream_end(struct exchange *exchange, enum grpc_status status)
{
	struct sockets *sockets = exchange->handler->context;
	struct held **at = &sockets->held;

	while (*at && (*at)->exchange != exchange)
		at = &(*at)->next;
	struct held *held = *at;
	INVARIANT(held);
	*at = held->next;
	free(held);
	grpc_finish(exchange, status, NULL);
}

static void stream_gone(struct exchange *exchange)
{
	stream_end(exchange, GRPC_CANCELLED);
}

static void stream_asked(struct exchange *exchange)
{
	struct sockets *sockets = exchange->handler->context;

	if (!grpc_send(exchange, sockets->settings.stream))
		stream_end(exchange, GRPC_UNAVAILABLE);
}

static void stream_part(struct exchange *exchange, struct text part)
{
	(void)exchange, (void)part;
}

static void headed(struct exchange *exchange)
{
	static const struct exchange_events events = { .body = stream_part,
		                                       .body_end = stream_asked,
		                                       .gone = stream_gone };
	struct sockets *sockets = exchange->handler->context;

	if (!sockets->settings.stream_method || sockets->stopping || !exchange->is_grpc ||
	    exchange->segments.count != 2 || exchange->handler != &sockets->service ||
	    !text_is(exchange->segments.of[1], sockets->settings.stream_method))
		return;
	struct held *held = NEW(struct held);
	held->exchange = exchange;
	held->next = sockets->held;
	sockets->held = held;
	exchange->events = &events;
	grpc_stream(exchange);
}

static char *segment(const struct exchange *exchange, size_t at)
{
	struct text text = exchange->segments.of[at];
	char *copy = memory_alloc(text.size + 1);

	memcpy(copy, text.data, text.size);
	copy[text.size] = '\0';
	return copy;
}

/* In the thread of the wire. */
static void requested(struct exchange *exchange)
{
	struct sockets *sockets = exchange->handler->context;

	if (!exchange->is_grpc) {
		exchange_refuse(exchange, 415, "invalid", "this socket speaks gRPC");
		return;
	}
	if (exchange->segments.count != 2 || sockets->stopping) {
		grpc_finish(exchange, sockets->stopping ? GRPC_UNAVAILABLE : GRPC_UNIMPLEMENTED,
		            NULL);
		return;
	}
	struct sockets_call *call = NEW(struct sockets_call);
	call->post.run = call_end;
	call->sockets = sockets;
	call->exchange = exchange;
	call->registration = exchange->handler == &sockets->registration;
	call->service = segment(exchange, 0);
	call->method = segment(exchange, 1);
	buffer_bytes(&call->body, exchange->body.data, exchange->body.size);
	pthread_mutex_lock(&sockets->lock);
	*sockets->arrived_end = call;
	sockets->arrived_end = &call->next;
	pthread_mutex_unlock(&sockets->lock);
	uv_async_send(&sockets->wake);
}

static struct sockets_call *take_arrived(struct sockets *sockets)
{
	pthread_mutex_lock(&sockets->lock);
	struct sockets_call *first = sockets->arrived;
	sockets->arrived = NULL;
	sockets->arrived_end = &sockets->arrived;
	pthread_mutex_unlock(&sockets->lock);
	return first;
}

static void call_open(struct sockets_call *call)
{
	struct sockets *sockets = call->sockets;

	call->previous = NULL;
	call->next = sockets->open;
	if (call->next)
		call->next->previous = call;
	sockets->open = call;
}

static void call_close(struct sockets_call *call)
{
	if (call->next)
		call->next->previous = call->previous;
	if (call->previous)
		call->previous->next = call->next;
	else
		call->sockets->open = call->next;
	loop_post(call->sockets->wire, &call->post);
}

static void woken(uv_async_t *wake)
{
	struct sockets *sockets = wake->data;
	struct sockets_call *call = take_arrived(sockets);

	while (call) {
		struct sockets_call *next = call->next;
		call_open(call);
		sockets->settings.called(sockets->settings.context, call, call->registration,
		                         call->service, call->method,
		                         (struct text){ call->body.data, call->body.size });
		call = next;
	}
}

void sockets_reply(struct sockets_call *call, struct text message)
{
	buffer_bytes(&call->answer, message.data, message.size);
	call_close(call);
}

void sockets_refuse(struct sockets_call *call, enum grpc_status status, const char *reason)
{
	INVARIANT(status != GRPC_OK);
	call->refused = true;
	call->status = status;
	buffer_text(&call->answer, reason);
	call_close(call);
}

static void stop(struct post *post)
{
	struct sockets *sockets =
	    (struct sockets *)(void *)((char *)post - offsetof(struct sockets, stop));
	struct sockets_call *call = take_arrived(sockets);

	sockets->stopping = true;
	while (call) {
		struct sockets_call *next = call->next;
		call->refused = true;
		call->status = GRPC_UNAVAILABLE;
		call_end(&call->post);
		call = next;
	}
	while (sockets->held)
		stream_end(sockets->held->exchange, GRPC_UNAVAILABLE);
	loop_stop(sockets->wire, STOP_MS);
}

static void *sockets_serve(void *wire)
{
	loop_run(wire);
	return NULL;
}

/* Makes what is before the last '/'. */
static bool make_parent(const char *path, struct error *error)
{
	char *directory = memory_text(path);
	char *slash = strrchr(directory, '/');
	bool made = slash && slash > directory;

	if (made)
		*slash = '\0';
	made = !made || file_make_directories(directory, 0750, error);
	free(directory);
	return made;
}

static bool listen_on(struct sockets *sockets, const char *path, const struct handler *handler,
                      struct error *error)
{
	return make_parent(path, error) &&
	       listener_open(sockets->wire,
	                     &(struct listener_options){ .path = path, .handler = handler },
	                     error) != NULL;
}

static struct loop *new_wire(void)
{
	struct limits limits = limits_default();

	limits.idle_ms = IDLE_MS;
	limits.stranger_ms = IDLE_MS;
	limits.connections = CONNECTIONS_MAX;
	limits.connections_per_address = CONNECTIONS_MAX;
	limits.connections_reserved = 1;
	limits.message_bytes = MESSAGE_MAX;
	return loop_new(&limits);
}

struct sockets *sockets_new(const struct sockets_settings *settings, struct error *error)
{
	struct sockets *sockets = NEW(struct sockets);

	sockets->settings = *settings;
	sockets->wire = new_wire();
	sockets->registration = sockets->service =
	    (struct handler){ .context = sockets, .head = headed, .request = requested };
	sockets->stop.run = stop;
	sockets->arrived_end = &sockets->arrived;
	/* Whoever finds the registration calls the service. */
	bool good = listen_on(sockets, settings->service_path, &sockets->service, error) &&
	            listen_on(sockets, settings->registration_path, &sockets->registration, error);
	pthread_mutex_init(&sockets->lock, NULL);
	uv_async_init(settings->loop, &sockets->wake, woken);
	sockets->wake.data = sockets;
	if (good && pthread_create(&sockets->thread, NULL, sockets_serve, sockets->wire) != 0)
		good = error_set(error, ERROR_UNAVAILABLE, "a thread cannot be started");
	if (good)
		return sockets;
	loop_free(sockets->wire);
	sockets->wire = NULL;
	sockets_free(sockets);
	return NULL;
}

static void sockets_closed(uv_handle_t *handle)
{
	struct sockets *sockets = handle->data;

	pthread_mutex_destroy(&sockets->lock);
	free(sockets);
}

void sockets_free(struct sockets *sockets)
{
	if (!sockets)
		return;
	while (sockets->open)
		sockets_refuse(sockets->open, GRPC_UNAVAILABLE, "the driver stops");
	if (sockets->wire) {
		loop_post(sockets->wire, &sockets->stop);
		pthread_join(sockets->thread, NULL);
		loop_free(sockets->wire);
	}
	uv_close((uv_handle_t *)&sockets->wake, sockets_closed);
}
