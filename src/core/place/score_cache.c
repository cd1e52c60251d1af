/* score_cache.c - what every node scores for a shape, kept as nodes change */
#include "core/place/score_cache.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/state.h"

#define BOARDS_MIN 32
#define BOARDS_MAX 1024
#define BOARDS_BYTES (64 << 20) /* that all of them take, but for the first few */

static void board_free(struct score_cache *board)
{
	tournament_free(&board->scores);
	bitset_free(&board->fitting);
	bitset_free(&board->promised);
	free(board->versions);
	free(board->scarcities);
	*board = (struct score_cache){ 0 };
}

void score_caches_free(struct score_caches *boards)
{
	for (size_t i = 0; i < boards->count; i++)
		board_free(&boards->of[i]);
	free(boards->of);
	*boards = (struct score_caches){ 0 };
}

static void boards_begin(struct score_caches *boards, size_t nodes)
{
	size_t bytes = (nodes + 1) * (3 * sizeof(int64_t) + 1);
	size_t count = BOARDS_MIN;

	while (count < BOARDS_MAX && 2 * count * bytes <= BOARDS_BYTES)
		count *= 2;
	score_caches_free(boards);
	*boards = (struct score_caches){ memory_zero(count, sizeof(*boards->of)), count, nodes };
}

/* Whether its scores are by what is known now. */
static bool is_current(const struct sched *sched, const struct score_cache *board)
{
	return board->mix == sched->workload_mix.version;
}

static void board_begin(const struct sched *sched, struct score_cache *board, int64_t shape,
                        size_t nodes)
{
	board_free(board);
	board->shape = shape;
	board->mix = sched->workload_mix.version;
	board->scarcity = sched->scarcity.version;
	tournament_reset(&board->scores, nodes);
	bitset_grow(&board->fitting, nodes);
	bitset_grow(&board->promised, nodes);
	board->scarcities = memory_zero(nodes, sizeof(*board->scarcities));
	if (nodes > SCORE_CACHE_FOLLOWS)
		board->versions = memory_zero(nodes, sizeof(*board->versions));
}

bool score_cache_serves(const struct search *search)
{
	return search->shape->number > 0 && search->view == VIEW_NOW && !search->link &&
	       !search->even && search->shape->request.gpu_kind != GPU_UNEVEN;
}

/* The premium that a score of the node would be by. */
static inline uint8_t scarcity_at(const struct sched *sched, size_t slot)
{
	int model = sched->index.gpu_types[slot];

	if (sched->scarcity.counted == 0)
		return 0;
	return model >= 0 ? (uint8_t)scarcity_of(&sched->scarcity, model) : SCARCITY_MIXED;
}

/* True if the score of the node is by the premiums as they are. */
static inline bool scarcity_is_right(const struct sched *sched, const struct score_cache *board,
                                     size_t slot)
{
	uint8_t now = scarcity_at(sched, slot);

	return now == board->scarcities[slot] && now != SCARCITY_MIXED;
}

/* The nodes of word `w` that may fit: the index and the filter leave out most of
 * those that do not. */
static inline uint64_t candidates(const struct scorer *scorer, size_t w)
{
	const struct bitset *allowed = &scorer->search->shape->filter->nodes;

	return scorer->scope->word[w] & allowed->word[w] & ~scorer->sched->index.promised.word[w];
}

/* What the node, which may fit, scores. */
static int64_t score_anew(const struct scorer *scorer, size_t slot)
{
	struct sched *sched = scorer->sched;
	struct node_summary *view = &sched->index.summaries[slot];
	struct choice choice;

	if (scorer->by_view && view->plain && view->uniform)
		return scorer->by_view(sched, scorer->search->shape, view);
	return place_on_node(sched, scorer->search, sched->cluster.by_rank[slot], &choice)
	           ? choice.score
	           : TOURNAMENT_NONE;
}

/* What any node scores. */
static int64_t score_of(const struct scorer *scorer, size_t slot)
{
	bool may_fit = candidates(scorer, slot / 64) >> slot % 64 & 1;

	return may_fit ? score_anew(scorer, slot) : TOURNAMENT_NONE;
}

static void put(const struct scorer *scorer, size_t slot, int64_t score)
{
	struct score_cache *board = scorer->cache;
	bool fits = score != TOURNAMENT_NONE, fitted = bitset_has(&board->fitting, slot);

	tournament_put(&board->scores, slot, score);
	bitset_assign(&board->fitting, slot, fits);
	board->scarcities[slot] = scarcity_at(scorer->sched, slot);
	board->fits += fits - fitted;
}

/* Looks again at some nodes of word `w`. Most that do not fit did not fit before. */
static void renew(struct scorer *scorer, size_t w, uint64_t nodes)
{
	struct score_cache *board = scorer->cache;
	uint64_t may_fit = candidates(scorer, w);
	uint64_t gone = nodes & board->fitting.word[w] & ~may_fit;

	for (; gone; gone &= gone - 1)
		put(scorer, w * 64 + (size_t)__builtin_ctzll(gone), TOURNAMENT_NONE);
	for (nodes &= may_fit; nodes; nodes &= nodes - 1) {
		size_t slot = w * 64 + (size_t)__builtin_ctzll(nodes);
		put(scorer, slot, score_anew(scorer, slot));
	}
}

/* The nodes of word `w` that fit and whose premiums changed. */
static uint64_t repriced(const struct scorer *scorer, size_t w)
{
	const struct score_cache *board = scorer->cache;
	uint64_t nodes = 0;

	if (board->scarcity == scorer->sched->scarcity.version)
		return 0;
	for (uint64_t left = board->fitting.word[w]; left; left &= left - 1)
		if (!scarcity_is_right(scorer->sched, board,
		                       w * 64 + (size_t)__builtin_ctzll(left)))
			nodes |= left & -left;
	return nodes;
}

/* Looks again at the nodes that changed, and at those that a promise counts on now
 * and did not before, or the other way round. */
static void follow(struct scorer *scorer)
{
	const struct index *index = &scorer->sched->index;
	struct score_cache *board = scorer->cache;
	uint64_t changed[SCORE_CACHE_FOLLOWS / 64] = { 0 };
	bool known = board->seen > 0 && change_log_known(&index->change_log, board->seen);

	INVARIANT(board->promised.words <= SCORE_CACHE_FOLLOWS / 64);
	if (known)
		change_log_since(&index->change_log, board->seen, changed);
	for (size_t w = 0; w < board->promised.words; w++) {
		uint64_t differ = index->promised.word[w] ^ board->promised.word[w];
		board->promised.word[w] = index->promised.word[w];
		renew(scorer, w, known ? changed[w] | differ | repriced(scorer, w) : UINT64_MAX);
	}
	board->scarcity = scorer->sched->scarcity.version;
	board->seen = index->change_log.count;
}

static struct scorer find_board(struct sched *sched, const struct search *search)
{
	struct score_caches *boards = &sched->score_caches;
	const struct shape *shape = search->shape;
	const struct policy_cache *cache = &policy_row(sched->config.policy)->cache;

	INVARIANT(sched->indexed && score_cache_serves(search));
	if (boards->nodes != sched->cluster.node_count || boards->count == 0)
		boards_begin(boards, sched->cluster.node_count);
	struct score_cache *board = &boards->of[(size_t)shape->number % boards->count];
	if (board->shape != shape->number || !is_current(sched, board))
		board_begin(sched, board, shape->number, boards->nodes);
	struct scorer scorer = {
		.sched = sched,
		.search = search,
		.cache = board,
		.scope = place_scope(sched, search).sets,
		.follows = !board->versions,
		.by_view = cache->sees && cache->sees(sched, shape) ? cache->score : NULL,
	};
	return scorer;
}

struct scorer scorer_begin(struct sched *sched, const struct search *search)
{
	struct scorer scorer = find_board(sched, search);

	if (scorer.follows)
		follow(&scorer);
	return scorer;
}

static bool is_out_of_date(const struct scorer *scorer, size_t slot)
{
	const struct index *index = &scorer->sched->index;
	const struct score_cache *board = scorer->cache;

	return index->change_log.last[slot] >= board->seen ||
	       bitset_has(&index->promised, slot) != bitset_has(&board->promised, slot);
}

/* Whether a node that is noted to fit still does. */
static bool still_fits(struct scorer *scorer, size_t slot)
{
	const struct bitset *promised = &scorer->sched->index.promised;
	struct score_cache *board = scorer->cache;

	if (!is_out_of_date(scorer, slot))
		return true;
	bitset_assign(&board->promised, slot, bitset_has(promised, slot));
	renew(scorer, slot / 64, UINT64_C(1) << slot % 64);
	return bitset_has(&board->fitting, slot);
}

bool score_cache_has_fit(struct sched *sched, const struct search *search)
{
	struct scorer scorer = find_board(sched, search);
	const struct bitset *fitting = &scorer.cache->fitting;

	if (!scorer.follows || scorer.cache->seen == 0)
		return false;
	for (size_t w = 0; w < fitting->words; w++)
		for (uint64_t left = fitting->word[w]; left; left &= left - 1)
			if (still_fits(&scorer, w * 64 + (size_t)__builtin_ctzll(left)))
				return true;
	return false;
}

int64_t scorer_score(struct scorer *scorer, const struct node *node)
{
	struct score_cache *board = scorer->cache;
	size_t slot = (size_t)node->rank;

	INVARIANT(node->promised == 0 && slot < board->scores.count);
	if (!scorer->follows && (board->versions[slot] != node->version ||
	                         !scarcity_is_right(scorer->sched, board, slot))) {
		board->scores.score[slot] = score_of(scorer, slot);
		board->versions[slot] = node->version;
		board->scarcities[slot] = scarcity_at(scorer->sched, slot);
	}
	return board->scores.score[slot];
}

/* Whether what is noted for the node should be what it scores. */
static bool is_right(const struct sched *sched, const struct score_cache *board,
                     const struct node *node)
{
	size_t slot = (size_t)node->rank;

	if (node->promised > 0 || !scarcity_is_right(sched, board, slot))
		return false;
	return board->versions ? board->versions[slot] == node->version
	                       : sched->index.change_log.last[slot] < board->seen &&
	                             !bitset_has(&board->promised, slot);
}

static void check_board(struct sched *sched, const struct score_cache *board)
{
	const struct shape *shape = sched->shapes.all[board->shape - 1];
	struct search search = { .shape = shape, .view = VIEW_NOW, .until_ms = INT64_MAX };
	struct scorer scorer = { .sched = sched,
		                 .search = &search,
		                 .scope = place_scope(sched, &search).sets };
	int64_t fits = 0;

	filter_refresh(shape->filter, &sched->cluster, sched->cluster_version);
	for (size_t slot = 0; slot < sched->cluster.node_count; slot++) {
		const struct node *node = sched->cluster.by_rank[slot];
		int64_t score = board->scores.score[slot];
		if (is_right(sched, board, node) && score != score_of(&scorer, slot))
			panic("board: node %s does not score what is noted for shape %" PRId64,
			      node->r.name, shape->number);
		INVARIANT(board->versions ||
		          bitset_has(&board->fitting, slot) == (score != TOURNAMENT_NONE));
		fits += score != TOURNAMENT_NONE;
	}
	if (board->versions)
		return;
	INVARIANT(board->fits == fits);
	tournament_check(&board->scores);
}

void score_caches_check(struct sched *sched)
{
	const struct score_caches *boards = &sched->score_caches;

	if (!sched->indexed || boards->nodes != sched->cluster.node_count)
		return;
	for (size_t i = 0; i < boards->count; i++)
		if (boards->of[i].shape > 0 && is_current(sched, &boards->of[i]))
			check_board(sched, &boards->of[i]);
}
