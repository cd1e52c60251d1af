/* grpc.h - gRPC calls over exchanges: messages in, messages out, a status at the end */
#ifndef WIRE_GRPC_H
#define WIRE_GRPC_H

#include "wire/exchange.h"

enum grpc_status {
	GRPC_OK = 0,
	GRPC_CANCELLED = 1,
	GRPC_UNKNOWN = 2,
	GRPC_INVALID_ARGUMENT = 3,
	GRPC_DEADLINE_EXCEEDED = 4,
	GRPC_NOT_FOUND = 5,
	GRPC_ALREADY_EXISTS = 6,
	GRPC_PERMISSION_DENIED = 7,
	GRPC_RESOURCE_EXHAUSTED = 8,
	GRPC_FAILED_PRECONDITION = 9,
	GRPC_ABORTED = 10,
	GRPC_OUT_OF_RANGE = 11,
	GRPC_UNIMPLEMENTED = 12,
	GRPC_INTERNAL = 13,
	GRPC_UNAVAILABLE = 14,
	GRPC_DATA_LOSS = 15,
	GRPC_UNAUTHENTICATED = 16,
};

/* An exchange with `is_grpc` is a call; segments are its service and its method. Unary
 * is what happens by itself: `request` is called with exchange->body the one message,
 * decompressed. In `head`, this asks for a stream of messages instead: each is given to
 * events->body, and events->body_end says that the client will send no more.
 * A deadline that passes ends the call for the client with DEADLINE_EXCEEDED, and the
 * handler is told by events->gone. */
void grpc_stream(struct exchange *exchange);

/* Sends one message of several. False, and nothing taken, like exchange_write. */
bool grpc_send(struct exchange *exchange, struct text message);
/* Ends the call with a status; the text is UTF-8, NULL for none. */
void grpc_finish(struct exchange *exchange, enum grpc_status status, const char *text);
/* Answers a unary call: the one message, and OK. */
void grpc_reply(struct exchange *exchange, struct text message);

/* The status that says in gRPC what an HTTP status says. */
enum grpc_status grpc_status_of(int http_status);
/* The HTTP status that says what a gRPC status says. A call to a method that does not exist is
 * the client's fault, 404. */
int grpc_http_status(enum grpc_status status);

#endif
