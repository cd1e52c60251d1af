/* board.h - what every node scores for a shape, kept as nodes change */
#ifndef CORE_BOARD_H
#define CORE_BOARD_H

#include "base/bitset.h"
#include "base/tournament.h"
#include "core/place.h"

/* The scores of one shape, of tasks that start now, and the best of them. The
 * score of a slot is right while versions[slot] is the version of its node. It is
 * TOURNAMENT_NONE where the node does not fit, or where a promise counts on it:
 * what fits beside a promise depends on who asks, and when. Slots whose score is
 * not right are among the changes of the index after the first `seen`, but for
 * boards that were never followed. */
struct board {
	int64_t shape; /* its number; 0: not in use */
	uint64_t mix;  /* the version that the scores are by */
	bool followed;
	uint64_t seen;
	uint64_t *versions; /* by slot; 0: the score is not right */
	struct tournament scores;
	struct bitset promised; /* those left out since a promise counted on them */
	int64_t fits;           /* scores that are not TOURNAMENT_NONE */
};

/* Boards by the numbers of their shapes; where there are more shapes than there
 * is memory for, some take turns. Zero-initialised has none. */
struct boards {
	struct board *of;
	size_t count, nodes;
};
void boards_free(struct boards *boards);

/* A search at its board. */
struct scorer {
	struct sched *sched;
	const struct search *search;
	struct board *board;
	const struct bitset *scope; /* nodes outside do not fit */
	bool by_view;               /* the view of a node is enough to score it */
};

/* Whether such a search can have a board: its scores depend on nothing but the
 * shape and the node, as long as no promise counts on that. */
bool board_serves(const struct search *search);
struct scorer scorer_begin(struct sched *sched, const struct search *search);
/* What the node at this slot scores, looked at anew if it has changed. No promise
 * may count on it. */
int64_t scorer_score(struct scorer *scorer, size_t slot);
/* Looks at all nodes that changed: `scores` and `fits` are right for all then. */
void scorer_follow(struct scorer *scorer);

/* Panics if a score that counts as right is not what place_on_node says. */
void boards_check(struct sched *sched);

#endif
