/* task_local.h - what the files about the states of tasks share */
#ifndef CORE_QUEUE_TASK_LOCAL_H
#define CORE_QUEUE_TASK_LOCAL_H

#include "core/queue/job.h"
#include "core/record/effects.h"

void task_set_state(struct sched *sched, struct job *job, int place, enum task_state state);
void task_event(struct sched *sched, const struct reservation *reservation, enum event_kind kind,
                int64_t value);
void task_send(struct sched *sched, enum effect_kind kind, const struct reservation *reservation);
void job_set_message(struct sched *sched, struct job *job, const char *message);

#endif
