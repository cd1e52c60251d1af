/* fair.h - who is next: queues that are fair by tokens
 *
 * Virtual token counters (Sheng et al., OSDI 2024): the tenant with the least counter is next; its
 * counter grows by the tokens that it is served, divided by its weight. A tenant that returns with
 * nothing in flight is lifted to the least counter of those who wait, so that nobody saves up; one
 * that has requests in flight keeps an arrear of one charge at most, so that it is not late for
 * asking one at a time. The counters of two tenants that wait never differ by more than what one
 * of them has in flight, the largest charge, and what may be given back of what is in flight. */
#ifndef GATEWAY_STATE_FAIR_H
#define GATEWAY_STATE_FAIR_H

#include "base/heap.h"
#include "base/map.h"

enum fair_class { FAIR_INTERACTIVE, FAIR_BATCH, FAIR_CLASSES };

#define FAIR_WEIGHT_ONE INT64_C(1000)

/* A waiting request, as a member of its queue. Zero-initialized, it is in no queue. */
struct fair_item {
	struct fair_tenant *tenant; /* NULL: does not wait */
	enum fair_class class;
	int64_t since_ms, tokens; /* for those who ask how much waits */
	struct fair_item *next, *back;
};

struct fair_tenant {
	int64_t id, weight;
	int64_t counter; /* thousandths of a token of weight one */
	int64_t served;  /* tokens, in all */
	int64_t others;  /* that other gateways served it, as far as counted */
	int64_t waiting, tokens;
	int64_t running; /* served and not at its end: counted by who serves */
	struct fair_item *first[FAIR_CLASSES], *last[FAIR_CLASSES];
	int32_t places[FAIR_CLASSES]; /* in the heaps */
};

/* The queue of a model. Interactive requests go before those in batches. */
struct fair {
	struct map tenants;
	struct fair_tenant **all;
	size_t count, capacity;
	struct heap heaps[FAIR_CLASSES]; /* of tenants that wait, by counter and id */
	int64_t waiting;
	int64_t left;    /* the counter of the tenant that was the last to wait */
	int64_t level;   /* the greatest that the least counter of those who wait has been */
	int64_t largest; /* charge, in units of counters */
};

void fair_init(struct fair *fair);
void fair_free(struct fair *fair);

struct fair_tenant *fair_tenant(struct fair *fair, int64_t tenant_id, int64_t weight);
/* The item waits; `first`: before all others of its tenant, because it was served already. */
void fair_push(struct fair *fair, struct fair_tenant *tenant, struct fair_item *item, bool first);
/* The one that is next; NULL: nobody waits. It stays where it is. */
struct fair_item *fair_first(const struct fair *fair);
/* Waits no longer. Nothing happens to one that does not wait. */
void fair_remove(struct fair *fair, struct fair_item *item);
/* The tenant was served that many tokens, or fewer than expected: negative. */
void fair_charge(struct fair *fair, struct fair_tenant *tenant, int64_t tokens);
/* Other gateways have served it that many tokens in all. */
void fair_others(struct fair *fair, struct fair_tenant *tenant, int64_t tokens);
/* How long the oldest of a tenant has waited. */
int64_t fair_oldest_ms(const struct fair_tenant *tenant, int64_t now_ms);

#endif
