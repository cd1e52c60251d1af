/* evict_make.c - idle slots go so that a job or another slot fits */
#include "core/room/commit.h"
#include "core/room/evict.h"
#include "core/room/evict_find.h"
#include "core/state.h"

static int64_t going(const struct eviction *eviction, const struct model *model)
{
	int64_t count = 0;

	for (int i = 0; i < eviction->count; i++)
		count +=
		    eviction->slots[i]->model == model && eviction->slots[i]->r.state == SLOT_READY;
	return count;
}

/* Whether the slot may go along with those that go already, in the open plan. */
static bool may_go_too(const struct sched *sched, const struct search *search,
                       const struct eviction *eviction, const struct slot *slot)
{
	return evict_is_there(slot) && rotation_lets_go(sched, slot, search->model) &&
	       evict_leaves_enough(slot, going(eviction, slot->model));
}

void evict_release(struct sched *sched, struct eviction *eviction, struct slot *slot)
{
	bool sleeps = !eviction->awake && slot_may_sleep(slot) &&
	              plan_suspend(&sched->ledger, slot->reservation, NULL);

	if (!sleeps)
		plan_release(&sched->ledger, slot->reservation);
	eviction->sleeping += sleeps;
	eviction_add(eviction, slot);
}

/* In an open plan: if a limit or a quota refuses the applicant these amounts,
 * releases idle slots of those who count for it, the cheapest first, until it does
 * not. False if that is not enough; the plan is then to be rolled back. */
static bool meet_limits(struct sched *sched, const struct search *search,
                        const struct amounts *amounts, struct eviction *eviction)
{
	struct rank_cursor cursor = ranktree_seek(&sched->cold_slots.by_cost, 0, 0);
	const struct rank_entry *entry;
	struct bound bound;

	while (!applicant_may_hold(&sched->placement, search, amounts, &bound)) {
		struct slot *slot = NULL;
		while (!slot && (entry = rank_cursor_next(&cursor))) {
			slot = entry->value;
			if (!tenant_is_below(slot->model->tenant, bound.tenant) ||
			    !may_go_too(sched, search, eviction, slot))
				slot = NULL;
		}
		if (!slot || bound.of == BOUND_BUDGET || eviction->count == EVICTED_MAX)
			return false;
		evict_release(sched, eviction, slot);
	}
	return true;
}

/* Lets slots stay that turn out not to be in the way, the most valuable first. */
static void keep_others(struct sched *sched, struct eviction *eviction, int from)
{
	int kept = eviction->count;

	for (int i = eviction->count - 1; i >= from; i--)
		if (plan_keep(&sched->ledger, eviction->slots[i]->reservation)) {
			for (int j = i; j + 1 < kept; j++)
				eviction->slots[j] = eviction->slots[j + 1];
			kept--;
		}
	eviction->count = kept;
}

/* A gang, say: idle slots go one after the other, the cheapest first, and it is
 * tried at growing intervals. */
static bool attempt_any(struct sched *sched, struct search *search, struct eviction *eviction)
{
	struct rank_cursor cursor = ranktree_seek(&sched->cold_slots.by_cost, 0, 0);
	int first = eviction->count, next_try = first + 1;
	const struct rank_entry *entry;
	bool placed = false;

	while (!placed && eviction->count < EVICTED_MAX && (entry = rank_cursor_next(&cursor))) {
		if (!may_go_too(sched, search, eviction, entry->value))
			continue;
		evict_release(sched, eviction, entry->value);
		if (eviction->count < next_try)
			continue;
		next_try = eviction->count + 1 + eviction->count / 4;
		placed = applicant_place(&sched->placement, search);
	}
	placed = placed || (eviction->count > first && applicant_place(&sched->placement, search));
	if (placed)
		keep_others(sched, eviction, first);
	return placed;
}

/* Whether all models keep their minimum when what the second evicts goes as well. */
static bool leaves_enough(const struct eviction *eviction, const struct eviction *found)
{
	for (int i = 0; i < found->count; i++) {
		const struct slot *slot = found->slots[i];
		const struct model *model = slot->model;
		if (slot->r.state == SLOT_READY &&
		    going(eviction, model) + going(found, model) > evict_spare(model))
			return false;
	}
	return true;
}

/* One task with GPUs of its own: what goes is found in a sketch. */
static bool attempt_task(struct sched *sched, struct search *search, struct eviction *eviction)
{
	struct node *bound = search->only;
	struct eviction found;

	if (!evict_find(sched, search, &found))
		return false;
	if (!leaves_enough(eviction, &found))
		return attempt_any(sched, search, eviction);
	if (eviction->count + found.count > EVICTED_MAX)
		return false;
	for (int i = 0; i < found.count; i++)
		evict_release(sched, eviction, found.slots[i]);
	search->only = found.choice.node;
	bool placed = applicant_place(&sched->placement, search);
	search->only = bound;
	return placed;
}

/* True if the job asks for GPUs of one node and nothing else. */
static bool is_simple(const struct search *search)
{
	const struct shape *shape = search->shape;
	enum gpu_kind kind = shape->request.gpu_kind;

	return shape->tasks == 1 && shape->split_gpus == 0 && !search->link &&
	       (kind == GPU_WHOLE || kind == GPU_FRACTION || kind == GPU_MEMORY) &&
	       !(shape->closeness == CLOSE_NVLINK && shape->closeness_required &&
	         shape->request.gpu_count > 1);
}

/* A limit of the tenant may be all that stands in the way. */
static bool attempt_job(struct sched *sched, struct search *search, struct eviction *eviction)
{
	struct amounts amounts = applicant_amounts(&sched->placement, search);
	struct bound bound;

	if (!applicant_may_hold(&sched->placement, search, &amounts, &bound)) {
		sched->room.retry_ms = sched_now(sched); /* a budget is renewed by time alone */
		if (!meet_limits(sched, search, &amounts, eviction))
			return false;
		if (applicant_place(&sched->placement, search))
			return true;
	}
	return is_simple(search) ? attempt_task(sched, search, eviction)
	                         : attempt_any(sched, search, eviction);
}

/* A limit stands in the way of a slot that would fit, and idle slots that count for
 * it could go. What it would hold by the smallest GPU is the most that it could
 * hold. */
static bool is_limited(struct sched *sched, struct search *search, struct choice *choice)
{
	struct amounts amounts = applicant_amounts(&sched->placement, search);
	struct bound bound;

	if (applicant_may_hold(&sched->placement, search, &amounts, &bound) ||
	    !applicant_find(&sched->placement, search, choice))
		return false;
	amounts = choice_amounts(search, choice);
	return !applicant_may_hold(&sched->placement, search, &amounts, &bound);
}

static bool failed_before(const struct sched *sched, const struct model *model)
{
	return model->evict_failed.version == sched->index.free_version &&
	       model->evict_failed.cold == sched->cold_slots.version &&
	       sched_now(sched) < model->evict_failed.retry_ms;
}

static bool note_failure(const struct sched *sched, struct model *model)
{
	model->evict_failed.version = sched->index.free_version;
	model->evict_failed.cold = sched->cold_slots.version;
	return false;
}

static bool attempt_slot(struct sched *sched, struct search *search, struct eviction *eviction)
{
	struct eviction found;

	found.count = 0;
	if (!is_limited(sched, search, &found.choice)) {
		search->view = VIEW_LATER;
		if (failed_before(sched, search->model))
			return false;
		if (!evict_find(sched, search, &found))
			return note_failure(sched, search->model);
	}
	for (int i = 0; i < found.count; i++)
		evict_release(sched, eviction, found.slots[i]);
	struct amounts amounts = choice_amounts(search, &found.choice);
	return meet_limits(sched, search, &amounts, eviction) &&
	       applicant_reserve(&sched->placement, search, &found.choice);
}

bool evict_may_help(struct sched *sched, struct search *search)
{
	struct choice choice;

	INVARIANT(search->model && !sched->plan.open);
	if (is_limited(sched, search, &choice))
		return true;
	if (failed_before(sched, search->model))
		return false;
	return evict_could(sched, search) || note_failure(sched, search->model);
}

/* What others may have of what it had on GPUs. */
static int64_t given_mib(const struct slot *slot)
{
	const struct reservation *reservation = slot->reservation;
	int64_t mib = 0;

	for (int i = 0; i < reservation->part_count; i++)
		mib += reservation->away ? reservation->residue_mib
		                         : reservation->parts[i].mib - reservation->residue_mib;
	return mib;
}

int evict_rows(const struct sched *sched, const struct eviction *eviction, int64_t *rows)
{
	for (int i = 0; i < eviction->count; i++) {
		const struct slot *slot = eviction->slots[i];
		int64_t *row = rows + (size_t)i * EVICTED_WIDTH;
		row[EVICTED_SLOT] = slot->r.id;
		row[EVICTED_MODEL] = slot->r.model_id;
		row[EVICTED_MIB] = given_mib(slot);
		row[EVICTED_RELOAD_MS] = slot->reload_ms;
		row[EVICTED_IDLE_MS] = sched_now(sched) - slot->r.used_ms;
	}
	return eviction->count;
}

/* After the plan is committed: tells their nodes, and writes why. */
void evict_stop(struct sched *sched, const struct eviction *eviction, const struct job *job,
                const struct model *model)
{
	for (int i = 0; i < eviction->count; i++) {
		struct slot *slot = eviction->slots[i];
		bool sleeps = slot->reservation->phase == PHASE_SUSPENDING;
		struct decision_record decision = {
			.kind = sleeps ? DECISION_SLEEP : DECISION_UNLOAD,
			.tenant_id = slot->model->r.tenant_id,
			.model_id = slot->r.model_id,
			.slot_id = slot->r.id,
			.for_job_id = job ? job->r.id : 0,
			.for_model_id = model ? model->r.id : 0,
		};
		if (sleeps)
			slot_sleeps(sched, slot);
		else
			slot_stop(sched, slot, true);
		sched_decide(sched, &decision);
		sched->pass.budget--;
	}
}

/* With an open plan, which stays open. */
static bool attempt(struct sched *sched, struct search *search, struct eviction *eviction)
{
	eviction->count = eviction->sleeping = 0;
	eviction->reload_ms = eviction->used_ms = 0;
	plan_begin(&sched->ledger);
	return search->model ? attempt_slot(sched, search, eviction)
	                     : attempt_job(sched, search, eviction);
}

/* What stays of those that sleep may be in the way: then they are stopped. */
static bool attempt_both(struct sched *sched, struct search *search, struct eviction *eviction)
{
	struct search again = *search;

	eviction->awake = false;
	if (attempt(sched, search, eviction))
		return true;
	plan_abandon(&sched->ledger);
	if (eviction->sleeping == 0)
		return false;
	eviction->awake = true;
	*search = again;
	if (attempt(sched, search, eviction))
		return true;
	plan_abandon(&sched->ledger);
	return false;
}

bool evict_make(struct sched *sched, struct search *search)
{
	int64_t rows[EVICTED_MAX * EVICTED_WIDTH];
	struct eviction eviction;

	INVARIANT(!sched->plan.open);
	INVARIANT(!search->job != !search->model);
	sched->room.retry_ms = INT64_MAX;
	filter_refresh(search->shape->filter, &sched->cluster, sched->cluster.version);
	if (!attempt_both(sched, search, &eviction))
		return false;
	struct decision_record decision = {
		.kind = DECISION_EVICT,
		.evicted = { rows, evict_rows(sched, &eviction, rows) },
	};
	applicant_commit(sched, search, &decision);
	evict_stop(sched, &eviction, search->job, search->model);
	return true;
}
