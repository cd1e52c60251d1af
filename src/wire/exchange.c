/* exchange.c - a request and its response, the same for every protocol */
#include "wire/exchange.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "wire/connection.h"
#include "wire/grpc.h"
#include "wire/text/json_writer.h"

enum {
	SPARE_EXCHANGES_MAX = 4096,
	KEPT_BODY_BYTES = 16 << 10,
	RESPONSE_HEADERS_MAX = 64,
	REFUSAL_TEXT_MAX = 1024,
};

static void deadline_passed(struct timer *timer)
{
	struct exchange_state *state =
	    (struct exchange_state *)(void *)((char *)timer -
	                                      offsetof(struct exchange_state, timer));
	grpc_expire(state);
}

struct exchange_state *exchange_take(struct connection *connection)
{
	struct loop *loop = connection->loop;
	struct exchange_state *state = loop->spare_exchanges;
	if (state) {
		memory_unpoison(state, sizeof(*state));
		loop->spare_exchanges = state->next;
		loop->spare_exchange_count--;
	} else {
		state = NEW(struct exchange_state);
		state->held = output_new(&loop->blocks, NULL);
		state->timer = TIMER(deadline_passed);
	}
	state->exchange = (struct exchange){
		.handler = connection->handler,
		.loop = loop,
		.peer_address = text_of(connection->peer_address),
		.peer_port = connection->peer_port,
		.secure = connection->tls != NULL,
		.body_limit = loop->limits.body_bytes,
		.grpc_deadline_ms = INT64_MAX,
	};
	state->next = state->previous = NULL;
	state->connection = connection;
	state->held.account = &connection->held;
	state->content_length = -1;
	state->began_ms = state->last_body_ms = loop_now_ms(loop);
	state->is_reading = true;
	loop->counters.exchanges++;
	loop->counters.exchanges_total++;
	return state;
}

static void forget_buffer(struct buffer *buffer)
{
	if (buffer->capacity > KEPT_BODY_BYTES)
		buffer_free(buffer);
	buffer_clear(buffer);
}

static void free_state(struct exchange_state *state)
{
	head_free(&state->head);
	buffer_free(&state->body);
	buffer_free(&state->reply);
	buffer_free(&state->trailers);
	output_free(&state->held);
	grpc_frame_reader_free(&state->messages);
	free(state->parameters);
	free(state);
}

/* Frees what waits to be sent. */
static void drop_held(struct exchange_state *state)
{
	if (state->held.count > 0 || state->held.tail)
		output_free(&state->held);
	account_take(state->held.account, state->reply.size - state->reply_sent);
	state->reply_sent = 0;
	forget_buffer(&state->reply);
	state->held.account = NULL;
}

static void recycle(struct exchange_state *state)
{
	struct loop *loop = state->exchange.loop;
	drop_held(state);
	loop->counters.buffered_bytes -= state->buffered;
	loop->counters.exchanges--;
	if (state->timer.due_ms != 0)
		timers_clear(&loop->timers, &state->timer);
	if (loop->spare_exchange_count >= SPARE_EXCHANGES_MAX) {
		free_state(state);
	} else {
		head_reset(&state->head);
		forget_buffer(&state->body);
		forget_buffer(&state->trailers);
		forget_buffer(&state->messages.partial);
		state->body_size = state->buffered = state->unconsumed = 0;
		state->stream_id = 0;
		state->is_announced = state->is_complete = state->is_streamed = false;
		state->is_paused = state->is_grpc_stream = state->has_begun = false;
		state->has_ended = state->is_gone = state->wants_writable = false;
		state->is_waiting = false;
		state->is_chunked = state->keeps_alive = state->expects_continue = false;
		state->grpc_gzip = state->is_written = state->is_old = state->is_oversized = false;
		state->next = loop->spare_exchanges;
		loop->spare_exchanges = state;
		loop->spare_exchange_count++;
		memory_poison(state, sizeof(*state));
	}
	if (loop->is_stopping)
		loop_check_end(loop);
}

void exchanges_free_spare(struct loop *loop)
{
	while (loop->spare_exchanges) {
		struct exchange_state *state = loop->spare_exchanges;
		memory_unpoison(state, sizeof(*state));
		loop->spare_exchanges = state->next;
		free_state(state);
	}
}

static void check_holds(struct exchange_state *state)
{
	if (!state->is_reading && !state->is_linked && !state->is_owned)
		recycle(state);
}

void exchange_drop_reading(struct exchange_state *state)
{
	INVARIANT(state->is_reading);
	state->is_reading = false;
	check_holds(state);
}

void exchange_drop_linked(struct exchange_state *state)
{
	INVARIANT(state->is_linked);
	state->is_linked = false;
	check_holds(state);
}

void exchange_finish(struct exchange_state *state)
{
	INVARIANT(!state->has_ended);
	state->has_ended = true;
	state->last_body_ms = loop_now_ms(state->exchange.loop);
	if (state->is_owned) {
		state->is_owned = false;
		check_holds(state);
	}
}

const char *exchange_is_too_much(const struct exchange_state *state)
{
	const struct loop *loop = state->exchange.loop;
	if (loop->is_stopping)
		return "the service is stopping";
	if (loop->counters.exchanges > loop->limits.exchanges)
		return "too many requests are in flight: try again later";
	if (loop->counters.buffered_bytes > loop->limits.buffered_bytes)
		return "there are too many large requests at once: try again later";
	if (state->connection->held.bytes >= loop->limits.held_bytes_per_connection)
		return "this connection has too many answers that were not read: read them first";
	return NULL;
}

void exchange_announce(struct exchange_state *state)
{
	struct exchange *exchange = &state->exchange;
	state->is_announced = true;
	if (exchange->handler->head)
		exchange->handler->head(exchange);
}

bool exchange_buffer(struct exchange_state *state, size_t bytes)
{
	struct loop *loop = state->exchange.loop;
	if (loop->counters.buffered_bytes + bytes > loop->limits.buffered_bytes)
		return false;
	state->buffered += bytes;
	loop->counters.buffered_bytes += bytes;
	return true;
}

void exchange_unbuffer(struct exchange_state *state, size_t bytes)
{
	state->buffered -= bytes;
	state->exchange.loop->counters.buffered_bytes -= bytes;
}

/* Appends to the body, if it may be that large. */
static void keep_body(struct exchange_state *state, struct text part)
{
	struct exchange *exchange = &state->exchange;
	if (state->body_size > exchange->body_limit) {
		exchange_reject(state, 413, "too_large",
		                "the body is larger than the %zu bytes that are allowed",
		                exchange->body_limit);
		return;
	}
	if (!exchange_buffer(state, part.size)) {
		exchange_reject(state, 503, "unavailable",
		                "there are too many large requests at once: try again later");
		return;
	}
	/* With a NUL behind it. */
	array_reserve(state->body.data, state->body.capacity, state->body.size + part.size + 1);
	buffer_bytes(&state->body, part.data, part.size);
}

void exchange_receive(struct exchange_state *state, struct text part)
{
	struct exchange *exchange = &state->exchange;
	state->body_size += part.size;
	state->last_body_ms = loop_now_ms(exchange->loop);
	if (state->has_ended || state->is_gone || part.size == 0)
		return;
	if (!state->is_streamed && !state->has_begun)
		keep_body(state, part);
	else if (!state->is_streamed)
		return;
	else if (state->is_grpc_stream)
		grpc_receive(state, part);
	else if (exchange->events && exchange->events->body)
		exchange->events->body(exchange, part);
}

void exchange_complete(struct exchange_state *state)
{
	struct exchange *exchange = &state->exchange;
	state->is_complete = true;
	if (state->has_ended || state->is_gone || (state->has_begun && !state->is_streamed)) {
		exchange_drop_reading(state);
		return;
	}
	if (state->is_streamed) {
		if ((!state->is_grpc_stream || grpc_complete_stream(state)) && exchange->events &&
		    exchange->events->body_end)
			exchange->events->body_end(exchange);
		exchange_drop_reading(state);
		return;
	}
	array_reserve(state->body.data, state->body.capacity, state->body.size + 1);
	state->body.data[state->body.size] = '\0';
	exchange->body = (struct text){ state->body.data, state->body.size };
	if (!exchange->is_grpc || grpc_complete(state)) {
		state->is_owned = true;
		exchange->handler->request(exchange);
	}
	exchange_drop_reading(state);
}

void exchange_lose(struct exchange_state *state)
{
	struct exchange *exchange = &state->exchange;
	if (state->is_gone)
		return;
	state->is_gone = true;
	if (state->is_announced && !state->has_ended && exchange->events && exchange->events->gone)
		exchange->events->gone(exchange);
}

void exchange_detach(struct exchange_state *state)
{
	exchange_lose(state);
	drop_held(state);
	state->connection = NULL;
}

void exchange_disown(struct exchange_state *state)
{
	exchange_lose(state);
	if (!state->is_owned && !state->has_ended)
		exchange_finish(state);
}

bool exchange_takes(const struct exchange_state *state, enum answer_part part)
{
	loop_check_thread(state->exchange.loop);
	INVARIANT(!state->has_ended);
	if (state->is_gone)
		return false;
	INVARIANT(part == ANSWER_ANY || state->has_begun == (part == ANSWER_NEXT));
	return true;
}

void exchange_tell_writable(struct exchange_state *state)
{
	const struct exchange_events *events = state->exchange.events;
	if (!state->wants_writable || state->has_ended || state->is_gone)
		return;
	state->wants_writable = false;
	if (events && events->writable)
		events->writable(&state->exchange);
}

void exchange_trust(struct exchange *exchange)
{
	struct connection *connection = exchange_state(exchange)->connection;
	if (connection && connection->is_stranger)
		connection_trust(connection);
}

bool exchange_is_gone(const struct exchange *exchange)
{
	return ((const struct exchange_state *)exchange)->is_gone;
}

/* Compresses the body if that is asked for and worth it: into the loop's scratch, and
 * two more headers into `headers`. */
static void consider_compression(struct exchange *exchange, struct response *response,
                                 struct header headers[RESPONSE_HEADERS_MAX])
{
	struct loop *loop = exchange->loop;
	struct text body = response->shared ? shared_text(response->shared) : response->body;
	size_t count = response->header_count;
	if (response->never_compress || !response_is_compressible(response->content_type) ||
	    body.size < loop->limits.compress_bytes || count + 2 > RESPONSE_HEADERS_MAX)
		return;
	struct headers given = { response->headers, count };
	if (headers_get(&given, "content-encoding").data)
		return;
	if (count > 0)
		memcpy(headers, response->headers, count * sizeof(*headers));
	response->headers = headers;
	headers[response->header_count++] =
	    (struct header){ TEXT("vary"), TEXT("accept-encoding") };
	if (!headers_has_token(&exchange->headers, "accept-encoding", "gzip"))
		return;
	buffer_clear(&loop->scratch);
	compress_gzip(&loop->compressor, body, &loop->scratch);
	headers[response->header_count++] =
	    (struct header){ TEXT("content-encoding"), TEXT("gzip") };
	shared_drop(response->shared);
	response->shared = NULL;
	response->body = (struct text){ loop->scratch.data, loop->scratch.size };
}

/* Memory that an answer takes until it is read. */
static size_t exchange_cost(const struct exchange *exchange, const struct response *response)
{
	if (exchange->method == METHOD_HEAD)
		return 0;
	if (!response->shared)
		return response->body.size;
	return response->shared->is_lasting ? 0 : response->shared->size;
}

/* There is an answer, but it cannot be kept until the client reads it. Whoever only asked
 * may ask again. Whoever changed something must not take that for refused. */
static void drop_answer(struct exchange_state *state)
{
	static const char text[] = "{\"error\":\"too many answers wait to be read: read them, "
				   "then ask again\",\"code\":\"unavailable\"}";
	const struct connection_protocol *protocol = state->connection->protocol;
	bool is_read =
	    state->exchange.method == METHOD_GET || state->exchange.method == METHOD_HEAD;
	state->exchange.loop->counters.answers_dropped++;
	if (!is_read) {
		protocol->abort(state);
		return;
	}
	state->has_begun = true;
	protocol->begin(state,
	                &(struct response){
			    .status = 503, .content_type = "application/json", .body = TEXT(text) },
	                false);
}

/* Hands all of an answer to the protocol. */
static void exchange_answer(struct exchange_state *state, const struct response *response)
{
	struct response given = *response;
	struct header headers[RESPONSE_HEADERS_MAX];
	if (given.status == 0)
		given.status = 200;
	consider_compression(&state->exchange, &given, headers);
	if (!connection_may_hold(state->connection, exchange_cost(&state->exchange, &given))) {
		shared_drop(given.shared);
		drop_answer(state);
		return;
	}
	state->has_begun = true;
	state->connection->protocol->begin(state, &given, false);
}

void exchange_respond(struct exchange *exchange, const struct response *response)
{
	struct exchange_state *state = exchange_state(exchange);
	if (exchange_takes(state, ANSWER_START))
		exchange_answer(state, response);
	else
		shared_drop(response->shared);
	exchange_finish(state);
}

/* The answer of a refusal; `body` is its memory, which the caller frees. */
static struct response refusal(int status, const char *code, const char *text, struct buffer *body)
{
	struct json_writer json = json_writer_to(body);
	json_open_object(&json, NULL);
	json_put_string(&json, "error", text);
	json_put_string(&json, "code", code);
	json_close(&json);
	return (struct response){ .status = status,
		                  .content_type = "application/json",
		                  .body = { body->data, body->size },
		                  .never_compress = true };
}

void exchange_refuse(struct exchange *exchange, int status, const char *code, const char *format,
                     ...)
{
	char text[REFUSAL_TEXT_MAX];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (exchange->is_grpc) {
		grpc_finish(exchange, grpc_status_of(status), text);
		return;
	}
	struct buffer body = { 0 };
	struct response response = refusal(status, code, text, &body);
	exchange_respond(exchange, &response);
	buffer_free(&body);
}

void exchange_reject(struct exchange_state *state, int status, const char *code, const char *format,
                     ...)
{
	char text[REFUSAL_TEXT_MAX];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (state->has_ended || state->is_gone)
		return;
	if (state->exchange.is_grpc) {
		grpc_reject(state, grpc_status_of(status), text);
		return;
	}
	struct buffer body = { 0 };
	struct response response = refusal(status, code, text, &body);
	if (state->has_begun)
		state->connection->protocol->abort(state);
	else
		exchange_answer(state, &response);
	buffer_free(&body);
	state->exchange.refused_status = status;
	exchange_disown(state);
}

void exchange_begin(struct exchange *exchange, const struct response *response)
{
	struct exchange_state *state = exchange_state(exchange);
	struct response given = *response;
	if (given.status == 0)
		given.status = 200;
	bool is_taken = exchange_takes(state, ANSWER_START);
	/* Answered in `head` already: from here on it is the handler's. */
	state->is_owned = true;
	state->has_begun = true;
	if (is_taken)
		state->connection->protocol->begin(state, &given, true);
}

bool exchange_has_room(struct exchange_state *state, size_t size)
{
	struct connection *connection = state->connection;
	const struct limits *limits = &connection->loop->limits;
	if (connection->protocol->waiting(state) < limits->output_bytes &&
	    connection_may_hold(connection, size))
		return true;
	state->wants_writable = true;
	connection->is_blocked = true;
	return false;
}

bool exchange_write(struct exchange *exchange, struct text part)
{
	struct exchange_state *state = exchange_state(exchange);
	if (!exchange_takes(state, ANSWER_NEXT) || part.size == 0)
		return true;
	if (!exchange_has_room(state, part.size))
		return false;
	state->connection->protocol->write(state, part, NULL);
	return true;
}

bool exchange_share(struct exchange *exchange, struct shared *part)
{
	struct exchange_state *state = exchange_state(exchange);
	if (!exchange_takes(state, ANSWER_NEXT) || part->size == 0) {
		shared_drop(part);
		return true;
	}
	if (!exchange_has_room(state, part->size))
		return false;
	state->connection->protocol->write(state, shared_text(part), part);
	return true;
}

void exchange_end(struct exchange *exchange)
{
	struct exchange_state *state = exchange_state(exchange);
	if (exchange_takes(state, ANSWER_NEXT))
		state->connection->protocol->end(state);
	exchange_finish(state);
}

void exchange_abort(struct exchange *exchange)
{
	struct exchange_state *state = exchange_state(exchange);
	if (exchange_takes(state, ANSWER_ANY))
		state->connection->protocol->abort(state);
	exchange_finish(state);
}

void exchange_stream_body(struct exchange *exchange)
{
	struct exchange_state *state = exchange_state(exchange);
	loop_check_thread(exchange->loop);
	INVARIANT(!state->is_complete && !state->has_ended);
	state->is_streamed = true;
	state->is_owned = true;
}

void exchange_pause_body(struct exchange *exchange, bool paused)
{
	struct exchange_state *state = exchange_state(exchange);
	loop_check_thread(exchange->loop);
	bool was_paused = state->is_paused;
	state->is_paused = paused;
	if (was_paused && !paused && !state->is_gone)
		state->connection->protocol->resume_body(state);
}
