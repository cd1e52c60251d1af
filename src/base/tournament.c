/* tournament.c - the lowest of many scores, kept as they change */
#include "tournament.h"

#include <stdlib.h>

#include "error.h"
#include "memory.h"

static int64_t lower(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static void fill(int64_t *scores, size_t count)
{
	for (size_t i = 0; i < count; i++)
		scores[i] = TOURNAMENT_NONE;
}

void tournament_reset(struct tournament *tournament, size_t count)
{
	size_t groups = 1;

	while (groups * TOURNAMENT_GROUP < count)
		groups *= 2;
	if (groups != tournament->groups) {
		size_t scores = groups * (TOURNAMENT_GROUP + 2);
		tournament->score =
		    memory_resize(tournament->score, scores * sizeof(*tournament->score));
		tournament->low = tournament->score + groups * TOURNAMENT_GROUP;
		tournament->groups = groups;
	}
	tournament->count = count;
	fill(tournament->score, groups * TOURNAMENT_GROUP);
	fill(tournament->low, 2 * groups);
}

void tournament_free(struct tournament *tournament)
{
	free(tournament->score);
	*tournament = (struct tournament){ 0 };
}

static int64_t lowest_of_group(const struct tournament *tournament, size_t group)
{
	const int64_t *score = tournament->score + group * TOURNAMENT_GROUP;
	int64_t lowest = score[0];

	for (size_t i = 1; i < TOURNAMENT_GROUP; i++)
		lowest = lower(lowest, score[i]);
	return lowest;
}

/* The lowest of a group in which a score was just changed from `before`. */
static int64_t winner_after(const struct tournament *tournament, size_t number, int64_t before)
{
	size_t group = number / TOURNAMENT_GROUP;
	int64_t low = tournament->low[tournament->groups + group];

	if (tournament->score[number] <= low)
		return tournament->score[number];
	return before == low ? lowest_of_group(tournament, group) : low;
}

void tournament_put(struct tournament *tournament, size_t number, int64_t score)
{
	size_t at = tournament->groups + number / TOURNAMENT_GROUP;
	int64_t *low = tournament->low;
	int64_t before = tournament->score[number];

	INVARIANT(number < tournament->count);
	tournament->score[number] = score;
	int64_t winner = winner_after(tournament, number, before);
	while (low[at] != winner) {
		low[at] = winner;
		at /= 2;
		if (at == 0)
			return;
		winner = lower(low[2 * at], low[2 * at + 1]);
	}
}

int64_t tournament_best(const struct tournament *tournament, size_t *number)
{
	const int64_t *low = tournament->low;
	size_t at = 1;

	if (tournament->groups == 0 || low[1] == TOURNAMENT_NONE)
		return TOURNAMENT_NONE;
	while (at < tournament->groups)
		at = low[2 * at] == low[at] ? 2 * at : 2 * at + 1;
	*number = (at - tournament->groups) * TOURNAMENT_GROUP;
	while (tournament->score[*number] != low[1])
		++*number;
	return low[1];
}

void tournament_check(const struct tournament *tournament)
{
	const int64_t *low = tournament->low;

	for (size_t at = 1; at < tournament->groups; at++)
		if (low[at] != lower(low[2 * at], low[2 * at + 1]))
			panic("tournament: round %zu was not won by the lower score", at);
	for (size_t group = 0; group < tournament->groups; group++)
		if (low[tournament->groups + group] != lowest_of_group(tournament, group))
			panic("tournament: group %zu was not won by the lowest score", group);
	for (size_t i = tournament->count; i < tournament->groups * TOURNAMENT_GROUP; i++)
		INVARIANT(tournament->score[i] == TOURNAMENT_NONE);
}
