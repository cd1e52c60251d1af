/* place_worth.c - policy: leave behind what will be used in the end */
#include "core/growth.h"

#include "core/state.h"

/* How much of what the node's free GPUs are worth is lost, with regard for the
 * next tasks too. */
int64_t place_worth(struct sched *sched, const struct search *search, struct choice *choice)
{
	return growth_of_choice(measure_of(&sched->mix, POLICY_WORTH), search, choice);
}
