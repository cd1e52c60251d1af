/* site.h - where a slot could go: a node, GPUs, and what would have to go for it */
#ifndef CORE_SITE_H
#define CORE_SITE_H

#include "core/slot.h"

#define SITE_VICTIMS_MAX 256

/* What is looked for: so many GPUs of one node, with so much on each. */
struct site_need {
	const struct filter *filter;
	struct model *model;        /* for a slot: any of its splits; NULL: for a task */
	const struct request *task; /* for a task: its request, of one node */
	int64_t cpu_milli, host_bytes;
	enum slot_policy policy;
	const struct node *only; /* NULL: any */
};

/* One way to do it. Of two, the better one evicts fewer slots, then those that
 * are cheaper to load again, then those used longest ago; then it takes fewer
 * GPUs, then linked ones, then what the policy likes. */
struct site {
	struct node *node;
	struct part parts[PARTS_MAX];
	int part_count;
	bool now; /* fits at this moment; otherwise when what is releasing is back */
	struct slot *evicted[SITE_VICTIMS_MAX];
	int evicted_count;
	int64_t reload_ms, used_ms; /* of the evicted: sum, and the latest use */
	bool linked;
	int64_t score; /* lower is better */
};

/* The last site that was found, as long as nothing has changed since: opening a
 * model in a pass and serving it look for the same. */
struct site_memo {
	struct model *model; /* NULL: none is kept */
	int way;             /* enum replica_way */
	uint64_t index_version, cold_version;
	struct site site;
};

/* Whether a is better than b; all is compared. Copies only what is used. */
bool site_better(const struct site *a, const struct site *b);
void site_copy(struct site *to, const struct site *from);

/* The best way without evicting anything: at this moment, or else on memory
 * that is coming back. False if there is none. */
bool site_find(struct sched *sched, const struct site_need *need, struct site *site);
/* The best way that evicts idle slots. */
bool site_find_evicting(struct sched *sched, const struct site_need *need, struct site *site);
/* The best way on one node, once what is releasing is back: for preempting. */
bool site_on_node(struct sched *sched, const struct site_need *need, struct node *node,
                  struct site *site);

/* The need of a model's next slot. */
struct site_need site_need_of(struct model *model);

#endif
