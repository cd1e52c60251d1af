/* http1_answer.c - answers as the bytes of HTTP/1.1 */
#include <stdio.h>

#include "wire/http1.h"
#include "wire/http1_state.h"

enum {
	/* A remaining body of at most this size is read and discarded after the answer, so that
	 * the connection can be reused. */
	DISCARD_BYTES_MAX = 64 << 10,
	/* Bodies from this size on are not copied where they need not be. */
	SHARE_BYTES = 4 << 10,
	HEAD_RESERVE = 512,
};

/* Where the answer goes now: out if it is its turn, else it is held back. */
static struct output *target(struct exchange_state *state)
{
	struct http1 *http1 = http1_of(state);
	return http1->first == state ? &http1->connection->output : &state->held;
}

void http1_continue(struct http1 *http1, struct exchange_state *state)
{
	state->expects_continue = false;
	if (http1->first == state)
		output_text(&http1->connection->output, TEXT("HTTP/1.1 100 Continue\r\n\r\n"));
}

/* True if the connection can be reused after an answer that is given now. */
static bool can_go_on(struct http1 *http1, const struct exchange_state *state)
{
	if (http1->connection->loop->is_stopping && http1->last == state)
		return false;
	if (state->is_complete || state != http1->current)
		return true;
	/* A client that waits for '100 Continue' may send the body or not. */
	if (state->expects_continue || state->content_length < 0)
		return false;
	return state->content_length - (int64_t)state->body_size <= DISCARD_BYTES_MAX;
}

static char *http1_answer_put(char *at, const char *data, size_t size)
{
	memcpy(at, data, size);
	return at + size;
}

static char *http1_answer_put_number(char *at, uint64_t value)
{
	char digits[20];
	size_t first = sizeof(digits);
	do {
		digits[--first] = (char)('0' + value % 10);
		value /= 10;
	} while (value > 0);
	return http1_answer_put(at, digits + first, sizeof(digits) - first);
}

/* A header of the caller's. A line end in it would begin another header. */
static void put_header(struct output *output, struct text name, struct text value)
{
	output_text(output, name);
	output_text(output, TEXT(": "));
	struct text rest = value;
	while (rest.size > 0) {
		size_t plain = 0;
		while (plain < rest.size && (unsigned char)rest.data[plain] >= ' ')
			plain++;
		output_bytes(output, rest.data, plain);
		if (plain < rest.size)
			output_text(output, TEXT(" "));
		rest = text_from(rest, plain < rest.size ? plain + 1 : plain);
	}
	output_text(output, TEXT("\r\n"));
}

void http1_put_headers(struct output *output, const struct header *headers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		put_header(output, headers[i].name, headers[i].value);
}

static char *put_status_line(char *at, int status)
{
	const char *reason = response_reason(status);
	at = http1_answer_put(at, "HTTP/1.1 ", 9);
	at = http1_answer_put_number(at, (uint64_t)status);
	*at++ = ' ';
	at = http1_answer_put(at, reason, strlen(reason));
	return http1_answer_put(at, "\r\n", 2);
}

/* `length` is -1 where it is not known or there is nothing of which it could be. */
static void put_head(struct output *output, struct exchange_state *state,
                     const struct response *response, int64_t length)
{
	char *start = output_reserve(output, HEAD_RESERVE), *at = start;
	at = put_status_line(at, response->status);
	struct text date = loop_date(state->exchange.loop);
	at = http1_answer_put(at, date.data, date.size);
	if (length >= 0) {
		at = http1_answer_put(at, "content-length: ", 16);
		at = http1_answer_put_number(at, (uint64_t)length);
		at = http1_answer_put(at, "\r\n", 2);
	}
	if (state->is_chunked)
		at = http1_answer_put(at, "transfer-encoding: chunked\r\n", 28);
	if (!state->keeps_alive)
		at = http1_answer_put(at, "connection: close\r\n", 19);
	else if (state->is_old)
		at = http1_answer_put(at, "connection: keep-alive\r\n", 24);
	at = http1_answer_put(at, "x-content-type-options: nosniff\r\n", 33);
	output_commit(output, (size_t)(at - start));
	if (response->content_type)
		put_header(output, TEXT("content-type"), text_of(response->content_type));
	http1_put_headers(output, state->exchange.common_headers,
	                  state->exchange.common_header_count);
	http1_put_headers(output, response->headers, response->header_count);
	output_text(output, TEXT("\r\n"));
}

static void put_body(struct output *output, struct text part, struct shared *shared)
{
	if (shared && part.size >= SHARE_BYTES) {
		output_share(output, shared, part);
		return;
	}
	output_text(output, part);
	shared_drop(shared);
}

void http1_begin(struct exchange_state *state, const struct response *response, bool more)
{
	struct http1 *http1 = http1_of(state);
	struct output *output = target(state);
	struct text body = response->shared ? shared_text(response->shared) : response->body;
	bool has_none =
	    response->status == 204 || response->status == 304 || response->status < 200;
	/* An answer may begin while the handler still reads the body. */
	bool reads_on = more && state->is_streamed && !state->is_complete;
	/* Nothing may follow a refused upgrade: it might not be HTTP. */
	if ((!reads_on && !can_go_on(http1, state)) ||
	    (http1->is_upgrading && http1->last == state))
		state->keeps_alive = false;
	state->is_chunked = more && !state->is_old && !has_none;
	if (more && !state->is_chunked && !has_none)
		state->keeps_alive = false;
	if (!state->keeps_alive && !reads_on)
		http1->is_done = true;
	put_head(output, state, response, more || has_none ? -1 : (int64_t)body.size);
	if (has_none || state->exchange.method == METHOD_HEAD) {
		shared_drop(response->shared);
		state->is_chunked = false;
	} else if (!more) {
		put_body(output, body, response->shared);
	}
	if (!more)
		http1_answered(http1, state);
	else
		connection_touch(http1->connection);
}

void http1_write(struct exchange_state *state, struct text part, struct shared *shared)
{
	struct output *output = target(state);
	if (state->exchange.method == METHOD_HEAD) {
		shared_drop(shared);
		return;
	}
	if (state->is_chunked) {
		char size[24];
		int length = snprintf(size, sizeof(size), "%zx\r\n", part.size);
		output_bytes(output, size, (size_t)length);
	}
	put_body(output, part, shared);
	if (state->is_chunked)
		output_text(output, TEXT("\r\n"));
	connection_touch(state->connection);
}

void http1_end(struct exchange_state *state)
{
	if (state->is_chunked)
		output_text(target(state), TEXT("0\r\n\r\n"));
	if (!can_go_on(http1_of(state), state))
		state->keeps_alive = false;
	http1_answered(http1_of(state), state);
}
