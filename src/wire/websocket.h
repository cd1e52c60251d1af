/* websocket.h - messages both ways over one connection */
#ifndef WIRE_WEBSOCKET_H
#define WIRE_WEBSOCKET_H

#include "wire/exchange.h"

struct websocket;

/* Any may be NULL. After `closed` the websocket is gone; it is called exactly once. */
struct websocket_events {
	/* A complete message; text is valid UTF-8. Valid during the call. */
	void (*message)(struct websocket *socket, struct text message, bool is_text);
	/* There is room again after a message that was not taken. */
	void (*writable)(struct websocket *socket);
	/* `code` is what the client sent, or 1006 where it just went. */
	void (*closed)(struct websocket *socket, int code);
};

/* Turns an exchange with `is_websocket` into a websocket and ends it. `protocol` is the
 * one chosen of Sec-WebSocket-Protocol, or NULL. NULL if the client is gone already:
 * then the exchange has ended all the same and nothing will be called. Host and Origin
 * are to be checked before, in exchange->authority and exchange->headers. */
struct websocket *websocket_accept(struct exchange *exchange, const struct websocket_events *events,
                                   void *context, const char *protocol);
/* What is sent leaves at the end of the round, and does not wait for other messages. */
void websocket_hurry(struct websocket *socket);
void *websocket_context(const struct websocket *socket);

/* A message as it goes over the wire, to be sent to any number of websockets. From any
 * thread. */
struct shared *websocket_frame(struct text message, bool is_text);

/* Sends a frame, whole; takes a reference of its own. False: not taken, because the
 * client does not read as fast and more than the limit would be waiting (or it is
 * closing); `writable` tells when there is room. Costs no system call: what is sent in
 * one round of the loop goes out together. */
bool websocket_send(struct websocket *socket, struct shared *frame);
/* Sends one message, like the above. */
bool websocket_send_text(struct websocket *socket, struct text message);
/* Says goodbye; `closed` follows. The reason is cut at 123 bytes. */
void websocket_close(struct websocket *socket, int code, const char *reason);

#endif
