/* traffic.h - how many requests there were, how they ended and how long they took */
#ifndef API_SERVICE_TRAFFIC_H
#define API_SERVICE_TRAFFIC_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

/* By route: its place in the table of routes; the last place is for what has none. */
struct traffic;

struct traffic *traffic_new(size_t routes);
void traffic_free(struct traffic *traffic);
void traffic_add(struct traffic *traffic, size_t route, int status, int64_t took_us);
/* Appends the families http_requests_total and http_request_duration_seconds. */
void traffic_print(const struct traffic *traffic, struct buffer *text);

#endif
