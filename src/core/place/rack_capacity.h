/* rack_capacity.h - how many tasks of a shape each rack has room for, kept as nodes change */
#ifndef CORE_PLACE_RACK_CAPACITY_H
#define CORE_PLACE_RACK_CAPACITY_H

#include "base/bitset.h"
#include "core/place/place.h"

/* The room of one shape, for tasks that start now, as if nothing were promised.
 * It is right but for nodes whose last change is not below `seen`. */
struct rack_tally {
	int64_t shape; /* its number; 0: not in use */
	uint64_t seen; /* changes of the index; 0: none */
	struct bitset taking;
	int32_t *of_node; /* by rank: tasks; above 0 for those in `taking` */
	int64_t *of_rack; /* the sum over its nodes; [0]: of those in no rack */
};

/* By the numbers of their shapes, which take turns where there are more.
 * Zero-initialised has none. */
#define RACK_CAPACITY_SHAPES 64
struct rack_capacity {
	struct rack_tally of[RACK_CAPACITY_SHAPES];
};
void rack_capacity_free(struct rack_capacity *racks);

/* How many tasks of the search's shape each rack has room for, node by node, in its
 * view: into room[0 .. rack_count], of which [0] says nothing. */
void rack_capacity_count(struct placement *placement, struct search *search, int64_t *room);

/* Panics if what counts as right is not what place_count says. */
void rack_capacity_check(struct placement *placement);

#endif
