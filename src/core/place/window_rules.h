/* window_rules.h - what windows keep off their nodes and GPUs */
#ifndef CORE_PLACE_WINDOW_RULES_H
#define CORE_PLACE_WINDOW_RULES_H

#include "core/place/place.h"

/* A window keeps off all but its own: jobs that name it, and those of its tenant and the tenants
 * below. A job that names a window starts while that is open, and not before. What is not its own
 * does not start while it is open, nor if it may run into it: a job by its time limit, or else by
 * its predicted duration; where neither is known, not within the window's lead. A slot of a model,
 * which has no end, is loaded if its load ends before. */

/* Whether one of the windows keeps the applicant off. Without an applicant none does. */
bool windows_keep_off(const struct placement *placement, const struct search *search,
                      uint64_t windows);
/* The first of them that does, or NULL. */
const struct window *window_in_the_way(const struct placement *placement,
                                       const struct search *search, uint64_t windows);
/* Whether one keeps the reservation off what it has, if it started now. */
bool window_keeps_off(const struct placement *placement, const struct reservation *reservation);
/* Whether the work of the reservation belongs to the window. */
bool window_owns(const struct window *window, const struct reservation *reservation);
/* A window that is open on something that the reservation has and does not own it, or NULL. */
const struct window *window_against(const struct cluster *cluster,
                                    const struct reservation *reservation, int64_t now_ms);
/* How long the job holds its GPUs from a start on, as far as windows go; 0: not known. */
int64_t window_stay_ms(const struct job *job);

#endif
