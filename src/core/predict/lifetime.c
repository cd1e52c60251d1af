/* lifetime.c - what a distribution of durations says about one job */
#include "core/predict/lifetime.h"

#include "base/error.h"
#include "base/number.h"

#define AGE_PLACE_MAX (DURATION_BINS * BIN_LOG - 1)

/* What is left of a bin beyond `place`, which spreads evenly over it. */
static uint64_t bin_beyond(const struct lifetime *lifetime, int bin, int32_t place)
{
	int32_t begin = bin * BIN_LOG, end = begin + BIN_LOG;
	uint64_t whole = lifetime->durations.bins[bin];

	if (place <= begin)
		return whole * BIN_LOG;
	return place < end ? whole * (uint64_t)(end - place) : 0;
}

/* All probability beyond `place`, in 1/(BIN_LOG * PROBABILITY_ONE); never 0. */
static uint64_t lifetime_beyond(const struct lifetime *lifetime, int32_t place)
{
	int first = place / BIN_LOG;
	uint64_t whole = 0;

	for (int i = first + 1; i < DURATION_BINS; i++)
		whole += lifetime->durations.bins[i];
	return 1 + whole * BIN_LOG + bin_beyond(lifetime, first, place);
}

static int64_t lifetime_limited(const struct lifetime *lifetime, int64_t age_ms,
                                int64_t duration_ms)
{
	if (lifetime->limit_ms > 0 && duration_ms > lifetime->limit_ms)
		duration_ms = lifetime->limit_ms;
	return max64(duration_ms, age_ms);
}

int64_t lifetime_duration(const struct lifetime *lifetime, int64_t age_ms, int64_t chance)
{
	int32_t from = duration_place(age_ms);
	uint64_t left = lifetime_beyond(lifetime, from), passed = 0;

	INVARIANT(chance >= 0 && chance <= CHANCE_ONE);
	uint64_t wanted = (uint64_t)((uint128)left * (uint64_t)chance / CHANCE_ONE);
	for (int i = from / BIN_LOG; i < DURATION_BINS; i++) {
		uint64_t here = bin_beyond(lifetime, i, from);
		if (passed + here >= wanted && here > 0) {
			int32_t begin = i * BIN_LOG > from ? i * BIN_LOG : from;
			int32_t width = (i + 1) * BIN_LOG - begin;
			int32_t place =
			    begin + (int32_t)((wanted - passed) * (uint64_t)width / here);
			return lifetime_limited(lifetime, age_ms, duration_at(place));
		}
		passed += here;
	}
	return lifetime_limited(lifetime, age_ms, duration_at(DURATION_BINS * BIN_LOG));
}

int64_t lifetime_ends_within(const struct lifetime *lifetime, int64_t age_ms, int64_t within_ms)
{
	int64_t until_ms = age_ms + within_ms;

	INVARIANT(age_ms >= 0 && within_ms >= 0);
	if (lifetime->limit_ms > 0 && until_ms >= lifetime->limit_ms)
		return CHANCE_ONE;
	uint64_t left = lifetime_beyond(lifetime, duration_place(age_ms));
	uint64_t after = lifetime_beyond(lifetime, duration_place(until_ms));
	return CHANCE_ONE - (int64_t)((uint128)after * CHANCE_ONE / left);
}

int64_t lifetime_within_twice(const struct lifetime *lifetime, int64_t duration_ms)
{
	uint64_t all = lifetime_beyond(lifetime, 0);
	uint64_t low = lifetime_beyond(lifetime, duration_place(duration_ms / 2));
	bool limited = lifetime->limit_ms > 0 && duration_ms >= lifetime->limit_ms / 2;
	uint64_t high = limited || duration_ms > INT64_MAX / 2
	                    ? 0
	                    : lifetime_beyond(lifetime, duration_place(2 * duration_ms));

	return (int64_t)((uint128)(low - high) * CHANCE_ONE / all);
}

/* Goes over the ends of bins: by each of them some have ended, and all were served
 * until they ended or until then. */
int64_t lifetime_index(const struct lifetime *lifetime, int64_t age_ms)
{
	int32_t from = duration_place(age_ms);
	uint64_t left = lifetime_beyond(lifetime, from), ended = 0;
	uint128 served = 0; /* by those that have ended, ms times probability */
	int64_t best = INT64_MAX;

	for (int i = from / BIN_LOG; i < DURATION_BINS; i++) {
		uint64_t here = bin_beyond(lifetime, i, from);
		int64_t end_ms = duration_at((i + 1) * BIN_LOG);
		bool last = lifetime->limit_ms > 0 && end_ms >= lifetime->limit_ms;
		if (last) {
			end_ms = max64(lifetime->limit_ms, age_ms);
			here = left - ended;
		}
		int64_t begin_ms = max64(age_ms, duration_at(i * BIN_LOG));
		int64_t middle_ms = (begin_ms + max64(end_ms, begin_ms)) / 2 - age_ms;
		served += (uint128)here * (uint64_t)middle_ms;
		ended += here;
		uint128 still = (uint128)(left - ended) * (uint64_t)max64(end_ms - age_ms, 0);
		if (ended > 0)
			best = min64(best, (int64_t)((served + still) / ended));
		if (last)
			break;
	}
	return best;
}
