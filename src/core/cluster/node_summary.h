/* node_summary.h - what a node has free, in the numbers that a score is made of */
#ifndef CORE_CLUSTER_NODE_SUMMARY_H
#define CORE_CLUSTER_NODE_SUMMARY_H

#include <stddef.h>

#include "core/cluster/cluster.h"

/* The summaries of a node and its GPUs side by side in memory, so that a search
 * that scores many nodes reads little. Made by index.c when it looks at the node. */
struct node_summary {
	int64_t cpu_milli, host_bytes; /* free for a newcomer: now, and beside all claims */
	int64_t cpu_now_milli, cpu_total_milli;
	int64_t free_milli; /* thousandths of all its GPUs that are free */
	uint64_t mix;       /* the version of the mix that `before` is by; 0: none */
	int64_t before;     /* what the policy says of the node as it is */
	int16_t whole;      /* GPUs that could be given whole */
	int16_t gpu_count;
	int8_t kind_count;
	bool open;
	bool plain;   /* GPUs that could be given whole are those that are free to the last MiB */
	bool uniform; /* all its GPUs are of one model */
	/* Of the policy worth: sums over the free GPUs, by the mix and the scarcity. */
	int64_t value, need_milli, need_variance;
	int32_t gpu_type; /* the number of the model, if uniform; -1: no GPUs */
	int32_t scarcity; /* of that model */
	int64_t unused[4];
	struct summary_kind {
		int16_t free_milli, takes_milli; /* as in gpu_offer */
		int16_t times;                   /* GPUs of which just that is free */
		int16_t level;                   /* by the mix: that of free_milli */
	} kinds[GPUS_PER_NODE_MAX];              /* of GPUs of which anything is free */
};
_Static_assert(offsetof(struct node_summary, value) == 64, "worth has a line of the cache");
_Static_assert(offsetof(struct node_summary, kinds) == 128, "kinds begin a line of the cache");
_Static_assert(GPUS_PER_NODE_MAX <= INT8_MAX, "kinds can be counted");

/* False if the node does not take a task of the request, whatever its GPUs. */
static inline bool node_summary_takes(const struct node_summary *summary,
                                      const struct shape_request *request)
{
	return summary->open &&
	       (request->cpu_milli <= 0 || summary->cpu_milli >= request->cpu_milli) &&
	       (request->host_bytes <= 0 || summary->host_bytes >= request->host_bytes) &&
	       (request->gpu_kind != GPU_WHOLE || summary->whole >= request->gpu_count);
}
/* From the summaries. */
const struct node_summary *node_summary_make(struct node_summary *summary, const struct node *node);
/* Whether they say the same. */
bool node_summary_equal(const struct node_summary *a, const struct node_summary *b);

#endif
