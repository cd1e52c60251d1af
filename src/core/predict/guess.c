/* guess.c - what was said of a job when it was submitted */
#include "core/predict/guess.h"

#include "base/error.h"
#include "base/number.h"

#define LEVEL_SHIFT 8 /* probabilities below 1/65536 count as that */

size_t guess_size(int count)
{
	INVARIANT(count >= 0 && count <= VOICES);
	return sizeof(struct guess) + (size_t)count * sizeof(struct guess_voice);
}

/* The probability as 4 * log2, cut off at 1/65536. */
uint8_t guess_level(uint64_t probability)
{
	uint32_t value = (uint32_t)(probability >> LEVEL_SHIFT);

	if (value < 1)
		return 0;
	if (value >= 65536)
		return GUESS_LEVELS - 1;
	int whole = 31 - __builtin_clz(value);
	uint32_t quarter = whole >= 2 ? value >> (whole - 2) & 3 : value << (2 - whole) & 3;
	return (uint8_t)(4 * whole + (int)quarter);
}

uint32_t guess_level_value(uint8_t level)
{
	return (uint32_t)(9 + 2 * (level & 3)) << (level >> 2); /* the middle of its range */
}

void guess_durations(const struct guess *guess, struct distribution *durations)
{
	enum { EACH = DURATION_BINS / GUESS_BINS };
	uint64_t counts[GUESS_BINS] = { 0 }, sum = 0;

	for (int i = 0; i < guess->count; i++)
		for (int at = 0; at < GUESS_BINS; at++)
			counts[at] += (uint64_t)guess->voices[i].weight *
			              guess_level_value(guess->voices[i].levels[at]);
	for (int at = 0; at < GUESS_BINS; at++)
		sum += ++counts[at];
	for (int i = 0; i < DURATION_BINS; i++)
		durations->bins[i] =
		    (uint32_t)(((uint128)counts[i / EACH] << PROBABILITY_BITS) / (EACH * sum)) + 1;
}
