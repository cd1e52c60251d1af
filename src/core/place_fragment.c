/* place_fragment.c - policy: leave behind what the next tasks that arrive can use */
#include "core/growth.h"

#include "core/state.h"

/* How much the node's expected fragmentation grows. */
int64_t place_fragment(struct sched *sched, const struct search *search, struct choice *choice)
{
	return growth_of_choice(measure_of(&sched->mix, POLICY_FRAGMENT), search, choice);
}
