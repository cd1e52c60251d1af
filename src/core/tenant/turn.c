/* turn.c - whose turn it is: a walk over tenants by fair share */
#include "core/tenant/turn.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"

static bool turn_goes_before(const void *a, const void *b)
{
	const struct turn_node *one = a, *other = b;
	const struct turn *turn = one->turn;
	int compared = fairshare_compare(one->tenant, &one->next->offer, other->tenant,
	                                 &other->next->offer, turn->total);
	return turn->backwards ? compared > 0 : compared < 0;
}

static struct heap *siblings(const struct turn_node *node)
{
	return node->parent ? &node->parent->children : &node->turn->roots;
}

static const struct turn_node *next_of(const struct turn_node *node)
{
	if (node->offers)
		return node;
	const struct turn_node *child = heap_first(&node->children);
	return child ? child->next : NULL;
}

/* Puts a node where it now belongs, or takes it out, and then all above it. At
 * each level this is the only node whose place can have changed. */
static void settle_path(struct turn_node *node)
{
	for (; node; node = node->parent) {
		struct heap *heap = siblings(node);
		node->next = next_of(node);
		if (!node->next && heap_has(heap, node))
			heap_remove(heap, node);
		else if (node->next && heap_has(heap, node))
			heap_update(heap, node);
		else if (node->next)
			heap_push(heap, node);
	}
}

/* A node that nothing is known of, from those of earlier walks if there is one. */
static struct turn_node *take_node(struct turn *turn)
{
	if (turn->count == turn->made) {
		array_reserve(turn->nodes, turn->capacity, turn->made + 1);
		struct turn_node *made = NEW(struct turn_node);
		made->children = HEAP(struct turn_node, heap_index, turn_goes_before);
		turn->nodes[turn->made++] = made;
	}
	struct turn_node *node = turn->nodes[turn->count++];
	*node = (struct turn_node){ .turn = turn, .children = node->children, .heap_index = -1 };
	return node;
}

/* The node of a tenant; it and those above it are made on first use. */
static struct turn_node *node_of(struct turn *turn, struct tenant *tenant)
{
	struct turn_node *node = map_get(&turn->by_tenant, tenant->r.id);
	if (node)
		return node;
	struct turn_node *parent = tenant->parent ? node_of(turn, tenant->parent) : NULL;
	node = take_node(turn);
	node->tenant = tenant;
	node->tenant_id = tenant->r.id;
	node->parent = parent;
	map_put(&turn->by_tenant, node->tenant_id, node);
	return node;
}

void turn_begin(struct turn *turn, const struct amounts *total, bool backwards)
{
	INVARIANT(total != NULL);
	for (size_t i = 0; i < turn->count; i++) {
		struct turn_node *node = turn->nodes[i];
		INVARIANT(map_remove(&turn->by_tenant, node->tenant_id) == node);
		node->tenant = NULL;
		heap_clear(&node->children);
	}
	turn->count = 0;
	heap_clear(&turn->roots);
	turn->roots.before = turn_goes_before;
	turn->roots.place = offsetof(struct turn_node, heap_index);
	turn->total = total;
	turn->backwards = backwards;
}

void turn_offer(struct turn *turn, struct tenant *tenant, const struct amounts *offer)
{
	INVARIANT(turn->total != NULL);
	if (!offer && !map_get(&turn->by_tenant, tenant->r.id)) {
		turn_refresh(turn, tenant);
		return;
	}
	struct turn_node *node = node_of(turn, tenant);
	node->offers = offer != NULL;
	if (offer)
		node->offer = *offer;
	settle_path(node);
}

void turn_refresh(struct turn *turn, struct tenant *tenant)
{
	struct turn_node *node = NULL;
	while (tenant && !(node = map_get(&turn->by_tenant, tenant->r.id)))
		tenant = tenant->parent;
	settle_path(node);
}

struct tenant *turn_first(const struct turn *turn)
{
	const struct turn_node *first = heap_first(&turn->roots);
	return first ? first->next->tenant : NULL;
}

void turn_free(struct turn *turn)
{
	for (size_t i = 0; i < turn->made; i++) {
		heap_free(&turn->nodes[i]->children);
		free(turn->nodes[i]);
	}
	free(turn->nodes);
	map_free(&turn->by_tenant);
	heap_free(&turn->roots);
	*turn = (struct turn){ 0 };
}
