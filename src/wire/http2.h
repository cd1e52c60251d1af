/* http2.h - HTTP/2 on a connection */
#ifndef WIRE_HTTP2_H
#define WIRE_HTTP2_H

#include "wire/connection.h"

/* Begins to speak HTTP/2; the client's preface is still to come. */
void http2_open(struct connection *connection);

/* What all HTTP/2 connections of a loop share; NULL is fine. */
void http2_shared_free(struct http2_shared *shared);

#endif
