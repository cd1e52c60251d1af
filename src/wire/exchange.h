/* exchange.h - a request and its response, the same for every protocol */
#ifndef WIRE_EXCHANGE_H
#define WIRE_EXCHANGE_H

#include <stdint.h>

#include "wire/loop.h"
#include "wire/response.h"
#include "wire/text/headers.h"
#include "wire/text/query.h"
#include "wire/text/url.h"

struct exchange;

enum method {
	METHOD_OTHER, /* `method_name` has it */
	METHOD_GET,
	METHOD_HEAD,
	METHOD_POST,
	METHOD_PUT,
	METHOD_PATCH,
	METHOD_DELETE,
	METHOD_OPTIONS,
};
enum protocol { PROTOCOL_HTTP1, PROTOCOL_HTTP2 };

/* What a listener does with requests. Everything is called in the loop's thread.
 *
 * `head` (may be NULL) is called when the headers are there and the body is not: it may
 * answer (401 needs no body), set `body_limit`, ask for the body in parts or as gRPC
 * messages, or do nothing. Then `request` is called with the whole body, unless the
 * exchange was answered or is streamed.
 *
 * From `request` on, or from the moment it is asked for as a stream, the exchange is
 * the handler's until it has ended it by exchange_respond, exchange_refuse, exchange_end,
 * exchange_abort, grpc_reply, grpc_finish or websocket_accept, once, now or later; a
 * client that is gone by then changes nothing about that. Its fields stay as they are
 * until then, and may be read in another thread. */
struct handler {
	void *context;
	void (*head)(struct exchange *exchange);
	void (*request)(struct exchange *exchange);
};

/* What else may happen to an exchange; any may be NULL. Neither is called after its end. */
struct exchange_events {
	/* The next part of the body, or the next gRPC message; valid during the call. */
	void (*body)(struct exchange *exchange, struct text part);
	/* The body is complete. */
	void (*body_end)(struct exchange *exchange);
	/* There is room again after a write that was not taken. */
	void (*writable)(struct exchange *exchange);
	/* Nobody reads an answer any more: the client left, a gRPC deadline passed, or the
	 * request was refused by wire itself because its body is malformed, too large or too
	 * slow. If the exchange is the handler's it must still end it; what it sends is
	 * dropped. If not (only `head` was called), the exchange is gone after this. So a
	 * handler that did not answer in `head` gets exactly one of `request` and this,
	 * and after `request` or as a stream, may get this before it has ended it. */
	void (*gone)(struct exchange *exchange);
};

struct exchange {
	/* What was asked. Every text has a NUL behind it. */
	enum protocol protocol;
	enum method method;
	struct text method_name;
	struct text target;           /* as it was sent */
	struct text path;             /* of the target, not decoded */
	struct url_segments segments; /* of the path, decoded */
	struct query query;
	struct text authority; /* Host or :authority, as it was sent */
	struct headers headers;
	struct text body; /* complete when `request` is called */
	/* The client's: 192.0.2.1 or 2001:db8::1. Behind trusted proxies, the one that they name;
	 * then the port may be 0, which is unknown. */
	struct text peer_address;
	uint16_t peer_port;
	bool secure;              /* came by TLS */
	bool is_websocket;        /* asks, properly, for websocket_accept */
	bool is_grpc;             /* its content type says so */
	int64_t received_ms;      /* when its headers were complete, by loop_now_ms */
	int64_t grpc_deadline_ms; /* by loop_now_ms; INT64_MAX: none. Kept by wire */

	/* The handler's own. `body_limit` may be set in `head`; in a gRPC stream it is that of
	 * a message with its prefix. `hangup_is_gone`: the client
	 * having closed its side counts as gone already, although it might still read;
	 * for answers that take long. */
	void *context;
	const struct exchange_events *events;
	size_t body_limit;
	bool hangup_is_gone;
	/* Headers of every answer, wire's own refusals included. They must last until the
	 * exchange is answered or gone. */
	const struct header *common_headers;
	size_t common_header_count;

	/* The HTTP status with which wire itself refused the request, before `gone`; 0: it did
	 * not. For a gRPC call, the one that says the same. */
	int refused_status;

	const struct handler *handler;
	struct loop *loop;
};

/* Answers and ends it. Bodies are compressed where the client takes that. */
void exchange_respond(struct exchange *exchange, const struct response *response);

/* Answers {"error":text,"code":code} and ends it; as a gRPC status where that was asked
 * for. The text is formatted like printf's. */
void exchange_refuse(struct exchange *exchange, int status, const char *code, const char *format,
                     ...) __attribute__((format(printf, 4, 5)));

/* Sends status and headers of an answer whose body follows in parts. */
void exchange_begin(struct exchange *exchange, const struct response *response);
/* Sends a part of it. False: nothing was taken, because the client does not read as
 * fast; `writable` tells when there is room. A part is taken whole or not at all, and
 * from a client that is gone is thrown away. */
bool exchange_write(struct exchange *exchange, struct text part);
/* Like exchange_write(), without a copy; takes over the reference if it returns true. */
bool exchange_share(struct exchange *exchange, struct shared *part);
/* Ends an answer that was begun. */
void exchange_end(struct exchange *exchange);
/* Ends it without an answer, or in the middle of one, so that the client can tell. */
void exchange_abort(struct exchange *exchange);

/* In `head`: gives the body to `events->body` in parts, and the exchange to the handler. */
void exchange_stream_body(struct exchange *exchange);
/* Stops and starts the parts of a streamed body. */
void exchange_pause_body(struct exchange *exchange, bool paused);

/* A number for all addresses that one customer has, for limits by address. */
uint64_t exchange_customer(const struct exchange *exchange);

/* The client has proven who it is. When connections are scarce, those whose clients have not
 * are closed first. */
void exchange_trust(struct exchange *exchange);

/* True if anyone is left to read the answer. */
bool exchange_is_gone(const struct exchange *exchange);

const char *method_text(enum method method);

#endif
