/* traffic.h - how many requests there were, how they ended and how long they took */
#ifndef API_SERVICE_TRAFFIC_H
#define API_SERVICE_TRAFFIC_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

/* By route, of REST and of gRPC; those without one are counted together. */
struct traffic;
struct route;

/* The tables end with a path that is NULL, and must last. */
struct traffic *traffic_new(const struct route *rest, const struct route *grpc);
void traffic_free(struct traffic *traffic);
/* One that was answered with this status; `route` may be NULL. */
void traffic_add(struct traffic *traffic, const struct route *route, int status, int64_t took_us);
/* Appends the families http_requests_total and http_request_duration_seconds. */
void traffic_print(const struct traffic *traffic, struct buffer *text);

#endif
