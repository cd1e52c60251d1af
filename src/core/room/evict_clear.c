/* evict_clear.c - which idle slots of a node go, so that least is lost */
#include <string.h>

#include "core/ledger/sketch.h"
#include "core/place/fit.h"
#include "core/room/evict_find.h"
#include "core/state.h"

#define SEEDS_MAX 16 /* slots over several GPUs that are tried as the first to go */
#define PAIRS_MAX 48 /* slots of which all pairs are compared */

/* Slots that would have to go from one GPU. */
struct pick {
	int count;
	int16_t at[EVICTED_MAX];
	int64_t reload_ms, used_ms;
};

static void go(struct clearing *clearing, int slot)
{
	sketch_go(clearing->slots[slot]->reservation);
	clearing->gone[slot] = true;
	clearing->gone_count++;
}

static void stay(struct clearing *clearing, int slot)
{
	sketch_stay(clearing->slots[slot]->reservation);
	clearing->gone[slot] = false;
	clearing->gone_count--;
}

static void evict_clear_offer(struct clearing *clearing, struct slot *slot)
{
	int at = clearing->count;

	if (at == EVICTED_MAX)
		return;
	for (; at > 0 && clearing->slots[at - 1]->cold_key > slot->cold_key; at--)
		clearing->slots[at] = clearing->slots[at - 1];
	clearing->slots[at] = slot;
	clearing->gone[clearing->count++] = false;
}

/* Whether more slots of some model are offered than may go. */
static bool offers_too_many(const struct clearing *clearing)
{
	bool limited = false;

	for (int i = 0; i < clearing->count; i++)
		clearing->slots[i]->model->offered = 0;
	for (int i = 0; i < clearing->count; i++) {
		struct model *model = clearing->slots[i]->model;
		if (clearing->slots[i]->r.state == SLOT_READY)
			limited = limited || ++model->offered > evict_spare(model);
	}
	return limited;
}

bool clearing_begin(struct clearing *clearing, struct evict_search *find, struct node *node)
{
	clearing->node = node;
	clearing->count = clearing->gone_count = 0;
	clearing->usable = 0;
	if (!node_is_open(node))
		return false;
	for (int i = 0; i < node->reservation_count; i++) {
		const struct reservation *reservation = node->reservations[i];
		struct slot *slot = reservation->slot;
		if (slot && slot->listed && evict_is_there(slot) &&
		    slot->model != find->search.model && evict_lets_go(find, slot))
			evict_clear_offer(clearing, slot);
	}
	clearing->limited = offers_too_many(clearing);
	for (int i = 0; i < node->gpu_count; i++)
		if (fit_may_use(&find->sched->placement, &find->search, node->gpus[i]))
			clearing->usable |= UINT64_C(1) << i;
	sketch_begin(node);
	return true;
}

static int64_t part_on(const struct slot *slot, const struct gpu *gpu)
{
	for (int i = 0; i < slot->reservation->part_count; i++) {
		const struct part *part = &slot->reservation->parts[i];
		if (part->gpu == gpu)
			return reservation_held_mib(slot->reservation, part);
	}
	return -1;
}

/* How many more slots of this one's model may go. */
static int64_t spare_of(const struct clearing *clearing, const struct slot *slot)
{
	int64_t spare = clearing->limited ? evict_spare(slot->model) : 1;

	if (slot->r.state == SLOT_ASLEEP)
		return 1;
	for (int i = 0; i < clearing->count && clearing->limited; i++)
		spare -= clearing->gone[i] && clearing->slots[i]->model == slot->model &&
		         clearing->slots[i]->r.state == SLOT_READY;
	return spare;
}

/* Slots that could still go from this GPU, the largest part there first. */
static int leavers(const struct clearing *clearing, const struct gpu *gpu, int16_t *at,
                   int64_t *parts)
{
	int count = 0;

	for (int i = 0; i < clearing->count; i++) {
		const struct slot *slot = clearing->slots[i];
		int64_t part = clearing->gone[i] ? -1 : part_on(slot, gpu);
		if (part < 0)
			continue;
		int64_t spare = spare_of(clearing, slot);
		for (int j = 0; j < count && clearing->limited && slot->r.state == SLOT_READY; j++)
			spare -= clearing->slots[at[j]]->model == slot->model &&
			         clearing->slots[at[j]]->r.state == SLOT_READY;
		if (spare <= 0)
			continue;
		int place = count++;
		for (; place > 0 && parts[place - 1] < part; place--) {
			parts[place] = parts[place - 1];
			at[place] = at[place - 1];
		}
		parts[place] = part;
		at[place] = (int16_t)i;
	}
	return count;
}

static void pick_nothing(struct pick *pick)
{
	pick->count = 0;
	pick->reload_ms = pick->used_ms = 0;
}

static void evict_clear_add(const struct clearing *clearing, struct pick *pick, int16_t slot)
{
	pick->at[pick->count++] = slot;
	pick->reload_ms += clearing->slots[slot]->reload_ms;
	pick->used_ms = max64(pick->used_ms, clearing->slots[slot]->r.used_ms);
}

static void pick_copy(struct pick *to, const struct pick *from)
{
	to->count = from->count;
	to->reload_ms = from->reload_ms;
	to->used_ms = from->used_ms;
	memcpy(to->at, from->at, (size_t)from->count * sizeof(from->at[0]));
}

static bool is_cheaper(const struct pick *a, const struct pick *b)
{
	if (a->count != b->count)
		return a->count < b->count;
	if (a->reload_ms != b->reload_ms)
		return a->reload_ms < b->reload_ms;
	return a->used_ms < b->used_ms;
}

/* One slot is enough: the cheapest that is large enough. */
static void pick_one(const struct clearing *clearing, const int16_t *at, const int64_t *parts,
                     int count, int64_t lack, struct pick *pick)
{
	int16_t best = -1;

	for (int i = 0; i < count && parts[i] >= lack; i++)
		if (best < 0 || at[i] < best)
			best = at[i];
	INVARIANT(best >= 0);
	evict_clear_add(clearing, pick, best);
}

static void pick_two(const struct clearing *clearing, const int16_t *at, const int64_t *parts,
                     int count, int64_t lack, struct pick *pick)
{
	int most = count < PAIRS_MAX ? count : PAIRS_MAX;
	struct pick pair;

	for (int i = 0; i < most; i++)
		for (int j = i + 1; j < most && parts[i] + parts[j] >= lack; j++) {
			pick_nothing(&pair);
			evict_clear_add(clearing, &pair, at[i]);
			evict_clear_add(clearing, &pair, at[j]);
			if (pick->count == 0 || is_cheaper(&pair, pick))
				pick_copy(pick, &pair);
		}
}

/* Many: the largest, and then cheaper ones in place of those that are larger
 * than need be. */
static void pick_many(const struct clearing *clearing, int16_t *at, int64_t *parts, int count,
                      int need, int64_t lack, struct pick *pick)
{
	int64_t sum = 0;

	for (int i = 0; i < need; i++)
		sum += parts[i];
	for (int i = 0; i < need; i++)
		for (int j = need; j < count; j++) {
			if (at[j] >= at[i] || sum - parts[i] + parts[j] < lack)
				continue;
			int16_t slot = at[i];
			int64_t part = parts[i];
			sum += parts[j] - part;
			at[i] = at[j];
			parts[i] = parts[j];
			at[j] = slot;
			parts[j] = part;
		}
	for (int i = 0; i < need; i++)
		evict_clear_add(clearing, pick, at[i]);
}

/* What would still be on the GPU. */
static int32_t owners_left(const struct gpu *gpu)
{
	return gpu->books.owners - gpu->books.releasing_owners - gpu->mark_owners;
}

/* The fewest, and of those the cheapest, that make one GPU fit. */
static bool pick_for_gpu(const struct clearing *clearing, const struct search *search,
                         const struct gpu *gpu, struct pick *pick)
{
	const struct shape_request *request = &search->shape->request;
	int16_t at[EVICTED_MAX];
	int64_t parts[EVICTED_MAX], sum = 0;
	bool whole = request->gpu_kind == GPU_WHOLE;
	int count = leavers(clearing, gpu, at, parts), need = 0;

	pick_nothing(pick);
	if (whole && (count != owners_left(gpu) || gpu_usable_mib(gpu) < request->memory_mib))
		return false;
	int64_t lack = fit_mib(request, gpu) - fit_gpu_free(search, gpu);
	while (need < count && (whole || sum < lack))
		sum += parts[need++];
	if (!whole && sum < lack)
		return false;
	if (whole || need > 2)
		pick_many(clearing, at, parts, count, need, lack, pick);
	else if (need == 2)
		pick_two(clearing, at, parts, count, lack, pick);
	else if (need == 1)
		pick_one(clearing, at, parts, count, lack, pick);
	return need > 0;
}

static bool gpu_fits(const struct search *search, const struct gpu *gpu)
{
	const struct shape_request *request = &search->shape->request;

	return !(request->gpu_kind == GPU_WHOLE && owners_left(gpu) > 0) &&
	       fit_gpu_free(search, gpu) >= fit_least_mib(request, gpu);
}

/* The GPU that costs least to clear. */
static bool pick_gpu(const struct clearing *clearing, const struct search *search,
                     struct pick *best)
{
	struct pick pick;
	bool found = false;

	for (int i = 0; i < clearing->node->gpu_count; i++) {
		const struct gpu *gpu = clearing->node->gpus[i];
		int64_t most = found ? best->count * gpu->cold_largest_mib : INT64_MAX;
		if (!(clearing->usable >> i & 1) || gpu_fits(search, gpu) ||
		    fit_least_mib(&search->shape->request, gpu) - fit_gpu_free(search, gpu) >
		        most ||
		    !pick_for_gpu(clearing, search, gpu, &pick))
			continue;
		if (!found || is_cheaper(&pick, best))
			pick_copy(best, &pick);
		found = true;
	}
	return found;
}

/* For parts that differ, or CPU and host memory: the slot that frees most GPU memory
 * goes next. */
static bool pick_largest(const struct clearing *clearing, struct pick *pick)
{
	int64_t most = -1;
	int16_t best = -1;

	for (int i = 0; i < clearing->count; i++) {
		int64_t sum = 0;
		if (clearing->gone[i] || spare_of(clearing, clearing->slots[i]) <= 0)
			continue;
		for (int g = 0; g < clearing->node->gpu_count; g++)
			if (clearing->usable >> g & 1)
				sum +=
				    max64(part_on(clearing->slots[i], clearing->node->gpus[g]), 0);
		if (sum > most) {
			most = sum;
			best = (int16_t)i;
		}
	}
	pick_nothing(pick);
	if (best >= 0)
		evict_clear_add(clearing, pick, best);
	return best >= 0;
}

static bool evict_clear_fits(const struct clearing *clearing, struct evict_search *find,
                             struct eviction *found)
{
	return place_on_node(&find->sched->placement, &find->search, clearing->node,
	                     &found->choice);
}

/* Everyone who need not go stays, the most valuable first. */
static void spare(struct clearing *clearing, struct evict_search *find, struct eviction *found)
{
	for (int i = clearing->count - 1; i >= 0; i--) {
		if (!clearing->gone[i])
			continue;
		stay(clearing, i);
		if (!evict_clear_fits(clearing, find, found))
			go(clearing, i);
	}
	bool still_fits = evict_clear_fits(clearing, find, found);
	INVARIANT(still_fits);
}

/* From what has gone already, the next cheapest until it fits. */
static bool clear(struct clearing *clearing, struct evict_search *find, int most,
                  struct eviction *found)
{
	struct pick pick;

	while (!evict_clear_fits(clearing, find, found)) {
		bool picked = (find->search.shape->request.total_mib == 0 &&
		               pick_gpu(clearing, &find->search, &pick)) ||
		              pick_largest(clearing, &pick);
		if (!picked || clearing->gone_count - SEEDS_MAX > most)
			return false;
		for (int i = 0; i < pick.count; i++)
			go(clearing, pick.at[i]);
	}
	spare(clearing, find, found);
	if (clearing->gone_count > most)
		return false;
	found->count = 0;
	found->reload_ms = found->used_ms = 0;
	for (int i = 0; i < clearing->count; i++)
		if (clearing->gone[i])
			eviction_add(found, clearing->slots[i]);
	return true;
}

static void undo(struct clearing *clearing)
{
	for (int i = 0; i < clearing->count; i++)
		if (clearing->gone[i])
			stay(clearing, i);
}

bool clearing_find(struct clearing *clearing, struct evict_search *find, int shape, int most,
                   struct eviction *found)
{
	struct eviction trial;
	int seeds = 0, count = find->asks[shape].count;

	INVARIANT(clearing->gone_count == 0);
	if (__builtin_popcountll(clearing->usable) < count)
		return false;
	find->search.shape = &find->shapes[shape];
	bool any = clear(clearing, find, most, found);
	undo(clearing);
	/* A slot over several GPUs may be worth more than it seems on each. */
	for (int i = 0; i < clearing->count && count > 1 && seeds < SEEDS_MAX; i++) {
		struct slot *slot = clearing->slots[i];
		if (slot->reservation->part_count < 2 || spare_of(clearing, slot) <= 0)
			continue;
		seeds++;
		go(clearing, i);
		if (clear(clearing, find, any ? found->count : most, &trial) &&
		    (!any || eviction_better(&trial, found))) {
			eviction_copy(found, &trial);
			any = true;
		}
		undo(clearing);
	}
	return any;
}
