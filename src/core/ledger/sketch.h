/* sketch.h - what would be free on a node if some of what is on it went
 *
 * There is one way to try things out: a plan (plan.h) changes the ledger and can
 * undo it. A search for victims compares thousands of sets of them, and the index
 * costs too much to be kept up to date for each. It marks on a node and its GPUs
 * what would go, and looks at the node in VIEW_CLEARED (place.h), by the same
 * checks that judge it in other views. What it finds is then done in a plan, which
 * has the last word. `evict_plans_per_s` and `reclaim_pass_ms` of the benchmark
 * measure what this is for.
 *
 * Marks are of one search at a time. Nothing reads them outside VIEW_CLEARED. */
#ifndef CORE_LEDGER_SKETCH_H
#define CORE_LEDGER_SKETCH_H

#include "core/cluster/reservation.h"

/* Nothing goes from the node: the begin of a sketch. */
void sketch_begin(struct node *node);
/* The reservation, which is on a node whose sketch has begun, goes; or it stays
 * after all, having gone. */
void sketch_go(const struct reservation *reservation);
void sketch_stay(const struct reservation *reservation);

#endif
