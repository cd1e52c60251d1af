/* node_copy.h - a node and its GPUs as they might be */
#ifndef CORE_CLUSTER_NODE_COPY_H
#define CORE_CLUSTER_NODE_COPY_H

#include "core/cluster/cluster.h"

/* A hypothetical state of a node and its GPUs. The checks that judge a real node judge the copy
 * as well; changes to it touch neither ledger, index nor marks. */
struct node_copy {
	struct node node; /* its GPUs are `list`, and theirs is this */
	struct gpu gpus[GPUS_PER_NODE_MAX];
	struct gpu *list[GPUS_PER_NODE_MAX];
};
void node_copy_make(struct node_copy *copy, const struct node *node);
/* The hardware of a node, with nothing on it and nothing wrong with it. */
void node_copy_empty(struct node_copy *copy, const struct node *node);

#endif
