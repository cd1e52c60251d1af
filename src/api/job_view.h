/* job_view.h - a job as people read it */
#ifndef API_JOB_VIEW_H
#define API_JOB_VIEW_H

#include "api/catalogue.h"
#include "core/sched.h"
#include "wire/json_writer.h"

/* What there is to tell about a job. */
struct job_view {
	const struct job_record *job;
	const struct job_state_record *state;
	const struct task_record *const *tasks; /* those that were ever placed */
	size_t task_count;
	const struct promise_record *promise; /* NULL: none */
	const struct wait_figures *wait;      /* NULL: not asked for, or it does not wait */
	const struct catalogue *catalogue;    /* locked; NULL: archived, its GPUs are not known */
	struct arena *arena;                  /* to work in */
	int64_t now_ms;
};

/* Writes it as a value of JSON. */
void job_view_write(struct json_writer *json, const char *key, const struct job_view *view);

/* Where a job is: the node of its first task that has one, or NULL. */
const char *job_view_node(const struct job_view *view);

#endif
