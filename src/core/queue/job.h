/* job.h - jobs and their tasks, from submission to the end */
#ifndef CORE_QUEUE_JOB_H
#define CORE_QUEUE_JOB_H

#include "base/heap.h"
#include "core/cluster/reservation.h"
#include "core/queue/predict.h"
#include "core/queue/queue.h"
#include "core/queue/shape.h"
#include "core/record/record.h"

struct array;
struct promise;
struct sched;

/* A task holds at most one right (held, live or releasing) and at most one
 * claim. It has a claim beside a right only while it is being moved. */
struct task {
	enum task_state state;
	bool dirty, recorded;
	bool holds_right, holds_claim; /* what its record said; while loading */
	struct reservation *reservation, *claim;
	int64_t started_ms, ended_ms, exit_code;
	struct task_use use; /* of all its finished runs */
};

/* Counts over its tasks, kept by ledger.c: claims, held, live, releasing, suspended. */
struct job_counts {
	int32_t claims, granted, live, releasing, suspended;
};

struct job {
	struct job_record r;
	struct job_state_record s;
	struct tenant *tenant;
	char *texts;   /* what the texts and rows of `r` point into */
	char *message; /* what s.message points to; NULL: it is empty */
	struct shape_request request;
	struct filter *filter;
	struct task *tasks; /* r.tasks of them; a split job has as many as it needed */
	int task_capacity;
	struct job_counts counts;
	int32_t ended;        /* tasks that ended with success */
	int32_t pending;      /* tasks in TASK_PENDING */
	struct traits traits; /* for predict.c; tenant 0: not found yet */
	struct queue_entry entry;
	struct job_class *class; /* while it is queued */
	struct amounts asked;    /* what it adds to its tenant's `waiting` */
	int64_t unmet;           /* dependencies that have not ended yet */
	struct job **dependents; /* jobs that wait for this one */
	size_t dependent_count, dependent_capacity;
	struct promise *promise;
	bool dirty, spec_dirty;
	bool has_state;         /* its state was loaded; while loading */
	struct array *array;    /* of the array that it is an element of, if that has a limit */
	int32_t array_active;   /* job_active when it was last settled */
	bool eligible;          /* may wait in the queue, but for its array's limit */
	bool in_array, in_turn; /* in its array's `eligible`, and one of the `turns` there */
	bool is_waiting;        /* counted in sched.waiting and its tenant's waiting_jobs */
	bool claiming;          /* in sched.claimants */
	int64_t spared;         /* the last search that spares it, as it is about to end */
	bool is_victim;         /* in its tenant's tree of victims, by (priority, -victim_start) */
	int64_t victim_start;
	bool victim_surplus;     /* counted in its tenant's surplus_victims */
	int64_t end_ms;          /* its key in sched.ends; 0: not in it */
	int64_t understaffed_ms; /* its key in sched.understaffed; 0: not in it */
	int64_t saved_ms;        /* the last checkpoint of the run that ended in this command */
	int64_t suspended_key;   /* in sched.suspended, by (suspended_ms, id); 0: not in it */
	int64_t timer_ms;        /* when time alone changes something about it; INT64_MAX */
	int32_t timer_index;
};

/* Tasks that count as placed: claimed, held, live or suspended. */
static inline int32_t job_active(const struct job *job)
{
	return job->counts.claims + job->counts.granted + job->counts.live + job->counts.suspended;
}
/* Since when it has waited for what it waits for now: one that runs and could
 * grow, since it runs. */
static inline int64_t job_age_from(const struct job *job)
{
	return job_active(job) > 0 && job->s.started_ms > 0 ? job->s.started_ms : job->s.queued_ms;
}
/* Sets s.message to a copy of the text. */
void job_keep_message(struct job *job, const char *message);
/* Among jobs of equal priority and age: by id, but the fewer tasks a job has
 * already, the sooner it gets another. */
static inline int64_t job_turn(const struct job *job)
{
	return ((int64_t)job_active(job) << 40) + job->r.id;
}
/* How many tasks its next attempt must place together: up to the minimum, then
 * one by one; 0: it has all it may have. */
int64_t job_need(const struct job *job);
/* What `tasks` of its tasks count for with its tenant, before their GPUs are
 * known: by the smallest GPU of the cluster. */
struct amounts job_amounts(const struct sched *sched, const struct job *job, int64_t tasks);
struct amounts job_amounts_on(const struct job *job, int64_t tasks, int64_t smallest_mib);
/* GPU-time of its placed tasks since start or last checkpoint, in thousandths x ms. */
int64_t job_work_at_risk(const struct job *job, int64_t now_ms);
/* When it is expected to end; INT64_MAX: nobody knows. */
int64_t job_expected_end(const struct job *job, int64_t now_ms);
/* The order in which jobs wait, by the settings. */
struct queue_rule job_rule(const struct sched *sched);
/* Whether it takes turns with others of its tenant and priority where GPUs are
 * shared in time: it can be interrupted, and runs as a whole or not at all. */
bool job_takes_turns(const struct job *job);
/* GPU time in ms that it is expected to take when it has run for `ran_ms`: what is
 * left of its estimate, but at least half of what it has had; without an estimate what
 * is predicted (SHARING_PREDICTED_SERVICE), or else as much as it has had. At most SERVICE_MAX_MS.
 */
#define SERVICE_MAX_MS (INT64_C(1) << 43)
int64_t job_service_left(const struct sched *sched, const struct job *job, int64_t ran_ms);
/* True if its order of service comes from predictions: it says who submits it and has no
 * estimate, and the settings want that. */
bool job_is_predicted(const struct sched *sched, const struct job *job);
/* By how much later it counts as queued, for that, where GPUs are shared in time. */
int64_t job_behind(const struct sched *sched, const struct job *job);
/* The bounds on waiting, sharing_wait_ms, after which it is old whatever it is behind: by
 * predicted service timeshare.c keeps the bound, and the queue only beyond it. */
int64_t job_waits(const struct sched *sched, const struct job *job);
/* How long its present run has taken, without the time that it was suspended; 0: it has not begun.
 */
int64_t job_run_ms(const struct job *job, int64_t now_ms);
/* Where it would stand in the queue, for one that does not wait there. */
struct queue_entry job_entry(const struct sched *sched, const struct job *job);
/* How long it has run, in all. */
int64_t job_ran_ms(const struct job *job, int64_t now_ms);
int64_t job_asked_milli(const struct job *job); /* thousandths; memory of a GPU is that GPU */
/* Whether it may be stopped for others at all. */
bool job_is_protected(const struct sched *sched, const struct job *job);

/* An array with a limit: how many of its elements may wait or run at a time. */
struct array {
	int64_t id, limit;
	int64_t members;          /* elements in memory */
	int64_t active;           /* elements with a task placed */
	struct ranktree eligible; /* elements that may wait, by index */
	int64_t turns;            /* the first of those, which do wait in the queue */
};

/* Whether the record makes sense by itself, completed and apart from the tenant,
 * other jobs, the time and the settings. */
bool job_check(const struct job_record *record, struct error *error);

/* The job is not tried before: its owner or a refusal says so. */
static inline int64_t job_not_before(const struct job *job)
{
	return job->s.not_before_ms > job->r.begin_ms ? job->s.not_before_ms : job->r.begin_ms;
}

/* Commands. */
bool job_submit(struct sched *sched, const struct submit_command *submit, struct error *error);
/* The job that a submission would make, or the first of its array: under the next id, with what
 * is expected of it, but neither in the queue nor written anywhere. It is to be taken back by
 * job_trial_end() before anything else happens. `before`: the submission repeats that job, and
 * nothing is made. NULL and no `before`: it would be refused. */
struct job *job_trial(struct sched *sched, const struct submit_command *submit,
                      const struct job **before, struct error *error);
void job_trial_end(struct sched *sched, struct job *job);
bool job_cancel(struct sched *sched, struct job *job, struct error *error);
bool job_hold(struct sched *sched, struct job *job, struct error *error);
bool job_unhold(struct sched *sched, struct job *job, struct error *error);
bool job_requeue(struct sched *sched, struct job *job, struct error *error);
bool job_reprioritise(struct sched *sched, struct job *job, int64_t priority, struct error *error);
bool task_started(struct sched *sched, struct reservation *reservation, struct error *error);
bool task_refused(struct sched *sched, struct reservation *reservation, const char *message,
                  struct error *error);
/* How a task ended, as its node says. */
struct task_end {
	int64_t exit_code;
	int64_t ago_ms;      /* so long ago */
	const char *message; /* a sentence about 'it'; may be empty, or NULL */
	const struct task_use *use;
	bool released; /* and its memory is back */
	bool foreign;  /* foreign memory took what it had reserved: `message` says how much */
	bool finished; /* it did all of its work: it does not run again, also if told to stop */
};
bool task_exited(struct sched *sched, struct reservation *reservation, const struct task_end *end,
                 struct error *error);
/* For people: an event, and the job's message. */
bool task_notice(struct sched *sched, struct reservation *reservation, int32_t notice,
                 const char *message, struct error *error);
bool task_checkpoint(struct sched *sched, struct reservation *reservation, struct error *error);
bool task_released(struct sched *sched, struct reservation *reservation, struct error *error);
/* Its node is given up, or says that it is not there: nothing of it runs any more. */
void task_vanished(struct sched *sched, struct reservation *reservation);

/* Ends the job: none of its tasks runs again, and those that run are told to stop. */
void job_end(struct sched *sched, struct job *job, enum job_state state, const char *message);
/* Stops all of its tasks that run and queues them again. */
void job_stop(struct sched *sched, struct job *job);
/* Gives up all of its claims. */
void job_drop_claims(struct sched *sched, struct job *job);

/* Orders for the node. The last is for what is no task: a slot, or something
 * that it has and nobody knows. */
void order_start(struct sched *sched, const struct reservation *reservation);
void order_stop(struct sched *sched, const struct reservation *reservation);
void order_stop_unknown(struct sched *sched, const struct node *node, int64_t reservation_id);
void order_suspend(struct sched *sched, const struct reservation *reservation);
void order_resume(struct sched *sched, const struct reservation *reservation);
/* Its parts as rows of enum part_column; `rows` has room for PARTS_MAX of them. */
void reservation_rows(const struct reservation *reservation, int64_t *rows);
/* Takes it out of the queue and from among the victims, before its priority changes. */
void job_unlist(struct sched *sched, struct job *job);
/* Removes a right from the ledger, and deletes its record. */
void reservation_gone(struct sched *sched, struct reservation *reservation);

/* After a committed plan: orders, events and states of what changed. */
void job_begins(struct sched *sched, struct job *job);
void job_granted(struct sched *sched, struct reservation *reservation);
void job_claimed(struct sched *sched, struct reservation *claim);
void job_evicted(struct sched *sched, struct reservation *reservation);
/* All of the job's tasks were stopped for another: counts that, and settles it. */
void job_interrupted(struct sched *sched, struct job *job);

/* Takes it into the queue if it may wait there and needs a place, or out of it
 * if not; brings its timer, its place among victims and its state up to date.
 * Called after everything that may change these. */
void job_settle(struct sched *sched, struct job *job);
/* Lets a trial wait in the queue, where it may, and takes it out again. */
void job_trial_wait(struct sched *sched, struct job *job);
void job_trial_leave(struct sched *sched, struct job *job);
/* What is expected of the job has changed: looks at its deadline, if it has one, when time next
 * passes. */
void job_look_soon(struct sched *sched, struct job *job);
/* Time alone changed something about it. */
void job_timer(struct sched *sched, struct job *job);

/* The request that the record describes, with uneven parts in order. */
void job_fill_request(struct job *job);
/* Makes it wait for those of the jobs it depends on that are not over. */
void job_link_dependencies(struct sched *sched, struct job *job);

/* For loading: from records, in this order. */
struct job *job_load(struct sched *sched, const struct job_record *record, struct error *error);
bool job_load_state(struct sched *sched, const struct job_state_record *state, struct error *error);
bool job_load_task(struct sched *sched, const struct task_record *record, struct error *error);
/* A reservation as the record says, without an owner and not yet in the ledger; NULL if its
 * node or its GPUs do not exist. */
struct reservation *reservation_from(struct sched *sched, const struct reservation_record *record);
bool reservation_load(struct sched *sched, const struct reservation_record *record,
                      struct error *error);
/* Watches one that is releasing, so that it is found when it is late. */
void reservation_watch(struct sched *sched, struct reservation *reservation);
/* After all: dependencies, queue, victims, timers. */
void jobs_loaded(struct sched *sched);
void job_free(struct sched *sched, struct job *job);

#endif
