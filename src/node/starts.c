/* starts.c - start orders for one node: a bounded number under way, shared fairly by tenants */
#include "node/starts.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

struct start_held {
	struct start_held *next, *before;
	int64_t reservation_id, tenant_id;
	struct effect effect;
	struct arena arena; /* of the texts and rows of a load, and of a pod's uid */
	int64_t parts[];    /* of a start: an arena for each would be many times as large */
};

static int64_t reservation_of(const struct effect *effect)
{
	return effect->kind == EFFECT_LOAD ? effect->load.reservation_id
	                                   : effect->order.reservation_id;
}

static int64_t starts_tenant_of(const struct effect *effect)
{
	return effect->kind == EFFECT_LOAD ? effect->load.tenant_id : effect->order.tenant_id;
}

static struct start_held *held_new(const struct effect *effect)
{
	bool load = effect->kind == EFFECT_LOAD;
	size_t bytes = load ? 0 : (size_t)effect->order.parts.count * PART_WIDTH * sizeof(int64_t);
	struct start_held *held = memory_zero(1, sizeof(*held) + bytes);

	held->reservation_id = reservation_of(effect);
	held->tenant_id = starts_tenant_of(effect);
	if (load) {
		held->effect = effect_copy(&held->arena, effect);
		return held;
	}
	held->effect = *effect;
	if (bytes > 0)
		memcpy(held->parts, effect->order.parts.at, bytes);
	held->effect.order.parts.at = held->parts;
	if (effect->order.pod)
		held->effect.order.pod = arena_string(&held->arena, effect->order.pod);
	return held;
}

static void held_free(struct start_held *held)
{
	INVARIANT(held != NULL);
	arena_free(&held->arena);
	free(held);
}

static struct start_tenant *tenant_find(const struct starts *starts, int64_t tenant_id)
{
	for (size_t i = 0; i < starts->tenant_count; i++)
		if (starts->tenants[i].tenant_id == tenant_id)
			return &starts->tenants[i];
	return NULL;
}

static struct start_tenant *tenant_add(struct starts *starts, int64_t tenant_id)
{
	struct start_tenant *tenant = tenant_find(starts, tenant_id);

	if (tenant)
		return tenant;
	array_reserve(starts->tenants, starts->tenant_capacity, starts->tenant_count + 1);
	tenant = &starts->tenants[starts->tenant_count++];
	*tenant = (struct start_tenant){ .tenant_id = tenant_id };
	return tenant;
}

static void tenant_settle(struct starts *starts, struct start_tenant *tenant)
{
	INVARIANT(tenant->under_way >= 0 && starts->tenant_count > 0);
	if (!tenant->first && tenant->under_way == 0)
		*tenant = starts->tenants[--starts->tenant_count];
}

static bool is_under_way(const struct starts *starts, int64_t reservation_id)
{
	for (size_t i = 0; i < starts->under_way_count; i++)
		if (starts->under_way[i].reservation_id == reservation_id)
			return true;
	return false;
}

void starts_hold(struct starts *starts, const struct effect *effect)
{
	int64_t reservation_id = reservation_of(effect);

	if (map_get(&starts->held, reservation_id) || is_under_way(starts, reservation_id))
		return;
	struct start_held *held = held_new(effect);
	struct start_tenant *tenant = tenant_add(starts, held->tenant_id);
	held->before = tenant->last;
	if (tenant->last)
		tenant->last->next = held;
	else
		tenant->first = held;
	tenant->last = held;
	map_put(&starts->held, reservation_id, held);
}

/* Out of its queue; its tenant stays. */
static void unlink_held(struct starts *starts, struct start_tenant *tenant, struct start_held *held)
{
	INVARIANT((held->before != NULL) == (tenant->first != held));
	if (held->before)
		held->before->next = held->next;
	else
		tenant->first = held->next;
	if (held->next)
		held->next->before = held->before;
	else
		tenant->last = held->before;
	map_remove(&starts->held, held->reservation_id);
}

static struct start_tenant *next_tenant(const struct starts *starts)
{
	struct start_tenant *next = NULL;

	for (size_t i = 0; i < starts->tenant_count; i++) {
		struct start_tenant *tenant = &starts->tenants[i];
		if (!tenant->first)
			continue;
		if (!next || tenant->under_way < next->under_way ||
		    (tenant->under_way == next->under_way && tenant->served < next->served))
			next = tenant;
	}
	return next;
}

const struct effect *starts_next(struct starts *starts)
{
	struct start_tenant *tenant = next_tenant(starts);

	INVARIANT(starts->most >= 0);
	if (starts->sent) {
		held_free(starts->sent);
		starts->sent = NULL;
	}
	if (!tenant || (starts->most > 0 && starts->under_way_count >= (size_t)starts->most))
		return NULL;
	struct start_held *held = tenant->first;
	unlink_held(starts, tenant, held);
	tenant->under_way++;
	tenant->served = ++starts->count;
	array_reserve(starts->under_way, starts->under_way_capacity, starts->under_way_count + 1);
	starts->under_way[starts->under_way_count++] =
	    (struct start_under_way){ held->reservation_id, held->tenant_id };
	starts->sent = held;
	return &held->effect;
}

static void remove_under_way(struct starts *starts, size_t at)
{
	struct start_tenant *tenant = tenant_find(starts, starts->under_way[at].tenant_id);

	INVARIANT(tenant && tenant->under_way > 0);
	tenant->under_way--;
	tenant_settle(starts, tenant);
	starts->under_way[at] = starts->under_way[--starts->under_way_count];
}

void starts_done(struct starts *starts, int64_t reservation_id)
{
	for (size_t i = 0; i < starts->under_way_count; i++)
		if (starts->under_way[i].reservation_id == reservation_id) {
			remove_under_way(starts, i);
			return;
		}
}

bool starts_drop(struct starts *starts, int64_t reservation_id)
{
	struct start_held *held = map_get(&starts->held, reservation_id);

	if (!held)
		return false;
	struct start_tenant *tenant = tenant_find(starts, held->tenant_id);
	INVARIANT(tenant && tenant->first);
	unlink_held(starts, tenant, held);
	tenant_settle(starts, tenant);
	held_free(held);
	return true;
}

static int starts_compare_ids(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

size_t starts_held(const struct starts *starts, int64_t *ids)
{
	size_t count = 0;

	for (size_t i = 0; i < starts->tenant_count; i++)
		for (const struct start_held *held = starts->tenants[i].first; held;
		     held = held->next)
			ids[count++] = held->reservation_id;
	if (count > 0)
		qsort(ids, count, sizeof(*ids), starts_compare_ids);
	return count;
}

void starts_keep(struct starts *starts,
                 bool (*is_known)(const void *context, int64_t reservation_id), const void *context)
{
	for (size_t i = starts->under_way_count; i-- > 0;)
		if (!is_known(context, starts->under_way[i].reservation_id))
			remove_under_way(starts, i);
}

void starts_clear(struct starts *starts)
{
	int64_t most = starts->most;

	for (size_t i = 0; i < starts->tenant_count; i++)
		for (struct start_held *held = starts->tenants[i].first, *next; held; held = next) {
			next = held->next;
			held_free(held);
		}
	if (starts->sent)
		held_free(starts->sent);
	map_free(&starts->held);
	free(starts->tenants);
	free(starts->under_way);
	*starts = (struct starts){ .most = most };
}
