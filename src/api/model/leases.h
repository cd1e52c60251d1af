/* leases.h - a place in a slot of a model for one request: given, renewed, given back */
#ifndef API_MODEL_LEASES_H
#define API_MODEL_LEASES_H

#include "api/auth/streams.h"
#include "api/engine/desk.h"
#include "api/read/identity.h"
#include "api/read/roster.h"
#include "wire/exchange.h"

/* Leases are requests of the core: volatile, and ended by a restart of the scheduler.
 * In the loop's thread alone. All handlers answer the exchange, now or later, and end it. */
struct leases;

/* `streams` may be NULL. */
struct leases *leases_new(struct desk *desk, const struct roster *roster, struct streams *streams);
void leases_free(struct leases *leases);
/* The desk leads: nothing is in flight. */
void leases_begin(struct leases *leases);
/* From the desk's listener. */
void leases_route(struct leases *leases, const struct route_effect *route);

/* POST /api/v1/models/{id}/leases?wait=30s&lease=1m: 201 {lease_id, model_id, slot_id, node,
 * address, expires_at}. Without a place in time: 503, and the request is withdrawn; it is
 * so too if the client goes. A body {"tenant_id"} says for whom an administrator asks. */
void leases_create(struct leases *leases, struct exchange *exchange,
                   const struct identity *identity, int64_t model_id);
/* DELETE /api/v1/leases/{id}?failed=1, and POST /api/v1/leases/{id}/renew?lease=1m */
void leases_delete(struct leases *leases, struct exchange *exchange,
                   const struct identity *identity, int64_t lease_id);
void leases_renew(struct leases *leases, struct exchange *exchange, const struct identity *identity,
                  int64_t lease_id);
/* GET /api/v1/leases/{id}: where it is now; a slot that went may have moved it. */
void leases_show(struct leases *leases, struct exchange *exchange, const struct identity *identity,
                 int64_t lease_id);

#endif
