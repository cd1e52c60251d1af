/* growth.h - by how much a choice adds to what a node wastes, as a policy measures that */
#ifndef CORE_GROWTH_H
#define CORE_GROWTH_H

#include "core/place.h"

/* What counts as waste: fragmentation by these weights, and where there is a
 * worth, little of that beside what the free GPUs are not worth in the end. */
struct measure {
	const struct mix_weights *weights;
	const struct worth *worth; /* NULL: fragmentation alone */
};
/* That of the policy, which must be one that measures waste. */
struct measure measure_of(struct mix *mix, enum policy policy);
static inline bool policy_measures(enum policy policy)
{
	return policy == POLICY_FRAGMENT || policy == POLICY_WORTH;
}

/* The score of a choice: by how much the waste of its node grows. */
int64_t growth_of_choice(struct measure measure, const struct search *search,
                         const struct choice *choice);

/* Whether the score for a shape can be told from the view of a node, if that is
 * `plain`; and that of the best choice, TOURNAMENT_NONE if none fits. Promises
 * are left aside, and so are labels. The view keeps the waste of the node as it
 * is, by the version of the mix: one policy at a time. */
bool growth_sees(struct measure measure, const struct shape *shape);
int64_t growth_of_view(struct measure measure, uint64_t version, const struct request *request,
                       struct node_view *view);

#endif
