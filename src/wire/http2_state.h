/* http2_state.h - what HTTP/2 keeps for a connection */
#ifndef WIRE_HTTP2_STATE_H
#define WIRE_HTTP2_STATE_H

#include <nghttp2/nghttp2.h>

#include "wire/connection.h"

struct http2_shared {
	nghttp2_session_callbacks *callbacks;
	nghttp2_option *options;
};

/* `first` to `last` are the exchanges whose streams are open, `reading` of them not yet
 * complete. */
struct http2 {
	nghttp2_session *session;
	struct connection *connection;
	struct exchange_state *first, *last;
	size_t open, reading;
	size_t waiting;   /* streams with something that their window does not let out */
	int64_t sweep_ms; /* when those are looked at next; only where there are any */
	size_t control_frames, resets; /* since `counted_ms` */
	int64_t counted_ms;
	int64_t idle_ms;   /* since when there is no stream */
	int64_t pinged_ms; /* when a sign of life was last asked for */
	bool is_ending;    /* GOAWAY was sent */
};

/* http2_receive.c */
void http2_set_callbacks(nghttp2_session_callbacks *callbacks);
/* http2.c: a stream has begun; it is closed. */
void http2_link(struct http2 *http2, struct exchange_state *state);
void http2_unlink(struct http2 *http2, struct exchange_state *state);
/* Ends the connection, saying why. */
void http2_terminate(struct http2 *http2, uint32_t code);

/* http2_answer.c */
void http2_begin(struct exchange_state *state, const struct response *response, bool more);
void http2_write(struct exchange_state *state, struct text part, struct shared *shared);
void http2_end(struct exchange_state *state);
void http2_abort(struct exchange_state *state);
/* Has the client send no more of a request that is answered. */
void http2_discard(struct exchange_state *state);
/* Resets the streams whose clients take nothing, and says when to look again. */
void http2_sweep(struct http2 *http2);
/* The stream waits for its window no longer. */
void http2_stop_waiting(struct http2 *http2, struct exchange_state *state);
/* nghttp2's callback for bodies that are not copied into its buffers. */
int http2_send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head,
                    size_t length, nghttp2_data_source *source, void *context);

static inline struct http2 *http2_of(const struct exchange_state *state)
{
	return state->connection->speech;
}

#endif
