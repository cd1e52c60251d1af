/* applicant.c - what wants room: the next tasks of a job, or the next slot of a model */
#include "core/place/applicant.h"

#include "core/queue/job.h"
#include "core/state.h"

#define NO_LINK INT64_MAX /* a group that no GPU is in */

/* The NVLink group of all GPUs that the reservation has; none if they are, or
 * were found to be since, in several. */
static void stay_linked(struct search *search, const struct reservation *reservation)
{
	for (int i = 0; i < reservation->part_count; i++) {
		int64_t group = reservation->parts[i].gpu->r.nvlink_group;
		bool same = group != 0 && (search->link == 0 || search->link == group);
		search->link = same ? group : NO_LINK;
	}
}

static void stay_close(struct search *search, const struct job *job)
{
	for (int i = 0; i < job->r.tasks; i++) {
		const struct reservation *reservation = job->tasks[i].reservation;
		if (!reservation || reservation->phase == PHASE_RELEASING)
			continue;
		if (search->shape->closeness == CLOSE_RACK && reservation->node->rack)
			search->rack = reservation->node->rack;
		else if (search->shape->closeness != CLOSE_ANY)
			search->only = reservation->node;
		if (search->shape->closeness == CLOSE_NVLINK)
			stay_linked(search, reservation);
	}
}

struct search applicant_job(struct sched *sched, struct job *job)
{
	const struct shape *shape = job->class->shape;
	int64_t length = length_ms(job->class->length);
	struct search search = {
		.job = job,
		.shape = shape,
		.view = VIEW_NOW,
		.until_ms = length == INT64_MAX || !sched->config.enable_backfill
		                ? INT64_MAX
		                : sched_now(sched) + length,
	};

	if (job_active(job) > 0 && shape->closeness_required)
		stay_close(&search, job); /* a job that grows stays where it is */
	return search;
}

/* Whether a failure holds for every job of the shape. */
static bool is_general(const struct search *search)
{
	const struct shape *shape = search->shape;

	return !search->promise_blocked && !search->limit_blocked && !search->only &&
	       !search->rack && !(shape->closeness_required && shape->tasks == 1);
}

struct search applicant_slot(struct model *model)
{
	return (struct search){
		.model = model, .shape = model->shapes, .view = VIEW_NOW, .until_ms = INT64_MAX
	};
}

struct tenant *applicant_tenant(const struct search *search)
{
	return search->model ? search->model->tenant : search->job->tenant;
}

int64_t applicant_priority(const struct search *search)
{
	return search->model ? search->model->r.priority : search->job->r.priority;
}

struct amounts applicant_amounts(const struct sched *sched, const struct search *search)
{
	return search->model ? replica_amounts(sched, search->model)
	                     : job_amounts(sched, search->job, search->shape->tasks);
}

struct amounts choice_amounts(const struct search *search, const struct choice *choice)
{
	const struct shape_request *request = &search->shape->request;
	struct amounts amounts = {
		.of = { [AMOUNT_CPU] = request->cpu_milli, [AMOUNT_HOST] = request->host_bytes }
	};

	INVARIANT(search->model);
	for (int i = 0; i < choice->part_count; i++) {
		amounts.of[AMOUNT_GPU] += choice->parts[i].share;
		amounts.of[AMOUNT_GPU_MEMORY] += choice->parts[i].mib;
	}
	return amounts;
}

bool applicant_may_hold(const struct sched *sched, const struct search *search,
                        const struct amounts *amounts, struct bound *bound)
{
	bool preemptible = search->model ? !search->model->r.pinned : search->job->r.preemptible;

	return tenant_may_hold(applicant_tenant(search), amounts, preemptible, sched_now(sched),
	                       bound);
}

bool applicant_find(struct sched *sched, struct search *search, struct choice *choice)
{
	struct model *model = search->model;

	INVARIANT(model);
	sched_prepare(sched);
	uint64_t version = sched->index.free_version;
	if (model->failed_version == version)
		return false;
	filter_refresh(search->shape->filter, &sched->cluster, sched->cluster_version);
	search->view = VIEW_NOW;
	if (place_find(sched, search, choice))
		return true;
	search->view = VIEW_LATER;
	if (sched->index.releasing_count > 0 && place_find(sched, search, choice))
		return true;
	if (!search->only)
		model->failed_version = version;
	return false;
}

bool applicant_reserve(struct sched *sched, struct search *search, const struct choice *choice)
{
	enum phase phase = search->view == VIEW_NOW ? PHASE_GRANTED : PHASE_CLAIM;

	INVARIANT(sched->plan.open && search->model != NULL);
	INVARIANT(sched->plan.open && search->model && choice->part_count > 0);
	search->score = choice->score;
	search->limit_blocked = !plan_reserve_slot(sched, search->model, choice->node, phase,
	                                           choice->parts, choice->part_count, NULL);
	return !search->limit_blocked;
}

static bool place_slot(struct sched *sched, struct search *search)
{
	struct choice choice;

	return applicant_find(sched, search, &choice) && applicant_reserve(sched, search, &choice);
}

/* The job's next tasks in one view; a failure that holds for every job of the shape
 * is remembered with the version of what was free. */
static bool place_in_view(struct sched *sched, struct search *search, enum view view,
                          uint64_t *failed_version)
{
	uint64_t version = sched->index.free_version;

	if (*failed_version == version)
		return false;
	search->view = view;
	search->promise_blocked = search->limit_blocked = false;
	if (place_job(sched, search, search->shape->tasks))
		return true;
	search->too_long |= search->promise_blocked;
	if (is_general(search))
		*failed_version = version;
	return false;
}

bool applicant_place(struct sched *sched, struct search *search)
{
	INVARIANT(sched->plan.open);
	INVARIANT(sched->plan.open && !search->job != !search->model);
	if (search->model)
		return place_slot(sched, search);
	struct shape *shape = search->job->class->shape;
	INVARIANT(search->shape == shape);
	return place_in_view(sched, search, VIEW_NOW, &shape->failed_version) ||
	       (sched->index.releasing_count > 0 &&
	        place_in_view(sched, search, VIEW_LATER, &shape->claim_failed_version));
}

static void fill_line(const struct part *part, bool claim, int64_t *line)
{
	const struct gpu *gpu = part->gpu;

	line[LINE_GPU] = gpu->r.id;
	line[LINE_CAPACITY] = gpu->r.capacity_mib;
	line[LINE_OVERHEAD] = gpu->r.overhead_mib;
	line[LINE_FOREIGN] = gpu->r.foreign_mib;
	line[LINE_USED_BEFORE] = gpu->books.used_mib - (claim ? 0 : part->mib);
	line[LINE_RELEASING] = gpu->books.releasing_mib;
	line[LINE_CLAIMED] = gpu->books.claimed_mib - (claim ? part->mib : 0);
	line[LINE_ASKED] = part->mib;
	line[LINE_USED_AFTER] = gpu->books.used_mib;
}

int lines_add(const struct reservation *reservation, int64_t *lines, int count)
{
	bool claim = reservation->phase == PHASE_CLAIM;

	for (int i = 0; i < reservation->part_count && count < GPU_LINES_MAX; i++, count++)
		fill_line(&reservation->parts[i], claim, lines + (size_t)count * LINE_WIDTH);
	return count;
}

/* What became of a reservation that the plan made for the job. */
static void settle_task(struct sched *sched, struct reservation *reservation)
{
	if (reservation->phase == PHASE_GRANTED)
		job_granted(sched, reservation);
	else
		job_claimed(sched, reservation);
}

static void describe_job(const struct search *search, struct decision_record *decision, bool grows)
{
	const struct job *job = search->job;

	if (decision->kind == DECISION_START && job->counts.claims > 0)
		decision->kind = DECISION_CLAIM;
	else if (decision->kind == DECISION_START && grows)
		decision->kind = DECISION_GROW;
	decision->job_id = job->r.id;
	decision->tenant_id = job->r.tenant_id;
	decision->premium_milli = search->scarcity * INT64_C(1000) / SCARCITY_UNIT;
	decision->candidates = search->candidates;
}

static void describe_slot(const struct slot *slot, struct decision_record *decision)
{
	if (slot->reservation->phase == PHASE_GRANTED)
		decision->kind = DECISION_LOAD;
	else if (decision->kind == DECISION_START)
		decision->kind = DECISION_CLAIM;
	decision->tenant_id = slot->model->r.tenant_id;
	decision->model_id = slot->r.model_id;
	decision->slot_id = slot->r.id;
}

void applicant_commit(struct sched *sched, struct search *search, struct decision_record *decision)
{
	const struct plan *plan = &sched->plan;
	struct job *job = search->job;
	struct slot *slot = NULL;
	int64_t lines[GPU_LINES_MAX * LINE_WIDTH];
	int count = 0;
	bool claims = false;
	bool grows = job && job->r.split_gpus == 0 && job_active(job) > search->shape->tasks;

	INVARIANT(sched->plan.open);
	plan_commit(sched);
	if (job)
		job_begins(sched, job);
	for (size_t i = 0; i < plan->count; i++) {
		struct reservation *reservation = plan->steps[i].reservation;
		if (plan->steps[i].kind != STEP_ENTER || reservation->job != job)
			continue;
		count = lines_add(reservation, lines, count);
		if (job) {
			decision->tasks++;
			settle_task(sched, reservation);
		}
		claims = claims || reservation->phase == PHASE_CLAIM;
		slot = reservation->slot;
	}
	INVARIANT(job || (slot && slot->model == search->model));
	if (job)
		describe_job(search, decision, grows);
	else
		describe_slot(slot, decision);
	decision->score = search->score;
	if (claims || (job && job->counts.claims > 0))
		decision->until_ms =
		    sched_now(sched) + sched->config.grace_ms + sched->config.release_timeout_ms;
	decision->gpus = (struct rows){ lines, count };
	sched_decide(sched, decision);
	if (job)
		job_settle(sched, job);
	else
		slot_begins(sched, slot);
	sched->pass.budget--;
	sched->pass.change_seq++;
}
