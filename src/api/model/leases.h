/* leases.h - a place in a slot of a model for one request: given, renewed, given back */
#ifndef API_MODEL_LEASES_H
#define API_MODEL_LEASES_H

#include "api/request/request.h"

/* Leases are requests of the core: volatile, and ended by a restart of the scheduler.
 * In the loop's thread alone. */
struct leases;

struct leases *leases_new(struct service *service);
/* Before the pool of calls is freed. */
void leases_free(struct leases *leases);
/* The engine leads: nothing is in flight. */
void leases_begin(struct leases *leases);
/* From the engine's listener. */
void leases_route(struct leases *leases, const struct route_effect *route);

/* The node of the lease's slot holds its key, or `reason` says why not. */
void leases_taken(struct leases *leases, int64_t lease_id, const char *reason);

/* POST /api/v1/models/{id}/leases?wait=30s&lease=1m: 201 {lease_id, model_id, slot_id, node,
 * address, expires_at}. Without a place in time: 503, and the request is withdrawn; it is
 * so too if the client goes. A body {"tenant_id"} says for whom an administrator asks. */
void leases_create(struct request *request);
/* DELETE /api/v1/leases/{id}?failed=1, and POST /api/v1/leases/{id}/renew?lease=1m */
void leases_delete(struct request *request);
void leases_renew(struct request *request);
/* GET /api/v1/leases/{id}: where it is now; a slot that went may have moved it. */
void leases_show(struct request *request);

/* Requests that have a place in the slot. */
int64_t leases_in_slot(const struct leases *leases, int64_t slot_id);

#endif
