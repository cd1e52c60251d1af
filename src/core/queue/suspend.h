/* suspend.h - jobs whose GPU memory is in host memory for a while */
#ifndef CORE_QUEUE_SUSPEND_H
#define CORE_QUEUE_SUSPEND_H

#include "core/queue/job.h"

/* A suspended job keeps its reservation: the same node and GPUs, for which it has no right
 * until it resumes. Its host memory and the copy of its GPU memory count as used. A gang is
 * never suspended, since nobody has shown that its parts survive it together. */

/* Commands of people. */
bool job_suspend(struct sched *sched, struct job *job, struct error *error);
bool job_resume(struct sched *sched, struct job *job, struct error *error);
/* What the node says: that it is done, in `took_ms`, or that it could not be, and all is as
 * before. A task that was lost by it has exited. */
struct task_moved {
	bool done;
	int64_t took_ms;
	const char *message;
};
bool task_suspended(struct sched *sched, struct reservation *reservation,
                    const struct task_moved *moved, struct error *error);
bool task_resumed(struct sched *sched, struct reservation *reservation,
                  const struct task_moved *moved, struct error *error);

/* Whether the job may be suspended, by itself and by what is known of its program; without a
 * person who asks for it, only where it consents. False with a reason. */
bool suspend_permitted(const struct sched *sched, const struct job *job, bool asked,
                       struct error *error);
/* GPU time that suspending and resuming the job takes, thousandths x ms. */
int64_t suspend_cost(const struct job *job);
/* What moving all that the reservation has takes, to host memory or back. */
int64_t suspend_takes_ms(const struct reservation *reservation, bool back);
/* How long that may take before it is late, whatever the node was like so far. */
int64_t suspend_patience_ms(const struct reservation *reservation);
/* After a committed plan_suspend() and plan_resume(): orders, states, events. */
void job_suspends(struct sched *sched, struct reservation *reservation);
void job_resumes(struct sched *sched, struct reservation *reservation);
/* Its task ended while it was suspended, and not by itself. */
void suspend_lost(struct sched *sched, const struct reservation *reservation);

/* Stops a suspended task, so that it starts again elsewhere. */
void suspend_stop(struct sched *sched, struct reservation *reservation, const char *reason);

struct trial {
	struct trial_record r;
	char *gpu_model;
};
bool trial_load(struct sched *sched, const struct trial_record *record, struct error *error);
void trials_free(struct sched *sched);
/* The task of the only reservation of a job that may be suspended; NULL: it has none. */
struct reservation *suspend_reservation(const struct job *job);

#endif
