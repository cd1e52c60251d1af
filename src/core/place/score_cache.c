/* score_cache.c - what every node scores for a shape, kept as nodes change */
#include "core/place/score_cache.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/place/placement.h"

#define BOARDS_MIN 32
#define BOARDS_MAX 1024
#define BOARDS_BYTES (64 << 20) /* that all of them take, but for the first few */

static void score_cache_free(struct score_cache *cache)
{
	tournament_free(&cache->scores);
	bitset_free(&cache->fitting);
	bitset_free(&cache->promised);
	free(cache->versions);
	free(cache->scarcities);
	*cache = (struct score_cache){ 0 };
}

void score_caches_free(struct score_caches *caches)
{
	for (size_t i = 0; i < caches->count; i++)
		score_cache_free(&caches->of[i]);
	free(caches->of);
	*caches = (struct score_caches){ 0 };
}

static void score_caches_begin(struct score_caches *caches, size_t nodes)
{
	size_t bytes = (nodes + 1) * (3 * sizeof(int64_t) + 1);
	size_t count = BOARDS_MIN;

	while (count < BOARDS_MAX && 2 * count * bytes <= BOARDS_BYTES)
		count *= 2;
	score_caches_free(caches);
	*caches = (struct score_caches){ memory_zero(count, sizeof(*caches->of)), count, nodes };
}

/* Whether its scores are by what is known now. */
static bool is_current(const struct placement *placement, const struct score_cache *cache)
{
	return cache->mix == placement->workload_mix.version;
}

static void score_cache_begin(const struct placement *placement, struct score_cache *cache,
                              int64_t shape, size_t nodes)
{
	score_cache_free(cache);
	cache->shape = shape;
	cache->mix = placement->workload_mix.version;
	cache->scarcity = placement->scarcity.version;
	tournament_reset(&cache->scores, nodes);
	bitset_grow(&cache->fitting, nodes);
	bitset_grow(&cache->promised, nodes);
	cache->scarcities = memory_zero(nodes, sizeof(*cache->scarcities));
	if (nodes > SCORE_CACHE_FOLLOWS)
		cache->versions = memory_zero(nodes, sizeof(*cache->versions));
}

bool score_cache_serves(const struct placement *placement, const struct search *search)
{
	if (search->model && placement->cluster->kept_count > 0)
		return false;
	return search->shape->number > 0 && !search->shape->filter->demand &&
	       search->view == VIEW_NOW && !search->link && !search->even &&
	       search->shape->request.gpu_kind != GPU_UNEVEN;
}

/* The scarcity that a score of the node would be by. */
static inline uint8_t scarcity_at(const struct placement *placement, size_t rank)
{
	int model = placement->index->gpu_types[rank];

	if (placement->scarcity.counted == 0)
		return 0;
	return model >= 0 ? (uint8_t)scarcity_of(&placement->scarcity, model) : SCARCITY_MIXED;
}

/* True if the score of the node is by the scarcities as they are. */
static inline bool scarcity_is_right(const struct placement *placement,
                                     const struct score_cache *cache, size_t rank)
{
	uint8_t now = scarcity_at(placement, rank);

	return now == cache->scarcities[rank] && now != SCARCITY_MIXED;
}

/* The nodes of word `w` that may fit: the index and the filter leave out most of
 * those that do not. */
static inline uint64_t candidates(const struct scorer *scorer, size_t w)
{
	const struct bitset *allowed = &scorer->search->shape->filter->nodes;

	return scorer->scope->word[w] & allowed->word[w] &
	       ~scorer->placement->index->promised.word[w];
}

/* What the node, which may fit, scores. */
static int64_t score_anew(const struct scorer *scorer, size_t rank)
{
	struct placement *placement = scorer->placement;
	struct node_summary *summary = &placement->index->summaries[rank];
	struct choice choice;

	if (scorer->by_summary && summary->plain && summary->uniform)
		return scorer->by_summary(placement, scorer->search->shape, summary);
	return place_on_node(placement, scorer->search, placement->cluster->by_rank[rank], &choice)
	           ? choice.score
	           : TOURNAMENT_NONE;
}

/* What any node scores. */
static int64_t score_of(const struct scorer *scorer, size_t rank)
{
	bool may_fit = candidates(scorer, rank / 64) >> rank % 64 & 1;

	return may_fit ? score_anew(scorer, rank) : TOURNAMENT_NONE;
}

static inline void score_cache_put(const struct scorer *scorer, size_t rank, int64_t score)
{
	tournament_put(&scorer->cache->scores, rank, score);
	scorer->cache->scarcities[rank] = scarcity_at(scorer->placement, rank);
}

/* Looks again at some nodes of word `w`. Most that do not fit did not fit before. */
static void score_cache_renew(struct scorer *scorer, size_t w, uint64_t nodes)
{
	struct score_cache *cache = scorer->cache;
	uint64_t fitted = cache->fitting.word[w], may_fit = candidates(scorer, w);
	uint64_t gone = nodes & fitted & ~may_fit, fitting = fitted & ~nodes;

	while (gone)
		score_cache_put(scorer, bitset_take(&gone, w), TOURNAMENT_NONE);
	nodes &= may_fit;
	while (nodes) {
		uint64_t bit = nodes & -nodes;
		size_t rank = bitset_take(&nodes, w);
		int64_t score = score_anew(scorer, rank);
		score_cache_put(scorer, rank, score);
		fitting |= score != TOURNAMENT_NONE ? bit : 0;
	}
	if (fitting == fitted)
		return;
	cache->fitting.word[w] = fitting;
	cache->fits += __builtin_popcountll(fitting) - __builtin_popcountll(fitted);
}

/* The nodes of word `w` that fit and whose scarcities changed. */
static uint64_t repriced(const struct scorer *scorer, size_t w)
{
	const struct score_cache *cache = scorer->cache;
	uint64_t nodes = 0;

	if (cache->scarcity == scorer->placement->scarcity.version)
		return 0;
	for (uint64_t left = cache->fitting.word[w]; left;) {
		size_t rank = bitset_take(&left, w);
		if (!scarcity_is_right(scorer->placement, cache, rank))
			nodes |= UINT64_C(1) << rank % 64;
	}
	return nodes;
}

/* Looks again at the nodes that changed, and at those that a promise counts on now
 * and did not before, or the other way round. */
static void score_cache_follow(struct scorer *scorer)
{
	const struct index *index = scorer->placement->index;
	struct score_cache *cache = scorer->cache;
	uint64_t changed[SCORE_CACHE_FOLLOWS / 64] = { 0 };
	bool known = cache->seen > 0 && change_log_known(&index->change_log, cache->seen);

	INVARIANT(cache->promised.words <= SCORE_CACHE_FOLLOWS / 64);
	if (known)
		change_log_since(&index->change_log, cache->seen, changed);
	for (size_t w = 0; w < cache->promised.words; w++) {
		uint64_t differ = index->promised.word[w] ^ cache->promised.word[w];
		cache->promised.word[w] = index->promised.word[w];
		score_cache_renew(scorer, w,
		                  known ? changed[w] | differ | repriced(scorer, w) : UINT64_MAX);
	}
	cache->scarcity = scorer->placement->scarcity.version;
	cache->seen = index->change_log.count;
}

static struct scorer find_board(struct placement *placement, const struct search *search)
{
	struct score_caches *caches = &placement->score_caches;
	const struct shape *shape = search->shape;
	const struct policy_cache *policy = &policy_row(placement->config->policy)->cache;

	INVARIANT(placement->index->built && score_cache_serves(placement, search));
	if (caches->nodes != placement->cluster->node_count || caches->count == 0)
		score_caches_begin(caches, placement->cluster->node_count);
	struct score_cache *cache = &caches->of[(size_t)shape->number % caches->count];
	if (cache->shape != shape->number || !is_current(placement, cache))
		score_cache_begin(placement, cache, shape->number, caches->nodes);
	struct scorer scorer = {
		.placement = placement,
		.search = search,
		.cache = cache,
		.scope = place_scope(placement, search).sets,
		.follows = !cache->versions,
		.by_summary = policy->sees && policy->sees(placement, shape) ? policy->score : NULL,
	};
	return scorer;
}

struct scorer scorer_begin(struct placement *placement, const struct search *search)
{
	struct scorer scorer = find_board(placement, search);

	if (scorer.follows)
		score_cache_follow(&scorer);
	return scorer;
}

static bool is_out_of_date(const struct scorer *scorer, size_t rank)
{
	const struct index *index = scorer->placement->index;
	const struct score_cache *cache = scorer->cache;

	return index->change_log.last[rank] >= cache->seen ||
	       bitset_has(&index->promised, rank) != bitset_has(&cache->promised, rank);
}

/* Whether a node that is noted to fit still does. */
static bool still_fits(struct scorer *scorer, size_t rank)
{
	const struct bitset *promised = &scorer->placement->index->promised;
	struct score_cache *cache = scorer->cache;

	if (!is_out_of_date(scorer, rank))
		return true;
	bitset_assign(&cache->promised, rank, bitset_has(promised, rank));
	score_cache_renew(scorer, rank / 64, UINT64_C(1) << rank % 64);
	return bitset_has(&cache->fitting, rank);
}

bool score_cache_has_fit(struct placement *placement, const struct search *search)
{
	struct scorer scorer = find_board(placement, search);
	const struct bitset *fitting = &scorer.cache->fitting;

	if (!scorer.follows || scorer.cache->seen == 0)
		return false;
	for (size_t w = 0; w < fitting->words; w++)
		for (uint64_t left = fitting->word[w]; left;)
			if (still_fits(&scorer, bitset_take(&left, w)))
				return true;
	return false;
}

int64_t scorer_score(struct scorer *scorer, const struct node *node)
{
	struct score_cache *cache = scorer->cache;
	size_t rank = (size_t)node->rank;

	INVARIANT(!node_is_spoken_for(node) && rank < cache->scores.count);
	if (!scorer->follows && (cache->versions[rank] != node->version ||
	                         !scarcity_is_right(scorer->placement, cache, rank))) {
		cache->scores.score[rank] = score_of(scorer, rank);
		cache->versions[rank] = node->version;
		cache->scarcities[rank] = scarcity_at(scorer->placement, rank);
	}
	return cache->scores.score[rank];
}

/* Whether what is noted for the node should be what it scores. */
static bool is_right(const struct placement *placement, const struct score_cache *cache,
                     const struct node *node)
{
	size_t rank = (size_t)node->rank;

	if (node_is_spoken_for(node) || !scarcity_is_right(placement, cache, rank))
		return false;
	return cache->versions ? cache->versions[rank] == node->version
	                       : placement->index->change_log.last[rank] < cache->seen &&
	                             !bitset_has(&cache->promised, rank);
}

static void check_board(struct placement *placement, const struct score_cache *cache)
{
	const struct shape *shape = placement->shapes->all[cache->shape - 1];
	struct search search = { .shape = shape, .view = VIEW_NOW, .until_ms = INT64_MAX };
	struct scorer scorer = { .placement = placement,
		                 .search = &search,
		                 .scope = place_scope(placement, &search).sets };
	int64_t fits = 0;

	filter_refresh(shape->filter, placement->cluster, placement->cluster->version);
	for (size_t rank = 0; rank < placement->cluster->node_count; rank++) {
		const struct node *node = placement->cluster->by_rank[rank];
		int64_t score = cache->scores.score[rank];
		if (is_right(placement, cache, node) && score != score_of(&scorer, rank))
			panic("board: node %s does not score what is noted for shape %" PRId64,
			      node->r.name, shape->number);
		INVARIANT(cache->versions ||
		          bitset_has(&cache->fitting, rank) == (score != TOURNAMENT_NONE));
		fits += score != TOURNAMENT_NONE;
	}
	if (cache->versions)
		return;
	INVARIANT(cache->fits == fits);
	tournament_check(&cache->scores);
}

void score_caches_check(struct placement *placement)
{
	const struct score_caches *caches = &placement->score_caches;

	if (!placement->index->built || caches->nodes != placement->cluster->node_count)
		return;
	for (size_t i = 0; i < caches->count; i++)
		if (caches->of[i].shape > 0 && is_current(placement, &caches->of[i]))
			check_board(placement, &caches->of[i]);
}
