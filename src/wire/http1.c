/* http1.c - HTTP/1.1 and 1.0 on a connection */
#include "wire/http1.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/number.h"
#include "wire/http1_state.h"

enum {
	KEPT_PENDING_BYTES = 4 << 10,
	DISCARD_BYTES_MAX = 64 << 10,
};

static const struct connection_protocol http1_protocol;

void http1_open(struct connection *connection)
{
	struct http1 *http1 = NEW(struct http1);
	http1->connection = connection;
	llhttp_init(&http1->parser, HTTP_REQUEST, &http1_parser_settings);
	http1->parser.data = http1;
	connection_speak(connection, &http1_protocol, http1);
}

static void free_http1(struct http1 *http1)
{
	buffer_free(&http1->pending);
	free(http1);
}

void http1_leave(struct exchange_state *state, struct buffer *pending)
{
	struct http1 *http1 = http1_of(state);
	INVARIANT(http1->first == state && http1->last == state && !http1->current);
	buffer_bytes(pending, http1->pending.data, http1->pending.size);
	exchange_drop_linked(state);
	free_http1(http1);
}

void http1_link(struct http1 *http1, struct exchange_state *state)
{
	state->is_linked = true;
	state->previous = http1->last;
	state->next = NULL;
	if (http1->last)
		http1->last->next = state;
	else
		http1->first = state;
	http1->last = state;
	http1->owed++;
}

static void unlink_exchange(struct http1 *http1, struct exchange_state *state)
{
	if (state->previous)
		state->previous->next = state->next;
	else
		http1->first = state->next;
	if (state->next)
		state->next->previous = state->previous;
	else
		http1->last = state->previous;
	http1->owed--;
	exchange_drop_linked(state);
}

void http1_answered(struct http1 *http1, struct exchange_state *state)
{
	struct connection *connection = http1->connection;
	state->is_written = true;
	/* Nobody is left to let the rest of its body in. */
	state->is_paused = false;
	connection_touch(connection);
	while (http1->first && http1->first->is_written) {
		struct exchange_state *first = http1->first;
		bool goes_on = first->keeps_alive;
		unlink_exchange(http1, first);
		if (!goes_on || (http1->is_done && !http1->first)) {
			http1->is_done = true;
			connection_finish(connection);
			for (state = http1->first; state; state = state->next)
				exchange_lose(state);
			return;
		}
		/* What the next in turn has held back goes out now. */
		if (http1->first) {
			output_move(&connection->output, &http1->first->held, SIZE_MAX);
			connection->is_blocked |= http1->first->wants_writable;
		}
	}
}

/* Parses what was put aside, as far as that is possible now. */
static void resume(struct connection *connection)
{
	struct http1 *http1 = connection->speech;
	while (http1->is_paused && !http1->is_upgrading && !http1->is_done &&
	       !http1_is_blocked(http1)) {
		struct buffer input = http1->pending;
		http1->pending = (struct buffer){ 0 };
		http1->is_paused = false;
		if (input.size > 0)
			http1_parse(http1, (struct text){ input.data, input.size });
		buffer_free(&input);
		if (connection->protocol != &http1_protocol)
			return;
	}
	/* What blocks it may be sent before anyone looks again. */
	connection->is_blocked |= http1->is_paused && !http1->is_done;
}

static void http1_receive(struct connection *connection, struct text bytes)
{
	struct http1 *http1 = connection->speech;
	if (http1->is_done && !http1->current) {
		connection->discarded += bytes.size;
		return;
	}
	if (http1->is_paused || http1->is_upgrading)
		buffer_bytes(&http1->pending, bytes.data, bytes.size);
	else
		http1_parse(http1, bytes);
}

static bool http1_wants_input(const struct connection *connection)
{
	const struct http1 *http1 = connection->speech;
	/* To notice when the client goes, although it may not ask for more. */
	if (http1->is_done && !http1->current)
		return connection->discarded < DISCARD_BYTES_MAX;
	return !http1->is_paused &&
	       (!http1->is_upgrading || http1->pending.size < KEPT_PENDING_BYTES) &&
	       !(http1->current && http1->current->is_paused);
}

/* Gives up the request that is being read, of which no more will come. */
static void forget_current(struct http1 *http1)
{
	struct exchange_state *state = http1->current;
	http1->current = NULL;
	exchange_detach(state);
	if (state->is_linked)
		unlink_exchange(http1, state);
	exchange_drop_reading(state);
}

static void hangup(struct connection *connection)
{
	struct http1 *http1 = connection->speech;
	http1->is_done = true;
	if (http1->current)
		forget_current(http1);
	/* Whole answers are still sent, as the client may have closed only its side. */
	bool is_lost = false;
	for (struct exchange_state *state = http1->first; state; state = state->next)
		is_lost = is_lost || (state->has_begun && !state->has_ended) ||
		          state->exchange.hangup_is_gone || state->exchange.is_websocket;
	if (is_lost)
		connection_close(connection);
	else if (!http1->first) /* answers that were given may not be sent yet */
		connection_finish(connection);
}

static int64_t http1_deadline_ms(const struct connection *connection)
{
	const struct http1 *http1 = connection->speech;
	const struct limits *limits = &connection->loop->limits;
	const struct exchange_state *current = http1->current;
	if (current && !current->is_linked)
		return current->began_ms + limits->head_ms;
	if (current && current->is_paused)
		return INT64_MAX;
	if (current)
		return min64(current->exchange.received_ms + limits->body_ms,
		             max64(current->last_body_ms, current->exchange.received_ms) +
		                 limits->stall_ms);
	if (http1->owed > 0 || http1->pending.size > 0)
		return INT64_MAX;
	return max64(connection->received_ms, connection->progress_ms) + limits->idle_ms;
}

static void http1_expire(struct connection *connection)
{
	struct http1 *http1 = connection->speech;
	if (!http1->current)
		connection_close(connection);
	else if (http1->current->is_linked)
		http1_fail(http1, 408, "timeout", "the body of the request took too long");
	else
		http1_fail(http1, 408, "timeout", "the headers of the request took too long");
}

static void http1_stop(struct connection *connection)
{
	struct http1 *http1 = connection->speech;
	if (http1->owed == 0 && !http1->current && connection_waiting(connection) == 0)
		connection_close(connection);
	else if (http1->owed == 0 && !http1->current)
		connection_finish(connection);
}

static size_t waiting(const struct exchange_state *state)
{
	return connection_waiting(state->connection) + state->held.bytes;
}

static void drained(struct connection *connection)
{
	struct http1 *http1 = connection->speech;
	size_t few = connection->loop->limits.output_bytes / 2;
	struct exchange_state *state = http1->first;
	while (state && !connection->is_closing && !connection->is_blocked) {
		bool is_waiting = state->wants_writable && waiting(state) < few;
		/* What the handler does then may end this exchange and others. */
		if (is_waiting)
			exchange_tell_writable(state);
		state = is_waiting ? http1->first : state->next;
	}
	resume(connection);
}

static void lost(struct connection *connection)
{
	struct http1 *http1 = connection->speech;
	if (http1->current)
		forget_current(http1);
	while (http1->first) {
		struct exchange_state *state = http1->first;
		exchange_detach(state);
		unlink_exchange(http1, state);
	}
	free_http1(http1);
}

static void abort_answer(struct exchange_state *state)
{
	connection_close(state->connection);
}

static void resume_body(struct exchange_state *state)
{
	connection_touch(state->connection);
}

static const struct connection_protocol http1_protocol = {
	.receive = http1_receive,
	.hangup = hangup,
	.produce = resume,
	.drained = drained,
	.wants_input = http1_wants_input,
	.deadline_ms = http1_deadline_ms,
	.expire = http1_expire,
	.stop = http1_stop,
	.lost = lost,
	.begin = http1_begin,
	.write = http1_write,
	.end = http1_end,
	.abort = abort_answer,
	.waiting = waiting,
	.resume_body = resume_body,
};
