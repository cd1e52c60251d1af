/* why.c - explains the state of a job, by the same checks that decided */
#include "core/why/why.h"

#include <inttypes.h>
#include <string.h>

#include "base/calendar.h"
#include "base/duration.h"
#include "core/place/rules.h"
#include "core/place/window_rules.h"
#include "core/queue/depends.h"
#include "core/queue/suspend.h"
#include "core/state.h"
#include "core/why/why_awaited.h"
#include "core/why/why_text.h"

#define NAMED_MAX 16 /* dependencies, tasks or GPUs that a sentence names */

static int64_t position_in(const struct tenant *tenant, const struct job *job, int64_t now_ms)
{
	int64_t before = 0;

	for (size_t g = 0; g < tenant->group_count; g++)
		for (size_t c = 0; c < tenant->groups[g]->class_count; c++)
			before += (int64_t)queue_position(&tenant->groups[g]->classes[c]->queue,
			                                  &job->entry, now_ms);
	return before;
}

void why_position(struct sched *sched, struct job *job, int64_t *position, int64_t *tenant_position)
{
	*position = *tenant_position = 0;
	for (size_t i = 0; i < sched->tenants.count && job->class; i++) {
		const struct tenant *tenant = sched->tenants.all[i];
		int64_t before = position_in(tenant, job, sched_now(sched));
		*position += before;
		if (tenant == job->tenant)
			*tenant_position = before;
	}
}

static struct search search_now(struct sched *sched, struct job *job)
{
	struct search search = applicant_job(&sched->placement, job);

	sched_prepare(sched);
	filter_refresh(search.shape->filter, &sched->cluster, sched->cluster.version);
	return search;
}

/* Tries it as a pass would, at once or as a claim, and takes it back. */
static bool would_fit(struct sched *sched, struct search *search)
{
	enum view view = search->view;
	bool fits = false;

	plan_begin(&sched->ledger);
	for (search->view = VIEW_NOW; search->view <= VIEW_LATER && !fits; search->view++)
		fits = place_job(&sched->placement, search, search->shape->tasks);
	plan_abandon(&sched->ledger);
	search->view = view;
	return fits;
}

/* Tasks, or GPUs of a split job, that would find a place now. */
static int64_t fit_now(struct sched *sched, struct search *search)
{
	int64_t fit = 0, short_by;

	for (size_t i = 0; i < sched->cluster.node_count; i++) {
		const struct node *node = sched->cluster.nodes[i];
		if (search->shape->split_gpus == 0)
			fit += place_count(&sched->placement, search, node);
		else if (place_check_node(&sched->placement, search, node, &short_by) == CHECK_OK)
			for (int g = 0; g < node->gpu_count; g++)
				fit += place_check_gpu(&sched->placement, search, node->gpus[g],
				                       &short_by) == CHECK_OK;
	}
	return fit;
}

static void look_for_room(struct sched *sched, struct job *job, struct why *why)
{
	struct search search = search_now(sched, job);
	int64_t rows[PROMISE_ROWS * PROMISE_WIDTH], start_ms;
	int count;

	if (job->promise) {
		start_ms = job->promise->r.start_ms;
		why->reason = WAIT_PROMISE;
	} else if (would_fit(sched, &search)) {
		why->reason = WAIT_PASS;
		return;
	} else {
		start_ms = promise_earliest(sched, job, rows, PROMISE_ROWS, &count);
		why->reason = WAIT_ROOM;
	}
	why->expected_start_ms = start_ms == INT64_MAX ? 0 : start_ms;
	why->fit = fit_now(sched, &search);
	why->refusal_count = place_refusals(&sched->placement, &search, why->refusals);
	for (int i = 0; i < why->refusal_count; i++)
		if (why->refusals[i][REFUSAL_CHECK] == CHECK_MEMORY)
			why->nearest_gpu = why->refusals[i][REFUSAL_NEAREST];
}

/* What keeps it from being queued, if it is not. */
static enum wait_reason reason_outside(const struct sched *sched, const struct job *job)
{
	if (job_state_is_final((enum job_state)job->s.state))
		return WAIT_NOTHING;
	if (job->s.held)
		return WAIT_HELD;
	if (job->unmet > 0)
		return WAIT_DEPENDENCY;
	if (job_not_before(job) > sched_now(sched))
		return WAIT_BACKOFF;
	if (job->counts.claims > 0)
		return WAIT_RELEASE;
	if (job->counts.releasing > 0 && job_active(job) + job->ended < job->r.min_available)
		return WAIT_OWN_RELEASE;
	return job->eligible && job->array && job_active(job) == 0 ? WAIT_ARRAY : WAIT_NOTHING;
}

void why_job(struct sched *sched, struct job *job, struct why *why)
{
	INVARIANT(!sched->plan.open);
	*why = (struct why){ .expected_ms = job->s.expected_ms, .confidence = job->s.confidence };
	if (!job->class) {
		why->reason = reason_outside(sched, job);
		return;
	}
	sched_prepare(sched);
	why_position(sched, job, &why->position, &why->tenant_position);
	struct amounts amounts = job_amounts(sched, job, job->class->shape->tasks);
	if (!tenant_may_hold(job->tenant, &amounts, job->r.preemptible, sched_now(sched),
	                     &why->bound))
		why->reason = WAIT_BOUND;
	else
		look_for_room(sched, job, why);
}

static const char *place_words(enum phase phase)
{
	switch (phase) {
	case PHASE_LIVE:
		return "runs";
	case PHASE_SUSPENDING:
		return "is being suspended";
	case PHASE_SUSPENDED:
		return "is suspended, and resumes";
	case PHASE_WAKING:
		return "is suspended, and has a claim on its GPUs";
	case PHASE_RESUMING:
		return "is being resumed";
	default:
		return "is to start";
	}
}

/* What a suspended job waits for. */
static void print_suspended(const struct sched *sched, const struct job *job, struct buffer *buffer)
{
	const struct reservation *reservation = suspend_reservation(job);

	if (job->s.state != JOB_SUSPENDED || !reservation)
		return;
	buffer_text(buffer, "suspended for ");
	duration_print_hours(buffer, sched_now(sched) - job->s.suspended_ms);
	buffer_print(buffer, "; %" PRId64 " MiB of host memory hold its GPU memory\n",
	             reservation->copy_bytes >> 20);
	if (job->s.parked)
		buffer_text(buffer, "a person suspended it: it waits for gpu-cli resume\n");
	else if (!node_is_open(reservation->node))
		buffer_text(buffer, "its node takes nothing new\n");
	else if (reservation->phase == PHASE_SUSPENDED || reservation->phase == PHASE_WAKING)
		buffer_text(buffer, "it resumes when its GPUs are free, before jobs that come "
		                    "after it in the queue\n");
}

/* Runs on a node that does not report, as far as is known. */
static bool is_silent(const struct reservation *reservation)
{
	return reservation->phase == PHASE_LIVE && reservation->node->r.state != NODE_ONLINE;
}

/* Of a running job: the nodes that do not report. */
static void print_silent_nodes(const struct job *job, struct buffer *buffer)
{
	const struct node *first = NULL;
	bool several = false;

	for (int i = 0; i < job->r.tasks; i++) {
		const struct reservation *reservation = job->tasks[i].reservation;
		if (!reservation || !is_silent(reservation))
			continue;
		several |= first && reservation->node != first;
		first = first ? first : reservation->node;
	}
	if (first)
		buffer_print(buffer, ", but node %s%s", first->r.name,
		             several ? " and others do not report" : " does not report");
}

/* Where it is, or goes. */
static void print_places(const struct job *job, struct buffer *buffer)
{
	int named = 0;

	for (int i = 0; i < job->r.tasks && named < NAMED_MAX; i++) {
		const struct reservation *reservation = job->tasks[i].reservation;
		if (!reservation || reservation->phase == PHASE_RELEASING)
			continue;
		if (is_silent(reservation))
			buffer_print(buffer, "task %d ran on node %s when that last reported", i,
			             reservation->node->r.name);
		else
			buffer_print(buffer, "task %d %s on node %s", i,
			             place_words(reservation->phase), reservation->node->r.name);
		for (int p = 0; p < reservation->part_count; p++)
			buffer_print(buffer, ", %s: %" PRId64 " MiB%s",
			             reservation->parts[p].gpu->r.uuid, reservation->parts[p].mib,
			             reservation->parts[p].whole ? " (all of it)" : "");
		buffer_text(buffer, "\n");
		named++;
	}
	int64_t others = job->counts.granted + job->counts.live + job->counts.suspended - named;
	if (others > 0)
		buffer_print(buffer, "and %" PRId64 " more\n", others);
}

static void print_state(const struct sched *sched, const struct job *job, int64_t viewer,
                        struct buffer *buffer)
{
	const char *state = word_of(&job_state_words, job->s.state);
	bool over = job->s.state == JOB_COMPLETED || job->s.state == JOB_FAILED;

	buffer_print(buffer, "job-%" PRId64 " %s%s", job->r.id,
	             over                            ? ""
	             : job->s.state == JOB_CANCELLED ? "was "
	                                             : "is ",
	             state);
	if (*job->s.message && strcmp(job->s.message, state) != 0)
		buffer_print(buffer, ": %s", job->s.message);
	print_silent_nodes(job, buffer);
	buffer_text(buffer, "\n");
	print_places(job, buffer);
	print_suspended(sched, job, buffer);
	why_print_awaited(sched, job, viewer, buffer);
}

static void print_dependencies(const struct sched *sched, const struct job *job,
                               struct buffer *buffer)
{
	struct dependency_walk walk = { 0 };
	enum dependency kind;
	const struct job *other;
	int64_t named = 0;

	while (named < NAMED_MAX &&
	       (other = dependency_next(sched, &job->r, &walk, &kind)) != NULL) {
		bool success = kind == AFTER_SUCCESS;
		if (job_state_is_final((enum job_state)other->s.state))
			continue;
		buffer_print(buffer, "%s job-%" PRId64 " to %s, which is %s",
		             named > 0 ? "," : "for", other->r.id, success ? "succeed" : "end",
		             word_of(&job_state_words, other->s.state));
		named++;
	}
	if (job->unmet > named)
		buffer_print(buffer, ", and for %" PRId64 " more", job->unmet - named);
}

/* What is on its way out of a GPU. */
static void print_releasing(const struct sched *sched, const struct gpu *gpu, int64_t viewer,
                            struct buffer *buffer)
{
	const struct node *node = gpu->node;

	for (int i = 0; i < node->reservation_count; i++) {
		const struct reservation *reservation = node->reservations[i];
		for (int p = 0; p < reservation->part_count; p++) {
			const struct part *part = &reservation->parts[p];
			if (part->gpu != gpu || reservation->phase != PHASE_RELEASING)
				continue;
			buffer_print(buffer, "%" PRId64 " MiB on ",
			             max64(part->mib, part->measured_mib));
			text_gpu(buffer, sched, gpu->r.id);
			buffer_text(buffer, " are being freed by ");
			if (reservation->slot)
				text_slot(buffer, reservation->slot, viewer);
			else
				text_job(buffer, sched, reservation->job->r.id, 0, viewer);
			buffer_text(buffer, " since ");
			calendar_print(buffer, reservation->since_ms);
			buffer_text(buffer, " (");
			duration_print_hours(buffer, sched_now(sched) - reservation->since_ms);
			if (reservation->late) {
				buffer_text(buffer, "): that is late\n");
				continue;
			}
			buffer_text(buffer, "): late from ");
			calendar_print(buffer, reservation->due_ms);
			buffer_text(buffer, " on, when a claim on it expires\n");
		}
	}
}

static void print_claims(const struct sched *sched, const struct job *job, int64_t viewer,
                         struct buffer *buffer)
{
	for (int i = 0; i < job->r.tasks && i < NAMED_MAX; i++) {
		const struct reservation *claim = job->tasks[i].claim;
		for (int p = 0; claim && p < claim->part_count; p++) {
			const struct gpu *gpu = claim->parts[p].gpu;
			buffer_print(buffer, "%" PRId64 " MiB are claimed on ",
			             claim->parts[p].mib);
			text_gpu(buffer, sched, gpu->r.id);
			buffer_print(buffer,
			             ", where %" PRId64 " MiB are free now and %" PRId64
			             " MiB are being freed\n",
			             max64(gpu_free_now(gpu), 0), gpu->books.releasing_mib);
			print_releasing(sched, gpu, viewer, buffer);
		}
	}
}

static void print_own_release(const struct sched *sched, const struct job *job,
                              struct buffer *buffer)
{
	for (int i = 0; i < job->r.tasks && i < NAMED_MAX; i++) {
		const struct reservation *own = job->tasks[i].reservation;
		if (!own || own->phase != PHASE_RELEASING)
			continue;
		buffer_print(buffer, "task %d stops on node %s since ", i, own->node->r.name);
		calendar_print(buffer, own->since_ms);
		buffer_text(buffer, " (");
		duration_print_hours(buffer, sched_now(sched) - own->since_ms);
		buffer_print(buffer, ")%s\n", own->late ? ": that is late" : "");
	}
}

/* The GPUs that it is promised, as the first of them. */
static void print_promise(const struct sched *sched, const struct job *job, struct buffer *buffer)
{
	const struct promise_record *promise = &job->promise->r;

	buffer_text(buffer, promise->instead
	                        ? "rather than preempting others it waits for them until "
	                        : "it is expected to start by ");
	calendar_print(buffer, promise->start_ms);
	if (promise->start_ms > sched_now(sched)) {
		buffer_text(buffer, " (in ");
		duration_print_hours(buffer, promise->start_ms - sched_now(sched));
		buffer_text(buffer, ")");
	}
	if (promise->parts.count > 0) {
		buffer_text(buffer, " on ");
		text_count(buffer, promise->parts.count, "GPU");
		buffer_text(buffer, ": ");
	}
	for (int64_t i = 0; i < promise->parts.count && i < NAMED_MAX; i++) {
		buffer_text(buffer, i > 0 ? ", " : "");
		text_gpu(buffer, sched, promise->parts.at[i * PROMISE_WIDTH + 1]);
	}
	buffer_print(buffer, "%s\n", promise->parts.count > NAMED_MAX ? ", ..." : "");
	if (job->s.promised_ms > 0) {
		buffer_text(buffer, "its start is promised by ");
		calendar_print(buffer, job->s.promised_ms);
		buffer_text(buffer, "; nine of ten jobs start as promised\n");
	}
	if (!promise->instead)
		return;
	buffer_text(buffer, "waiting costs ");
	text_gpu_time(buffer, promise->wait_gpu_ms);
	buffer_text(buffer, ", preempting would lose ");
	text_gpu_time(buffer, promise->lost_gpu_ms);
	buffer_text(buffer, "\n");
}

/* Who a GPU that would fit is kept for, and how to get it all the same. */
static void print_blocking(const struct sched *sched, const struct job *job, const struct why *why,
                           int64_t viewer, struct buffer *buffer)
{
	for (int i = 0; i < why->refusal_count; i++) {
		const struct gpu *gpu =
		    map_get(&sched->cluster.gpu_by_id, why->refusals[i][REFUSAL_NEAREST]);
		if (why->refusals[i][REFUSAL_CHECK] != CHECK_PROMISE || !gpu)
			continue;
		text_gpu(buffer, sched, gpu->r.id);
		buffer_text(buffer, " is promised to ");
		text_job(buffer, sched, gpu->promised_to, 0, viewer);
		buffer_text(buffer, " from ");
		calendar_print(buffer, gpu->promised_ms);
		buffer_text(buffer, " on: only a job that is expected to end before may use it");
		buffer_print(buffer, "%s\n",
		             job->s.expected_ms > 0 ? ""
		                                    : ", and how long this one takes is not known");
	}
}

/* The window that keeps it off, by the GPU or the node that a refusal names. */
static const struct window *window_in_way_of(struct sched *sched, const struct job *job,
                                             const struct why *why)
{
	struct search search = { .job = (struct job *)job };

	for (int i = 0; i < why->refusal_count; i++) {
		const int64_t *row = why->refusals[i];
		bool gpus = job->class->shape->request.gpu_count > 0;
		if (row[REFUSAL_CHECK] != CHECK_WINDOW)
			continue;
		const struct gpu *gpu =
		    gpus ? map_get(&sched->cluster.gpu_by_id, row[REFUSAL_NEAREST]) : NULL;
		const struct node *node =
		    gpus ? NULL : map_get(&sched->cluster.node_by_id, row[REFUSAL_NEAREST]);
		if (gpu || node)
			return window_in_the_way(&sched->placement, &search,
			                         gpu ? gpu->windows : node->windows);
	}
	return NULL;
}

static void print_window(struct sched *sched, const struct job *job, const struct window *window,
                         struct buffer *buffer)
{
	int64_t now_ms = sched_now(sched), stay_ms = window_stay_ms(job);
	struct window_time time = window_time(&window->r, now_ms);

	buffer_print(buffer, "window %s%s ", window->r.name,
	             window->r.maintenance ? " (maintenance)" : "");
	if (time.begin_ms <= now_ms) {
		buffer_text(buffer, "is open until ");
		calendar_print(buffer, time.end_ms);
		buffer_text(buffer, ", and this job is not among those that it is for\n");
		return;
	}
	buffer_text(buffer, "begins in ");
	duration_print_hours(buffer, time.begin_ms - now_ms);
	if (*job->r.window && strcmp(job->r.window, window->r.name) == 0) {
		buffer_text(buffer, ", and the job starts in that window alone\n");
		return;
	}
	buffer_text(buffer, "; the job ");
	if (stay_ms > 0) {
		buffer_text(buffer, job->r.max_runtime_ms > 0 ? "needs " : "is expected to need ");
		duration_print_hours(buffer, stay_ms);
		buffer_text(buffer, "\n");
	} else {
		buffer_text(buffer, "has no time limit, and how long it takes is not known: such "
		                    "jobs do not start within ");
		duration_print_hours(buffer, window->r.lead_ms);
		buffer_text(buffer, " before\n");
	}
}

/* What a job waits for that names a window; true if there is nothing else to say. */
static bool print_own_window(const struct sched *sched, const struct job *job,
                             struct buffer *buffer)
{
	if (!*job->r.window || windows_named(&sched->cluster.windows, job->r.window))
		return false;
	buffer_print(buffer,
	             "it can never start: it names the window %s, which has ended or was "
	             "deleted\n",
	             job->r.window);
	return true;
}

/* More nodes are needed, not just an end of other jobs: that is the first thing to say. */
static void print_impossible(struct sched *sched, const struct job *job, struct buffer *buffer)
{
	struct error error;

	if (sched->cluster.node_count > 0 && !place_possible(&sched->placement, job, &error))
		buffer_print(buffer, "it can never run on this cluster: %s\n", error.text);
}

static void print_room(struct sched *sched, const struct job *job, const struct why *why,
                       int64_t viewer, struct buffer *buffer)
{
	const struct shape *shape = job->class->shape;
	int64_t need = shape->split_gpus > 0 ? shape->split_gpus : shape->tasks;

	if (print_own_window(sched, job, buffer))
		return;
	const struct window *window = window_in_way_of(sched, job, why);
	if (window)
		print_window(sched, job, window, buffer);
	if (why->reason != WAIT_PROMISE && why->expected_start_ms == 0)
		print_impossible(sched, job, buffer);
	if (need > 1 && why->fit > 0) {
		text_count(buffer, why->fit, shape->split_gpus > 0 ? "GPU" : "task");
		buffer_print(buffer, " would fit now, it needs %" PRId64 " together%s", need,
		             why->fit >= need ? ", closer to each other" : "");
	} else {
		text_lack(buffer, shape);
	}
	buffer_text(buffer, "\n");
	text_refusals(buffer, sched, &why->refusals[0][0], why->refusal_count,
	              shape->request.gpu_count > 0, true);
	text_holders(buffer, sched, &why->refusals[0][0], why->refusal_count, viewer);
	print_blocking(sched, job, why, viewer, buffer);
	if (why->reason == WAIT_PROMISE) {
		print_promise(sched, job, buffer);
	} else if (why->expected_start_ms > 0) {
		buffer_text(buffer, "it would fit at ");
		calendar_print(buffer, why->expected_start_ms);
		buffer_text(buffer,
		            ", if running jobs end as expected and no other job is served first\n");
	}
}

static void print_reason(struct sched *sched, const struct job *job, const struct why *why,
                         int64_t viewer, struct buffer *buffer)
{
	switch (why->reason) {
	case WAIT_HELD:
		buffer_text(buffer, "it is held until somebody releases it\n");
		break;
	case WAIT_DEPENDENCY:
		print_dependencies(sched, job, buffer);
		buffer_text(buffer, "\n");
		break;
	case WAIT_BACKOFF:
		if (job->r.begin_ms > sched_now(sched)) {
			buffer_text(buffer, "it is to begin at ");
			calendar_print(buffer, job->r.begin_ms);
			buffer_text(buffer, "\n");
			break;
		}
		buffer_text(buffer, "until ");
		calendar_print(buffer, job->s.not_before_ms);
		buffer_text(buffer, ": a node refused it ");
		text_count(buffer, job->s.refusals, "time");
		buffer_print(buffer, ", last because: %s\n",
		             *job->s.message ? job->s.message : "(no reason given)");
		break;
	case WAIT_ARRAY:
		buffer_print(buffer,
		             "its array is limited to %" PRId64 " at a time, and that many wait or "
		             "run\n",
		             job->array->limit);
		break;
	case WAIT_BOUND:
		bound_print_waiting(buffer, &why->bound);
		buffer_text(buffer, "\n");
		break;
	case WAIT_RELEASE:
		buffer_text(buffer,
		            "its memory is being freed; it starts when the node confirms that\n");
		print_claims(sched, job, viewer, buffer);
		break;
	case WAIT_OWN_RELEASE:
		buffer_text(buffer, "it was stopped, and its own memory is not free yet\n");
		print_own_release(sched, job, buffer);
		break;
	case WAIT_PASS:
		buffer_text(
		    buffer,
		    "it fits, now or when releasing memory is free: the next pass decides\n");
		break;
	default:
		print_room(sched, job, why, viewer, buffer);
	}
}

static void print_queue(const struct job *job, const struct why *why, struct buffer *buffer)
{
	if (job->class && why->position == 0) {
		buffer_text(buffer, "it is first in line\n");
	} else if (job->class) {
		text_count(buffer, why->position, "job");
		buffer_print(buffer, " %s ahead of it (%" PRId64 " of its tenant)\n",
		             why->position == 1 ? "is" : "are", why->tenant_position);
	}
	if (why->expected_ms >= 1000 && why->confidence >= CONFIDENCE_LEAST) {
		buffer_text(buffer, "it is expected to take ");
		duration_print_hours(buffer, why->expected_ms);
		buffer_text(buffer, " (confidence ");
		text_milli(buffer, why->confidence * 100);
		buffer_text(buffer, "%)\n");
	}
}

void why_print_wait(struct sched *sched, const struct job *job, const struct why *why,
                    int64_t viewer, struct buffer *buffer)
{
	if (why->reason == WAIT_DEPENDENCY)
		buffer_text(buffer, "it waits ");
	print_reason(sched, job, why, viewer, buffer);
}

/* What is expected of its deadline, if that is to be told. */
static void print_deadline(const struct sched *sched, const struct job *job, struct buffer *buffer)
{
	if (job_state_is_final((enum job_state)job->s.state) ||
	    !deadline_is_at_risk(sched, job->s.deadline_risk))
		return;
	buffer_text(buffer, "it misses its deadline of ");
	calendar_print(buffer, job->r.deadline_ms);
	buffer_print(buffer, " with a probability of %" PRId64 "%%", job->s.deadline_risk / 10);
	if (job->s.urgent_ms > 0 && job->class)
		buffer_text(buffer, ", and goes before the others of its priority");
	buffer_text(buffer, "\n");
}

void why_print(struct sched *sched, struct job *job, int64_t viewer, struct buffer *buffer)
{
	struct why why;

	sched_prepare(sched);
	why_job(sched, job, &why);
	if (why.reason == WAIT_NOTHING) {
		print_state(sched, job, viewer, buffer);
		print_deadline(sched, job, buffer);
		return;
	}
	buffer_print(buffer, "job-%" PRId64 " ", job->r.id);
	if (job_active(job) - job->counts.claims > 0)
		buffer_print(buffer, "has %d of %" PRId64 " tasks placed and ",
		             job_active(job) - job->counts.claims, job->r.tasks);
	buffer_text(buffer, why.reason == WAIT_DEPENDENCY || why.reason == WAIT_BACKOFF
	                        ? "waits "
	                        : "waits: ");
	print_reason(sched, job, &why, viewer, buffer);
	print_queue(job, &why, buffer);
	print_deadline(sched, job, buffer);
}

bool why_node(struct sched *sched, struct job *job, const struct node *node, node_refusal_say *say,
              void *context)
{
	INVARIANT(!sched->plan.open);
	if (!job->class)
		return false;
	struct search search = search_now(sched, job);
	rules_explain(&sched->placement, &search, node, say, context);
	return true;
}
