/* gateways.h - sessions of gateways: where models are, who may ask, what was used */
#ifndef API_GATEWAY_GATEWAYS_H
#define API_GATEWAY_GATEWAYS_H

#include "api/request/request.h"

/* In the loop's thread alone. A gateway's places in slots are requests of the core, which the
 * service holds on its behalf: so they are shared out with leases, a slot with one is never
 * evicted, and waiting requests count as demand for replicas. */
struct gateways;

struct gateways *gateways_new(struct service *service);
/* Before the pool of requests is freed. */
void gateways_free(struct gateways *gateways);
/* Restores what the store kept: counted usage, and the known gateways. */
void gateways_load(struct gateways *gateways, const struct kept *keep);
/* The engine leads. Slots that gateways may be using are held until each gateway has reported its
 * requests in flight, or is lost. */
void gateways_begin(struct gateways *gateways);

/* Ends their streams: no answer does. */
void gateways_stop(struct gateways *gateways);

/* gateway.GatewayService/Connect: a stream. */
void gateways_connect(struct request *request);

/* From the engine's listener. */
void gateways_route(struct gateways *gateways, const struct route_effect *route);
void gateways_event(struct gateways *gateways, const struct event *event);
/* How slots are reached has changed. */
void gateways_slots_changed(struct gateways *gateways);
/* True if the order is to stop a slot that gateways may be using: it is given by agents_order
 * when all have said that nothing of theirs is there. */
bool gateways_hold(struct gateways *gateways, const struct effect *effect);

#endif
