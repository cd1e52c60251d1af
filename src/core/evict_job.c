/* evict_job.c - idle slots that go so that a job fits */
#include "core/evict.h"
#include "core/pass.h"
#include "core/place.h"
#include "core/state.h"

/* Whether one node and so many of its GPUs are all that the job asks for. */
static bool is_simple(const struct search *search)
{
	const struct shape *shape = search->shape;
	enum gpu_kind kind = shape->request.gpu_kind;

	return shape->tasks == 1 && shape->split_gpus == 0 && !search->link &&
	       (kind == GPU_WHOLE || kind == GPU_FRACTION || kind == GPU_MEMORY) &&
	       !(shape->closeness == CLOSE_NVLINK && shape->closeness_required &&
	         shape->request.gpu_count > 1);
}

/* In an open plan: what the site evicts goes, and the job comes. */
static bool place_at(struct sched *sched, struct search *search, const struct site *site)
{
	const struct node *bound = search->only;

	evict_release(sched, site);
	search->only = site->node;
	bool placed = pass_place(sched, search);
	search->only = bound;
	return placed;
}

/* Lets slots stay that turn out not to be in the way, the most valuable first. */
static void keep_others(struct sched *sched, struct site *site, int from)
{
	int kept = site->evicted_count;

	for (int i = site->evicted_count - 1; i >= from; i--)
		if (plan_keep(sched, site->evicted[i]->reservation)) {
			for (int j = i; j + 1 < kept; j++)
				site->evicted[j] = site->evicted[j + 1];
			kept--;
		}
	site->evicted_count = kept;
}

static int64_t going(const struct site *site, const struct model *model)
{
	int64_t count = 0;

	for (int i = 0; i < site->evicted_count; i++)
		count += site->evicted[i]->model == model;
	return count;
}

/* A gang, say: idle slots go one after the other, the cheapest first, and it is
 * tried at growing intervals. */
static bool attempt_any(struct sched *sched, struct search *search, struct site *site)
{
	struct rank_cursor cursor = ranktree_seek(&sched->cold_slots.by_cost, 0, 0);
	int first = site->evicted_count, next_try = first + 1;
	const struct rank_entry *entry;

	while (site->evicted_count < SITE_VICTIMS_MAX && (entry = rank_cursor_next(&cursor))) {
		struct slot *slot = entry->value;
		if (slot->reservation->phase != PHASE_LIVE ||
		    going(site, slot->model) >= evict_spare(slot->model))
			continue;
		plan_release(sched, slot->reservation);
		site->evicted[site->evicted_count++] = slot;
		if (site->evicted_count < next_try)
			continue;
		next_try = site->evicted_count + 1 + site->evicted_count / 4;
		if (pass_place(sched, search)) {
			keep_others(sched, site, first);
			return true;
		}
	}
	if (site->evicted_count > first && pass_place(sched, search)) {
		keep_others(sched, site, first);
		return true;
	}
	return false;
}

/* Whether all models keep their minimum when what the second site evicts goes as well. */
static bool leaves_enough(const struct site *site, const struct site *found)
{
	for (int i = 0; i < found->evicted_count; i++) {
		const struct model *model = found->evicted[i]->model;
		if (going(site, model) + going(found, model) > evict_spare(model))
			return false;
	}
	return true;
}

static bool attempt_simple(struct sched *sched, struct search *search, struct site *site)
{
	const struct shape *shape = search->shape;
	struct site_need need = { .filter = shape->filter,
		                  .task = &shape->request,
		                  .cpu_milli = shape->request.cpu_milli,
		                  .host_bytes = shape->request.host_bytes,
		                  .policy = SLOT_PACK,
		                  .only = search->only };
	int before = site->evicted_count;
	struct site found;

	if (!site_find_evicting(sched, &need, &found))
		return false;
	if (!leaves_enough(site, &found))
		return attempt_any(sched, search, site);
	if (before + found.evicted_count > SITE_VICTIMS_MAX || !place_at(sched, search, &found))
		return false;
	for (int i = 0; i < found.evicted_count; i++)
		site->evicted[site->evicted_count++] = found.evicted[i];
	return true;
}

/* In an open plan. A limit of the tenant may be all that stands in the way. */
static bool attempt(struct sched *sched, struct search *search, struct site *site)
{
	struct job *job = search->job;
	struct amounts amounts = job_amounts(sched, job, search->shape->tasks);
	struct bound bound;

	if (!tenant_may_hold(job->tenant, &amounts, job->r.preemptible, sched_now(sched), &bound)) {
		sched->room.retry_ms = sched_now(sched); /* a budget is renewed by time alone */
		if (!evict_within_limits(sched, job->tenant, &amounts, job->r.preemptible, site))
			return false;
		if (pass_place(sched, search))
			return true;
	}
	return is_simple(search) ? attempt_simple(sched, search, site)
	                         : attempt_any(sched, search, site);
}

bool evict_for_job(struct sched *sched, struct search *search)
{
	int64_t rows[SITE_VICTIMS_MAX * EVICTED_WIDTH];
	struct site site = { .evicted_count = 0 };

	sched->room.retry_ms = INT64_MAX;
	filter_refresh(search->shape->filter, &sched->cluster, sched->cluster_version);
	plan_begin(sched);
	if (!attempt(sched, search, &site)) {
		plan_abandon(sched);
		return false;
	}
	struct decision_record decision = {
		.kind = DECISION_EVICT,
		.evicted = { rows, evict_rows(sched, &site, rows) },
	};
	pass_commit(sched, search, &decision);
	evict_stop(sched, &site, NULL, search->job);
	return true;
}
