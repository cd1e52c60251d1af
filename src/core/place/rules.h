/* rules.h - which nodes a demand allows: counted resources, classes, ports, rules about others */
#ifndef CORE_PLACE_RULES_H
#define CORE_PLACE_RULES_H

#include "core/place/place.h"
#include "core/queue/demand.h"

/* What the rules of a demand find is worked out for all nodes at once and kept for as long as
 * cluster.rules_version stays: it changes with every reservation whose job has a demand, with
 * guests, and with node classes. Tasks that an open plan placed count like all others, so members
 * of a gang count for each other. */

/* The first check that the node fails for the search's shape, which has a demand. */
enum check rules_check(const struct placement *placement, const struct search *search,
                       const struct node *node, int64_t *short_by);
/* The most tasks of the shape that the node could take, as far as counted resources and ports
 * tell. */
int64_t rules_most(const struct search *search, const struct node *node);

/* Says all that the node fails, of what is not about its GPUs. */
void rules_explain(const struct placement *placement, const struct search *search,
                   const struct node *node, node_refusal_say *say, void *context);

#endif
