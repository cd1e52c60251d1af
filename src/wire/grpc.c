/* grpc.c - gRPC calls over exchanges: messages in, messages out, a status at the end */
#include "wire/grpc.h"

#include <stdio.h>

#include "base/memory.h"
#include "base/number.h"
#include "wire/connection.h"

/* Milliseconds from a value such as '100m' (milliseconds) or '5S' (seconds), rounded up;
 * -1 if it is none. */
static int64_t timeout_ms(struct text value)
{
	static const struct {
		char unit;
		int64_t per_unit_ns;
	} units[] = {
		{ 'H', INT64_C(3600000000000) },
		{ 'M', INT64_C(60000000000) },
		{ 'S', INT64_C(1000000000) },
		{ 'm', 1000000 },
		{ 'u', 1000 },
		{ 'n', 1 },
	};
	if (value.size < 2 || value.size > 9)
		return -1;
	int64_t number = 0;
	for (size_t i = 0; i < value.size - 1; i++) {
		if (value.data[i] < '0' || value.data[i] > '9')
			return -1;
		number = number * 10 + (value.data[i] - '0');
	}
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (units[i].unit == value.data[value.size - 1])
			return muldiv_up(number, units[i].per_unit_ns, 1000000);
	return -1;
}

void grpc_set_up(struct exchange_state *state)
{
	struct exchange *exchange = &state->exchange;
	struct loop *loop = exchange->loop;
	struct text type = headers_get(&exchange->headers, "content-type");
	exchange->is_grpc = text_starts(type, "application/grpc") &&
	                    (type.size == 16 || type.data[16] == '+' || type.data[16] == ';') &&
	                    exchange->method == METHOD_POST;
	if (!exchange->is_grpc)
		return;
	/* The one message of a unary call and what is before it; streams are bound by message. */
	exchange->body_limit = loop->limits.message_bytes + GRPC_FRAME_PREFIX;
	state->grpc_gzip = headers_has_token(&exchange->headers, "grpc-accept-encoding", "gzip");
	struct text timeout = headers_get(&exchange->headers, "grpc-timeout");
	int64_t left_ms = timeout.data ? timeout_ms(timeout) : -1;
	if (left_ms < 0)
		return;
	exchange->grpc_deadline_ms = loop_now_ms(loop) + left_ms;
	timers_set(&loop->timers, &state->timer, max64(exchange->grpc_deadline_ms, 1));
}

void grpc_stream(struct exchange *exchange)
{
	INVARIANT(exchange->is_grpc);
	exchange_stream_body(exchange);
	exchange_state(exchange)->is_grpc_stream = true;
}

/* How large a message may be, decompressed. */
static size_t message_limit(const struct exchange_state *state)
{
	size_t limit = state->exchange.body_limit;
	return limit > GRPC_FRAME_PREFIX ? limit - GRPC_FRAME_PREFIX : 0;
}

/* Undoes the compression that the call's headers name, into `out`. False: refused. */
static bool decompress(struct exchange_state *state, struct text message, struct buffer *out)
{
	struct exchange *exchange = &state->exchange;
	struct loop *loop = exchange->loop;
	struct text encoding = headers_get(&exchange->headers, "grpc-encoding");
	if (!text_is(encoding, "gzip") && !text_is(encoding, "deflate")) {
		grpc_reject(state, GRPC_UNIMPLEMENTED,
		            "a message is compressed in a way that is not known here: "
		            "use gzip, deflate or identity");
		return false;
	}
	if (!compress_undo(&loop->compressor, message, message_limit(state), out)) {
		grpc_reject(state, GRPC_INTERNAL, "a compressed message is damaged or too large");
		return false;
	}
	return true;
}

static bool grpc_is_plain(enum grpc_frame_result result)
{
	return result == GRPC_FRAME_MESSAGE || result == GRPC_FRAME_MORE;
}

static void refuse_frame(struct exchange_state *state, enum grpc_frame_result result)
{
	if (result == GRPC_FRAME_TOO_LARGE)
		grpc_reject(state, GRPC_RESOURCE_EXHAUSTED, "a message is larger than is allowed");
	else
		grpc_reject(state, GRPC_INTERNAL, "the bytes of the call are not gRPC messages");
}

/* A message that has arrived in part is kept like a body. */
static bool count_partial(struct exchange_state *state, size_t before)
{
	size_t now = state->messages.partial.size;
	if (now > before)
		return exchange_buffer(state, now - before);
	exchange_unbuffer(state, before - now);
	return true;
}

void grpc_receive(struct exchange_state *state, struct text part)
{
	struct exchange *exchange = &state->exchange;
	size_t most = message_limit(state);
	for (;;) {
		struct text message;
		bool is_compressed;
		size_t before = state->messages.partial.size;
		enum grpc_frame_result result =
		    grpc_frame_next(&state->messages, &part, most, &message, &is_compressed);
		if (!count_partial(state, before)) {
			grpc_reject(state, GRPC_UNAVAILABLE,
			            "there are too many large requests at once: try again later");
			return;
		}
		if (result == GRPC_FRAME_MORE)
			return;
		/* The handler may end the exchange, but it stays while it is being read. */
		struct buffer plain = { 0 };
		if (!grpc_is_plain(result)) {
			refuse_frame(state, result);
		} else if (!is_compressed) {
			if (exchange->events && exchange->events->body)
				exchange->events->body(exchange, message);
		} else if (decompress(state, message, &plain)) {
			message = (struct text){ plain.data, plain.size };
			if (exchange->events && exchange->events->body)
				exchange->events->body(exchange, message);
		}
		buffer_free(&plain);
		if (state->has_ended || state->is_gone)
			return;
	}
}

bool grpc_complete_stream(struct exchange_state *state)
{
	if (grpc_frame_is_between(&state->messages))
		return true;
	refuse_frame(state, GRPC_FRAME_INVALID);
	return false;
}

bool grpc_complete(struct exchange_state *state)
{
	struct exchange *exchange = &state->exchange;
	struct text bytes = exchange->body, message;
	bool is_compressed = false;
	enum grpc_frame_result result = grpc_frame_next(
	    &state->messages, &bytes, message_limit(state), &message, &is_compressed);
	if (!grpc_is_plain(result)) {
		refuse_frame(state, result);
		return false;
	}
	if (result == GRPC_FRAME_MORE || bytes.size > 0) {
		grpc_reject(state, GRPC_INTERNAL, "a unary call has exactly one message");
		return false;
	}
	exchange->body = message;
	if (!is_compressed)
		return true;
	struct buffer plain = { 0 };
	if (!decompress(state, message, &plain)) {
		buffer_free(&plain);
		return false;
	}
	state->exchange.loop->counters.buffered_bytes += plain.size;
	state->buffered += plain.size;
	array_reserve(plain.data, plain.capacity, plain.size + 1);
	plain.data[plain.size] = '\0';
	buffer_free(&state->body);
	state->body = plain;
	exchange->body = (struct text){ plain.data, plain.size };
	return true;
}

/* A status text may be any UTF-8; in the header, what is not plain ASCII is %XX. */
static void add_message(struct buffer *trailers, const char *text)
{
	buffer_bytes(trailers, "grpc-message", sizeof("grpc-message"));
	for (const char *at = text; *at; at++) {
		unsigned char byte = (unsigned char)*at;
		if (byte >= ' ' && byte <= '~' && byte != '%') {
			buffer_bytes(trailers, at, 1);
			continue;
		}
		char escape[4];
		snprintf(escape, sizeof(escape), "%%%02X", byte);
		buffer_bytes(trailers, escape, 3);
	}
	buffer_bytes(trailers, "", 1);
}

static const char *number_text(enum grpc_status status)
{
	static const char *const texts[] = { "0", "1",  "2",  "3",  "4",  "5",  "6",  "7", "8",
		                             "9", "10", "11", "12", "13", "14", "15", "16" };
	INVARIANT((size_t)status < sizeof(texts) / sizeof(texts[0]));
	return texts[status];
}

static void begin_answer(struct exchange_state *state, bool with_gzip)
{
	struct header encoding = { TEXT("grpc-encoding"), TEXT("gzip") };
	exchange_begin(&state->exchange, &(struct response){
					     .content_type = "application/grpc",
					     .headers = &encoding,
					     .header_count = with_gzip ? 1 : 0,
					 });
}

/* The end of the answer: trailers, or all of it where nothing was sent before. */
static void end_call(struct exchange_state *state, enum grpc_status status, const char *text)
{
	const char *number = number_text(status);
	if (state->has_begun) {
		buffer_bytes(&state->trailers, "grpc-status", sizeof("grpc-status"));
		buffer_bytes(&state->trailers, number, strlen(number) + 1);
		if (text && *text)
			add_message(&state->trailers, text);
		state->connection->protocol->end(state);
		return;
	}
	struct buffer message = { 0 };
	struct header headers[2] = { { TEXT("grpc-status"), text_of(number) } };
	size_t count = 1;
	if (text && *text) {
		add_message(&message, text);
		headers[count++] =
		    (struct header){ TEXT("grpc-message"),
			             text_of(message.data + sizeof("grpc-message")) };
	}
	state->has_begun = true;
	state->connection->protocol->begin(state,
	                                   &(struct response){
					       .status = 200,
					       .content_type = "application/grpc",
					       .headers = headers,
					       .header_count = count,
					   },
	                                   false);
	buffer_free(&message);
}

void grpc_reject(struct exchange_state *state, enum grpc_status status, const char *text)
{
	if (state->has_ended || state->is_gone)
		return;
	end_call(state, status, text);
	state->exchange.refused_status = grpc_http_status(status);
	exchange_disown(state);
}

void grpc_expire(struct exchange_state *state)
{
	grpc_reject(state, GRPC_DEADLINE_EXCEEDED, "the deadline of the call has passed");
}

/* Sends prefix and message; the latter compressed if that was agreed and is worth it. */
static void write_message(struct exchange_state *state, struct text message)
{
	struct loop *loop = state->exchange.loop;
	bool is_compressed = state->grpc_gzip && message.size >= loop->limits.compress_bytes;
	if (is_compressed) {
		buffer_clear(&loop->scratch);
		compress_gzip(&loop->compressor, message, &loop->scratch);
		message = (struct text){ loop->scratch.data, loop->scratch.size };
	}
	char prefix[GRPC_FRAME_PREFIX];
	grpc_frame_prefix(prefix, message.size, is_compressed);
	const struct connection_protocol *protocol = state->connection->protocol;
	protocol->write(state, (struct text){ prefix, sizeof(prefix) }, NULL);
	if (message.size > 0)
		protocol->write(state, message, NULL);
}

bool grpc_send(struct exchange *exchange, struct text message)
{
	struct exchange_state *state = exchange_state(exchange);
	INVARIANT(exchange->is_grpc);
	if (!exchange_takes(state, ANSWER_ANY))
		return true;
	if (!state->has_begun)
		begin_answer(state, state->grpc_gzip);
	if (!exchange_has_room(state, message.size))
		return false;
	write_message(state, message);
	return true;
}

void grpc_finish(struct exchange *exchange, enum grpc_status status, const char *text)
{
	struct exchange_state *state = exchange_state(exchange);
	INVARIANT(exchange->is_grpc);
	if (exchange_takes(state, ANSWER_ANY))
		end_call(state, status, text);
	exchange_finish(state);
}

void grpc_reply(struct exchange *exchange, struct text message)
{
	struct exchange_state *state = exchange_state(exchange);
	INVARIANT(exchange->is_grpc);
	if (!exchange_takes(state, ANSWER_START)) {
		exchange_finish(state);
		return;
	}
	if (!connection_may_hold(state->connection, message.size)) {
		exchange->loop->counters.answers_dropped++;
		end_call(state, GRPC_RESOURCE_EXHAUSTED,
		         "too many answers wait to be read: read them, then call again");
	} else {
		begin_answer(state, state->grpc_gzip &&
		                        message.size >= exchange->loop->limits.compress_bytes);
		write_message(state, message);
		end_call(state, GRPC_OK, NULL);
	}
	exchange_finish(state);
}

enum grpc_status grpc_status_of(int http_status)
{
	switch (http_status) {
	case 200:
		return GRPC_OK;
	case 400:
		return GRPC_INVALID_ARGUMENT;
	case 401:
		return GRPC_UNAUTHENTICATED;
	case 403:
		return GRPC_PERMISSION_DENIED;
	case 404:
		return GRPC_NOT_FOUND;
	case 408:
	case 504:
		return GRPC_DEADLINE_EXCEEDED;
	case 409:
	case 422:
		return GRPC_FAILED_PRECONDITION;
	case 413:
	case 429:
	case 431:
		return GRPC_RESOURCE_EXHAUSTED;
	case 501:
		return GRPC_UNIMPLEMENTED;
	case 503:
		return GRPC_UNAVAILABLE;
	default:
		return http_status >= 500 ? GRPC_INTERNAL : GRPC_UNKNOWN;
	}
}

int grpc_http_status(enum grpc_status status)
{
	static const int statuses[] = {
		[GRPC_OK] = 200,
		[GRPC_CANCELLED] = 499,
		[GRPC_UNKNOWN] = 500,
		[GRPC_INVALID_ARGUMENT] = 400,
		[GRPC_DEADLINE_EXCEEDED] = 504,
		[GRPC_NOT_FOUND] = 404,
		[GRPC_ALREADY_EXISTS] = 409,
		[GRPC_PERMISSION_DENIED] = 403,
		[GRPC_RESOURCE_EXHAUSTED] = 429,
		[GRPC_FAILED_PRECONDITION] = 409,
		[GRPC_ABORTED] = 409,
		[GRPC_OUT_OF_RANGE] = 400,
		[GRPC_UNIMPLEMENTED] = 404,
		[GRPC_INTERNAL] = 500,
		[GRPC_UNAVAILABLE] = 503,
		[GRPC_DATA_LOSS] = 500,
		[GRPC_UNAUTHENTICATED] = 401,
	};
	return (size_t)status < sizeof(statuses) / sizeof(statuses[0]) ? statuses[status] : 500;
}
