/* why_awaited.h - when a running job is expected to end, and who waits for that */
#ifndef CORE_WHY_WHY_AWAITED_H
#define CORE_WHY_WHY_AWAITED_H

#include "base/buffer.h"
#include "core/queue/job.h"

/* Below this confidence, of 1000, a duration is a guess, and is not shown. */
#define CONFIDENCE_LEAST 500

/* Of a running job: its expected end, and the jobs that wait for it, one sentence each, with what
 * follows if it has not ended by then. `viewer` as for why_print(). */
void why_print_awaited(const struct sched *sched, const struct job *job, int64_t viewer,
                       struct buffer *buffer);

#endif
