/* search.c - the best node for one task or slot, from the index */
#include "core/model/model.h"
#include "core/place/fit.h"
#include "core/place/placement.h"
#include "core/place/score_cache.h"
#include "core/queue/job.h"

/* Of the nodes with memory coming back, those that may have enough then. */
static const struct bitset *later_set(const struct index *index,
                                      const struct shape_request *request)
{
	if (request->compute > 0) /* the sets are of those that take turns */
		return &index->releasing;
	switch (request->gpu_kind) {
	case GPU_WHOLE:
		return &index->later_whole[min64(request->gpu_count, INDEX_WHOLE_LEVELS - 1)];
	case GPU_FRACTION:
		return &index->later_milli[index_milli_level(request->fraction)];
	case GPU_MEMORY:
		return &index->later_mib[index_mib_level(request->memory_mib)];
	case GPU_UNEVEN:
		return &index->later_mib[index_mib_level(request->uneven_mib[0])];
	default:
		return &index->releasing;
	}
}

struct scope place_scope(const struct placement *placement, const struct search *search)
{
	const struct index *index = placement->index;
	const struct shape_request *request = &search->shape->request;
	int64_t level;

	INVARIANT(placement->index->built);
	if (search->view == VIEW_LATER)
		return (struct scope){ later_set(index, request), 1 };
	switch (request->compute > 0 ? GPU_NONE : request->gpu_kind) {
	case GPU_WHOLE:
		level = min64(request->gpu_count, INDEX_WHOLE_LEVELS - 1);
		return (struct scope){ &index->whole[level], INDEX_WHOLE_LEVELS - (int)level };
	case GPU_FRACTION:
		level = index_milli_level(request->fraction);
		return (struct scope){ &index->milli[level], INDEX_MILLI_LEVELS - (int)level };
	case GPU_MEMORY:
	case GPU_UNEVEN:
		level = index_mib_level(request->gpu_kind == GPU_MEMORY ? request->memory_mib
		                                                        : request->uneven_mib[0]);
		return (struct scope){ &index->mib[level], INDEX_MIB_LEVELS - (int)level };
	default:
		level = index_cpu_level(request->cpu_milli);
		return (struct scope){ &index->cpu[level], INDEX_CPU_LEVELS - (int)level };
	}
}

struct finding {
	struct scorer scorer; /* without a cache: there is none for the search */
	struct node *best;
	bool linked;
	int64_t score;
	int64_t fitted, most; /* `most` are enough */
};

static void look_at(struct placement *placement, struct search *search, struct node *node,
                    struct finding *finding)
{
	struct choice choice;

	choice.linked = choice.promise_blocked = false;
	if (search->rack && node->rack != search->rack)
		return;
	if (finding->scorer.cache && !node_is_spoken_for(node))
		choice.score = scorer_score(&finding->scorer, node);
	else if (!place_on_node(placement, search, node, &choice))
		choice.score = TOURNAMENT_NONE;
	search->promise_blocked |= choice.promise_blocked;
	if (choice.score == TOURNAMENT_NONE)
		return;
	finding->fitted++;
	if (!finding->best ||
	    (choice.linked == finding->linked ? choice.score < finding->score : choice.linked)) {
		finding->best = node;
		finding->linked = choice.linked;
		finding->score = choice.score;
	}
}

/* Like look_through(), for the nodes of the search's rack, which are few. */
static void look_through_rack(struct placement *placement, struct search *search,
                              const struct bitset *set, const struct bitset *except,
                              struct finding *finding)
{
	const struct cluster *cluster = placement->cluster;
	const struct bitset *allowed = &search->shape->filter->nodes;

	for (int i = cluster->rack_first[search->rack]; i < cluster->rack_first[search->rack + 1];
	     i++) {
		size_t rank = (size_t)cluster->by_rack[i]->rank;
		if (!bitset_has(set, rank) || !bitset_has(allowed, rank) ||
		    (except && bitset_has(except, rank)))
			continue;
		look_at(placement, search, cluster->by_rack[i], finding);
		if (finding->fitted >= finding->most)
			return;
	}
}

/* Looks at the members of `set` that are allowed and not in `except`. */
static void look_through(struct placement *placement, struct search *search,
                         const struct bitset *set, const struct bitset *except,
                         struct finding *finding)
{
	const struct bitset *allowed = &search->shape->filter->nodes;

	if (search->rack) {
		look_through_rack(placement, search, set, except, finding);
		return;
	}
	for (size_t w = 0; w < set->words && w < allowed->words; w++) {
		uint64_t bits = set->word[w] & allowed->word[w];
		if (except)
			bits &= ~except->word[w];
		while (bits) {
			size_t rank = bitset_take(&bits, w);
			look_at(placement, search, placement->cluster->by_rank[rank], finding);
			if (finding->fitted >= finding->most)
				return;
		}
	}
}

static bool set_is_empty(const struct bitset *set)
{
	for (size_t w = 0; w < set->words; w++)
		if (set->word[w])
			return false;
	return true;
}

/* The tightest nodes first, or the roomiest for slots that are spread, until enough
 * of them fitted. */
static void look_by_level(struct placement *placement, struct search *search, struct scope scope,
                          struct finding *finding)
{
	bool roomiest = search->model && search->model->r.policy == SLOT_SPREAD;

	if (set_is_empty(scope.sets))
		return;
	for (int i = 0; i < scope.levels && finding->fitted < finding->most; i++) {
		int level = roomiest ? scope.levels - 1 - i : i;
		look_through(placement, search, scope.sets + level,
		             level + 1 < scope.levels ? scope.sets + level + 1 : NULL, finding);
	}
}

static void look_at_promised(struct placement *placement, struct search *search,
                             struct finding *finding)
{
	const struct bitset *promised = &placement->index->promised, *scope = finding->scorer.scope;

	for (size_t w = 0; w < promised->words; w++) {
		uint64_t bits = promised->word[w] & scope->word[w];
		while (bits) {
			size_t rank = bitset_take(&bits, w);
			if (bitset_has(&search->shape->filter->nodes, rank))
				look_at(placement, search, placement->cluster->by_rank[rank],
				        finding);
		}
	}
}

/* All nodes at once: the best of the cache, and those that it leaves out. */
static void look_at_board(struct placement *placement, struct search *search,
                          struct finding *finding)
{
	struct score_cache *cache = finding->scorer.cache;
	size_t rank;

	look_at_promised(placement, search, finding);
	finding->fitted += cache->fits;
	int64_t score = tournament_best(&cache->scores, &rank);
	if (score == TOURNAMENT_NONE || (finding->best && score > finding->score))
		return;
	if (finding->best && score == finding->score && (int)rank > finding->best->rank)
		return;
	finding->best = placement->cluster->by_rank[rank];
	finding->score = score;
}

static int place_on(const struct node *node, const struct gpu *gpu)
{
	int at = 0;

	while (node->gpus[at] != gpu)
		at++;
	return at;
}

static void order_by_place(struct choice *choice)
{
	for (int i = 1; i < choice->part_count; i++) {
		struct part part = choice->parts[i];
		int j = i, at = place_on(choice->node, part.gpu);
		for (; j > 0 && place_on(choice->node, choice->parts[j - 1].gpu) > at; j--)
			choice->parts[j] = choice->parts[j - 1];
		choice->parts[j] = part;
	}
}

/* Fills in the GPUs of the best node. Where only the shape and the node decide,
 * they go by place. */
static void choose_best(struct placement *placement, struct search *search,
                        const struct finding *finding, struct choice *choice)
{
	bool fits = place_on_node(placement, search, finding->best, choice);

	INVARIANT(fits && choice->score == finding->score);
	if (choice->part_count > 1 && score_cache_serves(placement, search) &&
	    !node_is_spoken_for(finding->best))
		order_by_place(choice);
}

/* Looks wherever the task may go. In a large cluster the tightest nodes are
 * looked at first, and it ends when enough of them fitted. */
static struct finding search_look(struct placement *placement, struct search *search)
{
	struct scope scope = place_scope(placement, search);
	bool few = placement->cluster->node_count <= SCORE_CACHE_FOLLOWS;
	bool by_level = !few && !search->any && scope.levels > 1;
	struct finding finding = { .most = search->any ? 1
		                           : by_level  ? placement->config->search_width
		                                       : INT64_MAX };

	if (search->only) {
		look_at(placement, search, search->only, &finding);
		return finding;
	}
	if (score_cache_serves(placement, search))
		finding.scorer = scorer_begin(placement, search);
	if (by_level)
		look_by_level(placement, search, scope, &finding);
	else if (few && finding.scorer.cache && !search->rack)
		look_at_board(placement, search, &finding);
	else
		look_through(placement, search, scope.sets, NULL, &finding);
	return finding;
}

static bool find_shape(struct placement *placement, struct search *search, struct choice *choice)
{
	struct finding finding = search_look(placement, search);

	search->candidates = finding.fitted;
	if (finding.best)
		choose_best(placement, search, &finding, choice);
	return finding.best != NULL;
}

bool place_find(struct placement *placement, struct search *search, struct choice *choice)
{
	const struct model *model = search->model;

	INVARIANT(placement->index->built);
	INVARIANT(search->view != VIEW_CLEARED);
	scarcity_refresh(placement);
	if (!model)
		return find_shape(placement, search, choice);
	for (int i = 0; i < model->shape_count; i++) {
		search->shape = &model->shapes[i];
		if (find_shape(placement, search, choice))
			return true;
	}
	return false;
}

bool place_fits(struct placement *placement, struct search *search)
{
	INVARIANT(placement->index->built && search->shape != NULL);
	filter_refresh(search->shape->filter, placement->cluster, placement->cluster->version);
	scarcity_refresh(placement);
	return (score_cache_serves(placement, search) && score_cache_has_fit(placement, search)) ||
	       search_look(placement, search).best != NULL;
}
