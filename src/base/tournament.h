/* tournament.h - the lowest of many scores, kept as they change */
#ifndef BASE_TOURNAMENT_H
#define BASE_TOURNAMENT_H

#include <stddef.h>
#include <stdint.h>

/* A score for each of the numbers 0 .. count - 1. Neighbours meet in groups, the
 * lowest of each goes on to meet the winner of another group, and so on until one
 * is left: low[1] is the lowest of all, low[i] the lower of low[2 i] and
 * low[2 i + 1], and low[groups + g] the lowest score of group g. Zero-initialised
 * has none. */
#define TOURNAMENT_GROUP 8
#define TOURNAMENT_NONE INT64_MAX /* the score of one that does not take part */
struct tournament {
	int64_t *score, *low;
	size_t count, groups; /* groups: a power of two, enough for all */
};

/* Makes it one of `count` numbers of which none takes part. */
void tournament_reset(struct tournament *tournament, size_t count);
void tournament_free(struct tournament *tournament);

/* Sets the score of a number. Costs as many steps as there are rounds that end
 * otherwise because of it. */
void tournament_put(struct tournament *tournament, size_t number, int64_t score);
/* The lowest score, or TOURNAMENT_NONE; and the lowest number that has it. */
int64_t tournament_best(const struct tournament *tournament, size_t *number);

/* Panics unless every round has the right winner. */
void tournament_check(const struct tournament *tournament);

#endif
