/* echo_driver.c - a small server of everything that wire can do, for tests with real clients
 *
 * echo_driver [--port N] [--tls CERTIFICATE KEY] [--ca FILE] [--check-ms N] [LIMIT=NUMBER...]
 *
 * Prints 'listening PORT' when it can be connected to, and serves until SIGTERM, GET /stop
 * or the end of its input; then stops gracefully. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "wire/wire.h"

enum { STOP_MS = 3000 };

struct server {
	struct loop *loop;
	struct websocket *listeners[4096];
	size_t listener_count;
	int refused; /* websocket messages that were not taken */
};

static struct server server;

/* Answers from another thread: the exchange goes to a worker, which posts it back. */
struct errand {
	struct post post;
	struct exchange *exchange;
	struct errand *next;
};
static struct {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct errand *first, *last;
	bool is_over;
} worker = { .lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER };

static void answer_errand(struct post *post)
{
	struct errand *errand = (struct errand *)post;
	struct exchange *exchange = errand->exchange;
	if (exchange->is_grpc)
		grpc_reply(exchange, exchange->body);
	else
		exchange_respond(exchange, &(struct response){ .content_type = "text/plain",
		                                               .body = exchange->body });
	free(errand);
}

static void *echo_work(void *nothing)
{
	(void)nothing;
	pthread_mutex_lock(&worker.lock);
	while (!worker.is_over || worker.first) {
		struct errand *errand = worker.first;
		if (!errand) {
			pthread_cond_wait(&worker.wake, &worker.lock);
			continue;
		}
		worker.first = errand->next;
		if (!worker.first)
			worker.last = NULL;
		pthread_mutex_unlock(&worker.lock);
		errand->post.run = answer_errand;
		loop_post(server.loop, &errand->post);
		pthread_mutex_lock(&worker.lock);
	}
	pthread_mutex_unlock(&worker.lock);
	return NULL;
}

static void answer_later(struct exchange *exchange)
{
	struct errand *errand = NEW(struct errand);
	errand->exchange = exchange;
	pthread_mutex_lock(&worker.lock);
	if (worker.last)
		worker.last->next = errand;
	else
		worker.first = errand;
	worker.last = errand;
	pthread_cond_signal(&worker.wake);
	pthread_mutex_unlock(&worker.lock);
}

static void respond_json(struct exchange *exchange, struct buffer *body)
{
	exchange_respond(exchange, &(struct response){ .content_type = "application/json",
	                                               .body = { body->data, body->size } });
	buffer_free(body);
}

/* What was asked, as it was understood. */
static void echo_describe(struct exchange *exchange)
{
	struct buffer body = { 0 };
	struct json_writer json = json_writer_to(&body);
	json_open_object(&json, NULL);
	json_put_string(&json, "protocol",
	                exchange->protocol == PROTOCOL_HTTP2 ? "HTTP/2" : "HTTP/1");
	json_put_text(&json, "method", exchange->method_name);
	json_put_text(&json, "path", exchange->path);
	json_put_text(&json, "authority", exchange->authority);
	json_put_text(&json, "peer", exchange->peer_address);
	json_put_flag(&json, "secure", exchange->secure);
	json_put_text(&json, "body", exchange->body);
	json_open_array(&json, "segments");
	for (size_t i = 0; i < exchange->segments.count; i++)
		json_put_text(&json, NULL, exchange->segments.of[i]);
	json_close(&json);
	json_open_object(&json, "query");
	for (size_t i = 0; i < exchange->query.count; i++)
		json_put_text(&json, exchange->query.of[i].name.data, exchange->query.of[i].value);
	json_close(&json);
	json_open_array(&json, "headers");
	for (size_t i = 0; i < exchange->headers.count; i++) {
		json_open_array(&json, NULL);
		json_put_text(&json, NULL, exchange->headers.of[i].name);
		json_put_text(&json, NULL, exchange->headers.of[i].value);
		json_close(&json);
	}
	json_close(&json);
	json_close(&json);
	respond_json(exchange, &body);
}

static void echo_count(struct exchange *exchange)
{
	struct loop_counters counters = loop_counters(server.loop);
	struct buffer body = { 0 };
	struct json_writer json = json_writer_to(&body);
	json_open_object(&json, NULL);
	json_put_unsigned(&json, "connections", counters.connections);
	json_put_unsigned(&json, "exchanges", counters.exchanges);
	json_put_unsigned(&json, "websockets", counters.websockets);
	json_put_unsigned(&json, "buffered_bytes", counters.buffered_bytes);
	json_put_unsigned(&json, "held_bytes", counters.held_bytes);
	json_put_unsigned(&json, "answers_dropped", counters.answers_dropped);
	json_put_unsigned(&json, "connections_shed", counters.connections_shed);
	json_put_unsigned(&json, "descriptors_exhausted", counters.descriptors_exhausted);
	json_put_unsigned(&json, "timeouts", counters.timeouts);
	json_put_unsigned(&json, "protocol_errors", counters.protocol_errors);
	json_put_integer(&json, "refused", server.refused);
	json_close(&json);
	respond_json(exchange, &body);
}

static int64_t echo_number(const struct exchange *exchange, const char *name, int64_t otherwise)
{
	int64_t value;
	query_integer(&exchange->query, name, 0, INT64_C(1) << 40, otherwise, &value, NULL);
	return value;
}

/* A body of the given size, in one piece. */
static void respond_big(struct exchange *exchange)
{
	size_t size = (size_t)echo_number(exchange, "bytes", 1 << 20);
	struct shared *shared = shared_reserve(size);
	for (size_t i = 0; i < size; i++)
		shared->data[i] = (char)('a' + i % 26);
	exchange_respond(exchange, &(struct response){
				       .content_type = "text/plain",
				       .shared = shared,
				       .never_compress = echo_number(exchange, "plain", 0) != 0 });
}

/* A body in parts, as fast as the client takes them. */
struct flow {
	int64_t parts, sent;
	size_t size;
};

static void flow_on(struct exchange *exchange)
{
	struct flow *flow = exchange->context;
	char part[1 << 16];
	memset(part, 'x', sizeof(part));
	while (flow->sent < flow->parts) {
		if (!exchange_write(exchange, (struct text){ part, flow->size }))
			return;
		flow->sent++;
	}
	free(flow);
	exchange_end(exchange);
}

static void flow_gone(struct exchange *exchange)
{
	free(exchange->context);
	exchange_abort(exchange);
}

static const struct exchange_events flow_events = { .writable = flow_on, .gone = flow_gone };

static void respond_flow(struct exchange *exchange)
{
	struct flow *flow = NEW(struct flow);
	flow->parts = echo_number(exchange, "parts", 10);
	flow->size = (size_t)echo_number(exchange, "size", 1000) & 0xffff;
	exchange->context = flow;
	exchange->events = &flow_events;
	exchange_begin(exchange, &(struct response){ .content_type = "text/plain" });
	flow_on(exchange);
}

static void wait_gone(struct exchange *exchange)
{
	exchange_abort(exchange);
}

static const struct exchange_events wait_events = { .gone = wait_gone };

/* No answer at all, until the client goes. */
static void wait_forever(struct exchange *exchange)
{
	exchange->events = &wait_events;
	exchange->hangup_is_gone = true;
}

/* A body that is not kept but counted. */
static void upload_part(struct exchange *exchange, struct text part)
{
	*(size_t *)exchange->context += part.size;
}

static void upload_end(struct exchange *exchange)
{
	char text[32];
	snprintf(text, sizeof(text), "%zu", *(size_t *)exchange->context);
	free(exchange->context);
	exchange_respond(exchange, &(struct response){ .body = text_of(text) });
}

static void upload_gone(struct exchange *exchange)
{
	free(exchange->context);
	exchange_abort(exchange);
}

static const struct exchange_events upload_events = { .body = upload_part,
	                                              .body_end = upload_end,
	                                              .gone = upload_gone };

static void echo_message(struct websocket *socket, struct text message, bool is_text)
{
	struct shared *frame = websocket_frame(message, is_text);
	server.refused += !websocket_send(socket, frame);
	shared_drop(frame);
}

static void echo_leave(struct websocket *socket, int code)
{
	(void)code;
	for (size_t i = 0; i < server.listener_count; i++)
		if (server.listeners[i] == socket)
			server.listeners[i] = server.listeners[--server.listener_count];
}

static void tell_missed(struct websocket *socket)
{
	websocket_send_text(socket, TEXT("{\"missed\":true}"));
}

static const struct websocket_events echo_events = { .message = echo_message,
	                                             .closed = echo_leave };
static const struct websocket_events fan_events = { .closed = echo_leave, .writable = tell_missed };

static void echo_join(struct exchange *exchange)
{
	size_t most = sizeof(server.listeners) / sizeof(server.listeners[0]);
	if (!exchange->is_websocket || server.listener_count == most) {
		exchange_refuse(exchange, 426, "upgrade", "this is for WebSockets");
		return;
	}
	struct websocket *socket = websocket_accept(exchange, &fan_events, NULL, NULL);
	if (socket)
		server.listeners[server.listener_count++] = socket;
}

/* Sends the body to everyone who has joined. */
static void publish(struct exchange *exchange)
{
	int64_t times = echo_number(exchange, "times", 1);
	struct shared *frame = websocket_frame(exchange->body, true);
	for (int64_t i = 0; i < times; i++)
		for (size_t j = 0; j < server.listener_count; j++)
			server.refused += !websocket_send(server.listeners[j], frame);
	shared_drop(frame);
	exchange_respond(exchange, &(struct response){ .status = 204 });
}

static void echo_grpc(struct exchange *exchange, struct text message)
{
	grpc_send(exchange, message);
}

static void end_grpc(struct exchange *exchange)
{
	grpc_finish(exchange, GRPC_OK, NULL);
}

static const struct exchange_events grpc_events = { .body = echo_grpc,
	                                            .body_end = end_grpc,
	                                            .gone = wait_gone };

static bool is_at(const struct exchange *exchange, const char *segment)
{
	return exchange->segments.count == 1 && text_is(exchange->segments.of[0], segment);
}

static void head(struct exchange *exchange)
{
	if (exchange->is_grpc) {
		if (text_is(exchange->path, "/echo.Echo/Stream")) {
			exchange->events = &grpc_events;
			grpc_stream(exchange);
		}
	} else if (is_at(exchange, "upload")) {
		exchange->context = NEW(size_t);
		exchange->events = &upload_events;
		exchange_stream_body(exchange);
	} else if (is_at(exchange, "secret")) {
		exchange_refuse(exchange, 401, "unauthorized", "this is not for you");
	} else if (is_at(exchange, "trust")) {
		exchange_trust(exchange);
	} else if (is_at(exchange, "small")) {
		exchange->body_limit = 10;
	}
}

static void answer_grpc(struct exchange *exchange)
{
	if (text_is(exchange->path, "/echo.Echo/Unary"))
		grpc_reply(exchange, exchange->body);
	else if (text_is(exchange->path, "/echo.Echo/Later"))
		answer_later(exchange);
	else if (text_is(exchange->path, "/echo.Echo/Wait"))
		wait_forever(exchange);
	else
		grpc_finish(exchange, GRPC_UNIMPLEMENTED, "there is no such method: 100% sure, é");
}

static void answer_hello(struct exchange *exchange)
{
	exchange_respond(
	    exchange, &(struct response){ .content_type = "text/plain", .body = TEXT("hello\n") });
}

static void answer_echo(struct exchange *exchange)
{
	exchange_respond(exchange,
	                 &(struct response){
			     .content_type = headers_get(&exchange->headers, "content-type").data,
			     .body = exchange->body });
}

static void answer_socket(struct exchange *exchange)
{
	if (exchange->is_websocket)
		websocket_accept(exchange, &echo_events, NULL, NULL);
	else
		exchange_refuse(exchange, 426, "upgrade", "this is for WebSockets");
}

static void answer_stop(struct exchange *exchange)
{
	loop_stop(exchange->loop, STOP_MS);
	exchange_respond(exchange, &(struct response){ .status = 204 });
}

static void answer_abort(struct exchange *exchange)
{
	exchange_abort(exchange);
}

static void answer_inject(struct exchange *exchange)
{
	struct header header = { TEXT("x-given"), query_get(&exchange->query, "value") };
	exchange_respond(exchange, &(struct response){
				       .headers = &header, .header_count = 1, .body = TEXT("ok") });
}

static void echo_request(struct exchange *exchange)
{
	static const struct {
		const char *segment;
		void (*answer)(struct exchange *exchange);
	} routes[] = {
		{ "echo", answer_echo },     { "small", answer_echo },
		{ "later", answer_later },   { "describe", echo_describe },
		{ "counters", echo_count },  { "big", respond_big },
		{ "flow", respond_flow },    { "wait", wait_forever },
		{ "socket", answer_socket }, { "fan", echo_join },
		{ "publish", publish },      { "stop", answer_stop },
		{ "abort", answer_abort },   { "inject", answer_inject },
	};
	if (exchange->is_grpc) {
		answer_grpc(exchange);
		return;
	}
	if (exchange->segments.count == 0) {
		answer_hello(exchange);
		return;
	}
	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
		if (is_at(exchange, routes[i].segment)) {
			routes[i].answer(exchange);
			return;
		}
	}
	echo_describe(exchange);
}

static const struct handler handler = { .head = head, .request = echo_request };

static void stop_now(struct post *post)
{
	(void)post;
	if (!loop_is_stopping(server.loop))
		loop_stop(server.loop, STOP_MS);
}

/* The end of the input is the end of whoever started this. */
static void *watch_input(void *nothing)
{
	(void)nothing;
	static struct post post = { .run = stop_now };
	char byte;
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	loop_post(server.loop, &post);
	return NULL;
}

static void *watch_signals(void *nothing)
{
	(void)nothing;
	static struct post post = { .run = stop_now };
	sigset_t set;
	int number_received;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigwait(&set, &number_received);
	loop_post(server.loop, &post);
	return NULL;
}

static bool set_limit(struct limits *limits, const char *argument)
{
#define SIZE_LIMIT(member)                                                                         \
	{                                                                                          \
#member, offsetof(struct limits, member), false                                    \
	}
#define TIME_LIMIT(member)                                                                         \
	{                                                                                          \
#member, offsetof(struct limits, member), true                                     \
	}
	static const struct {
		const char *name;
		size_t offset;
		bool is_time;
	} known[] = {
		SIZE_LIMIT(head_bytes),
		SIZE_LIMIT(headers),
		SIZE_LIMIT(target_bytes),
		SIZE_LIMIT(body_bytes),
		SIZE_LIMIT(message_bytes),
		SIZE_LIMIT(pipeline),
		SIZE_LIMIT(streams),
		SIZE_LIMIT(output_bytes),
		SIZE_LIMIT(control_frames_per_second),
		SIZE_LIMIT(resets_per_second),
		SIZE_LIMIT(connections),
		SIZE_LIMIT(connections_per_address),
		SIZE_LIMIT(connections_reserved),
		SIZE_LIMIT(exchanges),
		SIZE_LIMIT(buffered_bytes),
		SIZE_LIMIT(held_bytes_per_connection),
		SIZE_LIMIT(held_bytes),
		TIME_LIMIT(handshake_ms),
		TIME_LIMIT(head_ms),
		TIME_LIMIT(body_ms),
		TIME_LIMIT(stall_ms),
		TIME_LIMIT(idle_ms),
		TIME_LIMIT(stranger_ms),
		TIME_LIMIT(write_ms),
		TIME_LIMIT(ping_ms),
		TIME_LIMIT(linger_ms),
		SIZE_LIMIT(compress_bytes),
		TIME_LIMIT(gather_ms),
	};
	const char *equals = strchr(argument, '=');
	for (size_t i = 0; equals && i < sizeof(known) / sizeof(known[0]); i++) {
		size_t size = (size_t)(equals - argument);
		if (strlen(known[i].name) != size || memcmp(known[i].name, argument, size) != 0)
			continue;
		int64_t value = strtoll(equals + 1, NULL, 10);
		char *member = (char *)limits + known[i].offset;
		if (known[i].is_time)
			*(int64_t *)(void *)member = value;
		else
			*(size_t *)(void *)member = (size_t)value;
		return true;
	}
	return false;
}

static void report_reload(void *context, const struct error *failed)
{
	(void)context;
	printf("%s\n", failed ? failed->text : "reloaded");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct limits limits = limits_default();
	struct listener_options options = { .address = "127.0.0.1", .handler = &handler };
	struct tls_options tls_options = { .reloaded = report_reload };
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--port") == 0 && i + 1 < argc) {
			options.port = (uint16_t)strtol(argv[++i], NULL, 10);
		} else if (strcmp(argv[i], "--ca") == 0 && i + 1 < argc) {
			tls_options.ca_path = argv[++i];
		} else if (strcmp(argv[i], "--check-ms") == 0 && i + 1 < argc) {
			tls_options.check_ms = strtoll(argv[++i], NULL, 10);
		} else if (strcmp(argv[i], "--tls") == 0 && i + 2 < argc) {
			tls_options.certificate_path = argv[++i];
			tls_options.key_path = argv[++i];
		} else if (!set_limit(&limits, argv[i])) {
			fprintf(stderr, "echo_driver: what is '%s'?\n", argv[i]);
			return 2;
		}
	}
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);

	struct error error = { 0 };
	server.loop = loop_new(&limits);
	struct tls *tls = NULL;
	if (tls_options.certificate_path) {
		tls = tls_new(server.loop, &tls_options, &error);
		if (!tls) {
			fprintf(stderr, "echo_driver: %s\n", error.text);
			return 1;
		}
		options.tls = tls;
	}
	struct listener *listener = listener_open(server.loop, &options, &error);
	if (!listener) {
		fprintf(stderr, "echo_driver: %s\n", error.text);
		return 1;
	}
	pthread_t threads[3];
	pthread_create(&threads[0], NULL, echo_work, NULL);
	pthread_create(&threads[1], NULL, watch_input, NULL);
	pthread_create(&threads[2], NULL, watch_signals, NULL);
	printf("listening %u\n", listener_port(listener));
	fflush(stdout);
	loop_run(server.loop);

	pthread_mutex_lock(&worker.lock);
	worker.is_over = true;
	pthread_cond_signal(&worker.wake);
	pthread_mutex_unlock(&worker.lock);
	pthread_join(threads[0], NULL);
	for (int i = 1; i < 3; i++) {
		pthread_cancel(threads[i]);
		pthread_join(threads[i], NULL);
	}
	tls_free(tls);
	loop_free(server.loop);
	printf("stopped\n");
	return 0;
}
