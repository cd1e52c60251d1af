/* fair.c - who is next: queues that are fair by tokens */
#include "gateway/state/fair.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/number.h"

static bool fair_before(const void *a, const void *b)
{
	const struct fair_tenant *x = a, *y = b;

	return x->counter != y->counter ? x->counter < y->counter : x->id < y->id;
}

void fair_init(struct fair *fair)
{
	*fair = (struct fair){ 0 };
	for (int class = 0; class < FAIR_CLASSES; class ++)
		fair->heaps[class] = (struct heap){
			.before = fair_before,
			.place =
			    offsetof(struct fair_tenant, places) + (size_t) class * sizeof(int32_t),
		};
}

void fair_free(struct fair *fair)
{
	for (size_t i = 0; i < fair->count; i++)
		free(fair->all[i]);
	free(fair->all);
	map_free(&fair->tenants);
	for (int class = 0; class < FAIR_CLASSES; class ++)
		heap_free(&fair->heaps[class]);
}

struct fair_tenant *fair_tenant(struct fair *fair, int64_t tenant_id, int64_t weight)
{
	struct fair_tenant *tenant = map_get(&fair->tenants, tenant_id + 1);

	if (!tenant) {
		tenant = NEW(struct fair_tenant);
		tenant->id = tenant_id;
		for (int class = 0; class < FAIR_CLASSES; class ++)
			tenant->places[class] = -1;
		map_put(&fair->tenants, tenant_id + 1, tenant);
		array_reserve(fair->all, fair->capacity, fair->count + 1);
		fair->all[fair->count++] = tenant;
	}
	tenant->weight = max64(weight, 1);
	return tenant;
}

/* The least counter of those who wait; where nobody does, that of the last who did. */
static int64_t fair_least(const struct fair *fair)
{
	int64_t least = INT64_MAX;

	for (int class = 0; class < FAIR_CLASSES; class ++) {
		const struct fair_tenant *first = heap_first(&fair->heaps[class]);
		least = first ? min64(least, first->counter) : least;
	}
	return least == INT64_MAX ? fair->left : least;
}

static void fair_link(struct fair_tenant *tenant, struct fair_item *item, bool first)
{
	struct fair_item **head = &tenant->first[item->class], **tail = &tenant->last[item->class];
	struct fair_item *after = first ? NULL : *tail;

	item->back = after;
	item->next = after ? after->next : *head;
	*(item->next ? &item->next->back : tail) = item;
	*(after ? &after->next : head) = item;
}

void fair_push(struct fair *fair, struct fair_tenant *tenant, struct fair_item *item, bool first)
{
	struct heap *heap = &fair->heaps[item->class];

	INVARIANT(!item->tenant);
	if (fair->waiting > 0)
		fair->level = max64(fair->level, fair_least(fair));
	if (tenant->waiting == 0 && tenant->running == 0)
		tenant->counter = max64(tenant->counter, fair_least(fair));
	else if (tenant->waiting == 0)
		tenant->counter = max64(tenant->counter, fair->level - fair->largest);
	item->tenant = tenant;
	fair_link(tenant, item, first);
	tenant->waiting++;
	tenant->tokens += item->tokens;
	fair->waiting++;
	if (!heap_has(heap, tenant))
		heap_push(heap, tenant);
}

struct fair_item *fair_first(const struct fair *fair)
{
	for (int class = 0; class < FAIR_CLASSES; class ++) {
		const struct fair_tenant *tenant = heap_first(&fair->heaps[class]);
		if (tenant)
			return tenant->first[class];
	}
	return NULL;
}

void fair_remove(struct fair *fair, struct fair_item *item)
{
	struct fair_tenant *tenant = item->tenant;

	if (!tenant)
		return;
	struct fair_item **head = &tenant->first[item->class], **tail = &tenant->last[item->class];
	*(item->back ? &item->back->next : head) = item->next;
	*(item->next ? &item->next->back : tail) = item->back;
	item->next = item->back = NULL;
	item->tenant = NULL;
	tenant->waiting--;
	tenant->tokens -= item->tokens;
	fair->waiting--;
	if (!*head)
		heap_remove(&fair->heaps[item->class], tenant);
	if (fair->waiting == 0)
		fair->left = tenant->counter;
}

static void fair_grow(struct fair *fair, struct fair_tenant *tenant, int64_t tokens)
{
	int64_t charge = tokens * FAIR_WEIGHT_ONE * 1000 / tenant->weight;

	tenant->counter = max64(tenant->counter + charge, 0);
	fair->largest = max64(fair->largest, charge);
	for (int class = 0; class < FAIR_CLASSES; class ++)
		if (heap_has(&fair->heaps[class], tenant))
			heap_update(&fair->heaps[class], tenant);
}

void fair_charge(struct fair *fair, struct fair_tenant *tenant, int64_t tokens)
{
	tenant->served += tokens;
	fair_grow(fair, tenant, tokens);
}

void fair_others(struct fair *fair, struct fair_tenant *tenant, int64_t tokens)
{
	int64_t more = tokens - tenant->others;

	tenant->others = tokens;
	if (more > 0)
		fair_grow(fair, tenant, more);
}

int64_t fair_oldest_ms(const struct fair_tenant *tenant, int64_t now_ms)
{
	int64_t since_ms = now_ms;

	for (int class = 0; class < FAIR_CLASSES; class ++)
		if (tenant->first[class])
			since_ms = min64(since_ms, tenant->first[class]->since_ms);
	return now_ms - since_ms;
}
