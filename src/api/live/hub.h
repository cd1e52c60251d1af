/* hub.h - what happens, told to everyone who listens */
#ifndef API_LIVE_HUB_H
#define API_LIVE_HUB_H

#include "core/record/effects.h"

struct service;
struct request;
struct hub;

struct hub *hub_new(struct service *service);
void hub_free(struct hub *hub);

/* The engine leads: the number of the last event that there was. */
void hub_begin(struct hub *hub, int64_t last_event);
/* Something became durable. */
void hub_event(struct hub *hub, const struct event *event);
/* GET /api/v1/stream. */
void hub_listen(struct request *request);

/* For metrics. */
struct hub_counters {
	int64_t listeners, sent, skipped;
};
struct hub_counters hub_counters(const struct hub *hub);

#endif
