/* plot.h - one node, and what would be free on its GPUs if idle slots went */
#ifndef CORE_PLOT_H
#define CORE_PLOT_H

#include "core/site.h"

/* One way to satisfy a need: `count` GPUs of `mib` each. */
struct ask {
	int count;
	int64_t mib;                /* on each; for uneven parts, what the largest has at least */
	int64_t total;              /* uneven: what the parts add up to; 0: they are equal */
	const struct request *task; /* NULL: for a slot. Its parts may depend on the GPU */
};
struct ask ask_of_model(const struct model *model, int count);
struct ask ask_of_task(const struct request *task);

/* A sketch of a node's GPUs, apart from the books. `free_mib` is -1 where a GPU
 * may not be used at all; `owners` are those that would still be on it. */
struct plot {
	const struct sched *sched;
	const struct site_need *need;
	struct node *node;
	bool now;
	int count;
	struct gpu *gpu[GPUS_PER_NODE_MAX];
	int64_t free_mib[GPUS_PER_NODE_MAX];
	int32_t owners[GPUS_PER_NODE_MAX];
	int64_t cpu_milli, host_bytes; /* free */
	int slot_count, gone_count;
	struct slot *slots[SITE_VICTIMS_MAX]; /* that may go, the cheapest first */
	bool gone[SITE_VICTIMS_MAX];
	bool limited; /* more are offered of some model than may go at the same time */
};

/* The node as it is at this moment (`now`), or will be once what is releasing is
 * back. False if it takes nothing. */
bool plot_begin(struct plot *plot, const struct sched *sched, const struct site_need *need,
                struct node *node, bool now);
/* Slots that may go: one, or all idle ones of the node that are not of the
 * model itself. */
void plot_offer(struct plot *plot, struct slot *slot);
void plot_offer_all(struct plot *plot);
/* The i-th goes, or stays after all. */
void plot_go(struct plot *plot, int slot);
void plot_stay(struct plot *plot, int slot);

/* What the ask takes of this GPU; for uneven parts, nothing in particular. */
int64_t plot_ask_mib(const struct ask *ask, const struct gpu *gpu);
/* Whether this GPU has room for a part of the ask. */
bool plot_gpu_fits(const struct plot *plot, const struct ask *ask, int gpu);
/* The best GPUs for the ask as the sketch is; false if there are too few. */
bool plot_fit(const struct plot *plot, const struct ask *ask, struct site *site);
/* Notes in the site what has gone in the sketch. */
void plot_evicted(const struct plot *plot, struct site *site);
/* The cheapest set of slots, of at most `most`, without which the ask fits.
 * The sketch is afterwards as it was. */
bool plot_evict(struct plot *plot, const struct ask *ask, int most, struct site *site);

#endif
