/* greeting.h - the first bytes of a connection, and what they say about the rest */
#ifndef WIRE_GREETING_H
#define WIRE_GREETING_H

#include "wire/connection.h"

/* Waits for the first bytes, then hands over to HTTP/1.1 or HTTP/2. */
extern const struct connection_protocol greeting_protocol;

#endif
