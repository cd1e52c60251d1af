/* property_random.h - choices, from a state that a seed begins */
#ifndef CORE_TEST_PROPERTY_RANDOM_H
#define CORE_TEST_PROPERTY_RANDOM_H

#include "base/number.h"

/* True in the given number of a hundred, or of a thousand, cases. */
static inline bool chance(uint64_t *state, int percent)
{
	return (int)random_below(state, 100) < percent;
}
static inline bool rarely(uint64_t *state, int in_thousand)
{
	return (int)random_below(state, 1000) < in_thousand;
}
/* Uniform, both ends included. */
static inline int64_t between(uint64_t *state, int64_t low, int64_t high)
{
	return low + (int64_t)random_below(state, (uint64_t)(high - low + 1));
}
/* One of the elements of an array. */
#define ONE_OF(state, array) ((array)[random_below((state), sizeof(array) / sizeof((array)[0]))])

#endif
