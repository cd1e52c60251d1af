/* serve_gateway.h - the state machine of a gateway, between requests of a trace and the core
 *
 * The gateway and the core have a `slot_state` each, so what includes the gateway stands behind
 * this header. */
#ifndef SIM_SERVE_SERVE_GATEWAY_H
#define SIM_SERVE_SERVE_GATEWAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct serve_gateway;

enum serve_slot_state { SERVE_SLOT_LOADING, SERVE_SLOT_READY, SERVE_SLOT_CLOSING };

struct serve_route {
	int64_t slot_id, model_id, share;
	enum serve_slot_state state;
};

/* Called when a request has got a place in a slot. */
typedef void serve_send(void *context, size_t request, int64_t slot_id);

/* For that many requests, to the models with these ids. */
struct serve_gateway *serve_gateway_new(size_t requests, const int64_t *model_ids, size_t models,
                                        serve_send *send, void *context);
void serve_gateway_free(struct serve_gateway *gateway);
/* All slots that there are, in place of what was said before. */
void serve_gateway_routes(struct serve_gateway *gateway, const struct serve_route *routes,
                          size_t count, int64_t now_ms);
/* False: it is refused. */
bool serve_gateway_ask(struct serve_gateway *gateway, size_t request, int64_t model_id,
                       int64_t prompt, int64_t now_ms);
/* Gives places to those who are next. */
void serve_gateway_serve(struct serve_gateway *gateway, int64_t now_ms);
void serve_gateway_finish(struct serve_gateway *gateway, size_t request, int64_t prompt,
                          int64_t answer, int64_t now_ms);

#endif
