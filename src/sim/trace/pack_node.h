/* pack_node.h - a node as the simulator follows it, where the simulator chooses nodes itself */
#ifndef SIM_TRACE_PACK_NODE_H
#define SIM_TRACE_PACK_NODE_H

#include "core/record/record.h"
#include "sim/trace/openb.h"

/* What is left of a node, from what was started there. */
struct pack_node {
	const struct openb_node *is;
	int64_t first_gpu_id; /* the others follow */
	int64_t cpu_milli, memory_mib;
	int32_t free_milli[GPUS_PER_NODE_MAX];
	uint32_t version; /* grows with each start */
};
/* An empty one. */
void pack_node_begin(struct pack_node *node, const struct openb_node *is, int64_t first_gpu_id);
/* True if a pod of the kind fits. */
bool pack_node_fits(const struct pack_node *node, const struct openb_kind *kind);
/* One was started on these parts, as in an order of the core. */
void pack_node_take(struct pack_node *node, const struct openb_kind *kind, struct rows parts);

#endif
