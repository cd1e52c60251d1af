/* exchange_state.h - what wire itself keeps of an exchange */
#ifndef WIRE_EXCHANGE_STATE_H
#define WIRE_EXCHANGE_STATE_H

#include "wire/exchange.h"
#include "wire/grpc.h"
#include "wire/net/network.h"
#include "wire/net/output.h"
#include "wire/text/grpc_frame.h"
#include "wire/text/head.h"

struct connection;

/* An exchange is held by the protocol while it reads it (`is_reading`), by the protocol
 * while it owes the client an answer (`is_linked`), and by the handler (`is_owned`). When
 * nobody holds it any more it goes back to the loop's spare ones.
 * `connection` is NULL once the protocol has let go of an exchange that may still be the
 * handler's; then `is_gone`, and nothing is held for the client any more. */
struct exchange_state {
	struct exchange exchange; /* first: one pointer is the other */
	struct connection *connection;
	struct exchange_state *next, *previous; /* of the connection, in order; or spare */

	/* What has arrived. */
	struct head head;
	struct buffer body;
	size_t body_size, buffered; /* arrived in all; counted in the loop's buffered_bytes */
	struct query_parameter *parameters; /* made for the first query */
	char client[IP_TEXT_MAX];           /* where a proxy says whom it speaks for */
	int64_t content_length;             /* -1: not said */
	int64_t began_ms, last_body_ms;
	int64_t taken_ms; /* HTTP/2: when the client last took something of the answer */

	/* What is to be sent, where it cannot go to the connection at once. */
	struct output held;
	struct buffer reply; /* goes before `held` */
	size_t reply_sent;
	struct buffer trailers; /* of gRPC: name NUL value NUL ... */

	struct timer timer; /* of gRPC deadlines */
	struct grpc_frame_reader messages;
	int32_t stream_id;

	bool is_reading, is_linked, is_owned;
	bool is_announced;   /* the handler has seen it */
	bool is_complete;    /* all of the request has arrived */
	bool is_streamed;    /* body in parts */
	bool is_paused;      /* body parts are */
	bool is_grpc_stream; /* parts are messages */
	bool has_begun;      /* status and headers of the answer are given */
	bool has_ended;      /* all of the answer is given */
	bool is_written;     /* all of the answer is with the protocol */
	bool is_old;         /* HTTP/1.0 */
	bool is_oversized;   /* its headers are */
	bool is_gone;
	bool wants_writable; /* a write was not taken */
	bool is_waiting;     /* HTTP/2: something of the answer waits for the client's window */
	bool is_chunked;     /* the answer, in HTTP/1.1 */
	bool keeps_alive;    /* the connection stays open after it */
	bool expects_continue;
	bool grpc_gzip;    /* answers may be compressed */
	size_t unconsumed; /* HTTP/2: bytes of a paused body not yet given back to its window */
};

static inline struct exchange_state *exchange_state(struct exchange *exchange)
{
	return (struct exchange_state *)exchange;
}

/* A new one, being read by the connection. */
struct exchange_state *exchange_take(struct connection *connection);
/* Gives up one of the holds; the exchange may be gone after it. */
void exchange_drop_reading(struct exchange_state *state);
void exchange_drop_linked(struct exchange_state *state);

/* Fills in what was asked from the head, which is complete. False, with the HTTP status
 * for it, if it makes no sense. */
bool exchange_set_up(struct exchange_state *state, int *status, struct error *error);
/* Whether no more can be taken on now, with the reason for the client. */
const char *exchange_is_too_much(const struct exchange_state *state);
/* Tells the handler of the head. */
void exchange_announce(struct exchange_state *state);
/* More of the body; refuses the exchange if it is too much. */
void exchange_receive(struct exchange_state *state, struct text part);
/* The request is complete: tells the handler. Gives up the hold of reading. */
void exchange_complete(struct exchange_state *state);
/* Nobody will read an answer: tells the handler, once. */
void exchange_lose(struct exchange_state *state);
/* The protocol lets go of it for good: exchange_lose, and frees what was held for the client. */
void exchange_detach(struct exchange_state *state);
/* More of the request is kept, or less of it. False: too much is kept for all requests. */
bool exchange_buffer(struct exchange_state *state, size_t bytes);
void exchange_unbuffer(struct exchange_state *state, size_t bytes);
/* Refuses a request on wire's own account. The handler did not ask for that, so it is told
 * by `gone`; if the exchange is the handler's, it still has to end it. Does nothing to an
 * exchange that has ended or is gone. */
void exchange_reject(struct exchange_state *state, int status, const char *code, const char *format,
                     ...) __attribute__((format(printf, 4, 5)));

/* Everything that a handler sends passes through exchange_takes. False: the client is gone
 * or has its answer already, and the caller drops what it was about to send. What was begun
 * is only compared where somebody reads the answer, because wire itself may have ended it
 * (a deadline, a refusal) before the handler could know. */
enum answer_part { ANSWER_START, ANSWER_NEXT, ANSWER_ANY };
bool exchange_takes(const struct exchange_state *state, enum answer_part part);
/* Room again: tells the handler if it waits for it. */
void exchange_tell_writable(struct exchange_state *state);
/* True if another part of this size may be written; if not, the handler is told when it may. */
bool exchange_has_room(struct exchange_state *state, size_t size);
/* The answer is complete: gives up the handler's hold. */
void exchange_finish(struct exchange_state *state);

/* grpc.c: looks at the headers of a call; takes the parts of a streamed one; gets the one
 * message of a unary one out of the body. False: it was refused. */
void grpc_set_up(struct exchange_state *state);
void grpc_receive(struct exchange_state *state, struct text part);
bool grpc_complete(struct exchange_state *state);
bool grpc_complete_stream(struct exchange_state *state);
/* The deadline has passed. */
void grpc_expire(struct exchange_state *state);
/* exchange_reject for calls. */
void grpc_reject(struct exchange_state *state, enum grpc_status status, const char *text);
/* Gives up an exchange that nobody owns after wire has answered it; tells the handler. */
void exchange_disown(struct exchange_state *state);

void exchanges_free_spare(struct loop *loop);

#endif
