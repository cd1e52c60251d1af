/* board.c - what every node scores for a shape, kept as nodes change */
#include "core/board.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/state.h"

#define BOARDS_MIN 32
#define BOARDS_MAX 1024
#define BOARDS_BYTES (64 << 20) /* that all of them take, but for the first few */

static void board_free(struct board *board)
{
	free(board->versions);
	tournament_free(&board->scores);
	bitset_free(&board->promised);
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
	size_t bytes = (nodes + 1) * (sizeof(uint64_t) + 3 * sizeof(int64_t));
	size_t count = BOARDS_MIN;

	while (count < BOARDS_MAX && 2 * count * bytes <= BOARDS_BYTES)
		count *= 2;
	boards_free(boards);
	*boards = (struct boards){ memory_zero(count, sizeof(*boards->of)), count, nodes };
}

static void board_begin(struct board *board, int64_t shape, uint64_t mix, size_t nodes)
{
	if (!board->versions)
		board->versions = memory_alloc(nodes * sizeof(*board->versions));
	if (nodes > 0)
		memset(board->versions, 0, nodes * sizeof(*board->versions));
	tournament_reset(&board->scores, nodes);
	bitset_grow(&board->promised, nodes);
	board->shape = shape;
	board->mix = mix;
	board->fits = 0;
	board->followed = false;
}

bool board_serves(const struct search *search)
{
	return search->shape->number > 0 && search->view == VIEW_NOW && !search->link &&
	       search->shape->request.gpu_kind != GPU_UNEVEN;
}

struct scorer scorer_begin(struct sched *sched, const struct search *search)
{
	struct boards *boards = &sched->boards;
	const struct shape *shape = search->shape;
	uint64_t mix = sched->mix.version;

	INVARIANT(board_serves(search));
	if (boards->nodes != sched->cluster.node_count || boards->count == 0)
		boards_begin(boards, sched->cluster.node_count);
	struct board *board = &boards->of[(size_t)shape->number % boards->count];
	if (board->shape != shape->number || board->mix != mix)
		board_begin(board, shape->number, mix, boards->nodes);
	return (struct scorer){
		.sched = sched,
		.search = search,
		.board = board,
		.scope = place_scope(sched, search).sets,
		.by_view = sched->config.policy == POLICY_FRAGMENT &&
		           fragment_sees(&sched->mix, shape),
	};
}

/* The index and the filter leave out most of the nodes that do not fit. */
static bool is_candidate(const struct scorer *scorer, size_t slot)
{
	return bitset_has(scorer->scope, slot) &&
	       bitset_has(&scorer->search->shape->filter->nodes, slot);
}

static int64_t score_anew(const struct scorer *scorer, size_t slot)
{
	struct sched *sched = scorer->sched;
	struct node_view *view = &sched->index.views[slot];
	struct choice choice;

	if (!is_candidate(scorer, slot))
		return TOURNAMENT_NONE;
	if (scorer->by_view && view->plain)
		return fragment_score(&sched->mix, &scorer->search->shape->request, view);
	return place_on_node(sched, scorer->search, sched->cluster.by_slot[slot], &choice)
	           ? choice.score
	           : TOURNAMENT_NONE;
}

static void put(struct board *board, size_t slot, int64_t score, uint64_t version)
{
	int64_t before = board->scores.score[slot];

	board->versions[slot] = version;
	if (before == score)
		return;
	board->fits += (score != TOURNAMENT_NONE) - (before != TOURNAMENT_NONE);
	tournament_put(&board->scores, slot, score);
}

int64_t scorer_score(struct scorer *scorer, size_t slot)
{
	struct board *board = scorer->board;
	uint64_t version = scorer->sched->index.versions[slot];

	if (board->versions[slot] != version) {
		put(board, slot, score_anew(scorer, slot), version);
		bitset_drop(&board->promised, slot);
	}
	return board->scores.score[slot];
}

static void leave_out(struct board *board, size_t slot)
{
	put(board, slot, TOURNAMENT_NONE, 0);
	bitset_add(&board->promised, slot);
}

/* Looks at the nodes that a promise counts on now and did not before, or the
 * other way round. */
static void follow_promises(struct scorer *scorer)
{
	const struct bitset *promised = &scorer->sched->index.promised;
	struct board *board = scorer->board;

	for (size_t w = 0; w < board->promised.words; w++) {
		uint64_t differ = promised->word[w] ^ board->promised.word[w];
		for (; differ; differ &= differ - 1) {
			size_t slot = w * 64 + (size_t)__builtin_ctzll(differ);
			if (bitset_has(promised, slot))
				leave_out(board, slot);
			else
				scorer_score(scorer, slot);
		}
	}
}

void scorer_follow(struct scorer *scorer)
{
	const struct index *index = &scorer->sched->index;
	struct board *board = scorer->board;
	bool all = !board->followed || index->changes - board->seen > INDEX_CHANGES;
	uint64_t from = all ? 0 : board->seen;
	uint64_t to = all ? scorer->sched->cluster.node_count : index->changes;

	follow_promises(scorer);
	for (uint64_t i = from; i < to; i++) {
		size_t slot = all ? (size_t)i : (size_t)index->changed[i % INDEX_CHANGES];
		if (!bitset_has(&index->promised, slot))
			scorer_score(scorer, slot);
	}
	board->seen = index->changes;
	board->followed = true;
}

static void check_board(struct sched *sched, const struct board *board)
{
	const struct shape *shape = sched->shapes.all[board->shape - 1];
	struct search search = { .shape = shape, .view = VIEW_NOW, .until_ms = INT64_MAX };
	struct scorer scorer = { .search = &search, .scope = place_scope(sched, &search).sets };
	int64_t fits = 0;
	struct choice choice;

	tournament_check(&board->scores);
	filter_refresh(shape->filter, &sched->cluster, sched->cluster_version);
	for (size_t slot = 0; slot < sched->cluster.node_count; slot++) {
		struct node *node = sched->cluster.by_slot[slot];
		int64_t score = board->scores.score[slot];
		fits += score != TOURNAMENT_NONE;
		if (board->versions[slot] != node->version || node->promised > 0)
			continue;
		bool found = is_candidate(&scorer, slot) &&
		             place_on_node(sched, &search, node, &choice);
		if (score != (found ? choice.score : TOURNAMENT_NONE))
			panic("board: node %s does not score what is noted for shape %" PRId64,
			      node->r.name, shape->number);
	}
	INVARIANT(board->fits == fits);
}

void boards_check(struct sched *sched)
{
	const struct boards *boards = &sched->boards;

	if (!sched->indexed || boards->nodes != sched->cluster.node_count)
		return;
	for (size_t i = 0; i < boards->count; i++)
		if (boards->of[i].shape > 0 && boards->of[i].mix == sched->mix.version)
			check_board(sched, &boards->of[i]);
}
