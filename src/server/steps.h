/* steps.h - every step of every decision, in the log */
#ifndef SERVER_STEPS_H
#define SERVER_STEPS_H

#include "api/read/catalogue.h"
#include "core/sched.h"

/* In the core's thread. Both do nothing below verbosity 4. */

/* Before a pass: for the first waiting jobs, the GPUs that were looked at, whether they fit
 * now or later, and the candidates with their scores. */
void steps_before(struct sched *sched, struct catalogue *catalogue);
/* After it: for each decision, what changes on each GPU, and the sentences about it. */
void steps_after(struct sched *sched, struct catalogue *catalogue, const struct effects *effects);

#endif
