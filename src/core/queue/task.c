/* task.c - what happens to tasks, and what that means for their job */
#include <stdlib.h>
#include <string.h>

#include "core/queue/depends.h"
#include "core/queue/job.h"
#include "core/queue/suspend.h"
#include "core/queue/task_local.h"
#include "core/state.h"

#define BACKOFF_DOUBLINGS 6

void task_set_state(struct sched *sched, struct job *job, int place, enum task_state state)
{
	struct task *task = &job->tasks[place];

	if (task->state == state)
		return;
	job->pending += (state == TASK_PENDING) - (task->state == TASK_PENDING);
	task->state = state;
	sched_dirty_task(sched, job, place);
}

void task_event(struct sched *sched, const struct reservation *reservation, enum event_kind kind,
                int64_t value)
{
	sched_event(sched, (struct event){ .kind = kind,
	                                   .job_id = reservation->job->r.id,
	                                   .task = reservation->task,
	                                   .node_id = reservation->node->r.id,
	                                   .tenant_id = reservation->job->r.tenant_id,
	                                   .value = value });
}

void task_send(struct sched *sched, enum effect_kind kind, const struct reservation *reservation)
{
	int64_t rows[PARTS_MAX * PART_WIDTH];

	INVARIANT(reservation->job);
	reservation_rows(reservation, rows);
	effects_order(sched->effects, kind,
	              &(struct task_order){ .term = sched->meta.term,
	                                    .reservation_id = reservation->id,
	                                    .job_id = reservation->job->r.id,
	                                    .task = reservation->task,
	                                    .node_id = reservation->node->r.id,
	                                    .tenant_id = reservation->job->r.tenant_id,
	                                    .grace_ms = sched->config.grace_ms,
	                                    .tasks = reservation->job->r.tasks,
	                                    .parts = { rows, reservation->part_count },
	                                    .cpu_milli = reservation->cpu_milli,
	                                    .host_bytes = reservation->host_bytes,
	                                    .copy_bytes = reservation->copy_bytes,
	                                    .max_runtime_ms = reservation->job->r.max_runtime_ms,
	                                    .lease_loss = reservation->job->r.lease_loss });
}

void order_start(struct sched *sched, const struct reservation *reservation)
{
	INVARIANT(reservation->job != NULL && sched->effects != NULL);
	task_send(sched, EFFECT_START, reservation);
}

void order_stop(struct sched *sched, const struct reservation *reservation)
{
	INVARIANT(reservation->job != NULL && sched->effects != NULL);
	task_send(sched, EFFECT_STOP, reservation);
}

void order_stop_unknown(struct sched *sched, const struct node *node, int64_t reservation_id)
{
	effects_order(sched->effects, EFFECT_STOP,
	              &(struct task_order){ .term = sched->meta.term,
	                                    .reservation_id = reservation_id,
	                                    .node_id = node->r.id,
	                                    .grace_ms = sched->config.grace_ms });
}

void reservation_watch(struct sched *sched, struct reservation *reservation)
{
	if (heap_has(&sched->releases, reservation))
		heap_remove(&sched->releases, reservation);
	reservation->due_ms = INT64_MAX;
	bool returns =
	    reservation->phase == PHASE_RELEASING || reservation->phase == PHASE_SUSPENDING;
	if (!returns || reservation->late)
		return;
	/* A moment at the least, or a pass would find late what it has just stopped. */
	reservation->due_ms = reservation->since_ms +
	                      max64(sched->config.grace_ms + sched->config.release_timeout_ms, 1);
	if (reservation->phase == PHASE_SUSPENDING)
		reservation->due_ms += suspend_patience_ms(reservation);
	heap_push(&sched->releases, reservation);
}

void reservation_gone(struct sched *sched, struct reservation *reservation)
{
	struct task *task = &reservation->job->tasks[reservation->task];

	INVARIANT(reservation->entered && !sched->plan.open);
	if (heap_has(&sched->releases, reservation))
		heap_remove(&sched->releases, reservation);
	ledger_leave(&sched->ledger, reservation);
	for (int i = 0; i < reservation->part_count; i++)
		node_report_over(sched, reservation->parts[i].gpu);
	if (task->claim == reservation)
		task->claim = NULL;
	else
		task->reservation = NULL;
	sched_dirty_task(sched, reservation->job, reservation->task);
	sched_gone_reservation(sched, reservation);
}

/* Tells the node to stop it; it counts until the memory is back. */
static void task_stop(struct sched *sched, struct reservation *reservation, bool requeue,
                      enum run_ending ending)
{
	if (reservation->run_id == 0)
		reservation->ending = ending;
	if (reservation->phase != PHASE_RELEASING) {
		ledger_phase(&sched->ledger, reservation, PHASE_RELEASING, false);
		reservation->since_ms = sched_now(sched);
	}
	reservation->requeue = requeue;
	sched_dirty_reservation(sched, reservation);
	reservation_watch(sched, reservation);
	task_set_state(sched, reservation->job, reservation->task, TASK_STOPPING);
	task_send(sched, EFFECT_STOP, reservation);
}

void job_begins(struct sched *sched, struct job *job)
{
	INVARIANT(!sched->plan.open);
	if (job->s.started_ms > 0 || job->counts.granted == 0)
		return;
	job->s.start = ++sched->meta.last_start;
	sched_dirty_job(sched, job);
}

void job_granted(struct sched *sched, struct reservation *reservation)
{
	struct job *job = reservation->job;

	INVARIANT(reservation->phase == PHASE_GRANTED && !sched->plan.open);
	task_set_state(sched, job, reservation->task, TASK_PLACED);
	sched_dirty_task(sched, job, reservation->task);
	task_send(sched, EFFECT_START, reservation);
}

void job_claimed(struct sched *sched, struct reservation *claim)
{
	INVARIANT(claim->phase == PHASE_CLAIM && !sched->plan.open);
	sched_dirty_task(sched, claim->job, claim->task);
}

void job_evicted(struct sched *sched, struct reservation *reservation)
{
	INVARIANT(reservation->phase == PHASE_RELEASING && !sched->plan.open);
	task_stop(sched, reservation, true, RUN_PREEMPTED);
}

void job_drop_claims(struct sched *sched, struct job *job)
{
	for (int i = 0; i < job->r.tasks && job->counts.claims > 0; i++)
		if (job->tasks[i].claim)
			reservation_gone(sched, job->tasks[i].claim);
}

/* Ends its run; the next one starts from scratch. */
static void forget_run(struct sched *sched, struct job *job)
{
	if (job->counts.granted + job->counts.live + job->counts.suspended > 0 ||
	    job->s.started_ms == 0)
		return;
	job_unlist(sched, job); /* its place in the queue depends on how long it ran */
	job->s.served_ms += job_run_ms(job, sched_now(sched));
	job->s.suspended_ms = job->s.paused_ms = 0;
	job->s.parked = false;
	if (!job_state_is_final((enum job_state)job->s.state))
		predict_stopped(sched, job);
	job->s.started_ms = 0;
	margin_forget(job);
	job->saved_ms = job->s.checkpoint_ms;
	job->s.checkpoint_ms = 0;
	sched_dirty_job(sched, job);
}

void job_interrupted(struct sched *sched, struct job *job)
{
	INVARIANT(!sched->plan.open);
	job->s.preempted_count++;
	forget_run(sched, job);
	sched_dirty_job(sched, job);
	job_settle(sched, job);
}

void job_stop(struct sched *sched, struct job *job)
{
	INVARIANT(!sched->plan.open);
	for (int i = 0; i < job->r.tasks; i++) {
		struct reservation *reservation = job->tasks[i].reservation;
		if (reservation && reservation->phase != PHASE_RELEASING)
			task_stop(sched, reservation, true, RUN_REQUEUED);
	}
	forget_run(sched, job);
}

void job_set_message(struct sched *sched, struct job *job, const char *message)
{
	job_keep_message(job, message);
	sched_dirty_job(sched, job);
}

static void unlink_from(struct job *other, const struct job *job)
{
	size_t kept = 0;

	for (size_t i = 0; i < other->dependent_count; i++)
		if (other->dependents[i] != job)
			other->dependents[kept++] = other->dependents[i];
	other->dependent_count = kept;
}

static void unlink_dependencies(struct sched *sched, struct job *job)
{
	struct dependency_walk walk = { 0 };
	enum dependency kind;
	struct job *other;

	while ((other = dependency_next(sched, &job->r, &walk, &kind)) != NULL)
		unlink_from(other, job);
}

static bool wants_success(const struct job *job, int64_t other_id)
{
	for (int64_t i = 0; i < job->r.depends.count; i++)
		if (job->r.depends.at[2 * i] == other_id &&
		    job->r.depends.at[2 * i + 1] == AFTER_SUCCESS)
			return true;
	for (int64_t i = 0; i < job->r.depends_arrays.count; i++) {
		const int64_t *row = job->r.depends_arrays.at + 3 * i;
		if (row[1] == AFTER_SUCCESS && other_id >= row[0] && other_id - row[0] < row[2])
			return true;
	}
	return false;
}

static void count_end(struct sched *sched, struct job *job)
{
	struct tenant_record *totals = &job->tenant->r;

	totals->jobs_completed += job->s.state == JOB_COMPLETED;
	totals->jobs_failed += job->s.state == JOB_FAILED;
	totals->jobs_cancelled += job->s.state == JOB_CANCELLED;
	sched_dirty_tenant(sched, job->tenant);
	predict_ended(sched, job);
}

/* Stops tasks that still run when their job ends. */
static enum run_ending ending_of(enum job_state state)
{
	if (state == JOB_COMPLETED)
		return RUN_COMPLETED;
	return state == JOB_FAILED ? RUN_FAILED : RUN_CANCELLED;
}

/* Ends this job alone: those that wait for it are to be told. */
static void task_finish(struct sched *sched, struct job *job, enum job_state state,
                        const char *message)
{
	job->s.state = (int32_t)state;
	job->s.completed_ms = sched_now(sched);
	job_set_message(sched, job, message);
	job_drop_claims(sched, job);
	for (int i = 0; i < job->r.tasks; i++) {
		struct reservation *reservation = job->tasks[i].reservation;
		if (reservation && reservation->phase != PHASE_RELEASING) {
			task_stop(sched, reservation, false, ending_of(state));
		} else if (reservation && reservation->requeue) {
			reservation->requeue = false;
			sched_dirty_reservation(sched, reservation);
		}
	}
	count_end(sched, job);
	unlink_dependencies(sched, job);
	sched_event(sched, (struct event){ .kind = EVENT_JOB_ENDED,
	                                   .job_id = job->r.id,
	                                   .tenant_id = job->r.tenant_id,
	                                   .value = state });
	job_settle(sched, job);
}

/* A list of jobs that grows. */
struct endings {
	struct job **jobs;
	size_t count, capacity;
};

static void finish_with(struct sched *sched, struct job *waiting, const struct job *other,
                        struct endings *endings)
{
	struct buffer message = { 0 };

	buffer_print(&message, "job-%lld, which it depends on, did not succeed",
	             (long long)other->r.id);
	task_finish(sched, waiting, JOB_CANCELLED, message.data);
	buffer_free(&message);
	array_reserve(endings->jobs, endings->capacity, endings->count + 1);
	endings->jobs[endings->count++] = waiting;
}

/* Jobs that depend on it may start now, or end with it. */
static void tell_dependents(struct sched *sched, struct job *job, struct endings *endings)
{
	struct job **dependents = job->dependents;
	size_t count = job->dependent_count;

	job->dependents = NULL;
	job->dependent_count = job->dependent_capacity = 0;
	for (size_t i = 0; i < count; i++) {
		struct job *waiting = dependents[i];
		if (job_state_is_final((enum job_state)waiting->s.state))
			continue;
		waiting->unmet--;
		if (job->s.state != JOB_COMPLETED && wants_success(waiting, job->r.id))
			finish_with(sched, waiting, job, endings);
		else
			job_settle(sched, waiting);
	}
	free(dependents);
}

/* Jobs can depend on each other in a chain of any length, so it is gone through
 * one by one. */
void job_end(struct sched *sched, struct job *job, enum job_state state, const char *message)
{
	struct endings endings = { 0 };

	INVARIANT(job_state_is_final(state) && !sched->plan.open);
	task_finish(sched, job, state, message);
	tell_dependents(sched, job, &endings);
	for (size_t i = 0; i < endings.count; i++)
		tell_dependents(sched, endings.jobs[i], &endings);
	free(endings.jobs);
}

bool job_cancel(struct sched *sched, struct job *job, struct error *error)
{
	INVARIANT(!sched->plan.open && sched->effects != NULL);
	if (job_state_is_final((enum job_state)job->s.state))
		return error_set(error, ERROR_CONFLICT, "job-%lld has already finished",
		                 (long long)job->r.id);
	job_end(sched, job, JOB_CANCELLED, "cancelled");
	return true;
}

bool job_hold(struct sched *sched, struct job *job, struct error *error)
{
	INVARIANT(!sched->plan.open && sched->effects != NULL);
	if (job_state_is_final((enum job_state)job->s.state))
		return error_set(error, ERROR_CONFLICT, "job-%lld has already finished",
		                 (long long)job->r.id);
	if (job->counts.granted + job->counts.live + job->counts.suspended > 0)
		return error_set(error, ERROR_CONFLICT,
		                 "job-%lld runs: requeue it first, then hold it",
		                 (long long)job->r.id);
	job_drop_claims(sched, job);
	if (!job->s.held)
		sched_event(sched, (struct event){ .kind = EVENT_JOB_HELD,
		                                   .job_id = job->r.id,
		                                   .tenant_id = job->r.tenant_id });
	job->s.held = true;
	sched_dirty_job(sched, job);
	job_settle(sched, job);
	return true;
}

bool job_unhold(struct sched *sched, struct job *job, struct error *error)
{
	INVARIANT(!sched->plan.open && sched->effects != NULL);
	if (!job->s.held || job_state_is_final((enum job_state)job->s.state))
		return error_set(error, ERROR_CONFLICT, "job-%lld is not held",
		                 (long long)job->r.id);
	job->s.held = false;
	sched_dirty_job(sched, job);
	sched_event(sched, (struct event){ .kind = EVENT_JOB_RELEASED,
	                                   .job_id = job->r.id,
	                                   .tenant_id = job->r.tenant_id });
	job_settle(sched, job);
	return true;
}

bool job_requeue(struct sched *sched, struct job *job, struct error *error)
{
	INVARIANT(!sched->plan.open && sched->effects != NULL);
	if (job->counts.granted + job->counts.live + job->counts.suspended == 0)
		return error_set(error, ERROR_CONFLICT, "job-%lld is not running",
		                 (long long)job->r.id);
	job_drop_claims(sched, job);
	job_stop(sched, job);
	job_settle(sched, job);
	return true;
}

bool job_reprioritise(struct sched *sched, struct job *job, int64_t priority, struct error *error)
{
	INVARIANT(!sched->plan.open && sched->effects != NULL);
	if (job_state_is_final((enum job_state)job->s.state))
		return error_set(error, ERROR_CONFLICT, "job-%lld has already finished",
		                 (long long)job->r.id);
	if (priority < INT32_MIN || priority > INT32_MAX)
		return error_set(error, ERROR_INVALID, "priority %lld is out of range",
		                 (long long)priority);
	job_unlist(sched, job);
	job->r.priority = priority;
	job->spec_dirty = true;
	sched_dirty_job(sched, job);
	job_settle(sched, job);
	return true;
}

bool task_started(struct sched *sched, struct reservation *reservation, struct error *error)
{
	struct job *job = reservation->job;

	INVARIANT(reservation->job != NULL && reservation->entered);
	if (reservation->phase == PHASE_LIVE)
		return true;
	if (reservation->phase != PHASE_GRANTED)
		return error_set(error, ERROR_CONFLICT, "reservation %lld is not to be started",
		                 (long long)reservation->id);
	ledger_phase(&sched->ledger, reservation, PHASE_LIVE, false);
	reservation->since_ms = sched_now(sched);
	sched_dirty_reservation(sched, reservation);
	job->tasks[reservation->task].started_ms = sched_now(sched);
	if (job->s.started_ms == 0) {
		job->s.started_ms = max64(sched_now(sched), 1);
		job->s.refusals = 0;
		predict_started(sched, job);
		margin_started(sched, job);
		job_look_soon(sched, job);
		sched_dirty_job(sched, job);
	}
	task_set_state(sched, job, reservation->task, TASK_RUNNING);
	task_event(sched, reservation, EVENT_TASK_STARTED, 0);
	job_settle(sched, job);
	return true;
}

/* A split that lost a part begins again: its parts are of use only together. */
static void restart_split(struct sched *sched, struct job *job)
{
	if (job->r.split_gpus == 0 || job->counts.granted + job->counts.live + job->ended == 0)
		return;
	for (int i = 0; i < job->r.tasks; i++) {
		struct reservation *reservation = job->tasks[i].reservation;
		if (reservation && !(reservation->phase == PHASE_RELEASING && reservation->requeue))
			task_stop(sched, reservation, true, RUN_REQUEUED);
		else if (!reservation && job->tasks[i].state == TASK_ENDED)
			task_set_state(sched, job, i, TASK_PENDING);
	}
	job->ended = 0;
	forget_run(sched, job);
}

bool task_refused(struct sched *sched, struct reservation *reservation, const char *message,
                  struct error *error)
{
	struct job *job = reservation->job;

	INVARIANT(reservation->job != NULL && reservation->entered);
	if (reservation->phase == PHASE_RELEASING) /* it was told to stop meanwhile */
		return task_released(sched, reservation, error);
	if (reservation->phase != PHASE_GRANTED)
		return error_set(error, ERROR_CONFLICT,
		                 "reservation %lld is not waiting for a start",
		                 (long long)reservation->id);
	int64_t doublings = min64(job->s.refusals, BACKOFF_DOUBLINGS);
	job->s.refusals++;
	job->s.not_before_ms = sched_now(sched) + (sched->config.refuse_backoff_ms << doublings);
	job_set_message(sched, job, message);
	task_set_state(sched, job, reservation->task, TASK_PENDING);
	reservation->ending = RUN_REFUSED;
	reservation_gone(sched, reservation);
	restart_split(sched, job);
	job_settle(sched, job);
	return true;
}

static void maybe_completed(struct sched *sched, struct job *job)
{
	bool all = job_active(job) == 0;

	if (!job_state_is_final((enum job_state)job->s.state) && all &&
	    job->ended >= min64(job->r.min_available, job->r.tasks))
		job_end(sched, job, JOB_COMPLETED, "");
}

/* A measurement of a node that is out of all reason counts for nothing. */
static int64_t counted(int64_t number)
{
	return number >= 0 && number <= TIME_MS_MAX ? number : 0;
}

/* What its runs used adds up; peaks do not. */
static void add_use(struct sched *sched, struct job *job, int place, const struct task_use *run)
{
	struct task_use *use = &job->tasks[place].use;

	use->peak_mib = max64(use->peak_mib, counted(run->peak_mib));
	use->gpu_ms = min64(use->gpu_ms + counted(run->gpu_ms), TIME_MS_MAX);
	use->energy_mj = min64(use->energy_mj + counted(run->energy_mj), TIME_MS_MAX);
	use->host_peak_bytes = max64(use->host_peak_bytes, counted(run->host_peak_bytes));
	use->cpu_ms = min64(use->cpu_ms + counted(run->cpu_ms), TIME_MS_MAX);
	if (run->limit_mib > 0)
		use->limit_mib = counted(run->limit_mib);
	use->guard_peak_mib = max64(use->guard_peak_mib, counted(run->guard_peak_mib));
	use->refusals = min64(use->refusals + counted(run->refusals), TIME_MS_MAX);
	if (run->refused_mib > 0)
		use->refused_mib = counted(run->refused_mib);
	use->unguarded = use->unguarded || run->unguarded;
	sched_dirty_task(sched, job, place);
}

/* Records the usage of this run. */
static void note_use(struct sched *sched, struct reservation *reservation,
                     const struct task_end *end)
{
	reservation->measured = true;
	reservation->exit_code = end->exit_code;
	reservation->peak_mib = counted(end->use->peak_mib);
	reservation->energy_mj = counted(end->use->energy_mj);
	sched_dirty_reservation(sched, reservation);
}

static void task_fail(struct sched *sched, struct job *job, int place, const struct task_end *end)
{
	static const char killed[] = "it was killed";
	struct buffer message = { 0 };

	job->s.exit_code = end->exit_code;
	if (end->message && strncmp(end->message, killed, strlen(killed)) == 0)
		buffer_print(&message, "task %d %s", place, end->message + strlen("it "));
	else
		buffer_print(&message, "task %d ended with %lld%s%s", place,
		             (long long)end->exit_code, end->message && *end->message ? ": " : "",
		             end->message ? end->message : "");
	job_end(sched, job, JOB_FAILED, message.data);
	buffer_free(&message);
}

/* Others had its memory: that is not its failure. */
static bool task_may_run_again(const struct sched *sched, const struct job *job,
                               const struct task_end *end)
{
	return end->foreign && end->exit_code != 0 &&
	       !job_state_is_final((enum job_state)job->s.state) &&
	       job->s.foreign_requeues < sched->config.foreign_requeues;
}

static void task_run_again(struct sched *sched, struct job *job, int place,
                           const struct task_end *end)
{
	struct buffer message = { 0 };
	int64_t doublings = min64(job->s.foreign_requeues, BACKOFF_DOUBLINGS);

	job->s.foreign_requeues++;
	job->s.not_before_ms = sched_now(sched) + (sched->config.refuse_backoff_ms << doublings);
	buffer_print(&message, "task %d ended with %lld while %s: queued again, %lld of %lld times",
	             place, (long long)end->exit_code,
	             end->message && *end->message ? end->message : "others used its memory",
	             (long long)job->s.foreign_requeues, (long long)sched->config.foreign_requeues);
	job_set_message(sched, job, message.data);
	buffer_free(&message);
	job_drop_claims(sched, job);
	job_stop(sched, job);
}

/* The task exited: its job continues, is done, has failed, or is queued again. */
static void ended(struct sched *sched, struct reservation *reservation, const struct task_end *end)
{
	struct job *job = reservation->job;
	struct task *task = &job->tasks[reservation->task];
	bool lost = phase_is_suspended(reservation->phase) && end->exit_code != 0;
	bool again = task_may_run_again(sched, job, end);
	enum run_ending failed = again ? RUN_REQUEUED : RUN_FAILED;

	if (lost) {
		suspend_lost(sched, reservation);
		task_stop(sched, reservation, true, RUN_REQUEUED);
		task_event(sched, reservation, EVENT_TASK_ENDED, end->exit_code);
		return;
	}
	ledger_phase(&sched->ledger, reservation, PHASE_RELEASING, false);
	reservation->since_ms = sched_now(sched);
	reservation->ending = end->exit_code == 0 ? RUN_COMPLETED : failed;
	reservation->requeue = again;
	sched_dirty_reservation(sched, reservation);
	reservation_watch(sched, reservation);
	task->ended_ms = max64(sched_now(sched) - counted(end->ago_ms),
	                       min64(task->started_ms, sched_now(sched)));
	task->exit_code = end->exit_code;
	task_set_state(sched, job, reservation->task, again ? TASK_STOPPING : TASK_ENDED);
	task_event(sched, reservation, EVENT_TASK_ENDED, end->exit_code);
	if (job_state_is_final((enum job_state)job->s.state))
		return;
	if (again) {
		task_run_again(sched, job, reservation->task, end);
	} else if (end->exit_code == 0) {
		job->ended++;
		maybe_completed(sched, job);
	} else {
		task_fail(sched, job, reservation->task, end);
	}
}

/* It was told to stop and to run again, but had done its work. */
static void finished_while_stopping(struct sched *sched, struct reservation *reservation)
{
	struct job *job = reservation->job;

	if (!reservation->requeue || job->r.split_gpus > 0 ||
	    job_state_is_final((enum job_state)job->s.state))
		return;
	if (job->tasks[reservation->task].claim) /* where it was to run again */
		job_drop_claims(sched, job);
	reservation->requeue = false;
	reservation->ending = RUN_COMPLETED;
	job->tasks[reservation->task].ended_ms = sched_now(sched);
	job->tasks[reservation->task].exit_code = 0;
	task_set_state(sched, job, reservation->task, TASK_ENDED);
	task_event(sched, reservation, EVENT_TASK_ENDED, 0);
	job->ended++;
	maybe_completed(sched, job);
}

bool task_exited(struct sched *sched, struct reservation *reservation, const struct task_end *end,
                 struct error *error)
{
	struct job *job = reservation->job;

	INVARIANT(reservation->job != NULL && reservation->entered);
	if (reservation->phase == PHASE_CLAIM)
		return error_set(error, ERROR_CONFLICT, "reservation %lld was never started",
		                 (long long)reservation->id);
	add_use(sched, job, reservation->task, end->use);
	note_use(sched, reservation, end);
	reservation->leaving = end->released;
	if (reservation->phase != PHASE_RELEASING)
		ended(sched, reservation, end);
	else if (end->finished && end->exit_code == 0)
		finished_while_stopping(sched, reservation);
	if (end->released)
		return task_released(sched, reservation, error);
	job_settle(sched, job);
	return true;
}

bool task_notice(struct sched *sched, struct reservation *reservation, int32_t notice,
                 const char *message, struct error *error)
{
	struct job *job = reservation->job;
	struct buffer text = { 0 };

	INVARIANT(reservation->job != NULL && reservation->entered);
	if (notice < 0 || notice >= NOTICES)
		return error_set(error, ERROR_INVALID, "notice %d is not known", (int)notice);
	if (reservation->phase != PHASE_LIVE || job_state_is_final((enum job_state)job->s.state))
		return error_set(error, ERROR_CONFLICT, "reservation %lld is not running",
		                 (long long)reservation->id);
	buffer_print(&text, "task %d: %s", reservation->task, message ? message : "");
	job_set_message(sched, job, text.data);
	buffer_free(&text);
	task_event(sched, reservation, event_of_notice(notice), 0);
	return true;
}

bool task_checkpoint(struct sched *sched, struct reservation *reservation, struct error *error)
{
	struct job *job = reservation->job;

	INVARIANT(reservation->job != NULL && reservation->entered);
	/* What it wrote just before it was suspended may be told after the order to do so. */
	if (reservation->phase != PHASE_LIVE && reservation->phase != PHASE_SUSPENDING)
		return error_set(error, ERROR_CONFLICT, "reservation %lld is not running",
		                 (long long)reservation->id);
	job->s.checkpoint_ms = sched_now(sched);
	job->s.start = ++sched->meta.last_start;
	sched_dirty_job(sched, job);
	job_settle(sched, job);
	return true;
}

/* The task of a right that has gone: to be run again, or done with. */
static void task_back(struct sched *sched, struct job *job, int place, bool requeue)
{
	if (requeue && !job_state_is_final((enum job_state)job->s.state)) {
		task_set_state(sched, job, place, TASK_PENDING);
		restart_split(sched, job);
	} else {
		task_set_state(sched, job, place, TASK_ENDED);
	}
	forget_run(sched, job);
	job_settle(sched, job);
}

bool task_released(struct sched *sched, struct reservation *reservation, struct error *error)
{
	struct job *job = reservation->job;
	int place = reservation->task;
	bool requeue = reservation->requeue;

	INVARIANT(reservation->job != NULL && reservation->entered);
	if (reservation->phase != PHASE_RELEASING)
		return error_set(error, ERROR_CONFLICT,
		                 "reservation %lld has not been told to stop",
		                 (long long)reservation->id);
	reservation_gone(sched, reservation);
	task_back(sched, job, place, requeue);
	return true;
}

void task_vanished(struct sched *sched, struct reservation *reservation)
{
	struct job *job = reservation->job;
	int place = reservation->task;
	bool requeue = reservation->phase != PHASE_RELEASING || reservation->requeue;
	bool claim = reservation->phase == PHASE_CLAIM;

	INVARIANT(reservation->job != NULL && reservation->entered);
	if (claim) {
		job_drop_claims(sched, job);
		job_settle(sched, job);
		return;
	}
	if (reservation->run_id == 0)
		reservation->ending = RUN_NODE_LOST;
	reservation_gone(sched, reservation);
	task_back(sched, job, place, requeue);
}
