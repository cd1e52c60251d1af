/* gradient.h - fragmentation gradient descent as it was published */
#ifndef SIM_TRACE_GRADIENT_H
#define SIM_TRACE_GRADIENT_H

#include "core/place/workload_mix.h"
#include "sim/trace/pack_node.h"

/* The scheduler of 'Beware of Fragmentation': it is told what will arrive, and takes
 * the node whose expected fragmentation grows least. Growth goes through a sigmoid
 * to a whole number from 0 to 100, so that growths that differ by a few hundredths
 * of a GPU are equal, and then the first node of the list is taken. */
struct gradient {
	const struct openb *openb;
	struct workload_mix mix;
	struct gradient_score *scores; /* by kind, then by node */
};
/* Learns the mix of the list. To be freed in any case. */
bool gradient_begin(struct gradient *gradient, const struct openb *openb, struct error *error);
void gradient_free(struct gradient *gradient);
/* The node for a pod of that kind; -1: none fits. */
int64_t gradient_choose(struct gradient *gradient, size_t kind, const struct pack_node *nodes);

#endif
