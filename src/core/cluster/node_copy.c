/* node_copy.c - a node and its GPUs as they might be */
#include "core/cluster/node_copy.h"

void node_copy_make(struct node_copy *copy, const struct node *node)
{
	INVARIANT(node->gpu_count <= GPUS_PER_NODE_MAX);
	copy->node = *node;
	copy->node.gpus = copy->list;
	for (int i = 0; i < node->gpu_count; i++) {
		copy->gpus[i] = *node->gpus[i];
		copy->gpus[i].node = &copy->node;
		copy->list[i] = &copy->gpus[i];
	}
}

void node_copy_empty(struct node_copy *copy, const struct node *node)
{
	node_copy_make(copy, node);
	copy->node.r.state = NODE_ONLINE;
	copy->node.r.reported = true;
	copy->node.r.draining = false;
	copy->node.r.taken_cpu_milli = copy->node.r.taken_host_bytes = 0;
	copy->node.cpu = copy->node.host = (struct host_books){ 0, 0, 0 };
	for (int i = 0; i < node->gpu_count; i++) {
		struct gpu *gpu = &copy->gpus[i];
		gpu->books = (struct gpu_books){ 0 };
		gpu->r.foreign_mib = 0;
		gpu->r.healthy = true;
		gpu->r.hot = false;
		gpu->promised_ms = INT64_MAX;
		gpu->kept_for = 0;
	}
}
