/* rotation.c - turns among models: a slot that is always busy makes way for one that waits */
#include "core/room/rotation.h"

#include <stdlib.h>

#include "core/ledger/sketch.h"
#include "core/place/window_rules.h"
#include "core/state.h"

#define CLOSED_MAX 64 /* slots that are closed for one model */

/* The slots of a node that may be closed, those with the least right to stay first. */
struct closing {
	struct node *node;
	struct slot *slots[CLOSED_MAX];
	bool gone[CLOSED_MAX];
	int count;
};

/* What is closed for a model, and where it fits then. */
struct way {
	struct slot *slots[CLOSED_MAX];
	int count, busy;
	int64_t ready_ms; /* the latest of those that are busy */
	struct choice choice;
};

int64_t rotation_load_ms(const struct model *model)
{
	const struct shape_request *request = &model->shapes->request;

	if (model->r.load_ms > 0)
		return model->r.load_ms;
	return model_reload_ms(model, request->memory_mib * request->gpu_count);
}

int64_t rotation_due_ms(const struct sched *sched, const struct model *model)
{
	int64_t load_ms = rotation_load_ms(model);

	if (!model->waiting.first)
		return INT64_MAX;
	return model->waiting.first->since_ms +
	       max64(max64(sched->config.turn_wait_ms, TURN_LOADS * load_ms) - load_ms, 0);
}

int64_t rotation_stay_ms(const struct sched *sched, const struct slot *slot)
{
	int64_t memory_mib = reservation_amounts(slot->reservation).of[AMOUNT_GPU_MEMORY];
	int64_t loads_ms = (TURN_LOADS - 1) * model_reload_ms(slot->model, memory_mib);

	return max64(slot->r.ready_ms + max64(sched->config.slot_stay_ms, loads_ms),
	             slot->r.held_ms);
}

int64_t rotation_rest_ms(const struct slot *slot)
{
	int64_t rest_ms = 0;

	for (int i = 0; i < slot->reservation->part_count; i++)
		rest_ms = max64(rest_ms, slot->reservation->parts[i].gpu->r.paid_ms);
	return rest_ms;
}

bool rotation_lets_go(const struct sched *sched, const struct slot *slot, const struct model *model)
{
	if (slot->r.closing_for != 0 && (!model || model->r.id != slot->r.closing_for))
		return false;
	return !model || rotation_rest_ms(slot) <= sched_now(sched);
}

void rotation_loaded(struct sched *sched, const struct slot *slot, int64_t took_ms)
{
	int64_t began_ms = sched_now(sched) - took_ms;

	INVARIANT(took_ms >= 0);
	if (took_ms == 0)
		return;
	for (int i = 0; i < slot->reservation->part_count; i++) {
		struct gpu *gpu = slot->reservation->parts[i].gpu;
		int64_t paid_ms = gpu->r.paid_ms ? gpu->r.paid_ms : began_ms;
		gpu->r.loading_ms += took_ms;
		paid_ms = max64(paid_ms, began_ms - LOAD_CREDIT_MS);
		gpu->r.paid_ms =
		    min64(max64(paid_ms + took_ms * 1000 / sched->config.loading, 1), TIME_MS_MAX);
		sched_dirty_gpu(sched, gpu);
	}
}

int rotation_closed_for(const struct sched *sched, const struct model *model, int *busy)
{
	struct rank_cursor cursor = ranktree_seek(&sched->models.closing, INT64_MIN, INT64_MIN);
	const struct rank_entry *entry;
	int count = 0;

	*busy = 0;
	while ((entry = rank_cursor_next(&cursor))) {
		const struct slot *slot = entry->value;
		if (slot->r.closing_for != model->r.id)
			continue;
		count++;
		*busy += slot->active > 0;
	}
	return count;
}

static void rotation_decide(struct sched *sched, const struct slot *slot, enum decision_kind kind,
                            int64_t for_model_id)
{
	struct decision_record decision = { .kind = (int32_t)kind,
		                            .tenant_id = slot->model->r.tenant_id,
		                            .model_id = slot->r.model_id,
		                            .slot_id = slot->r.id,
		                            .for_model_id = for_model_id };

	sched_decide(sched, &decision);
	sched->pass.change_seq++;
}

/* Whether the slot may be closed, but for how long it has been ready. */
static bool may_close(const struct slot *slot)
{
	return slot->linked && slot->r.state == SLOT_READY && !slot->model->r.pinned &&
	       slot->reservation->phase == PHASE_LIVE && node_is_open(slot->reservation->node) &&
	       evict_spare(slot->model) > 0;
}

static bool is_awaited(const struct sched *sched, int64_t model_id)
{
	const struct model *model = models_find(&sched->models, model_id);

	return model && replica_want(sched, model) == WANT_SERVE;
}

/* Its model has all the slots that it may have without it. */
static bool is_surplus(const struct slot *slot)
{
	const struct model_counts *counts = &slot->model->counts;

	return counts->coming + counts->ready - counts->leaving - counts->closing >=
	       slot->model->r.max_replicas;
}

/* Opens what is closed for the model, or for any that does not want it. What is one too many by
 * now stays closed, and is stopped when it has no requests. */
static void reopen(struct sched *sched, const struct model *model)
{
	struct rank_cursor cursor = ranktree_seek(&sched->models.closing, INT64_MIN, INT64_MIN);
	const struct rank_entry *entry;

	while ((entry = rank_cursor_next(&cursor))) {
		struct slot *slot = entry->value;
		int64_t model_id = slot->r.closing_for;
		bool stays = model ? model->r.id != model_id
		                   : may_close(slot) && is_awaited(sched, model_id);
		if (stays || (is_surplus(slot) && slot->active > 0))
			continue;
		bool surplus = is_surplus(slot);
		if (surplus)
			slot_stop(sched, slot, false);
		else
			slot_open(sched, slot);
		rotation_decide(sched, slot, surplus ? DECISION_UNLOAD : DECISION_REOPEN, 0);
		cursor = ranktree_seek(&sched->models.closing, INT64_MIN, INT64_MIN);
	}
}

/* Whether a has less right to stay than b. */
static bool yields_before(const struct slot *a, const struct slot *b)
{
	bool busy_a = a->active > 0, busy_b = b->active > 0;
	bool other_a = a->model->counts.ready > 1, other_b = b->model->counts.ready > 1;

	if ((a->r.closing_for != 0) != (b->r.closing_for != 0))
		return a->r.closing_for != 0;
	if (busy_a != busy_b)
		return !busy_a;
	if (other_a != other_b)
		return other_a;
	if (a->r.ready_ms != b->r.ready_ms)
		return a->r.ready_ms < b->r.ready_ms;
	return a->r.id < b->r.id;
}

static void offer_slot(const struct sched *sched, const struct model *model, struct slot *slot,
                       struct closing *closing)
{
	int64_t now_ms = sched_now(sched), spare = evict_spare(slot->model);
	int at = closing->count;
	bool mine = slot->r.closing_for == model->r.id;

	/* Its time to live keeps what nobody has asked since the model began to wait. */
	if (slot->active == 0 && !slot->listed && slot->r.used_ms <= model->waiting.first->since_ms)
		return;
	if (slot->model == model || !may_close(slot) || closing->count == CLOSED_MAX ||
	    (slot->r.closing_for != 0 && !mine) || rotation_rest_ms(slot) > now_ms ||
	    (!mine && !slot->listed && rotation_stay_ms(sched, slot) > now_ms))
		return;
	spare -= slot->model->counts.closing - mine;
	for (int i = 0; i < closing->count; i++)
		spare -= closing->slots[i]->model == slot->model;
	if (spare <= 0)
		return;
	for (; at > 0 && yields_before(slot, closing->slots[at - 1]); at--)
		closing->slots[at] = closing->slots[at - 1];
	closing->slots[at] = slot;
	closing->gone[closing->count++] = false;
}

static bool fits(struct sched *sched, struct search *search, struct node *node,
                 struct choice *choice)
{
	for (int i = 0; i < search->model->shape_count; i++) {
		search->shape = &search->model->shapes[i];
		if (place_on_node(&sched->placement, search, node, choice))
			return true;
	}
	return false;
}

/* The fewest that have the least right: all up to the first that makes it fit, without
 * those that are not in the way. */
static bool find_on_node(struct sched *sched, struct search *search, struct closing *closing,
                         struct way *way)
{
	int last = 0;

	way->count = way->busy = 0;
	way->ready_ms = 0;
	sketch_begin(closing->node);
	while (!fits(sched, search, closing->node, &way->choice)) {
		if (last == closing->count)
			return false;
		sketch_go(closing->slots[last]->reservation);
		closing->gone[last++] = true;
	}
	for (int i = last - 1; i >= 0; i--) {
		sketch_stay(closing->slots[i]->reservation);
		if (fits(sched, search, closing->node, &way->choice))
			continue;
		sketch_go(closing->slots[i]->reservation);
		way->slots[way->count++] = closing->slots[i];
		way->busy += closing->slots[i]->active > 0;
		if (closing->slots[i]->active > 0)
			way->ready_ms = max64(way->ready_ms, closing->slots[i]->r.ready_ms);
	}
	return fits(sched, search, closing->node, &way->choice);
}

static bool way_better(const struct way *a, const struct way *b)
{
	if (a->busy != b->busy)
		return a->busy < b->busy;
	if (a->ready_ms != b->ready_ms)
		return a->ready_ms < b->ready_ms;
	return a->count < b->count;
}

/* What is to be closed so that the model fits; the first of equal nodes by name. At most
 * search_width nodes are looked at. */
static bool find_way(struct sched *sched, struct model *model, struct way *best)
{
	const struct cluster *cluster = &sched->cluster;
	struct search search = applicant_slot(model);
	int64_t left = sched->config.search_width;
	struct closing closing;
	struct way way;

	best->choice.node = NULL;

	search.view = VIEW_CLEARED;
	filter_refresh(search.shape->filter, &sched->cluster, sched->cluster.version);
	for (size_t i = 0; i < cluster->node_count && left > 0; i++) {
		struct node *node = cluster->by_rank[i];
		closing.node = node;
		closing.count = 0;
		if (!node_is_open(node) ||
		    !bitset_has(&search.shape->filter->nodes, (size_t)node->rank))
			continue;
		for (int r = 0; r < node->reservation_count; r++)
			if (node->reservations[r]->slot)
				offer_slot(sched, model, node->reservations[r]->slot, &closing);
		left -= closing.count > 0;
		if (closing.count == 0 || !find_on_node(sched, &search, &closing, &way))
			continue;
		if (!best->choice.node || way_better(&way, best))
			*best = way;
	}
	return best->choice.node != NULL;
}

static void keep_gpu(struct sched *sched, struct gpu *gpu, int64_t model_id)
{
	struct rotation *rotation = &sched->rotation;

	if (gpu->kept_for != 0 || rotation->count == KEPT_MAX)
		return;
	gpu->kept_for = model_id;
	rotation->kept[rotation->count++] = gpu->r.id;
	sched->cluster.kept_count = rotation->count;
}

/* Closes slots for a model whose turn it is, and keeps their GPUs for it. */
static void take_turn(struct sched *sched, struct model *model)
{
	struct amounts amounts = model_amounts(model, sched_totals(sched)->smallest_mib);
	struct bound bound;
	struct way way = { .count = 0 };
	int busy, closed = rotation_closed_for(sched, model, &busy);

	sched->pass.budget--;
	if (busy > 0)
		return;
	if (!tenant_may_hold(model->tenant, &amounts, !model->r.pinned, sched_now(sched), &bound) ||
	    !find_way(sched, model, &way)) {
		if (closed > 0)
			reopen(sched, model);
		return;
	}
	for (int i = 0; i < way.count; i++) {
		if (way.slots[i]->r.closing_for != 0)
			continue;
		slot_close(sched, way.slots[i], model);
		rotation_decide(sched, way.slots[i], DECISION_CLOSE, model->r.id);
	}
}

static int most_urgent(const void *a, const void *b)
{
	const struct wanting *x = a, *y = b;

	return urgency_compare(x->urgency, y->urgency);
}

/* Models that wait for their first slot, the most urgent first. */
static size_t list_waiting(struct sched *sched)
{
	struct rotation *rotation = &sched->rotation;
	struct rank_cursor cursor = ranktree_seek(&sched->models.wanting, INT64_MIN, INT64_MIN);
	const struct rank_entry *entry;
	size_t count = 0;

	while ((entry = rank_cursor_next(&cursor))) {
		struct model *model = entry->value;
		if (replica_want(sched, model) != WANT_SERVE)
			continue;
		array_reserve(rotation->waiting, rotation->capacity, count + 1);
		rotation->waiting[count++] =
		    (struct wanting){ model, replica_urgency(sched, model) };
	}
	if (count > 1)
		qsort(rotation->waiting, count, sizeof(*rotation->waiting), most_urgent);
	return count;
}

/* How much the node lacks for the shape, when all that is idle is gone; its GPUs that lack
 * least. INT64_MAX: it could not take it. */
static int64_t lack_of(const struct sched *sched, const struct search *search, struct node *node,
                       struct gpu **best)
{
	const struct shape_request *request = &search->shape->request;
	int64_t lacks[PARTS_MAX] = { 0 }, sum = 0;
	int count = 0;

	INVARIANT(request->gpu_count >= 1 && request->gpu_count <= PARTS_MAX);
	for (int i = 0; i < node->gpu_count; i++) {
		struct gpu *gpu = node->gpus[i];
		int64_t need = fit_least_mib(request, gpu);
		if (!filter_allows(search->shape->filter, gpu) ||
		    !gpu_is_open(gpu, &sched->config) || gpu->books.whole_owners > 0 ||
		    gpu->books.compute.parts > 0 || gpu_usable_mib(gpu) < need ||
		    gpu->kept_for != 0 || windows_keep_off(&sched->placement, search, gpu->windows))
			continue;
		int64_t lack = max64(need - gpu_free_later(gpu) - gpu->cold_mib, 0);
		int at = count;
		while (at > 0 && lacks[at - 1] > lack)
			at--;
		if (at == request->gpu_count)
			continue;
		count = count < request->gpu_count ? count + 1 : count;
		for (int k = count - 1; k > at; k--) {
			lacks[k] = lacks[k - 1];
			best[k] = best[k - 1];
		}
		lacks[at] = lack;
		best[at] = gpu;
	}
	if (count < request->gpu_count)
		return INT64_MAX;
	for (int i = 0; i < count; i++)
		sum += lacks[i];
	return sum;
}

/* Keeps the GPUs that are nearest to having room for the model. */
static void keep_nearest(struct sched *sched, struct model *model)
{
	const struct cluster *cluster = &sched->cluster;
	struct search search = applicant_slot(model);
	struct gpu *best[PARTS_MAX], *gpus[PARTS_MAX];
	int64_t least = INT64_MAX, left = sched->config.search_width;
	int count = search.shape->request.gpu_count;

	filter_refresh(search.shape->filter, &sched->cluster, sched->cluster.version);
	for (size_t i = 0; i < cluster->node_count && left > 0; i++) {
		struct node *node = cluster->by_rank[i];
		if (!node_is_open(node) ||
		    !bitset_has(&search.shape->filter->nodes, (size_t)node->rank))
			continue;
		int64_t lack = lack_of(sched, &search, node, gpus);
		left -= lack < INT64_MAX;
		if (lack >= least)
			continue;
		least = lack;
		for (int g = 0; g < count; g++)
			best[g] = gpus[g];
	}
	for (int g = 0; g < count && least < INT64_MAX; g++)
		keep_gpu(sched, best[g], model->r.id);
}

/* Where slots are closed for a model, and, for the one that has waited longest, where it is
 * nearest to fitting: before its turn comes only if most GPUs are left to others. */
static void keep_gpus(struct sched *sched, size_t count)
{
	struct rank_cursor cursor = ranktree_seek(&sched->models.closing, INT64_MIN, INT64_MIN);
	const struct rank_entry *entry;
	int busy;

	while ((entry = rank_cursor_next(&cursor))) {
		const struct slot *slot = entry->value;
		for (int i = 0;
		     i < slot->reservation->part_count && is_awaited(sched, slot->r.closing_for);
		     i++)
			keep_gpu(sched, slot->reservation->parts[i].gpu, slot->r.closing_for);
	}
	if (count == 0)
		return;
	struct model *model = sched->rotation.waiting[0].model;
	bool due = rotation_due_ms(sched, model) <= sched_now(sched);
	int64_t asked = model->shapes->request.gpu_count;
	bool few = 2 * asked <= (int64_t)sched->cluster.gpu_by_id.count;
	if ((due || few) && rotation_closed_for(sched, model, &busy) == 0)
		keep_nearest(sched, model);
}

/* Forgets which GPUs are kept, and for whom they were: the count of those before. */
static int unkeep(struct sched *sched, struct kept_gpu *before)
{
	struct rotation *rotation = &sched->rotation;
	int count = 0;

	for (int i = 0; i < rotation->count; i++) {
		struct gpu *gpu = map_get(&sched->cluster.gpu_by_id, rotation->kept[i]);
		if (!gpu)
			continue;
		before[count++] = (struct kept_gpu){ gpu, gpu->kept_for };
		gpu->kept_for = 0;
	}
	rotation->count = sched->cluster.kept_count = 0;
	return count;
}

void rotation_run(struct sched *sched)
{
	struct kept_gpu before[KEPT_MAX];

	INVARIANT(!sched->plan.open);
	reopen(sched, NULL);
	size_t count = list_waiting(sched);
	int kept = unkeep(sched, before);
	for (size_t i = 0; i < count && sched->pass.budget > 0; i++)
		if (rotation_due_ms(sched, sched->rotation.waiting[i].model) <= sched_now(sched))
			take_turn(sched, sched->rotation.waiting[i].model);
	keep_gpus(sched, count);
	for (int i = 0; i < kept; i++)
		if (before[i].gpu->kept_for != before[i].model_id) {
			index_freed(&sched->index); /* others may take it */
			sched->pass.change_seq++;
			break;
		}
}

void rotation_reset(struct sched *sched)
{
	struct kept_gpu before[KEPT_MAX];
	const struct rank_entry *first;

	while ((first = ranktree_first(&sched->models.closing)))
		slot_open(sched, first->value);
	if (unkeep(sched, before) > 0)
		index_freed(&sched->index); /* what did not fit beside them may fit */
}
