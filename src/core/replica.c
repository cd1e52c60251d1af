/* replica.c - how many slots a model should have, and giving it another */
#include "core/replica.h"

#include <stdlib.h>

#include "core/evict.h"
#include "core/pass.h"
#include "core/state.h"

#define NUMBER_UNASKED (INT64_C(1) << 62) /* after all requests: nobody waits for it */

/* What it wants, whether or not it backs off. */
static enum want want_of(const struct model *model)
{
	int64_t have = model->counts.coming + model->counts.ready - model->counts.leaving;
	int64_t waiting = model->waiting.count;

	if (model->r.removed || model->gone)
		return WANT_NOTHING;
	if (waiting > 0 && have == 0)
		return WANT_SERVE;
	if (have < model->r.min_replicas)
		return WANT_MINIMUM;
	if (waiting > model->counts.coming * model->r.concurrency && have < model->r.max_replicas)
		return WANT_REPLICA;
	return model->r.prewarm && have == 0 ? WANT_PREWARM : WANT_NOTHING;
}

enum want replica_want(const struct sched *sched, const struct model *model)
{
	return model->r.not_before_ms > sched_now(sched) ? WANT_NOTHING : want_of(model);
}

void replica_list(struct sched *sched, struct model *model)
{
	struct ranktree *wanting = &sched->models.wanting;
	bool wants = want_of(model) != WANT_NOTHING;
	int64_t key = -model->r.priority;
	int64_t number =
	    model->waiting.first ? model->waiting.first->number : NUMBER_UNASKED + model->r.id;

	if (wants == model->listed &&
	    (!wants || (key == model->list_key && number == model->list_number)))
		return;
	if (model->listed)
		ranktree_remove(wanting, model->list_key, model->list_number);
	if (wants)
		ranktree_insert(wanting, key, number, model);
	model->listed = wants;
	model->list_key = key;
	model->list_number = number;
}

static int64_t share_of(int64_t mib, int64_t usable_mib)
{
	return usable_mib > 0 ? min64((mib * WHOLE_GPU + usable_mib - 1) / usable_mib, WHOLE_GPU)
	                      : WHOLE_GPU;
}

struct amounts replica_amounts(const struct sched *sched, const struct model *model)
{
	int64_t smallest = sched->cluster.smallest_mib;
	struct amounts amounts = {
		.of = { [AMOUNT_CPU] = model->r.cpu_milli, [AMOUNT_HOST] = model->r.host_bytes }
	};
	int counts[PARTS_MAX], splits = model_splits(model, counts), at = 0;

	while (at + 1 < splits && model_part_mib(model, counts[at]) > smallest)
		at++;
	int64_t mib = model_part_mib(model, counts[at]);
	amounts.of[AMOUNT_GPU] = counts[at] * share_of(mib, smallest);
	amounts.of[AMOUNT_GPU_MEMORY] = counts[at] * mib;
	return amounts;
}

/* The arithmetic of the law for each GPU of the slot that was just placed. */
static int lines_of(const struct reservation *reservation, int64_t *lines)
{
	for (int i = 0; i < reservation->part_count; i++)
		pass_line(&reservation->parts[i], reservation->phase,
		          lines + (size_t)i * LINE_WIDTH);
	return reservation->part_count;
}

static struct amounts site_amounts(const struct model *model, const struct site *site)
{
	struct amounts amounts = {
		.of = { [AMOUNT_CPU] = model->r.cpu_milli, [AMOUNT_HOST] = model->r.host_bytes }
	};

	for (int i = 0; i < site->part_count; i++) {
		amounts.of[AMOUNT_GPU] += site->parts[i].share;
		amounts.of[AMOUNT_GPU_MEMORY] += site->parts[i].mib;
	}
	return amounts;
}

/* Makes the slot in the open plan; what goes for it is added to the site. */
static struct slot *reserve(struct sched *sched, struct model *model, struct site *site, bool evict)
{
	struct amounts amounts = site_amounts(model, site);

	evict_release(sched, site);
	if (evict && !evict_within_limits(sched, model->tenant, &amounts, !model->r.pinned, site))
		return NULL;
	return plan_reserve_slot(sched, model, site->node, site->now ? PHASE_HELD : PHASE_CLAIM,
	                         site->parts, site->part_count, NULL);
}

static int64_t claim_until(const struct sched *sched)
{
	return sched_now(sched) + sched->config.grace_ms + sched->config.release_timeout_ms;
}

void replica_decide(struct sched *sched, const struct slot *slot, const struct site *site,
                    struct decision_record *decision)
{
	int64_t lines[PARTS_MAX * LINE_WIDTH], rows[SITE_VICTIMS_MAX * EVICTED_WIDTH];
	bool claim = slot->reservation->phase == PHASE_CLAIM;

	if (decision->kind == DECISION_LOAD && claim)
		decision->kind = site->evicted_count > 0 ? DECISION_EVICT : DECISION_CLAIM;
	decision->tenant_id = slot->model->r.tenant_id;
	decision->model_id = slot->r.model_id;
	decision->slot_id = slot->r.id;
	decision->score = site->score;
	decision->until_ms = claim ? claim_until(sched) : 0;
	decision->gpus = (struct rows){ lines, lines_of(slot->reservation, lines) };
	decision->evicted = (struct rows){ rows, evict_rows(sched, site, rows) };
	sched_decide(sched, decision);
}

static bool found_nothing_before(const struct sched *sched, const struct model *model,
                                 enum replica_way way)
{
	uint64_t version = sched->index.free_version;

	if (way == REPLICA_FIT)
		return model->failed_version == version;
	return model->evict_failed.version == version &&
	       model->evict_failed.cold == sched->cold_slots.version;
}

static void remember(struct sched *sched, struct model *model, enum replica_way way,
                     const struct site *site)
{
	struct site_memo *memo = &sched->site_memo;

	memo->model = model;
	memo->way = (int)way;
	memo->index_version = sched->index.last_version;
	memo->cold_version = sched->cold_slots.version;
	site_copy(&memo->site, site);
}

static bool recall(const struct sched *sched, const struct model *model, enum replica_way way,
                   struct site *site)
{
	const struct site_memo *memo = &sched->site_memo;

	if (memo->model != model || memo->way != (int)way ||
	    memo->index_version != sched->index.last_version ||
	    memo->cold_version != sched->cold_slots.version)
		return false;
	site_copy(site, &memo->site);
	return true;
}

static bool find(struct sched *sched, struct model *model, enum replica_way way, struct site *site)
{
	struct site_need need = site_need_of(model);

	sched_prepare(sched);
	if (found_nothing_before(sched, model, way))
		return false;
	if (recall(sched, model, way, site))
		return true;
	if (way == REPLICA_FIT ? site_find(sched, &need, site)
	                       : site_find_evicting(sched, &need, site)) {
		remember(sched, model, way, site);
		return true;
	}
	if (way == REPLICA_FIT) {
		model->failed_version = sched->index.free_version;
	} else {
		model->evict_failed.version = sched->index.free_version;
		model->evict_failed.cold = sched->cold_slots.version;
	}
	return false;
}

/* A limit stands in the way, and idle slots that count for it could go. What it
 * would hold by the smallest GPU is the most that it could hold. */
static bool find_limited(struct sched *sched, struct model *model, struct site *site)
{
	struct site_need need = site_need_of(model);
	struct amounts amounts = replica_amounts(sched, model);
	struct bound bound;

	if (tenant_may_hold(model->tenant, &amounts, !model->r.pinned, sched_now(sched), &bound) ||
	    !site_find(sched, &need, site))
		return false;
	amounts = site_amounts(model, site);
	return !tenant_may_hold(model->tenant, &amounts, !model->r.pinned, sched_now(sched),
	                        &bound);
}

bool replica_place(struct sched *sched, struct model *model, enum replica_way way)
{
	enum want want = replica_want(sched, model);
	bool evict = way == REPLICA_EVICT;
	struct site site;

	if (want == WANT_NOTHING || (evict && want == WANT_PREWARM))
		return false;
	if (!(evict && find_limited(sched, model, &site)) && !find(sched, model, way, &site))
		return false;
	plan_begin(sched);
	struct slot *slot = reserve(sched, model, &site, evict);
	if (!slot) {
		plan_abandon(sched);
		return false;
	}
	plan_commit(sched);
	struct decision_record decision = { .kind = DECISION_LOAD };
	replica_decide(sched, slot, &site, &decision);
	slot_begins(sched, slot);
	evict_stop(sched, &site, slot, NULL);
	sched->pass.units--;
	sched->pass.state++;
	return true;
}

static void lapse(struct sched *sched, struct slot *slot)
{
	struct decision_record decision = { .kind = DECISION_LAPSED,
		                            .tenant_id = slot->model->r.tenant_id,
		                            .model_id = slot->r.model_id,
		                            .slot_id = slot->r.id };

	sched_decide(sched, &decision);
	slot_drop(sched, slot);
	sched->pass.state++;
}

static void redeem(struct sched *sched, struct slot *slot)
{
	int64_t lines[PARTS_MAX * LINE_WIDTH];

	plan_begin(sched);
	if (!plan_grant(sched, slot->reservation, NULL)) {
		plan_abandon(sched);
		return;
	}
	plan_commit(sched);
	struct decision_record decision = { .kind = DECISION_LOAD,
		                            .tenant_id = slot->model->r.tenant_id,
		                            .model_id = slot->r.model_id,
		                            .slot_id = slot->r.id };
	decision.gpus = (struct rows){ lines, lines_of(slot->reservation, lines) };
	sched_decide(sched, &decision);
	slot_granted(sched, slot);
	sched->pass.units--;
	sched->pass.state++;
}

void replica_claims(struct sched *sched)
{
	int64_t after = 0;

	while (sched->pass.units > 0) {
		struct rank_cursor cursor = ranktree_seek(&sched->models.claimants, after + 1, 0);
		const struct rank_entry *entry = rank_cursor_next(&cursor);
		if (!entry)
			return;
		struct slot *slot = entry->value;
		after = slot->r.id;
		if (!pass_claim_is_sound(sched, slot->reservation))
			lapse(sched, slot);
		else
			redeem(sched, slot);
	}
}

/* Whether it could have a slot that way, apart from limits. */
static bool could_have(struct sched *sched, struct model *model, enum replica_way way)
{
	enum want want = replica_want(sched, model);
	struct site site;

	switch (way) {
	case REPLICA_FIT:
		return want != WANT_NOTHING && find(sched, model, way, &site);
	case REPLICA_EVICT:
		return want != WANT_NOTHING && want != WANT_PREWARM &&
		       (find_limited(sched, model, &site) || find(sched, model, way, &site));
	default:
		return want == WANT_SERVE && replica_may_preempt(sched, model);
	}
}

void replica_open(struct sched *sched, enum replica_way way)
{
	struct rank_cursor cursor = ranktree_seek(&sched->models.wanting, INT64_MIN, INT64_MIN);
	const struct rank_entry *entry;

	sched->replica_way = way;
	if (way == REPLICA_EVICT && sched->cold_slots.by_cost.count == 0)
		return;
	while ((entry = rank_cursor_next(&cursor))) {
		struct model *model = entry->value;
		struct tenant *tenant = model->tenant;
		if (!could_have(sched, model, way))
			continue;
		array_reserve(tenant->open_models, tenant->open_model_capacity,
		              tenant->open_model_count + 1);
		tenant->open_models[tenant->open_model_count++] = model;
	}
}

struct model *replica_first(const struct tenant *tenant)
{
	return tenant->open_model_first < tenant->open_model_count
	           ? tenant->open_models[tenant->open_model_first]
	           : NULL;
}

bool replica_goes_before(const struct model *model, int64_t effective_priority)
{
	return model->r.priority * PRIORITY_UNIT >= effective_priority;
}

void replica_serve(struct sched *sched, struct tenant *tenant)
{
	struct model *model = replica_first(tenant);
	bool done = sched->replica_way == REPLICA_PREEMPT
	                ? replica_preempt(sched, model)
	                : replica_place(sched, model, sched->replica_way);

	if (!done || replica_want(sched, model) == WANT_NOTHING)
		tenant->open_model_first++;
}

void replica_close(struct sched *sched)
{
	sched->site_memo.model = NULL;
	for (size_t i = 0; i < sched->tenants.count; i++)
		sched->tenants.all[i]->open_model_first = sched->tenants.all[i]->open_model_count =
		    0;
}
