/* starts.h - start orders for one node: a bounded number under way, shared fairly by tenants */
#ifndef NODE_STARTS_H
#define NODE_STARTS_H

#include "base/map.h"
#include "core/record/effects.h"

/* A node starts one piece of work after the other. Without a bound, the orders of one tenant
 * that submits thousands of small jobs would be in front of everyone else's. So only `most`
 * orders are under way: sent, and not yet reported as started, refused or ended. The others are
 * held in one queue for each tenant. The next order is taken from the tenant that has the
 * fewest under way; among equals, from the one that was served longest ago. */

struct start_held; /* an order in a queue */

struct start_tenant {
	int64_t tenant_id;
	int64_t under_way;
	uint64_t served; /* when its last order was sent, as a count of orders */
	struct start_held *first, *last;
};

struct start_under_way {
	int64_t reservation_id, tenant_id;
};

/* Invariant: `under_way` has as many entries of a tenant as its `under_way` says, and a
 * reservation is in at most one of `under_way` and `held`. A tenant with neither is removed. */
struct starts {
	int64_t most; /* 0: no bound */
	uint64_t count;
	struct start_tenant *tenants;
	size_t tenant_count, tenant_capacity;
	struct start_under_way *under_way;
	size_t under_way_count, under_way_capacity;
	struct map held;         /* struct start_held, by reservation */
	struct start_held *sent; /* what starts_next() gave out last */
};

/* Queues a copy of an order to start or load. One that is queued or under way stays as it is. */
void starts_hold(struct starts *starts, const struct effect *effect);
/* The next order to send, which is under way from now on; NULL: none may be sent now. Valid
 * until the next call. */
const struct effect *starts_next(struct starts *starts);
/* The node reported that the work runs, was refused or has ended. */
void starts_done(struct starts *starts, int64_t reservation_id);
/* Removes an order that was not sent. False if there is none. */
bool starts_drop(struct starts *starts, int64_t reservation_id);
/* Orders that are held, in the order of their reservations. `ids` has room for all. */
size_t starts_held(const struct starts *starts, int64_t *ids);
/* Keeps those under way for which `is_known` is true. */
void starts_keep(struct starts *starts,
                 bool (*is_known)(const void *context, int64_t reservation_id),
                 const void *context);
/* Forgets all but the bound. */
void starts_clear(struct starts *starts);

#endif
