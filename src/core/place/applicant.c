/* applicant.c - what wants room: the next tasks of a job, or the next slot of a model */
#include "core/place/applicant.h"

#include "core/model/model.h"
#include "core/place/placement.h"
#include "core/queue/job.h"

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

struct search applicant_job(struct placement *placement, struct job *job)
{
	const struct shape *shape = job->class->shape;
	int64_t length = length_ms(job->class->length);
	struct search search = {
		.job = job,
		.shape = shape,
		.view = VIEW_NOW,
		.until_ms = length == INT64_MAX || !placement->config->enable_backfill
		                ? INT64_MAX
		                : placement_now(placement) + length,
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

struct amounts applicant_amounts(const struct placement *placement, const struct search *search)
{
	int64_t smallest_mib = cluster_totals(placement->cluster)->smallest_mib;

	return search->model ? model_amounts(search->model, smallest_mib)
	                     : job_amounts_on(search->job, search->shape->tasks, smallest_mib);
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

bool applicant_may_hold(const struct placement *placement, const struct search *search,
                        const struct amounts *amounts, struct bound *bound)
{
	bool preemptible = search->model ? !search->model->r.pinned : search->job->r.preemptible;

	return tenant_may_hold(applicant_tenant(search), amounts, preemptible,
	                       placement_now(placement), bound);
}

bool applicant_find(struct placement *placement, struct search *search, struct choice *choice)
{
	struct model *model = search->model;

	INVARIANT(model);
	INVARIANT(placement->index->built);
	uint64_t version = placement->index->free_version;
	if (model->failed_version == version)
		return false;
	filter_refresh(search->shape->filter, placement->cluster, placement->cluster->version);
	search->view = VIEW_NOW;
	if (place_find(placement, search, choice))
		return true;
	search->view = VIEW_LATER;
	if (placement->index->releasing_count > 0 && place_find(placement, search, choice))
		return true;
	if (!search->only)
		model->failed_version = version;
	return false;
}

bool applicant_reserve(struct placement *placement, struct search *search,
                       const struct choice *choice)
{
	enum phase phase = search->view == VIEW_NOW ? PHASE_GRANTED : PHASE_CLAIM;

	INVARIANT(placement->ledger->plan->open && search->model != NULL);
	INVARIANT(placement->ledger->plan->open && search->model && choice->part_count > 0);
	search->score = choice->score;
	search->limit_blocked = !plan_reserve_slot(placement->ledger, search->model, choice->node,
	                                           phase, choice->parts, choice->part_count, NULL);
	return !search->limit_blocked;
}

static bool place_slot(struct placement *placement, struct search *search)
{
	struct choice choice;

	return applicant_find(placement, search, &choice) &&
	       applicant_reserve(placement, search, &choice);
}

/* The job's next tasks in one view; a failure that holds for every job of the shape
 * is remembered with the version of what was free. */
static bool place_in_view(struct placement *placement, struct search *search, enum view view,
                          uint64_t *failed_version)
{
	uint64_t version = placement->index->free_version;

	if (*failed_version == version)
		return false;
	search->view = view;
	search->promise_blocked = search->limit_blocked = false;
	if (place_job(placement, search, search->shape->tasks))
		return true;
	search->too_long |= search->promise_blocked;
	if (is_general(search))
		*failed_version = version;
	return false;
}

bool applicant_place(struct placement *placement, struct search *search)
{
	INVARIANT(placement->ledger->plan->open);
	INVARIANT(placement->ledger->plan->open && !search->job != !search->model);
	if (search->model)
		return place_slot(placement, search);
	struct shape *shape = search->job->class->shape;
	INVARIANT(search->shape == shape);
	return place_in_view(placement, search, VIEW_NOW, &shape->failed_version) ||
	       (placement->index->releasing_count > 0 &&
	        place_in_view(placement, search, VIEW_LATER, &shape->claim_failed_version));
}
