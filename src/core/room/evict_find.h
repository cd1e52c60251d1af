/* evict_find.h - the search for idle slots that go: inside of evict_find.c and evict_clear.c */
#ifndef CORE_ROOM_EVICT_FIND_H
#define CORE_ROOM_EVICT_FIND_H

#include "core/room/evict.h"

/* One of the applicant's shapes, in the numbers that most nodes are refused by. */
struct ask {
	int count;   /* GPUs */
	int64_t mib; /* on each; INT64_MIN where that depends on the GPU, or parts differ */
};

/* A search in VIEW_CLEARED, with all its shapes. */
struct evict_search {
	struct sched *sched;
	struct search search;
	const struct shape *shapes; /* fewest GPUs first */
	struct ask asks[PARTS_MAX]; /* of the shapes */
	int count;
	struct eviction *best; /* so far; best->choice.node is NULL while there is none */
};

/* Slots of one node that may go, the cheapest first. */
struct clearing {
	struct node *node;
	struct slot *slots[EVICTED_MAX];
	bool gone[EVICTED_MAX];
	int count, gone_count;
	uint64_t usable; /* GPUs, by their places, that may be used where enough is free */
	bool limited;    /* more are offered of some model than may go at the same time */
};

/* Whether the slot may go for the applicant now; notes when time alone would let it. */
bool evict_lets_go(struct evict_search *find, const struct slot *slot);
/* All idle slots of the node that are not of the applicant's own model. False if
 * the node takes nothing. Begins a sketch. */
bool clearing_begin(struct clearing *clearing, struct evict_search *find, struct node *node);
/* The cheapest set of slots, of at most `most`, without which the shape fits. The
 * sketch is afterwards as it was. */
bool clearing_find(struct clearing *clearing, struct evict_search *find, int shape, int most,
                   struct eviction *found);

/* Copies only what is used. */
void eviction_copy(struct eviction *to, const struct eviction *from);
bool eviction_better(const struct eviction *a, const struct eviction *b);
/* Adds a slot to what goes. */
void eviction_add(struct eviction *eviction, struct slot *slot);

#endif
