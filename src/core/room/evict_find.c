/* evict_find.c - the node on which least is lost when idle slots go */
#include "core/room/evict_find.h"

#include <string.h>

#include "core/ledger/sketch.h"
#include "core/place/fit.h"
#include "core/state.h"

/* Below this many nodes every one that may fit is looked at. */
#define EXHAUSTIVE_NODES 2048
#define WALK_MAX 4096     /* idle slots that are tried one by one */
#define TIES_MAX 16       /* of those that cost the same */
#define PROMISING_NODES 8 /* of more, those that are looked at closely */
#define COMPARED_NODES 32 /* in smaller clusters ties between nodes are broken by policy */
#define ANY_MIB INT64_MIN

bool eviction_better(const struct eviction *a, const struct eviction *b)
{
	const struct choice *x = &a->choice, *y = &b->choice;

	if (a->count != b->count)
		return a->count < b->count;
	if (a->reload_ms != b->reload_ms)
		return a->reload_ms < b->reload_ms;
	if (a->used_ms != b->used_ms)
		return a->used_ms < b->used_ms;
	if (x->part_count != y->part_count)
		return x->part_count < y->part_count;
	if (x->linked != y->linked)
		return x->linked;
	if (x->score != y->score)
		return x->score < y->score;
	return x->node->rank < y->node->rank;
}

void eviction_copy(struct eviction *to, const struct eviction *from)
{
	const struct choice *choice = &from->choice;

	to->choice.node = choice->node;
	to->choice.part_count = choice->part_count;
	to->choice.linked = choice->linked;
	to->choice.score = choice->score;
	memcpy(to->choice.parts, choice->parts,
	       (size_t)choice->part_count * sizeof(choice->parts[0]));
	to->count = from->count;
	to->reload_ms = from->reload_ms;
	to->used_ms = from->used_ms;
	memcpy(to->slots, from->slots, (size_t)from->count * sizeof(from->slots[0]));
}

void eviction_add(struct eviction *eviction, struct slot *slot)
{
	INVARIANT(eviction->count < EVICTED_MAX);
	eviction->slots[eviction->count++] = slot;
	eviction->reload_ms += slot->reload_ms;
	eviction->used_ms = max64(eviction->used_ms, slot->r.used_ms);
}

static void keep_better(struct evict_search *find, const struct eviction *found)
{
	if (!find->best->choice.node || eviction_better(found, find->best))
		eviction_copy(find->best, found);
}

/* How many of the node's GPUs have the memory of a part; up to as many as are asked
 * for. Cheap, and never too few: what else is asked of a GPU does not count. */
static int roomy_gpus(const struct ask *ask, const struct node *node)
{
	int found = 0;

	for (int i = 0; i < node->gpu_count && found < ask->count; i++)
		found += gpu_free_later(node->gpus[i]) >= ask->mib;
	return found;
}

/* Slots that have to go from the GPU at least; INT32_MAX: that is not enough. */
static int32_t least_on_gpu(const struct ask *ask, const struct gpu *gpu)
{
	int64_t lack = ask->mib - gpu_free_later(gpu);

	if (lack <= 0)
		return 0;
	if (lack > gpu->cold_mib)
		return INT32_MAX;
	return (int32_t)((lack + gpu->cold_largest_mib - 1) / gpu->cold_largest_mib);
}

/* Slots that have to go from the node at least, by the sum over the GPUs that
 * need least; INT32_MAX: the ask cannot be met there. Nothing is said about
 * parts that depend on the GPU. */
static int32_t least_on_node(const struct ask *ask, const struct node *node)
{
	int32_t least[GPUS_PER_NODE_MAX];
	int64_t sum = 0;
	int count = 0;

	INVARIANT(ask->count >= 1);
	if (ask->mib == ANY_MIB)
		return node->gpu_count < ask->count ? INT32_MAX : 1;
	for (int i = 0; i < node->gpu_count; i++) {
		int32_t on_gpu = least_on_gpu(ask, node->gpus[i]);
		int at = count++;
		for (; at > 0 && least[at - 1] > on_gpu; at--)
			least[at] = least[at - 1];
		least[at] = on_gpu;
	}
	if (count < ask->count || least[ask->count - 1] == INT32_MAX)
		return INT32_MAX;
	for (int i = 0; i < ask->count; i++)
		sum += least[i];
	return (int32_t)max64((sum + node->cold_span - 1) / node->cold_span, 1);
}

/* For each ask that the node has the GPUs for, how many of those lack the memory; 0
 * where that is not what is in the way, or not all. */
static void note_lacks(const struct evict_search *find, struct node *node)
{
	for (int i = 0; i < find->count && find->asks[i].count <= node->gpu_count; i++) {
		const struct ask *ask = &find->asks[i];
		node->lacks[i] =
		    (uint8_t)(ask->mib != ANY_MIB ? ask->count - roomy_gpus(ask, node) : 0);
	}
}

/* The least over all asks, counted once in a search. */
static int32_t least_of_all(const struct evict_search *find, struct node *node)
{
	uint64_t number = find->sched->cold_slots.search;

	if (node->least_search == number)
		return node->least;
	node->least = INT32_MAX;
	for (int i = 0; i < find->count && node->least > 1; i++) {
		int32_t least = least_on_node(&find->asks[i], node);
		node->least = least < node->least ? least : node->least;
	}
	note_lacks(find, node);
	node->least_search = number;
	return node->least;
}

/* The first shape, from the i-th on, that may fit once the slot has gone: cheap, and
 * no later than the first that does. */
static int next_shape(const struct evict_search *find, const struct slot *slot, int i)
{
	const struct reservation *reservation = slot->reservation;
	const struct node *node = reservation->node;

	for (; i < find->count; i++) {
		const struct ask *ask = &find->asks[i];
		int lacks = node->lacks[i];
		if (ask->count > node->gpu_count)
			return find->count;
		if (lacks > reservation->part_count)
			continue;
		for (int p = 0; p < reservation->part_count && lacks > 0; p++) {
			const struct part *part = &reservation->parts[p];
			int64_t free_mib = gpu_free_later(part->gpu);
			lacks -= free_mib < ask->mib &&
			         free_mib + reservation_held_mib(reservation, part) >= ask->mib;
		}
		if (lacks <= 0)
			return i;
	}
	return i;
}

bool evict_lets_go(struct evict_search *find, const struct slot *slot)
{
	struct model *model = find->search.model;

	if (rotation_lets_go(find->sched, slot, model))
		return true;
	int64_t rest_ms = rotation_rest_ms(slot);
	if (model && rest_ms > sched_now(find->sched))
		model->evict_failed.retry_ms = min64(model->evict_failed.retry_ms, rest_ms);
	return false;
}

static bool may_look_at(const struct evict_search *find, const struct node *node)
{
	return node->cold > 0 && (!find->search.only || find->search.only == node) &&
	       bitset_has(&find->search.shape->filter->nodes, (size_t)node->rank);
}

/* The best way in which this slot alone goes. */
static bool evict_one(struct evict_search *find, struct slot *slot)
{
	struct reservation *reservation = slot->reservation;
	struct node *node = reservation->node;

	if ((find->search.only && find->search.only != node) || slot->model == find->search.model ||
	    !evict_is_there(slot) || !evict_lets_go(find, slot) || least_of_all(find, node) > 1)
		return false;
	int i = next_shape(find, slot, 0);
	if (i == find->count)
		return false;
	struct eviction found;
	sketch_begin(node);
	sketch_go(reservation);
	for (; i < find->count; i = next_shape(find, slot, i + 1)) {
		find->search.shape = &find->shapes[i];
		if (!place_on_node(&find->sched->placement, &find->search, node, &found.choice))
			continue;
		found.count = 0;
		found.reload_ms = found.used_ms = 0;
		eviction_add(&found, slot);
		keep_better(find, &found);
		return true;
	}
	return false;
}

/* The cheapest slot that makes room by going alone. Slots are tried in the order
 * of what is lost, so the first that does is the one; of those that cost the
 * same a few are compared. */
static bool find_single(struct evict_search *find)
{
	struct rank_cursor cursor = ranktree_seek(&find->sched->cold_slots.by_cost, 0, 0);
	const struct rank_entry *entry;
	int64_t key = 0;
	int ties = 0;

	for (int walked = 0; walked < WALK_MAX && (entry = rank_cursor_next(&cursor)); walked++) {
		if (find->best->choice.node && (entry->major != key || ++ties == TIES_MAX))
			return true;
		if (evict_one(find, entry->value))
			key = entry->major;
	}
	return find->best->choice.node != NULL;
}

/* Whether the node could have something better than the best so far. Among very
 * many nodes those that could at best be as good are passed over. */
static bool may_be_better(const struct evict_search *find, const struct ask *ask,
                          const struct node *node)
{
	const struct eviction *best = find->best;
	int32_t count = least_on_node(ask, node);

	if (count == INT32_MAX || !best->choice.node)
		return count != INT32_MAX;
	if (count != best->count)
		return count < best->count;
	int64_t reload_ms = count * node->cold_reload_ms;
	if (reload_ms != best->reload_ms)
		return reload_ms < best->reload_ms;
	if (node->cold_used_ms != best->used_ms)
		return node->cold_used_ms < best->used_ms;
	return ask->count < best->choice.part_count ||
	       find->sched->cluster.node_count <= COMPARED_NODES;
}

static void evict_on_node(struct evict_search *find, struct node *node)
{
	struct clearing clearing;
	struct eviction found;
	bool begun = false;

	for (int i = 0; i < find->count; i++) {
		if (!may_be_better(find, &find->asks[i], node))
			continue;
		if (!begun && !clearing_begin(&clearing, find, node))
			return;
		begun = true;
		int most = find->best->choice.node ? find->best->count : INT32_MAX;
		if (clearing_find(&clearing, find, i, most, &found))
			keep_better(find, &found);
	}
}

/* Whether a seems to lose less than b, before either is looked at closely. */
static bool promises_more(const struct node *a, const struct node *b)
{
	if (a->least != b->least)
		return a->least < b->least;
	if (a->cold_reload_ms != b->cold_reload_ms)
		return a->cold_reload_ms < b->cold_reload_ms;
	if (a->cold_used_ms != b->cold_used_ms)
		return a->cold_used_ms < b->cold_used_ms;
	return a->rank < b->rank;
}

/* The nodes that promise most, best first; all, where there are few. */
static int promising(const struct evict_search *find, struct node **nodes)
{
	const struct cluster *cluster = &find->sched->cluster;
	int most = cluster->node_count > COMPARED_NODES ? PROMISING_NODES : COMPARED_NODES;
	int found = 0;

	for (size_t i = 0; i < cluster->node_count; i++) {
		struct node *node = cluster->by_rank[i];
		if (!may_look_at(find, node) || least_of_all(find, node) == INT32_MAX ||
		    (found == most && !promises_more(node, nodes[most - 1])))
			continue;
		int at = found < most ? found++ : most - 1;
		for (; at > 0 && promises_more(node, nodes[at - 1]); at--)
			nodes[at] = nodes[at - 1];
		nodes[at] = node;
	}
	return found;
}

/* Several have to go: node by node. What a node promises may not hold, for lack
 * of CPU or because of minimums: then the others are looked at in turn. */
static bool find_several(struct evict_search *find)
{
	const struct cluster *cluster = &find->sched->cluster;
	struct node *nodes[COMPARED_NODES];
	int found = promising(find, nodes);
	int64_t left =
	    cluster->node_count > EXHAUSTIVE_NODES ? find->sched->config.search_width : INT64_MAX;

	for (int i = 0; i < found; i++)
		evict_on_node(find, nodes[i]);
	for (size_t i = 0; i < cluster->node_count && found == PROMISING_NODES && left > 0 &&
	                   !find->best->choice.node;
	     i++) {
		struct node *node = cluster->by_rank[i];
		if (!may_look_at(find, node) || node->least == INT32_MAX)
			continue;
		evict_on_node(find, node);
		left--;
	}
	return find->best->choice.node != NULL;
}

/* Any slot that makes room by going alone: nodes by name, not slots by cost. */
static bool find_any(struct evict_search *find)
{
	const struct cluster *cluster = &find->sched->cluster;

	for (size_t i = 0; i < cluster->node_count; i++) {
		struct node *node = cluster->by_rank[i];
		if (!may_look_at(find, node) || least_of_all(find, node) > 1)
			continue;
		for (int r = 0; r < node->reservation_count; r++) {
			struct slot *slot = node->reservations[r]->slot;
			if (slot && slot->listed && evict_one(find, slot))
				return true;
		}
	}
	return false;
}

/* False if there is nothing to evict. */
static bool evict_find_begin(struct evict_search *find, struct sched *sched,
                             const struct search *search, struct eviction *best)
{
	struct model *model = search->model;

	INVARIANT(model || search->shape->request.gpu_count > 0);
	best->choice.node = NULL;
	best->count = 0;
	if (model) {
		model->evict_failed.version = 0;
		model->evict_failed.retry_ms = INT64_MAX;
	}
	if (sched->cold_slots.by_cost.count == 0)
		return false;
	find->sched = sched;
	find->search = *search;
	find->search.view = VIEW_CLEARED;
	find->search.ignore_promises = !model; /* the plan looks at those of jobs */
	find->shapes = model ? model->shapes : search->shape;
	find->count = model ? model->shape_count : 1;
	find->search.shape = find->shapes;
	find->best = best;
	for (int i = 0; i < find->count; i++) {
		const struct shape_request *request = &find->shapes[i].request;
		bool known = model && request->total_mib == 0;
		find->asks[i].count = request->gpu_count;
		find->asks[i].mib = known ? request->memory_mib : ANY_MIB;
	}
	sched_prepare(sched);
	filter_refresh(find->shapes->filter, &sched->cluster, sched->cluster.version);
	sched->cold_slots.search++;
	return true;
}

bool evict_find(struct sched *sched, const struct search *search, struct eviction *eviction)
{
	struct evict_search find;

	return evict_find_begin(&find, sched, search, eviction) &&
	       (find_single(&find) || find_several(&find));
}

bool evict_could(struct sched *sched, const struct search *search)
{
	struct eviction eviction;
	struct evict_search find;

	INVARIANT(!sched->plan.open);
	return evict_find_begin(&find, sched, search, &eviction) &&
	       (find_any(&find) || find_several(&find));
}
