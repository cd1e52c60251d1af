/* tournament.c - the lowest of many scores, kept as they change */
#include "tournament.h"

#include <stdlib.h>

#include "error.h"
#include "memory.h"

static int64_t lower(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

void tournament_reset(struct tournament *tournament, size_t count)
{
	size_t size = 1;

	while (size < count)
		size *= 2;
	if (size != tournament->size) {
		free(tournament->low);
		tournament->low = memory_alloc(2 * size * sizeof(*tournament->low));
		tournament->size = size;
	}
	for (size_t i = 0; i < 2 * size; i++)
		tournament->low[i] = TOURNAMENT_NONE;
	tournament->count = count;
}

void tournament_free(struct tournament *tournament)
{
	free(tournament->low);
	*tournament = (struct tournament){ 0 };
}

void tournament_put(struct tournament *tournament, size_t number, int64_t score)
{
	int64_t *low = tournament->low;
	size_t at = tournament->size + number;

	INVARIANT(number < tournament->count);
	low[at] = score;
	for (at /= 2; at > 0; at /= 2) {
		int64_t winner = lower(low[2 * at], low[2 * at + 1]);
		if (low[at] == winner)
			return;
		low[at] = winner;
	}
}

int64_t tournament_best(const struct tournament *tournament, size_t *number)
{
	const int64_t *low = tournament->low;
	size_t at = 1;

	if (!low || low[1] == TOURNAMENT_NONE)
		return TOURNAMENT_NONE;
	while (at < tournament->size)
		at = low[2 * at] == low[at] ? 2 * at : 2 * at + 1;
	*number = at - tournament->size;
	return low[1];
}

void tournament_check(const struct tournament *tournament)
{
	const int64_t *low = tournament->low;

	for (size_t at = 1; at < tournament->size; at++)
		if (low[at] != lower(low[2 * at], low[2 * at + 1]))
			panic("tournament: round %zu was not won by the lower score", at);
	for (size_t i = tournament->count; i < tournament->size; i++)
		INVARIANT(low[tournament->size + i] == TOURNAMENT_NONE);
}
