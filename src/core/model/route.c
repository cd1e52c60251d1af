/* route.c - requests: which slot serves them, and their leases */
#include "core/model/route.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/model/replica.h"
#include "core/state.h"

bool route_before(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	if (x->active != y->active)
		return x->active < y->active;
	int64_t on_x = x->reservation->node->active, on_y = y->reservation->node->active;
	if (on_x != on_y)
		return on_x < on_y;
	if (x->r.used_ms != y->r.used_ms)
		return x->r.used_ms > y->r.used_ms;
	return x->r.id < y->r.id;
}

static bool lease_before(const void *a, const void *b)
{
	const struct request_entry *x = a, *y = b;

	return x->until_ms != y->until_ms ? x->until_ms < y->until_ms : x->number < y->number;
}

void routes_init(struct routes *routes)
{
	routes->leases = HEAP(struct request_entry, heap_index, lease_before);
}

void routes_free(struct routes *routes)
{
	for (size_t i = 0; i < routes->by_id.capacity; i++)
		free(routes->by_id.entries[i].value);
	while (routes->spare) {
		struct request_entry *next = routes->spare->next;
		free(routes->spare);
		routes->spare = next;
	}
	map_free(&routes->by_id);
	heap_free(&routes->leases);
}

static struct request_entry *entry_new(struct routes *routes)
{
	struct request_entry *entry = routes->spare;

	if (!entry)
		entry = memory_alloc(sizeof(*entry));
	else
		routes->spare = entry->next;
	*entry = (struct request_entry){ .heap_index = -1 };
	return entry;
}

/* Ends a request and forgets it. */
static void entry_end(struct routes *routes, struct request_entry *entry)
{
	map_remove(&routes->by_id, entry->id);
	entry->next = routes->spare;
	routes->spare = entry;
}

/* In the queue of its model by arrival: most come last, and those that come
 * back from a slot that is gone are among the first. */
static void queue_add(struct sched *sched, struct request_entry *entry)
{
	struct request_list *list = &entry->model->waiting;
	struct request_entry *after = list->last;

	if (after && after->number > entry->number) {
		struct request_entry *next = list->first;
		while (next->number < entry->number)
			next = next->next;
		after = next->back;
	}
	entry->back = after;
	entry->next = after ? after->next : list->first;
	*(entry->next ? &entry->next->back : &list->last) = entry;
	*(after ? &after->next : &list->first) = entry;
	list->count++;
	sched->routes.waiting++;
}

static void queue_remove_entry(struct sched *sched, struct request_entry *entry)
{
	struct request_list *list = &entry->model->waiting;

	*(entry->back ? &entry->back->next : &list->first) = entry->next;
	*(entry->next ? &entry->next->back : &list->last) = entry->back;
	entry->next = entry->back = NULL;
	list->count--;
	sched->routes.waiting--;
}

static void route_tell(struct sched *sched, const struct request_entry *entry,
                       enum route_outcome outcome, const char *reason)
{
	effects_route(sched->effects,
	              &(struct route_effect){
			  .outcome = (int32_t)outcome,
			  .request_id = entry->id,
			  .model_id = entry->model->r.id,
			  .waiting = outcome == ROUTE_QUEUED ? entry->model->waiting.count : 0,
			  .reason = reason });
}

/* The slot that the model's next request goes to; NULL: none has a place. */
static struct slot *best_slot(const struct model *model)
{
	const struct heap *open = &model->open;

	if (open->count < 2 || model->counts.routable > ROUTE_SCAN)
		return heap_first(open);
	struct slot *best = open->items[0];
	for (size_t i = 1; i < open->count; i++)
		if (route_before(open->items[i], best))
			best = open->items[i];
	return best;
}

/* Slots whose order depends on the node's requests leave their heaps before these
 * change and come back afterwards: several may be in one heap. */
static void unlist_rivals(const struct node *node)
{
	for (int i = 0; i < node->rival_count; i++)
		if (node->rivals[i]->open_index >= 0)
			heap_remove(&node->rivals[i]->model->open, node->rivals[i]);
}

static void route_list(struct slot *slot)
{
	bool has_place = slot->routable && slot->active < slot->r.concurrency;

	if ((slot->open_index >= 0) != has_place)
		(has_place ? heap_push : heap_remove)(&slot->model->open, slot);
}

static void list_rivals(const struct node *node)
{
	for (int i = 0; i < node->rival_count; i++)
		route_list(node->rivals[i]);
}

static void count_active(struct sched *sched, struct slot *slot, int64_t change)
{
	struct node *node = slot->reservation->node;

	unlist_rivals(node);
	slot->active += change;
	slot->model->active += change;
	node->active += change;
	INVARIANT(slot->active >= 0 && slot->active <= slot->r.concurrency);
	slot->r.used_ms = sched_now(sched);
	route_list(slot);
	list_rivals(node);
	if (slot->cold || slot->r.closing_for != 0)
		slot_settle(sched, slot);
}

static void grant(struct sched *sched, struct request_entry *entry, struct slot *slot)
{
	entry->slot = slot;
	entry->back = NULL;
	entry->next = slot->leases;
	if (slot->leases)
		slot->leases->back = entry;
	slot->leases = entry;
	entry->until_ms = sched_now(sched) + entry->request_lease_ms;
	heap_push(&sched->routes.leases, entry);
	count_active(sched, slot, 1);
	effects_route(sched->effects,
	              &(struct route_effect){ .outcome = ROUTE_GRANTED,
	                                      .request_id = entry->id,
	                                      .model_id = slot->r.model_id,
	                                      .slot_id = slot->r.id,
	                                      .node_id = slot->reservation->node->r.id,
	                                      .address = slot->address,
	                                      .until_ms = entry->until_ms });
}

/* The place in the slot is free again. */
static void route_give_back(struct sched *sched, struct request_entry *entry)
{
	struct slot *slot = entry->slot;

	*(entry->back ? &entry->back->next : &slot->leases) = entry->next;
	if (entry->next)
		entry->next->back = entry->back;
	entry->next = entry->back = NULL;
	entry->slot = NULL;
	heap_remove(&sched->routes.leases, entry);
	count_active(sched, slot, -1);
}

void route_serve(struct sched *sched, struct model *model)
{
	struct slot *slot;

	while (model->waiting.first && (slot = best_slot(model))) {
		struct request_entry *entry = model->waiting.first;
		queue_remove_entry(sched, entry);
		grant(sched, entry, slot);
	}
}

/* After a place was given back: others may be served, and a slot on a node that
 * is drained may stop. */
static void after_give_back(struct sched *sched, struct slot *slot)
{
	if (slot->model->waiting.first) {
		route_serve(sched, slot->model);
		replica_list(sched, slot->model);
	}
	if (slot->leaving && slot->active == 0) {
		slot_settle(sched, slot);
		slot_stop_drained(sched, slot->reservation->node);
	}
}

static bool check_request(const struct sched *sched, const struct request_command *request,
                          struct error *error)
{
	if (request->request_id <= 0)
		return error_set(error, ERROR_INVALID,
		                 "the id of a request is %" PRId64 ": it must be positive",
		                 request->request_id);
	if (request->lease_ms < 0 || request->lease_ms > TIME_MS_MAX)
		return error_set(error, ERROR_INVALID, "a lease of %" PRId64 " ms cannot be",
		                 request->lease_ms);
	if (map_get(&sched->routes.by_id, request->request_id))
		return error_set(error, ERROR_CONFLICT, "request %" PRId64 " is not over yet",
		                 request->request_id);
	if (request->tenant_id != 0 && !tenants_find(&sched->tenants, request->tenant_id))
		return error_set(error, ERROR_NOT_FOUND, "tenant-%" PRId64 " is not known",
		                 request->tenant_id);
	return true;
}

/* Whether the model can serve the tenant at all; a refusal is told, once. */
static bool route_is_refused(struct sched *sched, const struct request_entry *entry)
{
	struct model *model = entry->model;
	struct error error = { 0 };

	if (model->r.removed)
		error_set(&error, ERROR_NOT_FOUND, "model %s is being removed", model->r.name);
	else if (!model_may_use(sched, model, entry->tenant_id))
		error_set(&error, ERROR_FORBIDDEN, "model %s is not for tenant %s", model->r.name,
		          tenants_find(&sched->tenants, entry->tenant_id)->r.name);
	else if (model->counts.coming + model->counts.ready == 0) {
		sched_prepare(sched);
		place_possible_slot(&sched->placement, model, &error);
	}
	if (error.code == ERROR_NONE)
		return false;
	route_tell(sched, entry, ROUTE_REFUSED, error.text);
	return true;
}

/* The slot that a request says it is in flight in already; NULL: it cannot be. Its node may not
 * have reported yet. */
static struct slot *slot_named(const struct sched *sched, const struct model *model,
                               const struct request_command *request)
{
	struct slot *slot = map_get(&sched->models.slots, request->slot_id);

	return slot && slot->model == model && slot->r.state == SLOT_READY &&
	               slot->active < slot->r.concurrency
	           ? slot
	           : NULL;
}

bool route_request(struct sched *sched, const struct request_command *request, struct error *error)
{
	struct routes *routes = &sched->routes;
	struct model *model = models_find(&sched->models, request->model_id);

	if (!model)
		return error_set(error, ERROR_NOT_FOUND, "model-%" PRId64 " is not known",
		                 request->model_id);
	struct slot *named = request->slot_id != 0 ? slot_named(sched, model, request) : NULL;
	if (!check_request(sched, request, error))
		return false;
	if (request->slot_id != 0 && !named)
		return error_set(error, ERROR_CONFLICT,
		                 "slot-%" PRId64 " is not ready, or has no place",
		                 request->slot_id);
	struct request_entry *entry = entry_new(routes);
	entry->id = request->request_id;
	entry->tenant_id = request->tenant_id;
	entry->model = model;
	entry->request_lease_ms = request->lease_ms ? request->lease_ms : sched->config.lease_ms;
	entry->number = ++routes->last_number;
	entry->since_ms = sched_now(sched);
	map_put(&routes->by_id, entry->id, entry);
	struct slot *slot = request->slot_id != 0 ? named : best_slot(model);
	if (request->slot_id == 0 && route_is_refused(sched, entry)) {
		entry_end(routes, entry);
	} else if (slot) {
		grant(sched, entry, slot);
	} else {
		queue_add(sched, entry);
		route_tell(sched, entry, ROUTE_QUEUED, NULL);
		replica_list(sched, model);
	}
	return true;
}

static struct request_entry *route_lookup(const struct sched *sched, int64_t id,
                                          struct error *error)
{
	struct request_entry *entry = map_get(&sched->routes.by_id, id);

	if (!entry)
		error_set(error, ERROR_NOT_FOUND, "request %" PRId64 " is not known, or has ended",
		          id);
	return entry;
}

bool route_done(struct sched *sched, int64_t request_id, enum request_end end, struct error *error)
{
	struct request_entry *entry = route_lookup(sched, request_id, error);

	if (!entry)
		return false;
	if (!word_of(&request_end_words, end))
		return error_set(error, ERROR_INVALID, "unknown end %d of a request", (int)end);
	struct slot *slot = entry->slot;
	struct model *model = entry->model;
	if (slot) {
		route_give_back(sched, entry);
	} else {
		queue_remove_entry(sched, entry);
		replica_list(sched, model);
	}
	entry_end(&sched->routes, entry);
	if (slot)
		after_give_back(sched, slot);
	return true;
}

bool route_renew(struct sched *sched, int64_t request_id, int64_t lease_ms, struct error *error)
{
	struct request_entry *entry = route_lookup(sched, request_id, error);

	if (!entry)
		return false;
	if (lease_ms < 0 || lease_ms > TIME_MS_MAX)
		return error_set(error, ERROR_INVALID, "a lease of %" PRId64 " ms cannot be",
		                 lease_ms);
	if (lease_ms > 0)
		entry->request_lease_ms = lease_ms;
	if (entry->slot) {
		entry->until_ms = sched_now(sched) + entry->request_lease_ms;
		heap_update(&sched->routes.leases, entry);
	}
	return true;
}

void route_evacuate(struct sched *sched, struct slot *slot, const char *reason)
{
	while (slot->leases) {
		struct request_entry *entry = slot->leases;
		route_give_back(sched, entry);
		queue_add(sched, entry);
		route_tell(sched, entry, ROUTE_QUEUED, reason);
	}
	route_serve(sched, slot->model);
	replica_list(sched, slot->model);
}

void route_end_all(struct sched *sched, struct model *model, enum route_outcome outcome,
                   const char *reason)
{
	struct request_entry *entry;

	while ((entry = model->waiting.first)) {
		route_tell(sched, entry, outcome, reason);
		queue_remove_entry(sched, entry);
		entry_end(&sched->routes, entry);
	}
	for (size_t i = 0; i < model->slot_count; i++)
		while ((entry = model->slots[i]->leases)) {
			route_tell(sched, entry, outcome, reason);
			route_give_back(sched, entry);
			entry_end(&sched->routes, entry);
		}
	replica_list(sched, model);
}

void route_expire(struct sched *sched)
{
	struct request_entry *entry;

	while ((entry = heap_first(&sched->routes.leases)) && entry->until_ms <= sched_now(sched)) {
		struct slot *slot = entry->slot;
		route_tell(sched, entry, ROUTE_EXPIRED, "it was in flight and was not renewed");
		route_give_back(sched, entry);
		entry_end(&sched->routes, entry);
		after_give_back(sched, slot);
	}
}

void route_reset(struct sched *sched)
{
	rotation_reset(sched);
	for (size_t m = 0; m < sched->models.count; m++) {
		struct model *model = sched->models.all[m];
		route_end_all(sched, model, ROUTE_ENDED, "all routers restart");
		for (size_t i = 0; i < model->slot_count; i++) {
			struct slot *slot = model->slots[i];
			if (slot->r.state != SLOT_READY)
				continue;
			slot->r.used_ms = sched_now(sched);
			slot->r.held_ms = min64(sched_now(sched) + HOLD_MS, TIME_MS_MAX);
			sched_dirty_slot(sched, slot);
			slot_settle(sched, slot);
		}
	}
	for (size_t i = 0; i < sched->cluster.node_count; i++)
		slot_stop_drained(sched, sched->cluster.nodes[i]);
}

static void route_check_slot(const struct slot *slot, int64_t *leases)
{
	int64_t count = 0;

	for (const struct request_entry *entry = slot->leases; entry; entry = entry->next) {
		INVARIANT(entry->slot == slot && entry->model == slot->model &&
		          entry->heap_index >= 0);
		count++;
	}
	INVARIANT(count == slot->active && count <= slot->r.concurrency);
	INVARIANT(count == 0 || slot->r.state == SLOT_READY);
	*leases += count;
}

void routes_check(const struct sched *sched)
{
	const struct routes *routes = &sched->routes;
	int64_t leases = 0, waiting = 0;

	for (size_t m = 0; m < sched->models.count; m++) {
		const struct model *model = sched->models.all[m];
		int64_t before = leases, number = 0, queued = 0;
		for (size_t i = 0; i < model->slot_count; i++)
			route_check_slot(model->slots[i], &leases);
		INVARIANT(model->active == leases - before);
		for (const struct request_entry *entry = model->waiting.first; entry;
		     entry = entry->next, queued++) {
			INVARIANT(entry->model == model && !entry->slot && entry->number > number);
			number = entry->number;
		}
		INVARIANT(queued == model->waiting.count);
		INVARIANT(queued == 0 || model->open.count == 0);
		waiting += queued;
	}
	INVARIANT(waiting == routes->waiting && leases == (int64_t)routes->leases.count);
	INVARIANT(waiting + leases == (int64_t)routes->by_id.count);
}
