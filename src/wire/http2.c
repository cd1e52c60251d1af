/* http2.c - HTTP/2 on a connection */
#include "wire/http2.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/number.h"
#include "wire/http2_state.h"

enum {
	STREAM_WINDOW_BYTES = 256 << 10,
	CONNECTION_WINDOW_BYTES = 1 << 20,
	CONTINUATIONS_MAX = 8,
	WAITING_ACKS_MAX = 1000,
	SETTINGS_MAX = 32,
};

static const struct connection_protocol http2_protocol;

static struct http2_shared *shared_of(struct loop *loop)
{
	if (loop->http2)
		return loop->http2;
	struct http2_shared *shared = NEW(struct http2_shared);
	if (nghttp2_session_callbacks_new(&shared->callbacks) != 0 ||
	    nghttp2_option_new(&shared->options) != 0)
		panic("out of memory for HTTP/2");
	http2_set_callbacks(shared->callbacks);
	nghttp2_option_set_no_auto_window_update(shared->options, 1);
	nghttp2_option_set_no_closed_streams(shared->options, 1);
	nghttp2_option_set_max_continuations(shared->options, CONTINUATIONS_MAX);
	nghttp2_option_set_max_outbound_ack(shared->options, WAITING_ACKS_MAX);
	nghttp2_option_set_max_settings(shared->options, SETTINGS_MAX);
	uint64_t resets = loop->limits.resets_per_second;
	nghttp2_option_set_stream_reset_rate_limit(shared->options, resets * 2, resets);
	loop->http2 = shared;
	return shared;
}

void http2_shared_free(struct http2_shared *shared)
{
	if (!shared)
		return;
	nghttp2_session_callbacks_del(shared->callbacks);
	nghttp2_option_del(shared->options);
	free(shared);
}

void http2_open(struct connection *connection)
{
	struct loop *loop = connection->loop;
	struct http2_shared *shared = shared_of(loop);
	struct http2 *http2 = NEW(struct http2);
	http2->connection = connection;
	http2->idle_ms = http2->counted_ms = http2->pinged_ms = loop_now_ms(loop);
	if (nghttp2_session_server_new2(&http2->session, shared->callbacks, http2,
	                                shared->options) != 0)
		panic("out of memory for HTTP/2");
	nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, (uint32_t)loop->limits.streams },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW_BYTES },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t)loop->limits.head_bytes },
	};
	nghttp2_submit_settings(http2->session, NGHTTP2_FLAG_NONE, settings,
	                        sizeof(settings) / sizeof(settings[0]));
	nghttp2_session_set_local_window_size(http2->session, NGHTTP2_FLAG_NONE, 0,
	                                      CONNECTION_WINDOW_BYTES);
	connection_speak(connection, &http2_protocol, http2);
}

void http2_link(struct http2 *http2, struct exchange_state *state)
{
	state->is_linked = true;
	state->previous = http2->last;
	state->next = NULL;
	if (http2->last)
		http2->last->next = state;
	else
		http2->first = state;
	http2->last = state;
	http2->open++;
}

void http2_unlink(struct http2 *http2, struct exchange_state *state)
{
	if (state->previous)
		state->previous->next = state->next;
	else
		http2->first = state->next;
	if (state->next)
		state->next->previous = state->previous;
	else
		http2->last = state->previous;
	http2->open--;
	if (http2->open == 0)
		http2->idle_ms = loop_now_ms(http2->connection->loop);
	http2_stop_waiting(http2, state);
	exchange_drop_linked(state);
}

void http2_terminate(struct http2 *http2, uint32_t code)
{
	if (code != NGHTTP2_NO_ERROR)
		http2->connection->loop->counters.protocol_errors++;
	http2->is_ending = true;
	nghttp2_session_terminate_session(http2->session, code);
	connection_touch(http2->connection);
}

static void wire_http2_receive(struct connection *connection, struct text bytes)
{
	struct http2 *http2 = connection->speech;
	ssize_t taken =
	    nghttp2_session_mem_recv(http2->session, (const uint8_t *)bytes.data, bytes.size);
	if (taken < 0) {
		connection->loop->counters.protocol_errors++;
		connection_finish(connection);
	}
	connection_touch(connection);
}

static void produce(struct connection *connection)
{
	struct http2 *http2 = connection->speech;
	if (nghttp2_session_send(http2->session) != 0) {
		connection_close(connection);
		return;
	}
	if (!nghttp2_session_want_read(http2->session) &&
	    !nghttp2_session_want_write(http2->session))
		connection_finish(connection);
}

static bool http2_wants_input(const struct connection *connection)
{
	const struct http2 *http2 = connection->speech;
	return nghttp2_session_want_read(http2->session) != 0;
}

/* When the first of the requests that are still arriving has taken too long; which one
 * it is goes to `late`, if that is not NULL and there is one. */
static int64_t reading_deadline_ms(const struct http2 *http2, const struct limits *limits,
                                   struct exchange_state **late)
{
	int64_t due_ms = INT64_MAX;
	size_t left = http2->reading;
	for (struct exchange_state *state = http2->first; state && left > 0; state = state->next) {
		if (!state->is_reading || state->is_complete)
			continue;
		left--;
		int64_t its_ms = state->began_ms + limits->head_ms;
		if (state->has_ended)
			its_ms = state->last_body_ms + limits->linger_ms;
		else if (state->is_streamed)
			its_ms = INT64_MAX; /* open for as long as it is wanted */
		else if (state->is_announced)
			its_ms = min64(state->exchange.received_ms + limits->body_ms,
			               max64(state->last_body_ms, state->exchange.received_ms) +
			                   limits->stall_ms);
		if (its_ms < due_ms && late)
			*late = state;
		due_ms = min64(due_ms, its_ms);
	}
	return due_ms;
}

/* A connection with open streams on which nothing has come for a while is asked whether
 * it still lives. */
static int64_t silence_deadline_ms(const struct connection *connection, const struct http2 *http2)
{
	const struct limits *limits = &connection->loop->limits;
	if (http2->open == 0)
		return http2->idle_ms + limits->idle_ms;
	return max64(connection->received_ms, http2->pinged_ms) + limits->ping_ms;
}

static int64_t http2_deadline_ms(const struct connection *connection)
{
	const struct http2 *http2 = connection->speech;
	return min64(http2->waiting > 0 ? http2->sweep_ms : INT64_MAX,
	             min64(reading_deadline_ms(http2, &connection->loop->limits, NULL),
	                   silence_deadline_ms(connection, http2)));
}

static void http2_expire(struct connection *connection)
{
	struct http2 *http2 = connection->speech;
	int64_t now_ms = loop_now_ms(connection->loop);
	struct exchange_state *late = NULL;
	if (http2->waiting > 0 && http2->sweep_ms <= now_ms) {
		http2_sweep(http2);
		return;
	}
	int64_t due_ms = reading_deadline_ms(http2, &connection->loop->limits, &late);
	if (late && due_ms <= now_ms) {
		if (late->has_ended)
			http2_discard(late);
		else if (!late->is_announced)
			http2_terminate(http2, NGHTTP2_ENHANCE_YOUR_CALM);
		else if (!late->is_owned)
			exchange_reject(late, 408, "timeout",
			                "the body of the request took too long");
		else
			http2_abort(late);
		return;
	}
	if (http2->open == 0) {
		http2_terminate(http2, NGHTTP2_NO_ERROR);
	} else if (http2->pinged_ms > connection->received_ms) {
		connection_close(connection);
	} else {
		http2->pinged_ms = now_ms;
		nghttp2_submit_ping(http2->session, NGHTTP2_FLAG_NONE, NULL);
		connection_touch(connection);
	}
}

static void http2_stop(struct connection *connection)
{
	struct http2 *http2 = connection->speech;
	if (http2->open == 0) {
		http2_terminate(http2, NGHTTP2_NO_ERROR);
		return;
	}
	http2->is_ending = true;
	nghttp2_submit_goaway(http2->session, NGHTTP2_FLAG_NONE,
	                      nghttp2_session_get_last_proc_stream_id(http2->session),
	                      NGHTTP2_NO_ERROR, NULL, 0);
	connection_touch(connection);
}

static size_t waiting(const struct exchange_state *state)
{
	return connection_waiting(state->connection) + state->held.bytes + state->reply.size -
	       state->reply_sent;
}

static void drained(struct connection *connection)
{
	struct http2 *http2 = connection->speech;
	size_t few = connection->loop->limits.output_bytes / 2;
	struct exchange_state *state = http2->first;
	while (state && !connection->is_closing) {
		struct exchange_state *next = state->next;
		/* Streams are closed by nghttp2 alone, so the next one stays. */
		if (state->wants_writable && waiting(state) < few)
			exchange_tell_writable(state);
		/* A stream whose client has not opened its window is looked at again when
		 * something has happened. */
		connection->is_blocked |= state->wants_writable;
		state = next;
	}
	if (nghttp2_session_want_write(http2->session))
		connection_touch(connection);
}

static void lost(struct connection *connection)
{
	struct http2 *http2 = connection->speech;
	while (http2->first) {
		struct exchange_state *state = http2->first;
		bool is_reading = state->is_reading;
		exchange_detach(state);
		http2_unlink(http2, state);
		if (is_reading)
			exchange_drop_reading(state);
	}
	nghttp2_session_del(http2->session);
	free(http2);
}

static void resume_body(struct exchange_state *state)
{
	struct http2 *http2 = http2_of(state);
	nghttp2_session_consume_stream(http2->session, state->stream_id, state->unconsumed);
	state->unconsumed = 0;
	connection_touch(state->connection);
}

static const struct connection_protocol http2_protocol = {
	.receive = wire_http2_receive,
	.hangup = connection_close,
	.produce = produce,
	.drained = drained,
	.wants_input = http2_wants_input,
	.deadline_ms = http2_deadline_ms,
	.expire = http2_expire,
	.stop = http2_stop,
	.lost = lost,
	.begin = http2_begin,
	.write = http2_write,
	.end = http2_end,
	.abort = http2_abort,
	.waiting = waiting,
	.resume_body = resume_body,
};
