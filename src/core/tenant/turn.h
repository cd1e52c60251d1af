/* turn.h - whose turn it is: a walk over tenants by fair share */
#ifndef CORE_TENANT_TURN_H
#define CORE_TENANT_TURN_H

#include "base/heap.h"
#include "base/map.h"
#include "core/tenant/fairshare.h"

/* A tree of those tenants that have something to offer, each level a heap.
 * Forwards it finds the tenant to be served next, backwards the one to take
 * from next. What a tenant offers (its next job's amounts; backwards, what was
 * and would be taken, as negative amounts) is told by the caller, who also
 * says when it has changed. A tenant's own offer goes before those below it;
 * among siblings each is compared with the offer that is next at or below it.
 *
 * `next` is the node itself if it offers, else that of the first of its
 * children, else NULL; a node is in its heap exactly when it has one. */
struct turn_node {
	struct turn *turn;
	struct tenant *tenant;
	int64_t tenant_id; /* the tenant itself may be gone when the walk ends */
	struct turn_node *parent;
	struct heap children; /* struct turn_node, best first */
	struct amounts offer; /* its own, if it has one */
	bool offers;
	const struct turn_node *next;
	int32_t heap_index;
};

struct turn {
	struct turn_node **nodes; /* `made` of them; the first `count` are of this walk */
	size_t count, made, capacity;
	struct map by_tenant; /* those of this walk, by the tenant's id */
	struct heap roots;
	const struct amounts *total;
	bool backwards;
};

/* Empties it for a new walk; keeps its memory. Costs as much as the last walk
 * had tenants. `total` must stay while the walk lasts, and so must the tree of
 * tenants; between walks tenants may come and go. */
void turn_begin(struct turn *turn, const struct amounts *total, bool backwards);
/* The tenant offers this now, or (NULL) nothing any more. Also to be called
 * after what it holds has changed, before anything else is asked of the order. */
void turn_offer(struct turn *turn, struct tenant *tenant, const struct amounts *offer);
/* What the tenants hold has changed for `tenant` and its ancestors. To be
 * called for one such change before the next. */
void turn_refresh(struct turn *turn, struct tenant *tenant);
/* The tenant whose turn it is, or NULL. */
struct tenant *turn_first(const struct turn *turn);
void turn_free(struct turn *turn);

#endif
