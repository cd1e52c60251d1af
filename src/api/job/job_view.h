/* job_view.h - a job as people read it */
#ifndef API_JOB_JOB_VIEW_H
#define API_JOB_JOB_VIEW_H

#include "api/read/catalogue.h"
#include "api/session/agents.h"
#include "core/sched.h"
#include "wire/text/json_writer.h"

/* Where a finished job ran, from its history; 0 or NULL if unknown. */
struct job_past {
	int64_t scheduled_ms, started_ms, node_id;
	const int64_t *gpu_ids;
	size_t gpu_count;
};

/* What there is to tell about a job. */
struct job_view {
	const struct job_record *job;
	const struct job_state_record *state;
	const struct task_record *const *tasks; /* those that were ever placed */
	size_t task_count;
	const struct promise_record *promise; /* NULL: none */
	const struct wait_figures *wait;      /* NULL: not asked for, or it does not wait */
	const char *reason;                   /* why it waits; NULL: not asked for */
	const struct job_past *past;          /* NULL: not asked for, or it is not over */
	const struct catalogue *catalogue;    /* locked */
	const struct agents *agents;          /* for what runs now; NULL: not asked for */
	struct arena *arena;                  /* to work in */
	int64_t now_ms;
};

/* Writes it as a value of JSON. */
void job_view_write(struct json_writer *json, const char *key, const struct job_view *view);

/* Where a job is: the node of its first task that has one, or NULL. */
const char *job_view_node(const struct job_view *view);

#endif
