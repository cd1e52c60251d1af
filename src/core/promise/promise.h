/* promise.h - expected starts, and who may pass in the meantime */
#ifndef CORE_PROMISE_PROMISE_H
#define CORE_PROMISE_PROMISE_H

#include "core/queue/job.h"

/* A promise marks the GPUs that it counts on from its start on. Others that would
 * be served later may be placed there only if they are expected to end before. A GPU that several
 * promises name is marked for the one that starts first. Promises are kept in
 * the order of their jobs' ids, so that a core can resume from the records alone. */
struct promise {
	struct promise_record r;
	struct job *job;
	int64_t *rows; /* what r.parts points to */
};

/* GPUs that one promise names, and marks, at the most. */
#define PROMISE_ROWS 64

/* Gives promises to the first waiting jobs that are large enough, renews those that are
 * outdated or can be met much sooner, and removes those whose job no longer waits. If that
 * removes marks from GPUs, the index gets a new free_version. With very many running jobs, the
 * next look is some milliseconds later, so that passes in quick succession do not all do it. */
void promise_pass(struct sched *sched);
/* Gives the waiting job a promise with the record's start, parts and comparison,
 * in place of the one that it has; keeps it and writes the decision. No plan may
 * be open. */
void promise_give(struct sched *sched, struct job *job, const struct promise_record *record);
/* Waiting until `start_ms` for what `rows` name (of PROMISE_WIDTH), rather than
 * preempting for it, because of what was compared. No plan may be open. */
void promise_instead(struct sched *sched, struct job *job, int64_t start_ms, int64_t wait_gpu_ms,
                     int64_t lost_gpu_ms, const int64_t *rows, int count);
/* Takes the job's promise away, if it has one. No plan may be open. */
void promise_drop(struct sched *sched, struct job *job);
bool promise_load(struct sched *sched, const struct promise_record *record, struct error *error);

/* The earliest time at which the next tasks of a waiting job would fit if running
 * jobs ended as expected, within a bounded search; INT64_MAX if that cannot be
 * said. `parts` gets rows of PROMISE_WIDTH, at most `room`; `count` how many. */
int64_t promise_earliest(struct sched *sched, struct job *job, int64_t *parts, int room,
                         int *count);

#endif
