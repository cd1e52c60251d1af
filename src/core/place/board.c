/* board.c - what every node scores for a shape, kept as nodes change */
#include "core/place/board.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/state.h"

#define BOARDS_MIN 32
#define BOARDS_MAX 1024
#define BOARDS_BYTES (64 << 20) /* that all of them take, but for the first few */

static void board_free(struct board *board)
{
	tournament_free(&board->scores);
	bitset_free(&board->fitting);
	bitset_free(&board->promised);
	free(board->versions);
	free(board->premiums);
	*board = (struct board){ 0 };
}

void boards_free(struct boards *boards)
{
	for (size_t i = 0; i < boards->count; i++)
		board_free(&boards->of[i]);
	free(boards->of);
	*boards = (struct boards){ 0 };
}

static void boards_begin(struct boards *boards, size_t nodes)
{
	size_t bytes = (nodes + 1) * (3 * sizeof(int64_t) + 1);
	size_t count = BOARDS_MIN;

	while (count < BOARDS_MAX && 2 * count * bytes <= BOARDS_BYTES)
		count *= 2;
	boards_free(boards);
	*boards = (struct boards){ memory_zero(count, sizeof(*boards->of)), count, nodes };
}

/* Whether its scores are by what is known now. */
static bool is_current(const struct sched *sched, const struct board *board)
{
	return board->mix == sched->mix.version;
}

static void board_begin(const struct sched *sched, struct board *board, int64_t shape, size_t nodes)
{
	board_free(board);
	board->shape = shape;
	board->mix = sched->mix.version;
	board->premium = sched->premium.version;
	tournament_reset(&board->scores, nodes);
	bitset_grow(&board->fitting, nodes);
	bitset_grow(&board->promised, nodes);
	board->premiums = memory_zero(nodes, sizeof(*board->premiums));
	if (nodes > BOARD_FOLLOWS)
		board->versions = memory_zero(nodes, sizeof(*board->versions));
}

bool board_serves(const struct search *search)
{
	return search->shape->number > 0 && search->view == VIEW_NOW && !search->link &&
	       !search->even && search->shape->request.gpu_kind != GPU_UNEVEN;
}

/* The premium that a score of the node would be by. */
static inline uint8_t premium_at(const struct sched *sched, size_t slot)
{
	int model = sched->index.models[slot];

	if (sched->premium.counted == 0)
		return 0;
	return model >= 0 ? (uint8_t)premium_of(&sched->premium, model) : PREMIUM_MIXED;
}

/* True if the score of the node is by the premiums as they are. */
static inline bool premium_is_right(const struct sched *sched, const struct board *board,
                                    size_t slot)
{
	uint8_t now = premium_at(sched, slot);

	return now == board->premiums[slot] && now != PREMIUM_MIXED;
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
	struct node_view *view = &sched->index.views[slot];
	struct choice choice;

	if (scorer->by_view && view->plain && view->uniform)
		return scorer->by_view(sched, scorer->search->shape, view);
	return place_on_node(sched, scorer->search, sched->cluster.by_slot[slot], &choice)
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
	struct board *board = scorer->board;
	bool fits = score != TOURNAMENT_NONE, fitted = bitset_has(&board->fitting, slot);

	tournament_put(&board->scores, slot, score);
	bitset_assign(&board->fitting, slot, fits);
	board->premiums[slot] = premium_at(scorer->sched, slot);
	board->fits += fits - fitted;
}

/* Looks again at some nodes of word `w`. Most that do not fit did not fit before. */
static void renew(struct scorer *scorer, size_t w, uint64_t nodes)
{
	struct board *board = scorer->board;
	uint64_t may_fit = candidates(scorer, w);
	uint64_t gone = nodes & board->fitting.word[w] & ~may_fit;

	while (gone)
		put(scorer, bitset_take(&gone, w), TOURNAMENT_NONE);
	nodes &= may_fit;
	while (nodes) {
		size_t slot = bitset_take(&nodes, w);
		put(scorer, slot, score_anew(scorer, slot));
	}
}

/* The nodes of word `w` that fit and whose premiums changed. */
static uint64_t repriced(const struct scorer *scorer, size_t w)
{
	const struct board *board = scorer->board;
	uint64_t nodes = 0;

	if (board->premium == scorer->sched->premium.version)
		return 0;
	for (uint64_t left = board->fitting.word[w]; left;) {
		size_t slot = bitset_take(&left, w);
		if (!premium_is_right(scorer->sched, board, slot))
			nodes |= UINT64_C(1) << slot % 64;
	}
	return nodes;
}

/* Looks again at the nodes that changed, and at those that a promise counts on now
 * and did not before, or the other way round. */
static void follow(struct scorer *scorer)
{
	const struct index *index = &scorer->sched->index;
	struct board *board = scorer->board;
	uint64_t changed[BOARD_FOLLOWS / 64] = { 0 };
	bool known = board->seen > 0 && changes_known(&index->changes, board->seen);

	INVARIANT(board->promised.words <= BOARD_FOLLOWS / 64);
	if (known)
		changes_since(&index->changes, board->seen, changed);
	for (size_t w = 0; w < board->promised.words; w++) {
		uint64_t differ = index->promised.word[w] ^ board->promised.word[w];
		board->promised.word[w] = index->promised.word[w];
		renew(scorer, w, known ? changed[w] | differ | repriced(scorer, w) : UINT64_MAX);
	}
	board->premium = scorer->sched->premium.version;
	board->seen = index->changes.count;
}

static struct scorer find_board(struct sched *sched, const struct search *search)
{
	struct boards *boards = &sched->boards;
	const struct shape *shape = search->shape;
	const struct policy_cache *cache = &policy_row(sched->config.policy)->cache;

	INVARIANT(sched->indexed && board_serves(search));
	if (boards->nodes != sched->cluster.node_count || boards->count == 0)
		boards_begin(boards, sched->cluster.node_count);
	struct board *board = &boards->of[(size_t)shape->number % boards->count];
	if (board->shape != shape->number || !is_current(sched, board))
		board_begin(sched, board, shape->number, boards->nodes);
	struct scorer scorer = {
		.sched = sched,
		.search = search,
		.board = board,
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
	const struct board *board = scorer->board;

	return index->changes.last[slot] >= board->seen ||
	       bitset_has(&index->promised, slot) != bitset_has(&board->promised, slot);
}

/* Whether a node that is noted to fit still does. */
static bool still_fits(struct scorer *scorer, size_t slot)
{
	const struct bitset *promised = &scorer->sched->index.promised;
	struct board *board = scorer->board;

	if (!is_out_of_date(scorer, slot))
		return true;
	bitset_assign(&board->promised, slot, bitset_has(promised, slot));
	renew(scorer, slot / 64, UINT64_C(1) << slot % 64);
	return bitset_has(&board->fitting, slot);
}

bool board_has_fit(struct sched *sched, const struct search *search)
{
	struct scorer scorer = find_board(sched, search);
	const struct bitset *fitting = &scorer.board->fitting;

	if (!scorer.follows || scorer.board->seen == 0)
		return false;
	for (size_t w = 0; w < fitting->words; w++)
		for (uint64_t left = fitting->word[w]; left;)
			if (still_fits(&scorer, bitset_take(&left, w)))
				return true;
	return false;
}

int64_t scorer_score(struct scorer *scorer, const struct node *node)
{
	struct board *board = scorer->board;
	size_t slot = (size_t)node->slot;

	INVARIANT(node->promised == 0 && slot < board->scores.count);
	if (!scorer->follows && (board->versions[slot] != node->version ||
	                         !premium_is_right(scorer->sched, board, slot))) {
		board->scores.score[slot] = score_of(scorer, slot);
		board->versions[slot] = node->version;
		board->premiums[slot] = premium_at(scorer->sched, slot);
	}
	return board->scores.score[slot];
}

/* Whether what is noted for the node should be what it scores. */
static bool is_right(const struct sched *sched, const struct board *board, const struct node *node)
{
	size_t slot = (size_t)node->slot;

	if (node->promised > 0 || !premium_is_right(sched, board, slot))
		return false;
	return board->versions ? board->versions[slot] == node->version
	                       : sched->index.changes.last[slot] < board->seen &&
	                             !bitset_has(&board->promised, slot);
}

static void check_board(struct sched *sched, const struct board *board)
{
	const struct shape *shape = sched->shapes.all[board->shape - 1];
	struct search search = { .shape = shape, .view = VIEW_NOW, .until_ms = INT64_MAX };
	struct scorer scorer = { .sched = sched,
		                 .search = &search,
		                 .scope = place_scope(sched, &search).sets };
	int64_t fits = 0;

	filter_refresh(shape->filter, &sched->cluster, sched->cluster_version);
	for (size_t slot = 0; slot < sched->cluster.node_count; slot++) {
		const struct node *node = sched->cluster.by_slot[slot];
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

void boards_check(struct sched *sched)
{
	const struct boards *boards = &sched->boards;

	if (!sched->indexed || boards->nodes != sched->cluster.node_count)
		return;
	for (size_t i = 0; i < boards->count; i++)
		if (boards->of[i].shape > 0 && is_current(sched, &boards->of[i]))
			check_board(sched, &boards->of[i]);
}
