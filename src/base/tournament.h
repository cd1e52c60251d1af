/* tournament.h - the lowest of many scores, kept as they change */
#ifndef BASE_TOURNAMENT_H
#define BASE_TOURNAMENT_H

#include <stddef.h>
#include <stdint.h>

#include "bitset.h"

/* A score for each of the numbers 0 .. count - 1. Neighbors compete in groups, and
 * the winners of all groups compete when someone asks for the best.
 * low[g] is the lowest score of group g, unless that is stale: scores change more
 * often than anyone asks, so a group plays again only when someone does, rather than
 * with every change, of which nobody can foretell who wins. Zero-initialised has
 * none. */
#define TOURNAMENT_GROUP 8
#define TOURNAMENT_NONE INT64_MAX /* the score of one that does not take part */
struct tournament {
	int64_t *score, *low;
	struct bitset stale;  /* groups */
	size_t count, groups; /* groups: a multiple of TOURNAMENT_GROUP, enough for all */
};

/* Makes it one of `count` numbers of which none takes part. */
void tournament_reset(struct tournament *tournament, size_t count);
void tournament_free(struct tournament *tournament);

/* Sets the score of a number, which must be below `count`. */
static inline void tournament_put(struct tournament *tournament, size_t number, int64_t score)
{
	tournament->score[number] = score;
	bitset_add(&tournament->stale, number / TOURNAMENT_GROUP);
}
/* The lowest score, or TOURNAMENT_NONE; and the lowest number that has it. */
int64_t tournament_best(struct tournament *tournament, size_t *number);

/* Panics unless every group that is not to play again has the right winner. */
void tournament_check(const struct tournament *tournament);

#endif
