/* job.c - a job's place in the queue, among victims, and in time */
#include "core/queue/job.h"

#include <stdlib.h>
#include <string.h>

#include "core/queue/endings.h"
#include "core/state.h"

/* A predicted order holds until a job has waited this many times longer than another is
 * expected to take less: nearly always. */
#define PATIENCE 1024
#define OLD_WAITS 16 /* bounds on waiting, after which a job is old whatever is predicted */

int64_t job_need(const struct job *job)
{
	int64_t done = job_active(job) + job->ended;

	if (job->r.split_gpus > 0)
		return done == 0 && job->counts.releasing == 0 ? 1 : 0;
	if (done < job->r.min_available)
		return job->pending >= job->r.min_available - done ? job->r.min_available - done
		                                                   : 0;
	/* Once a task has ended no more are started, but for one that was interrupted
	 * when it was the last. */
	return job->pending > 0 && (job->ended == 0 || job_active(job) == 0) ? 1 : 0;
}

static int64_t share_asked(int64_t smallest_mib, int64_t mib)
{
	if (smallest_mib <= 0)
		return WHOLE_GPU;
	return min64((mib * WHOLE_GPU + smallest_mib - 1) / smallest_mib, WHOLE_GPU);
}

/* The amounts of the tasks on GPUs of `smallest` MiB. */
struct amounts job_amounts_on(const struct job *job, int64_t tasks, int64_t smallest_mib)
{
	const struct shape_request *request = &job->request;
	struct amounts one = { { 0 } };

	switch (request->gpu_kind) {
	case GPU_WHOLE:
		one.of[AMOUNT_GPU] = WHOLE_GPU * (int64_t)request->gpu_count;
		break;
	case GPU_FRACTION:
		one.of[AMOUNT_GPU] = (int64_t)request->fraction * request->gpu_count;
		one.of[AMOUNT_GPU_MEMORY] =
		    request->fraction * smallest_mib / WHOLE_GPU * (int64_t)request->gpu_count;
		break;
	case GPU_MEMORY:
		one.of[AMOUNT_GPU] =
		    share_asked(smallest_mib, request->memory_mib) * request->gpu_count;
		one.of[AMOUNT_GPU_MEMORY] = request->memory_mib * request->gpu_count;
		break;
	case GPU_UNEVEN:
		for (int i = 0; i < request->gpu_count; i++) {
			one.of[AMOUNT_GPU] += share_asked(smallest_mib, request->uneven_mib[i]);
			one.of[AMOUNT_GPU_MEMORY] += request->uneven_mib[i];
		}
		break;
	case GPU_NONE:
		break;
	}
	one.of[AMOUNT_CPU] = request->cpu_milli;
	one.of[AMOUNT_HOST] = request->host_bytes;
	if (job->r.split_gpus > 0) {
		one.of[AMOUNT_GPU] = WHOLE_GPU * job->r.split_gpus;
		tasks = min64(tasks, 1);
	}
	for (int k = 0; k < AMOUNT_JOBS; k++)
		one.of[k] *= tasks;
	one.of[AMOUNT_JOBS] = job_active(job) == 0 ? 1 : 0;
	return one;
}

struct amounts job_amounts(const struct sched *sched, const struct job *job, int64_t tasks)
{
	INVARIANT(tasks >= 0);
	return job_amounts_on(job, tasks, sched_totals((struct sched *)sched)->smallest_mib);
}

int64_t job_work_at_risk(const struct job *job, int64_t now_ms)
{
	int64_t share = 0, lost_ms = job_run_ms(job, now_ms);

	for (int i = 0; i < job->r.tasks; i++) {
		const struct reservation *reservation = job->tasks[i].reservation;
		for (int p = 0; reservation && p < reservation->part_count; p++)
			share += reservation->parts[p].share;
	}
	if (job->s.checkpoint_ms > 0)
		lost_ms = min64(lost_ms, max64(now_ms - job->s.checkpoint_ms, 0));
	return muldiv_down(share, lost_ms, 1);
}

int64_t job_expected_end(const struct job *job, int64_t now_ms)
{
	if (job->s.expected_ms == 0 || job->s.started_ms == 0)
		return INT64_MAX;
	int64_t end_ms = job->s.started_ms + job->s.paused_ms + job->s.expected_ms;
	return end_ms > now_ms ? end_ms : ending_late(end_ms, now_ms);
}

int64_t job_asked_milli(const struct job *job)
{
	int64_t each = job->request.gpu_kind == GPU_FRACTION ? job->request.fraction : WHOLE_GPU;

	return each * job->request.gpu_count * job->r.tasks;
}

bool job_takes_turns(const struct job *job)
{
	return job->r.preemptible && job->r.movable && job->request.gpu_count > 0 &&
	       job->r.split_gpus == 0 && job->r.min_available == job->r.tasks;
}

bool job_is_predicted(const struct sched *sched, const struct job *job)
{
	return sched->config.time_sharing == SHARING_PREDICTED_SERVICE && job->r.estimate_ms <= 0 &&
	       *job->r.user;
}

int64_t job_service_left(const struct sched *sched, const struct job *job, int64_t ran_ms)
{
	int64_t left_ms = ran_ms;

	if (job->r.estimate_ms > 0)
		left_ms = max64(job->r.estimate_ms - ran_ms, ran_ms / 2);
	else if (job_is_predicted(sched, job))
		left_ms = predict_index(sched, job, ran_ms);
	left_ms = min64(left_ms, SERVICE_MAX_MS);
	return min64(muldiv_down(left_ms, job_asked_milli(job), WHOLE_GPU), SERVICE_MAX_MS);
}

int64_t job_run_ms(const struct job *job, int64_t now_ms)
{
	int64_t until_ms = job->s.suspended_ms > 0 ? job->s.suspended_ms : now_ms;

	return job->s.started_ms > 0 ? max64(until_ms - job->s.started_ms - job->s.paused_ms, 0)
	                             : 0;
}

int64_t job_behind(const struct sched *sched, const struct job *job)
{
	int64_t left_ms = job_service_left(sched, job, job->s.served_ms);

	return job_is_predicted(sched, job) ? min64(left_ms, SERVICE_MAX_MS / PATIENCE) * PATIENCE
	                                    : left_ms;
}

int64_t job_ran_ms(const struct job *job, int64_t now_ms)
{
	return job->s.served_ms + job_run_ms(job, now_ms);
}

bool job_is_protected(const struct sched *sched, const struct job *job)
{
	if (!job->r.preemptible || job->s.preempted_count >= job->tenant->r.max_preemptions)
		return true;
	return job->s.started_ms > 0 &&
	       job_run_ms(job, sched_now(sched)) < sched->config.min_runtime_ms;
}

struct queue_entry job_entry(const struct sched *sched, const struct job *job)
{
	return (struct queue_entry){ .priority = job->r.priority,
		                     .queued_ms = job->s.queued_ms,
		                     .number = job->r.id,
		                     .urgent_ms = job_urgent_from(job),
		                     .behind_ms = job_behind(sched, job),
		                     .waits = job_waits(sched, job) };
}

struct queue_rule job_rule(const struct sched *sched)
{
	return (struct queue_rule){ sched->config.ageing_per_minute, sched->config.ageing_cap,
		                    sched->config.time_sharing != SHARING_OFF,
		                    sched->config.sharing_wait_ms };
}

int64_t job_waits(const struct sched *sched, const struct job *job)
{
	return job_is_predicted(sched, job) ? OLD_WAITS : 1;
}

static void dequeue(struct sched *sched, struct job *job)
{
	if (!job->class)
		return;
	class_remove(&sched->shapes, job->class, job);
	job->class = NULL;
	sched->queued--;
	tenant_ask(job->tenant, &job->asked, -1);
}

/* All waiting jobs ask by one size of GPU, which sched_prepare keeps right. */
static void job_ask(struct sched *sched, struct job *job)
{
	if (sched->queued == 0) /* nobody else asked by another one */
		sched->asked_mib = sched_totals(sched)->smallest_mib;
	job->asked = job_amounts_on(job, job->pending, sched->asked_mib);
	tenant_ask(job->tenant, &job->asked, 1);
}

static void enqueue(struct sched *sched, struct job *job)
{
	struct job_class *class = shapes_class(&sched->shapes, job, job_rule(sched));
	int64_t behind_ms = job_behind(sched, job), waits = job_waits(sched, job);

	if (job->class == class && job->entry.queued_ms == job_age_from(job) &&
	    job->entry.number == job_turn(job) && job->entry.behind_ms == behind_ms &&
	    job->entry.waits == waits && job->entry.urgent_ms == job_urgent_from(job)) {
		tenant_ask(job->tenant, &job->asked, -1);
		job_ask(sched, job);
		return;
	}
	dequeue(sched, job);
	class_push(&sched->shapes, class, job, behind_ms, waits, sched_now(sched));
	job->class = class;
	job_ask(sched, job);
	sched->queued++;
}

static bool may_wait(const struct sched *sched, const struct job *job)
{
	return !job_state_is_final((enum job_state)job->s.state) && !job->s.held &&
	       job->unmet == 0 && job->counts.claims == 0 &&
	       job_not_before(job) <= sched->meta.timed_ms && job_need(job) > 0;
}

void job_trial_wait(struct sched *sched, struct job *job)
{
	INVARIANT(!job->array && !job->class);
	if (may_wait(sched, job))
		enqueue(sched, job);
}

void job_trial_leave(struct sched *sched, struct job *job)
{
	dequeue(sched, job);
}

/* The elements of an array that wait in the queue are the first ones that may,
 * as many as its limit leaves beside those that run. */
static void array_rebalance(struct sched *sched, struct array *array)
{
	int64_t room = max64(array->limit - array->active, 0);
	const struct rank_entry *entry;

	while (array->turns > room) {
		struct job *last = ranktree_select(&array->eligible, (size_t)--array->turns)->value;
		last->in_turn = false;
		dequeue(sched, last);
		promise_drop(sched, last);
	}
	while (array->turns < room &&
	       (entry = ranktree_select(&array->eligible, (size_t)array->turns))) {
		struct job *next = entry->value;
		next->in_turn = true;
		array->turns++;
		enqueue(sched, next);
	}
}

static void array_list(struct array *array, struct job *job)
{
	ranktree_insert(&array->eligible, job->r.array_index, job->r.id, job);
	size_t rank = ranktree_rank(&array->eligible, job->r.array_index, job->r.id);
	job->in_array = true;
	job->in_turn = (int64_t)rank < array->turns;
	array->turns += job->in_turn;
}

static void array_unlist(struct array *array, struct job *job)
{
	ranktree_remove(&array->eligible, job->r.array_index, job->r.id);
	array->turns -= job->in_turn;
	job->in_array = job->in_turn = false;
}

static void settle_queue(struct sched *sched, struct job *job)
{
	struct array *array = job->array;
	bool eligible = may_wait(sched, job);

	if (!array) {
		job->eligible = eligible;
		if (eligible)
			enqueue(sched, job);
		else
			dequeue(sched, job);
		return;
	}
	bool listed = eligible && job_active(job) == 0;
	job->eligible = eligible;
	if (listed && !job->in_array)
		array_list(array, job);
	if (!listed && job->in_array)
		array_unlist(array, job);
	if (eligible && (!listed || job->in_turn)) /* an element that runs already may grow */
		enqueue(sched, job);
	else
		dequeue(sched, job);
	array_rebalance(sched, array);
}

static void settle_array_active(struct job *job, int32_t before)
{
	if (job->array && (before == 0) != (job_active(job) == 0))
		job->array->active += before == 0 ? 1 : -1;
}

static void settle_surplus(struct job *job)
{
	int64_t running = job->counts.granted + job->counts.live;
	bool has =
	    job->is_victim && job->r.split_gpus == 0 && running > job->r.min_available - job->ended;

	if (has != job->victim_surplus)
		job->tenant->surplus_victims += has ? 1 : -1;
	job->victim_surplus = has;
}

static void list_victim(struct sched *sched, struct job *job, bool listed)
{
	job->is_victim = listed;
	sched->victims += listed ? 1 : -1;
	sched->movable_victims += !job->r.movable ? 0 : listed ? 1 : -1;
}

/* Among the victims while it runs and may be stopped at all: what was just placed
 * is not stopped before it has started. */
static void settle_victim(struct sched *sched, struct job *job)
{
	bool victim = job->r.preemptible && job->counts.live > 0 &&
	              !job_state_is_final((enum job_state)job->s.state);

	if (job->is_victim && (!victim || job->victim_start != job->s.start)) {
		ranktree_remove(&job->tenant->victims, job->r.priority, -job->victim_start);
		list_victim(sched, job, false);
	}
	if (victim && !job->is_victim) {
		job->victim_start = job->s.start;
		ranktree_insert(&job->tenant->victims, job->r.priority, -job->victim_start, job);
		list_victim(sched, job, true);
	}
	settle_surplus(job);
}

void job_unlist(struct sched *sched, struct job *job)
{
	dequeue(sched, job);
	if (job->is_victim) {
		ranktree_remove(&job->tenant->victims, job->r.priority, -job->victim_start);
		list_victim(sched, job, false);
	}
	settle_surplus(job);
}

static void settle_end(struct sched *sched, struct job *job)
{
	bool runs = job->counts.granted + job->counts.live > 0;
	int64_t end_ms = runs && job->s.expected_ms > 0 && job->s.started_ms > 0
	                     ? job->s.started_ms + job->s.paused_ms + job->s.expected_ms
	                     : 0;

	if (job->end_ms == end_ms)
		return;
	if (job->end_ms)
		ranktree_remove(&sched->ends, job->end_ms, job->r.id);
	if (end_ms)
		ranktree_insert(&sched->ends, end_ms, job->r.id, job);
	job->end_ms = end_ms;
}

/* A gang that lost a task has some time to find it a new place. */
static void settle_short(struct sched *sched, struct job *job)
{
	int64_t done = job_active(job) + job->ended;
	bool is_short = !job_state_is_final((enum job_state)job->s.state) && job_active(job) > 0 &&
	                job->r.split_gpus == 0 && done < job->r.min_available;

	if (is_short != (job->s.short_since_ms > 0)) {
		job->s.short_since_ms = is_short ? max64(sched_now(sched), 1) : 0;
		sched_dirty_job(sched, job);
	}
	int64_t key = is_short ? job->s.short_since_ms + sched->config.gang_grace_ms : 0;
	if (job->understaffed_ms == key)
		return;
	if (job->understaffed_ms)
		ranktree_remove(&sched->understaffed, job->understaffed_ms, job->r.id);
	if (key)
		ranktree_insert(&sched->understaffed, key, job->r.id, job);
	job->understaffed_ms = key;
}

/* The time that it was suspended does not count as run. */
static void settle_suspended(struct sched *sched, struct job *job)
{
	bool suspended = job->counts.suspended > 0;

	if (!suspended && job->s.suspended_ms > 0) {
		job->s.paused_ms += max64(sched_now(sched) - job->s.suspended_ms, 0);
		job->s.suspended_ms = 0;
		job->s.parked = false;
		sched_dirty_job(sched, job);
	}
	int64_t key = suspended ? max64(job->s.suspended_ms, 1) : 0;
	if (key == job->suspended_key)
		return;
	if (job->suspended_key)
		ranktree_remove(&sched->suspended, job->suspended_key, job->r.id);
	if (key)
		ranktree_insert(&sched->suspended, key, job->r.id, job);
	job->suspended_key = key;
}

/* Jobs that are not over and hold nothing fill the queue, held ones too. */
static void settle_waiting(struct sched *sched, struct job *job)
{
	bool waiting = !job_state_is_final((enum job_state)job->s.state) && job_active(job) == 0;

	if (waiting == job->is_waiting)
		return;
	job->is_waiting = waiting;
	sched->waiting_tasks += waiting ? job->r.tasks : -job->r.tasks;
	job->tenant->waiting_jobs += waiting ? 1 : -1;
}

static void settle_claiming(struct sched *sched, struct job *job)
{
	bool claiming = job->counts.claims > 0;

	if (claiming && !job->claiming)
		ranktree_insert(&sched->claimants, job->r.id, 0, job);
	if (!claiming && job->claiming)
		ranktree_remove(&sched->claimants, job->r.id, 0);
	job->claiming = claiming;
}

static enum job_state state_of(const struct job *job)
{
	if (job_state_is_final((enum job_state)job->s.state))
		return (enum job_state)job->s.state;
	bool all = job->r.split_gpus > 0 ? job->counts.live == job_active(job)
	                                 : job->counts.live + job->ended >= job->r.min_available;
	if (job->counts.suspended > 0)
		return JOB_SUSPENDED;
	if (job->counts.live > 0 && all)
		return JOB_RUNNING;
	if (job_active(job) > 0)
		return JOB_SCHEDULED;
	return job->counts.releasing > 0 ? JOB_PREEMPTED : JOB_PENDING;
}

static void settle_state(struct sched *sched, struct job *job)
{
	enum job_state state = state_of(job);

	if ((enum job_state)job->s.state == state)
		return;
	enum job_state before = (enum job_state)job->s.state;
	job->s.state = (int32_t)state;
	sched_dirty_job(sched, job);
	struct event event = { .job_id = job->r.id,
		               .tenant_id = job->r.tenant_id,
		               .value = before };
	event.kind = state == JOB_SUSPENDED                            ? EVENT_JOB_SUSPENDED
	             : state == JOB_RUNNING && before == JOB_SUSPENDED ? EVENT_JOB_RESUMED
	             : state == JOB_RUNNING                            ? EVENT_JOB_STARTED
	             : state == JOB_SCHEDULED                          ? EVENT_JOB_SCHEDULED
	             : state == JOB_PREEMPTED                          ? EVENT_JOB_PREEMPTED
	                                                               : EVENT_JOB_REQUEUED;
	sched_event(sched, event);
}

/* The next moment at which time alone changes something about the job. */
static int64_t timer_of(const struct sched *sched, const struct job *job)
{
	int64_t at = INT64_MAX;

	if (job_state_is_final((enum job_state)job->s.state))
		return job->counts.releasing == 0 ? job->s.completed_ms + sched->config.retention_ms
		                                  : at;
	if (job_not_before(job) > sched->meta.timed_ms)
		at = min64(at, job_not_before(job)); /* a suspended job's node refused it */
	if (job->r.deadline_ms > 0 && job_active(job) == 0 && job->counts.releasing == 0)
		at = min64(at, job->r.deadline_ms);
	if (job->s.look_ms > 0)
		at = min64(at, job->s.look_ms);
	return at;
}

static void settle_timer(struct sched *sched, struct job *job)
{
	int64_t at = timer_of(sched, job);

	if (at == job->timer_ms)
		return;
	if (heap_has(&sched->timers, job))
		heap_remove(&sched->timers, job);
	job->timer_ms = at;
	if (at != INT64_MAX)
		heap_push(&sched->timers, job);
}

void job_look_soon(struct sched *sched, struct job *job)
{
	if (job->r.deadline_ms <= 0 || sched->config.deadline_risk == 0)
		return;
	job->s.look_ms = sched_now(sched);
	settle_timer(sched, job);
	sched_dirty_job(sched, job);
}

/* Claims alone that are too few for a gang would start a part of it. */
static void settle_claims(struct sched *sched, struct job *job)
{
	if (job->counts.claims > 0 && job->counts.granted + job->counts.live == 0 &&
	    job->counts.claims + job->ended < job->r.min_available)
		job_drop_claims(sched, job);
}

void job_settle(struct sched *sched, struct job *job)
{
	INVARIANT(!sched->plan.open);
	settle_claims(sched, job);
	settle_array_active(job, job->array_active);
	job->array_active = job_active(job);
	settle_suspended(sched, job);
	settle_state(sched, job);
	settle_waiting(sched, job);
	settle_claiming(sched, job);
	settle_victim(sched, job);
	settle_end(sched, job);
	settle_short(sched, job);
	settle_queue(sched, job);
	settle_timer(sched, job);
	if (job->promise && !job->class)
		promise_drop(sched, job);
}

static void job_archive(struct sched *sched, struct job *job)
{
	for (int i = 0; i < job->r.tasks; i++)
		if (job->tasks[i].recorded)
			effects_archive(sched->effects, RECORD_TASK, job->r.id, i);
	effects_archive(sched->effects, RECORD_JOB_STATE, job->r.id, 0);
	effects_archive(sched->effects, RECORD_JOB, job->r.id, 0);
	job_free(sched, job);
}

void job_timer(struct sched *sched, struct job *job)
{
	int64_t now_ms = sched_now(sched);

	INVARIANT(!heap_has(&sched->timers, job) && !sched->plan.open);
	job->timer_ms = INT64_MAX; /* it is out of the heap */
	if (job_state_is_final((enum job_state)job->s.state)) {
		job_archive(sched, job);
		return;
	}
	if (job->r.deadline_ms > 0 && job->r.deadline_ms <= now_ms && job_active(job) == 0 &&
	    job->counts.releasing == 0)
		job_end(sched, job, JOB_FAILED, "its deadline passed while it waited");
	if (job->s.look_ms > 0 && job->s.look_ms <= now_ms)
		deadline_look(sched, job);
	job_settle(sched, job);
}

static void forget_key(struct sched *sched, const struct job *job)
{
	struct buffer key = { 0 };

	if (!*job->r.idempotency_key || (job->r.array_id && job->r.array_id != job->r.id))
		return;
	buffer_print(&key, "%lld/%s", (long long)job->r.tenant_id, job->r.idempotency_key);
	text_map_remove(&sched->keys, key.data);
	buffer_free(&key);
}

static void forget_array(struct sched *sched, struct job *job)
{
	struct array *array = job->array;

	if (!array || --array->members > 0)
		return;
	map_remove(&sched->arrays, array->id);
	ranktree_free(&array->eligible);
	free(array);
}

void job_keep_message(struct job *job, const char *message)
{
	char *kept = *message ? memory_text(message) : NULL;

	free(job->message);
	job->message = kept;
	job->s.message = kept ? kept : "";
}

void job_free(struct sched *sched, struct job *job)
{
	INVARIANT(!job->class && !job->is_victim && !job->claiming && !job->promise);
	INVARIANT(job->dependent_count == 0 || job_state_is_final((enum job_state)job->s.state));
	if (heap_has(&sched->timers, job))
		heap_remove(&sched->timers, job);
	forget_key(sched, job);
	forget_array(sched, job);
	map_remove(&sched->jobs, job->r.id);
	free(job->message);
	free(job->dependents);
	free(job->tasks);
	free(job->texts);
	free(job);
}
