/* http1.h - HTTP/1.1 and 1.0 on a connection */
#ifndef WIRE_HTTP1_H
#define WIRE_HTTP1_H

#include "wire/connection.h"

/* Begins to speak HTTP/1.1. */
void http1_open(struct connection *connection);

/* Takes the connection away from HTTP/1.1 for what it is to be upgraded to, after the
 * exchange that asked for it: bytes that came behind it go to `pending`. */
void http1_leave(struct exchange_state *state, struct buffer *pending);

/* Writes headers of the caller's, as they are in an answer. */
void http1_put_headers(struct output *output, const struct header *headers, size_t count);

#endif
