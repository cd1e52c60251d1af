/* deadline.h - how likely a job misses its deadline */
#ifndef CORE_PROMISE_DEADLINE_H
#define CORE_PROMISE_DEADLINE_H

#include <stdbool.h>
#include <stdint.h>

struct job;
struct sched;

/* A job with a deadline is looked at when it is submitted, promised a start and started, and from
 * time to time until it has ended. What is kept in its record is the chance that it ends after its
 * deadline. Where that reaches scheduler.deadline_risk_percent, or no longer does, an event tells
 * so; and with scheduler.deadline_first the job goes first in its tenant's queue from then on. */

/* Thousandths, from 1 on; 0: it cannot be told, or the job has no deadline. A waiting job is taken
 * to start at `start_ms`, or (0) as it was promised: half of such jobs by the likely start, and
 * nine of ten by the promised one. Without a promise, it is taken to start now. */
int64_t deadline_risk(struct sched *sched, struct job *job, int64_t start_ms);
/* True if such a chance is told. */
bool deadline_is_at_risk(const struct sched *sched, int64_t risk);

/* Looks at the job, and sets when to do so next. job_settle() has to follow. */
void deadline_look(struct sched *sched, struct job *job);

#endif
