/* http2_answer.c - answers as the frames of HTTP/2 */
#include <stdio.h>
#include <stdlib.h>

#include "wire/http2_state.h"

enum {
	FIELDS_MAX = 72,
	/* Up to this, the parts of a body are copied into one buffer; it costs less than
	 * sending them separately. */
	REPLY_BYTES = 4 << 10,
	FRAME_HEAD = 9,
};

static nghttp2_nv field(struct text name, struct text value)
{
	/* nghttp2 copies what it is given, but its type does not say so. */
	return (nghttp2_nv){
		.name = (uint8_t *)name.data,
		.namelen = name.size,
		.value = (uint8_t *)value.data,
		.valuelen = value.size,
	};
}

/* True for what differs in each answer: in the table that both sides keep of fields it would only
 * take the place of others. */
static bool is_unique(struct text name)
{
	return text_is(name, "x-request-id") || text_is(name, "traceparent");
}

static nghttp2_nv common_field(const struct header *header)
{
	nghttp2_nv made = field(header->name, header->value);
	if (is_unique(header->name))
		made.flags = NGHTTP2_NV_FLAG_NO_INDEX;
	return made;
}

/* Trailers are kept as texts with a NUL behind each: name, value, name, value. */
static void submit_trailers(nghttp2_session *session, struct exchange_state *state)
{
	nghttp2_nv fields[4];
	size_t count = 0;
	const char *at = state->trailers.data, *end = at + state->trailers.size;
	while (at < end && count < sizeof(fields) / sizeof(fields[0])) {
		struct text name = text_of(at), value = text_of(at + name.size + 1);
		fields[count++] = field(name, value);
		at += name.size + value.size + 2;
	}
	nghttp2_submit_trailer(session, state->stream_id, fields, count);
}

void http2_stop_waiting(struct http2 *http2, struct exchange_state *state)
{
	http2->waiting -= state->is_waiting;
	state->is_waiting = false;
}

/* The client takes something of the answer. */
static void note_taken(struct http2 *http2, struct exchange_state *state)
{
	state->taken_ms = loop_now_ms(http2->connection->loop);
	if (state->reply.size == 0 && state->held.bytes == 0)
		http2_stop_waiting(http2, state);
}

static void note_waiting(struct http2 *http2, struct exchange_state *state)
{
	const struct loop *loop = http2->connection->loop;
	if (state->is_waiting)
		return;
	state->is_waiting = true;
	state->taken_ms = loop_now_ms(loop);
	if (http2->waiting++ == 0)
		http2->sweep_ms = state->taken_ms + loop->limits.write_ms;
}

void http2_sweep(struct http2 *http2)
{
	struct loop *loop = http2->connection->loop;
	int64_t now_ms = loop_now_ms(loop), next_ms = INT64_MAX;
	bool is_shut = nghttp2_session_get_remote_window_size(http2->session) <= 0;
	for (struct exchange_state *state = http2->first; state; state = state->next) {
		if (!state->is_waiting)
			continue;
		int64_t due_ms = state->taken_ms + loop->limits.write_ms;
		/* Where the windows are open it is the others' turn, or the network is slow. */
		if (due_ms <= now_ms && (is_shut || nghttp2_session_get_stream_remote_window_size(
							http2->session, state->stream_id) <= 0)) {
			loop->counters.timeouts++;
			nghttp2_submit_rst_stream(http2->session, NGHTTP2_FLAG_NONE,
			                          state->stream_id, NGHTTP2_ENHANCE_YOUR_CALM);
			due_ms = now_ms + loop->limits.write_ms;
		}
		due_ms = due_ms > now_ms ? due_ms : now_ms + loop->limits.write_ms;
		next_ms = due_ms < next_ms ? due_ms : next_ms;
	}
	http2->sweep_ms = next_ms;
	connection_touch(http2->connection);
}

static ssize_t read_body(nghttp2_session *session, int32_t stream_id, uint8_t *to, size_t room,
                         uint32_t *flags, nghttp2_data_source *source, void *context)
{
	(void)stream_id;
	struct exchange_state *state = source->ptr;
	size_t size = state->reply.size - state->reply_sent;
	if (size > 0) {
		size = size < room ? size : room;
		memcpy(to, state->reply.data + state->reply_sent, size);
		state->reply_sent += size;
		if (state->reply_sent == state->reply.size) {
			buffer_clear(&state->reply);
			state->reply_sent = 0;
		}
		account_take(state->held.account, size);
		note_taken(context, state);
	} else if (state->held.bytes > 0) {
		size = state->held.bytes < room ? state->held.bytes : room;
		*flags |= NGHTTP2_DATA_FLAG_NO_COPY;
	} else if (!state->is_written) {
		return NGHTTP2_ERR_DEFERRED;
	}
	bool is_held = (*flags & NGHTTP2_DATA_FLAG_NO_COPY) != 0;
	size_t left = state->reply.size - state->reply_sent + state->held.bytes;
	left -= is_held ? size : 0;
	if (left > 0 || !state->is_written)
		return (ssize_t)size;
	*flags |= NGHTTP2_DATA_FLAG_EOF;
	if (state->trailers.size > 0) {
		*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
		submit_trailers(session, state);
	}
	return (ssize_t)size;
}

int http2_send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head,
                    size_t length, nghttp2_data_source *source, void *context)
{
	(void)session;
	struct http2 *http2 = context;
	struct exchange_state *state = source->ptr;
	struct connection *connection = http2->connection;
	if (connection_is_full(connection)) {
		connection->is_blocked = true;
		return NGHTTP2_ERR_WOULDBLOCK;
	}
	INVARIANT(frame->data.padlen == 0);
	output_bytes(&connection->output, head, FRAME_HEAD);
	output_move(&connection->output, &state->held, length);
	note_taken(http2, state);
	return 0;
}

static void http2_answer_submit(struct exchange_state *state, const struct response *response,
                                int64_t length, bool has_body)
{
	struct http2 *http2 = http2_of(state);
	nghttp2_nv fields[FIELDS_MAX];
	size_t count = 0;
	char status[16], size[24];
	snprintf(status, sizeof(status), "%d", response->status);
	fields[count++] = field(TEXT(":status"), text_of(status));
	/* Without its name and its line end. */
	struct text date = loop_date(state->exchange.loop);
	date = (struct text){ date.data + 6, date.size - 8 };
	if (!state->exchange.is_grpc) {
		fields[count++] = field(TEXT("date"), date);
		fields[count++] = field(TEXT("x-content-type-options"), TEXT("nosniff"));
	}
	if (response->content_type)
		fields[count++] = field(TEXT("content-type"), text_of(response->content_type));
	if (length >= 0) {
		snprintf(size, sizeof(size), "%lld", (long long)length);
		fields[count++] = field(TEXT("content-length"), text_of(size));
	}
	const struct exchange *exchange = &state->exchange;
	for (size_t i = 0; i < exchange->common_header_count && count < FIELDS_MAX; i++)
		fields[count++] = common_field(&exchange->common_headers[i]);
	for (size_t i = 0; i < response->header_count && count < FIELDS_MAX; i++)
		fields[count++] = field(response->headers[i].name, response->headers[i].value);
	nghttp2_data_provider provider = { .source.ptr = state, .read_callback = read_body };
	nghttp2_submit_response(http2->session, state->stream_id, fields, count,
	                        has_body ? &provider : NULL);
	connection_touch(http2->connection);
}

static void http2_answer_add(struct exchange_state *state, struct text part, struct shared *shared)
{
	if (state->held.count == 0 && state->reply.size + part.size <= REPLY_BYTES) {
		buffer_bytes(&state->reply, part.data, part.size);
		account_add(state->held.account, part.size);
		shared_drop(shared);
	} else if (shared) {
		output_share(&state->held, shared, part);
	} else {
		output_text(&state->held, part);
	}
	if (part.size > 0)
		note_waiting(http2_of(state), state);
}

void http2_begin(struct exchange_state *state, const struct response *response, bool more)
{
	struct text body = response->shared ? shared_text(response->shared) : response->body;
	bool has_none = response->status == 204 || response->status == 304;
	bool is_grpc = state->exchange.is_grpc;
	bool sends_body =
	    !has_none && state->exchange.method != METHOD_HEAD && (more || body.size > 0);
	if (sends_body && !more)
		http2_answer_add(state, body, response->shared);
	else
		shared_drop(response->shared);
	state->is_written = !more;
	http2_answer_submit(state, response, more || has_none || is_grpc ? -1 : (int64_t)body.size,
	                    sends_body);
}

void http2_write(struct exchange_state *state, struct text part, struct shared *shared)
{
	if (state->exchange.method == METHOD_HEAD) {
		shared_drop(shared);
		return;
	}
	http2_answer_add(state, part, shared);
	nghttp2_session_resume_data(http2_of(state)->session, state->stream_id);
	connection_touch(state->connection);
}

void http2_end(struct exchange_state *state)
{
	state->is_written = true;
	nghttp2_session_resume_data(http2_of(state)->session, state->stream_id);
	connection_touch(state->connection);
}

void http2_abort(struct exchange_state *state)
{
	nghttp2_submit_rst_stream(http2_of(state)->session, NGHTTP2_FLAG_NONE, state->stream_id,
	                          NGHTTP2_INTERNAL_ERROR);
	connection_touch(state->connection);
}

void http2_discard(struct exchange_state *state)
{
	nghttp2_submit_rst_stream(http2_of(state)->session, NGHTTP2_FLAG_NONE, state->stream_id,
	                          NGHTTP2_NO_ERROR);
	connection_touch(state->connection);
}
