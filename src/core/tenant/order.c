/* order.c - whose turn it is: a walk over tenants by fair share */
#include "core/tenant/order.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"

static bool goes_before(const void *a, const void *b)
{
	const struct order_node *one = a, *other = b;
	const struct order *order = one->order;
	int compared = fairshare_compare(one->tenant, &one->next->offer, other->tenant,
	                                 &other->next->offer, order->total);
	return order->backwards ? compared > 0 : compared < 0;
}

static struct heap *siblings(const struct order_node *node)
{
	return node->parent ? &node->parent->children : &node->order->roots;
}

static const struct order_node *next_of(const struct order_node *node)
{
	if (node->offers)
		return node;
	const struct order_node *child = heap_first(&node->children);
	return child ? child->next : NULL;
}

/* Puts a node where it now belongs, or takes it out, and then all above it. At
 * each level this is the only node whose place can have changed. */
static void settle_path(struct order_node *node)
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
static struct order_node *take_node(struct order *order)
{
	if (order->count == order->made) {
		array_reserve(order->nodes, order->capacity, order->made + 1);
		struct order_node *made = NEW(struct order_node);
		made->children = HEAP(struct order_node, place, goes_before);
		order->nodes[order->made++] = made;
	}
	struct order_node *node = order->nodes[order->count++];
	*node = (struct order_node){ .order = order, .children = node->children, .place = -1 };
	return node;
}

/* The node of a tenant; it and those above it are made on first use. */
static struct order_node *node_of(struct order *order, struct tenant *tenant)
{
	struct order_node *node = map_get(&order->by_tenant, tenant->r.id);
	if (node)
		return node;
	struct order_node *parent = tenant->parent ? node_of(order, tenant->parent) : NULL;
	node = take_node(order);
	node->tenant = tenant;
	node->tenant_id = tenant->r.id;
	node->parent = parent;
	map_put(&order->by_tenant, node->tenant_id, node);
	return node;
}

void order_begin(struct order *order, const struct amounts *total, bool backwards)
{
	for (size_t i = 0; i < order->count; i++) {
		struct order_node *node = order->nodes[i];
		INVARIANT(map_remove(&order->by_tenant, node->tenant_id) == node);
		node->tenant = NULL;
		heap_clear(&node->children);
	}
	order->count = 0;
	heap_clear(&order->roots);
	order->roots.before = goes_before;
	order->roots.place = offsetof(struct order_node, place);
	order->total = total;
	order->backwards = backwards;
}

void order_offer(struct order *order, struct tenant *tenant, const struct amounts *offer)
{
	if (!offer && !map_get(&order->by_tenant, tenant->r.id)) {
		order_refresh(order, tenant);
		return;
	}
	struct order_node *node = node_of(order, tenant);
	node->offers = offer != NULL;
	if (offer)
		node->offer = *offer;
	settle_path(node);
}

void order_refresh(struct order *order, struct tenant *tenant)
{
	struct order_node *node = NULL;
	while (tenant && !(node = map_get(&order->by_tenant, tenant->r.id)))
		tenant = tenant->parent;
	settle_path(node);
}

struct tenant *order_first(const struct order *order)
{
	const struct order_node *first = heap_first(&order->roots);
	return first ? first->next->tenant : NULL;
}

void order_free(struct order *order)
{
	for (size_t i = 0; i < order->made; i++) {
		heap_free(&order->nodes[i]->children);
		free(order->nodes[i]);
	}
	free(order->nodes);
	map_free(&order->by_tenant);
	heap_free(&order->roots);
	*order = (struct order){ 0 };
}
