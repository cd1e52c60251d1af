/* http2_receive.c - requests out of the frames of HTTP/2 */
#include <stdlib.h>

#include "base/number_text.h"
#include "wire/http2_state.h"

enum { SECOND_MS = 1000 };

/* Resets the counters every second. */
static void count_second(struct http2 *http2)
{
	int64_t now_ms = loop_now_ms(http2->connection->loop);
	if (now_ms - http2->counted_ms < SECOND_MS)
		return;
	http2->counted_ms = now_ms;
	http2->control_frames = http2->resets = 0;
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	struct http2 *http2 = context;
	struct connection *connection = http2->connection;
	if (frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	struct exchange_state *state = exchange_take(connection);
	state->exchange.protocol = PROTOCOL_HTTP2;
	state->stream_id = frame->hd.stream_id;
	http2_link(http2, state);
	http2->reading++;
	nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, state);
	return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
                     void *context)
{
	(void)flags;
	(void)context;
	struct exchange_state *state =
	    nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	if (!state || state->is_announced || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0; /* trailers, which nobody asks for; nghttp2 bounds them */
	const struct limits *limits = &state->exchange.loop->limits;
	struct head *head = &state->head;
	/* What is too much is counted and not kept; the answer comes with the end of it. */
	if (head->bytes.size + name_size + value_size > limits->head_bytes ||
	    head->count >= limits->headers + 4) {
		state->is_oversized = true;
		return 0;
	}
	head_add(head, (struct text){ (const char *)name, name_size },
	         (struct text){ (const char *)value, value_size });
	return 0;
}

/* Refuses a request that was not shown to the handler. */
static void http2_receive_refuse(struct exchange_state *state, int status, const char *code,
                                 const char *text)
{
	state->exchange.is_grpc = false;
	exchange_reject(state, status, code, "%s", text);
}

static bool is_excessive(struct exchange_state *state)
{
	const struct limits *limits = &state->exchange.loop->limits;
	if (state->is_oversized) {
		http2_receive_refuse(state, 431, "headers_too_large",
		                     "the headers of the request are too large");
		return true;
	}
	if (head_pseudo(&state->head, ":path").size > limits->target_bytes) {
		http2_receive_refuse(state, 414, "target_too_long",
		                     "path and query of the request are too long");
		return true;
	}
	return false;
}

/* All headers are there. */
static void head_complete(struct exchange_state *state)
{
	struct exchange *exchange = &state->exchange;
	struct error error = { 0 };
	int status = 400;
	head_finish(&state->head, 3 * state->head.bytes.size + 2 * QUERY_PARAMETERS_MAX);
	exchange->headers = head_headers(&state->head);
	if (is_excessive(state))
		return;
	if (!exchange_set_up(state, &status, &error)) {
		http2_receive_refuse(state, status, "invalid", error.text);
		return;
	}
	struct text length = headers_get(&exchange->headers, "content-length");
	if (length.data)
		number_read(length, 0, INT64_MAX, &state->content_length);
	const char *too_much = exchange_is_too_much(state);
	if (too_much) {
		exchange_reject(state, 503, "unavailable", "%s", too_much);
		return;
	}
	exchange_announce(state);
	if (!state->has_ended && !state->is_streamed &&
	    state->content_length > (int64_t)exchange->body_limit)
		exchange_reject(state, 413, "too_large",
		                "the body is %lld bytes and may be %zu at most",
		                (long long)state->content_length, exchange->body_limit);
}

/* The request is complete. */
static void http2_complete_request(struct http2 *http2, struct exchange_state *state)
{
	if (state->is_complete)
		return;
	http2->reading--;
	exchange_complete(state);
}

/* Frames by which a client asks for nothing; too many of them are an attack. */
static bool is_control(const nghttp2_frame *frame)
{
	switch (frame->hd.type) {
	case NGHTTP2_PING:
	case NGHTTP2_SETTINGS:
	case NGHTTP2_PRIORITY:
		return true;
	case NGHTTP2_DATA:
		return frame->hd.length == 0 && !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM);
	default:
		return false;
	}
}

static int on_frame_recv(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	struct http2 *http2 = context;
	const struct limits *limits = &http2->connection->loop->limits;
	if (is_control(frame)) {
		count_second(http2);
		if (++http2->control_frames > limits->control_frames_per_second)
			http2_terminate(http2, NGHTTP2_ENHANCE_YOUR_CALM);
		return 0;
	}
	if (frame->hd.type == NGHTTP2_RST_STREAM) {
		count_second(http2);
		if (++http2->resets > limits->resets_per_second)
			http2_terminate(http2, NGHTTP2_ENHANCE_YOUR_CALM);
		return 0;
	}
	if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
		return 0;
	struct exchange_state *state =
	    nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	if (!state)
		return 0;
	if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		head_complete(state);
	if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
		http2_complete_request(http2, state);
	return 0;
}

static int on_data_chunk(nghttp2_session *session, uint8_t flags, int32_t stream_id,
                         const uint8_t *data, size_t size, void *context)
{
	(void)flags;
	(void)context;
	struct exchange_state *state = nghttp2_session_get_stream_user_data(session, stream_id);
	nghttp2_session_consume_connection(session, size);
	if (!state) {
		nghttp2_session_consume_stream(session, stream_id, size);
		return 0;
	}
	/* What nobody reads any more is not asked for either: the client has its answer, and
	 * some clients take a reset for a failure of it. */
	bool is_read = !state->has_ended && !state->is_gone;
	exchange_receive(state, (struct text){ (const char *)data, size });
	if (state->is_paused && !state->has_ended && !state->is_gone)
		state->unconsumed += size;
	else if (is_read)
		nghttp2_session_consume_stream(session, stream_id, size);
	return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t stream_id, uint32_t error_code,
                           void *context)
{
	(void)error_code;
	struct http2 *http2 = context;
	struct exchange_state *state = nghttp2_session_get_stream_user_data(session, stream_id);
	if (!state)
		return 0;
	nghttp2_session_set_stream_user_data(session, stream_id, NULL);
	bool is_reading = state->is_reading;
	if (is_reading && !state->is_complete)
		http2->reading--;
	exchange_detach(state);
	http2_unlink(http2, state);
	if (is_reading)
		exchange_drop_reading(state);
	if (http2->is_ending)
		connection_touch(http2->connection);
	return 0;
}

static ssize_t send_bytes(nghttp2_session *session, const uint8_t *data, size_t size, int flags,
                          void *context)
{
	(void)session;
	(void)flags;
	struct http2 *http2 = context;
	if (connection_is_full(http2->connection)) {
		http2->connection->is_blocked = true;
		return NGHTTP2_ERR_WOULDBLOCK;
	}
	output_bytes(&http2->connection->output, data, size);
	return (ssize_t)size;
}

void http2_set_callbacks(nghttp2_session_callbacks *callbacks)
{
	nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame_recv);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data_chunk);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
	nghttp2_session_callbacks_set_send_callback(callbacks, send_bytes);
	nghttp2_session_callbacks_set_send_data_callback(callbacks, http2_send_data);
}
