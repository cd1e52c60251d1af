/* tournament.c - the lowest of many scores, kept as they change */
#include "tournament.h"

#include <stdlib.h>

#include "error.h"
#include "memory.h"

static int64_t lower(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static void tournament_fill(int64_t *scores, size_t count)
{
	for (size_t i = 0; i < count; i++)
		scores[i] = TOURNAMENT_NONE;
}

void tournament_reset(struct tournament *tournament, size_t count)
{
	const size_t block = TOURNAMENT_GROUP * TOURNAMENT_GROUP;
	size_t groups = (count + block - 1) / block * TOURNAMENT_GROUP;

	if (groups != tournament->groups) {
		size_t scores = groups * (TOURNAMENT_GROUP + 1);
		tournament->score =
		    memory_resize(tournament->score, scores * sizeof(*tournament->score));
		tournament->low = tournament->score + groups * TOURNAMENT_GROUP;
		tournament->groups = groups;
	}
	tournament->count = count;
	tournament_fill(tournament->score, groups * (TOURNAMENT_GROUP + 1));
	bitset_free(&tournament->stale);
	bitset_grow(&tournament->stale, groups);
}

void tournament_free(struct tournament *tournament)
{
	free(tournament->score);
	bitset_free(&tournament->stale);
	*tournament = (struct tournament){ 0 };
}

/* The lowest of some groups of scores, in four chains that do not wait for each
 * other. */
static int64_t lowest(const int64_t *score, size_t groups)
{
	int64_t a = TOURNAMENT_NONE, b = a, c = a, d = a;

	for (size_t i = 0; i < groups * TOURNAMENT_GROUP; i += 4) {
		a = lower(a, score[i]);
		b = lower(b, score[i + 1]);
		c = lower(c, score[i + 2]);
		d = lower(d, score[i + 3]);
	}
	return lower(lower(a, b), lower(c, d));
}

static int64_t lowest_of_group(const struct tournament *tournament, size_t group)
{
	return lowest(tournament->score + group * TOURNAMENT_GROUP, 1);
}

static void play_again(struct tournament *tournament)
{
	for (size_t w = 0; w < tournament->stale.words; w++) {
		uint64_t left = tournament->stale.word[w];
		tournament->stale.word[w] = 0;
		while (left) {
			size_t group = bitset_take(&left, w);
			tournament->low[group] = lowest_of_group(tournament, group);
		}
	}
}

int64_t tournament_best(struct tournament *tournament, size_t *number)
{
	play_again(tournament);
	int64_t best = lowest(tournament->low, tournament->groups / TOURNAMENT_GROUP);
	if (best == TOURNAMENT_NONE)
		return best;
	size_t group = 0;
	while (tournament->low[group] != best)
		group++;
	size_t at = group * TOURNAMENT_GROUP;
	while (tournament->score[at] != best)
		at++;
	*number = at;
	return best;
}

void tournament_check(const struct tournament *tournament)
{
	for (size_t group = 0; group < tournament->groups; group++)
		if (!bitset_has(&tournament->stale, group) &&
		    tournament->low[group] != lowest_of_group(tournament, group))
			panic("tournament: group %zu was not won by the lowest score", group);
	for (size_t i = tournament->count; i < tournament->groups * TOURNAMENT_GROUP; i++)
		INVARIANT(tournament->score[i] == TOURNAMENT_NONE);
}
