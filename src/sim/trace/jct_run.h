/* jct_run.h - the state of one run of jct, shared by its files */
#ifndef SIM_TRACE_JCT_RUN_H
#define SIM_TRACE_JCT_RUN_H

#include "base/map.h"
#include "core/record/config_range.h"
#include "core/sched.h"
#include "sim/trace/jct.h"

#define PRIORITY_LOW 500

/* A job in the simulated world. */
struct run_job {
	int64_t left_ms;  /* that it still has to run */
	int64_t start_ms; /* when its work resumes, after the cost of the interruption */
	int64_t wait_ms;  /* since when it does not run */
	int64_t had_ms;   /* GPU time */
	int64_t cost_ms;  /* of its next start */
	int64_t promised_ms, likely_ms, told_ms; /* its start, and when that was said; 0: not */
	int32_t tasks, running;
	int64_t *reservations; /* of its tasks, 0 where it has none */
	int64_t moved_ms;      /* when its GPU memory has been moved; 0: it is not being moved */
	bool runs, low;
	bool leaves; /* its GPU memory goes to host memory, or comes back */
};

/* An order that the core gave. */
struct told {
	enum effect_kind kind;
	int64_t reservation_id, job_id, task;
};

struct jct {
	const struct philly *philly;
	const struct jct_world *world;
	const struct jct_policy *policy;
	struct jct_result *result;
	struct sched *sched;
	struct effects effects;
	struct run_job *jobs;
	struct map by_reservation; /* struct run_job */
	struct told *told;
	size_t told_count, told_capacity;
	int32_t *running; /* jobs that run, in no order that decides anything */
	size_t running_count;
	int32_t *moving; /* jobs whose GPU memory is being moved, in no such order either */
	size_t moving_count;
	int64_t *tenant_ids; /* by virtual cluster */
	int64_t first_id;    /* of jobs, which are numbered in turn */
	int64_t now_ms, last_submit_ms;
	size_t arrived, submitted, ended;
	uint64_t random;
	bool more;
};

/* Virtual clusters that there are at the least: one, even where a trace names none. */
size_t jct_clusters(const struct philly *philly);
/* True if GPUs are shared in time under its policy. */
bool jct_shares(const struct jct *jct);
/* True if jobs are suspended under its policy. */
static inline bool jct_suspends(const struct jct *jct)
{
	return jct->policy->kind == JCT_SUSPEND || jct->policy->kind == JCT_PARALLEL;
}
/* Sends it, and notes what is ordered. */
bool jct_send(struct jct *jct, struct command *command, struct error *error);
/* A core with its settings, tenants and nodes. */
bool jct_begin(struct jct *jct, struct error *error);

/* Submits the next job. */
bool jct_submit(struct jct *jct, struct error *error);
/* The nodes do what they were told, at once, and say so. */
bool jct_obey(struct jct *jct, struct error *error);
/* The GPU memory of the job is in host memory, or back. */
bool jct_moved(struct jct *jct, struct run_job *run, struct error *error);
/* The job has done its work. */
bool jct_end_job(struct jct *jct, struct run_job *run, struct error *error);
/* Its place in the trace. */
size_t jct_place_of(const struct jct *jct, const struct run_job *run);

#endif
