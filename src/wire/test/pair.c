/* pair.c - a loop and a client in one thread, joined by a pair of sockets */
#include "pair.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "wire/connection.h"

enum { ROUNDS = 4, KEPT_MAX = 4096 };

static struct exchange *kept[KEPT_MAX];
static size_t kept_count;

struct pair pair_new(const struct limits *limits)
{
	struct limits usual = limits_default();
	usual.gather_ms = 0;
	return (struct pair){ .loop = loop_new(limits ? limits : &usual), .client = -1 };
}

static void pair_collect(struct pair *pair)
{
	char part[1 << 16];
	while (pair->client >= 0 && !pair->is_ended) {
		ssize_t size = recv(pair->client, part, sizeof(part), MSG_DONTWAIT);
		if (size == 0 || (size < 0 && errno != EAGAIN))
			pair->is_ended = true;
		if (size <= 0)
			return;
		buffer_bytes(&pair->answers, part, (size_t)size);
	}
}

void pair_run(struct pair *pair)
{
	for (int i = 0; i < ROUNDS; i++) {
		uv_run(&pair->loop->uv, UV_RUN_NOWAIT);
		pair_collect(pair);
	}
}

void pair_connect(struct pair *pair, const struct handler *handler)
{
	pair_hang_up(pair);
	int ends[2];
	INVARIANT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
	pair->client = ends[0];
	pair->is_ended = false;
	buffer_clear(&pair->answers);
	connection_open(pair->loop, ends[1], &(struct reception){ .handler = handler });
	pair_run(pair);
}

void pair_send(struct pair *pair, struct text bytes)
{
	while (bytes.size > 0 && !pair->is_ended) {
		ssize_t sent =
		    send(pair->client, bytes.data, bytes.size, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent < 0 && errno != EAGAIN)
			return;
		/* The other end may have stopped to read. */
		size_t before = pair->answers.size;
		pair_run(pair);
		if (sent < 0 && pair->answers.size == before)
			return;
		bytes = text_from(bytes, sent > 0 ? (size_t)sent : 0);
	}
}

void pair_shut(struct pair *pair)
{
	shutdown(pair->client, SHUT_WR);
	pair_run(pair);
}

void pair_hang_up(struct pair *pair)
{
	if (pair->client >= 0)
		close(pair->client);
	pair->client = -1;
	pair_run(pair);
}

void pair_close(struct pair *pair)
{
	pair_hang_up(pair);
	pair_answer_kept();
	for (int i = 0; i < ROUNDS && pair->loop->connections; i++)
		pair_run(pair);
	INVARIANT(!pair->loop->connections);
	INVARIANT(pair->loop->counters.exchanges == 0);
	INVARIANT(pair->loop->counters.buffered_bytes == 0);
	INVARIANT(pair->loop->counters.websockets == 0);
}

void pair_free(struct pair *pair)
{
	pair_close(pair);
	loop_free(pair->loop);
	buffer_free(&pair->answers);
}

static void pair_answer(struct exchange *exchange)
{
	if (exchange->is_grpc)
		grpc_reply(exchange, exchange->body);
	else
		exchange_respond(exchange, &(struct response){ .content_type = "text/plain",
		                                               .body = exchange->body });
}

void pair_answer_kept(void)
{
	while (kept_count > 0)
		pair_answer(kept[--kept_count]);
}

static void stream_part(struct exchange *exchange, struct text part)
{
	bool is_taken =
	    exchange->is_grpc ? grpc_send(exchange, part) : exchange_write(exchange, part);
	if (!is_taken)
		exchange_pause_body(exchange, true);
}

static void stream_writable(struct exchange *exchange)
{
	exchange_pause_body(exchange, false);
}

static void stream_end(struct exchange *exchange)
{
	if (exchange->is_grpc)
		grpc_finish(exchange, GRPC_OK, NULL);
	else
		exchange_end(exchange);
}

static const struct exchange_events stream_events = {
	.body = stream_part,
	.body_end = stream_end,
	.writable = stream_writable,
	.gone = exchange_abort,
};

static void head(struct exchange *exchange)
{
	const struct text *first = &exchange->segments.of[0];
	if (exchange->segments.count == 0)
		return;
	if (text_is(*first, "refuse")) {
		exchange_refuse(exchange, 401, "unauthorized", "no");
	} else if (text_is(*first, "stream")) {
		exchange->events = &stream_events;
		if (exchange->is_grpc) {
			grpc_stream(exchange);
		} else {
			exchange_stream_body(exchange);
			exchange_begin(exchange, &(struct response){ 0 });
		}
	}
}

static void echo(struct websocket *socket, struct text message, bool is_text)
{
	struct shared *frame = websocket_frame(message, is_text);
	websocket_send(socket, frame);
	shared_drop(frame);
}

static const struct websocket_events echo_events = { .message = echo };

static void pair_request(struct exchange *exchange)
{
	bool is_later = exchange->segments.count > 0 &&
	                text_is(exchange->segments.of[0], "later") && kept_count < KEPT_MAX;
	if (exchange->is_websocket)
		websocket_accept(exchange, &echo_events, NULL, NULL);
	else if (is_later)
		kept[kept_count++] = exchange;
	else
		pair_answer(exchange);
}

const struct handler pair_handler = { .head = head, .request = pair_request };
