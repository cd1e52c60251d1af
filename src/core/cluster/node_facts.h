/* node_facts.h - between cluster.c and node_facts.c */
#ifndef CORE_CLUSTER_NODE_FACTS_H
#define CORE_CLUSTER_NODE_FACTS_H

#include "core/cluster/cluster.h"

/* Brings the node's counts up to date with its record. */
void node_read_counts(struct node *node);
void node_class_free(struct node_class *class);

#endif
