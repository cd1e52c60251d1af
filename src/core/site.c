/* site.c - where a slot could go: a node, GPUs, and what would have to go for it */
#include "core/site.h"

#include <string.h>

#include "core/fit.h"
#include "core/plot.h"
#include "core/state.h"

/* Below this many nodes every one that may fit is looked at. */
#define EXHAUSTIVE_NODES 2048
#define WALK_MAX 4096     /* idle slots that are tried one by one */
#define TIES_MAX 16       /* of those that cost the same */
#define PROMISING_NODES 8 /* of more, those that are looked at closely */
#define COMPARED_NODES 32 /* up to so many, nodes where as much is lost are compared by policy */

struct site_need site_need_of(struct model *model)
{
	return (struct site_need){ .filter = model->filter,
		                   .model = model,
		                   .cpu_milli = model->r.cpu_milli,
		                   .host_bytes = model->r.host_bytes,
		                   .policy = (enum slot_policy)model->r.policy };
}

bool site_better(const struct site *a, const struct site *b)
{
	if (a->evicted_count != b->evicted_count)
		return a->evicted_count < b->evicted_count;
	if (a->reload_ms != b->reload_ms)
		return a->reload_ms < b->reload_ms;
	if (a->used_ms != b->used_ms)
		return a->used_ms < b->used_ms;
	if (a->part_count != b->part_count)
		return a->part_count < b->part_count;
	if (a->linked != b->linked)
		return a->linked;
	if (a->score != b->score)
		return a->score < b->score;
	return a->node->slot < b->node->slot;
}

/* The asks of a need, fewest GPUs first. */
static int asks_of(const struct site_need *need, struct ask *asks)
{
	int counts[PARTS_MAX], count = 0;

	if (!need->model) {
		asks[0] = ask_of_task(need->task);
		return 1;
	}
	int splits = model_splits(need->model, counts);
	for (int i = 0; i < splits; i++)
		asks[count++] = ask_of_model(need->model, counts[i]);
	return count;
}

/* Looks at a node as it is; keeps it if it is better. */
static bool look_at(struct sched *sched, const struct site_need *need, const struct ask *ask,
                    struct node *node, bool now, struct site *best)
{
	struct plot plot;
	struct site site;

	if (!plot_begin(&plot, sched, need, node, now) || !plot_fit(&plot, ask, &site))
		return false;
	if (best->node && !site_better(&site, best))
		return true;
	site_copy(best, &site);
	return true;
}

/* Looks at the members of a set that are not in `except`, up to `most` that fit. */
static int64_t look_through(struct sched *sched, const struct site_need *need,
                            const struct ask *ask, const struct bitset *set,
                            const struct bitset *except, bool now, int64_t most, struct site *best)
{
	const struct bitset *allowed = &need->filter->nodes;
	int64_t fitted = 0;

	for (size_t w = 0; w < set->words && w < allowed->words; w++) {
		uint64_t bits = set->word[w] & allowed->word[w] & ~(except ? except->word[w] : 0);
		for (; bits && fitted < most; bits &= bits - 1) {
			size_t place = w * 64 + (size_t)__builtin_ctzll(bits);
			struct node *node = sched->cluster.by_slot[place];
			if (!need->only || need->only == node)
				fitted += look_at(sched, need, ask, node, now, best);
		}
	}
	return fitted;
}

/* In a large cluster the levels that the policy likes come first. */
static void look_by_level(struct sched *sched, const struct site_need *need, const struct ask *ask,
                          int lowest, struct site *best)
{
	const struct bitset *sets = sched->index.mib;
	int64_t left = sched->config.search_width;
	int levels = INDEX_MIB_LEVELS - lowest;

	for (int i = 0; i < levels && left > 0; i++) {
		int level = need->policy == SLOT_PACK ? lowest + i : INDEX_MIB_LEVELS - 1 - i;
		left -= look_through(sched, need, ask, &sets[level],
		                     level + 1 < INDEX_MIB_LEVELS ? &sets[level + 1] : NULL, true,
		                     left, best);
	}
}

static bool find_now(struct sched *sched, const struct site_need *need, const struct ask *asks,
                     int count, struct site *site)
{
	for (int i = 0; i < count && !site->node; i++) {
		int level = index_mib_level(asks[i].mib);
		if (sched->cluster.node_count > EXHAUSTIVE_NODES && !need->only)
			look_by_level(sched, need, &asks[i], level, site);
		else
			look_through(sched, need, &asks[i], &sched->index.mib[level], NULL, true,
			             INT64_MAX, site);
	}
	return site->node != NULL;
}

static bool find_later(struct sched *sched, const struct site_need *need, const struct ask *asks,
                       int count, struct site *site)
{
	for (int i = 0; i < count && !site->node; i++)
		look_through(sched, need, &asks[i], &sched->index.releasing, NULL, false, INT64_MAX,
		             site);
	return site->node != NULL;
}

static void prepare(struct sched *sched, const struct site_need *need)
{
	sched_prepare(sched);
	filter_refresh((struct filter *)need->filter, &sched->cluster, sched->cluster_version);
}

bool site_find(struct sched *sched, const struct site_need *need, struct site *site)
{
	struct ask asks[PARTS_MAX];
	int count = asks_of(need, asks);

	prepare(sched, need);
	site->node = NULL;
	return find_now(sched, need, asks, count, site) ||
	       (sched->index.releasing_count > 0 && find_later(sched, need, asks, count, site));
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

	if (ask->task || ask->total)
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

/* The least over all asks, counted once in a search. */
static int32_t least_of_all(const struct sched *sched, const struct ask *asks, int count,
                            struct node *node)
{
	if (node->least_search == sched->cold_slots.search)
		return node->least;
	node->least = INT32_MAX;
	for (int i = 0; i < count && node->least > 1; i++) {
		int32_t least = least_on_node(&asks[i], node);
		node->least = least < node->least ? least : node->least;
	}
	node->least_search = sched->cold_slots.search;
	return node->least;
}

/* Whether one of its GPUs would have enough for the smallest part. */
static bool may_suffice(const struct slot *slot, const struct ask *asks, int count)
{
	int64_t least = asks[0].mib;

	for (int i = 1; i < count; i++)
		least = min64(least, asks[i].mib);
	for (int i = 0; i < slot->reservation->part_count; i++) {
		const struct part *part = &slot->reservation->parts[i];
		if (gpu_free_later(part->gpu) + max64(part->mib, part->measured_mib) >= least)
			return true;
	}
	return false;
}

/* The best way in which this slot alone goes. */
static bool evict_one(struct sched *sched, const struct site_need *need, const struct ask *asks,
                      int count, struct slot *slot, struct site *best)
{
	struct node *node = slot->reservation->node;
	struct plot plot;
	struct site site;

	if ((need->only && need->only != node) || slot->model == need->model ||
	    slot->reservation->phase != PHASE_LIVE || least_of_all(sched, asks, count, node) > 1 ||
	    !may_suffice(slot, asks, count) || !plot_begin(&plot, sched, need, node, false))
		return false;
	plot_offer(&plot, slot);
	plot_go(&plot, 0);
	for (int i = 0; i < count; i++) {
		if (!plot_fit(&plot, &asks[i], &site))
			continue;
		plot_evicted(&plot, &site);
		if (!best->node || site_better(&site, best))
			site_copy(best, &site);
		return true;
	}
	return false;
}

/* The cheapest slot that makes room by going alone. Slots are tried in the order
 * of what is lost, so the first that does is the one; of those that cost the
 * same a few are compared. */
static bool find_single(struct sched *sched, const struct site_need *need, const struct ask *asks,
                        int count, struct site *site)
{
	struct rank_cursor cursor = ranktree_seek(&sched->cold_slots.by_cost, 0, 0);
	const struct rank_entry *entry;
	int64_t key = 0;
	int ties = 0;

	for (int walked = 0; walked < WALK_MAX && (entry = rank_cursor_next(&cursor)); walked++) {
		if (site->node && (entry->major != key || ++ties == TIES_MAX))
			return true;
		if (evict_one(sched, need, asks, count, entry->value, site))
			key = entry->major;
	}
	return site->node != NULL;
}

/* Whether the node could have something better than the best so far. Among very
 * many nodes those that could at best be as good are passed over. */
static bool may_be_better(const struct sched *sched, const struct ask *ask, const struct node *node,
                          const struct site *best)
{
	int32_t count = least_on_node(ask, node);

	if (count == INT32_MAX || !best->node)
		return count != INT32_MAX;
	if (count != best->evicted_count)
		return count < best->evicted_count;
	int64_t reload_ms = count * node->cold_reload_ms;
	if (reload_ms != best->reload_ms)
		return reload_ms < best->reload_ms;
	if (node->cold_used_ms != best->used_ms)
		return node->cold_used_ms < best->used_ms;
	return ask->count < best->part_count || sched->cluster.node_count <= COMPARED_NODES;
}

static void evict_on_node(struct sched *sched, const struct site_need *need, const struct ask *asks,
                          int count, struct node *node, struct site *best)
{
	struct plot plot;
	struct site site;
	bool begun = false;

	for (int i = 0; i < count; i++) {
		if (!may_be_better(sched, &asks[i], node, best))
			continue;
		if (!begun && !plot_begin(&plot, sched, need, node, false))
			return;
		if (!begun)
			plot_offer_all(&plot);
		begun = true;
		if (plot_evict(&plot, &asks[i], best->node ? best->evicted_count : INT32_MAX,
		               &site) &&
		    (!best->node || site_better(&site, best)))
			site_copy(best, &site);
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
	return a->slot < b->slot;
}

/* The nodes that promise most, best first; all, where there are few. */
static int promising(struct sched *sched, const struct site_need *need, const struct ask *asks,
                     int count, struct node **nodes)
{
	int most = sched->cluster.node_count > COMPARED_NODES ? PROMISING_NODES : COMPARED_NODES;
	int found = 0;

	for (size_t i = 0; i < sched->cluster.node_count; i++) {
		struct node *node = sched->cluster.by_slot[i];
		if (node->cold == 0 || !bitset_has(&need->filter->nodes, i) ||
		    (need->only && need->only != node) ||
		    least_of_all(sched, asks, count, node) == INT32_MAX ||
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
static bool find_several(struct sched *sched, const struct site_need *need, const struct ask *asks,
                         int count, struct site *site)
{
	struct node *nodes[COMPARED_NODES];
	int found = promising(sched, need, asks, count, nodes);
	int64_t left =
	    sched->cluster.node_count > EXHAUSTIVE_NODES ? sched->config.search_width : INT64_MAX;

	for (int i = 0; i < found; i++)
		evict_on_node(sched, need, asks, count, nodes[i], site);
	for (size_t i = 0;
	     i < sched->cluster.node_count && found == PROMISING_NODES && left > 0 && !site->node;
	     i++) {
		struct node *node = sched->cluster.by_slot[i];
		if (node->cold == 0 || !bitset_has(&need->filter->nodes, i) ||
		    (need->only && need->only != node) || node->least == INT32_MAX)
			continue;
		evict_on_node(sched, need, asks, count, node, site);
		left--;
	}
	return site->node != NULL;
}

bool site_find_evicting(struct sched *sched, const struct site_need *need, struct site *site)
{
	struct ask asks[PARTS_MAX];
	int count = asks_of(need, asks);

	if (sched->cold_slots.by_cost.count == 0)
		return false;
	prepare(sched, need);
	sched->cold_slots.search++;
	site->node = NULL;
	return find_single(sched, need, asks, count, site) ||
	       find_several(sched, need, asks, count, site);
}

bool site_on_node(struct sched *sched, const struct site_need *need, struct node *node,
                  struct site *site)
{
	struct ask asks[PARTS_MAX];
	int count = asks_of(need, asks);

	prepare(sched, need);
	site->node = NULL;
	for (int i = 0; i < count && !site->node; i++)
		look_at(sched, need, &asks[i], node, false, site);
	return site->node != NULL;
}

void site_copy(struct site *to, const struct site *from)
{
	to->node = from->node;
	to->part_count = from->part_count;
	to->now = from->now;
	to->evicted_count = from->evicted_count;
	to->reload_ms = from->reload_ms;
	to->used_ms = from->used_ms;
	to->linked = from->linked;
	to->score = from->score;
	memcpy(to->parts, from->parts, (size_t)from->part_count * sizeof(from->parts[0]));
	memcpy(to->evicted, from->evicted, (size_t)from->evicted_count * sizeof(struct slot *));
}
