/* number.h - integer arithmetic that neither overflows nor rounds by surprise */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

static inline int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t max64(int64_t a, int64_t b) { return a > b ? a : b; }

/* a * b / c, rounded down or up; a, b >= 0, c > 0. Saturates at INT64_MAX. */
int64_t muldiv_down(int64_t a, int64_t b, int64_t c);
int64_t muldiv_up(int64_t a, int64_t b, int64_t c);

/* -1, 0 or 1 as a/b is less than, equal to or greater than c/d; b, d > 0. */
int ratio_compare(int64_t a, int64_t b, int64_t c, int64_t d);

/* value * 2^(-elapsed / half_life), rounded down: exact for whole half-lives,
 * otherwise never above the true value and below it by less than
 * 1 + value / 2^57. Never grows with elapsed. value, elapsed >= 0,
 * half_life > 0. decay(decay(v, a), b) may differ from decay(v, a + b) by
 * rounding, so callers keep one base value and decay from there. */
int64_t decay(int64_t value, int64_t elapsed, int64_t half_life);

/* What `rate` per unit of time adds up to over `elapsed` units when every past
 * unit decays as above: rate * half_life / ln 2 * (1 - 2^(-elapsed / half_life)),
 * rounded to the nearest, with an error of one part in 2^57 at most. rate,
 * elapsed >= 0, half_life > 0. Saturates at INT64_MAX. */
int64_t decay_sum(int64_t rate, int64_t elapsed, int64_t half_life);

/* Pseudo-random numbers from a state that the caller keeps (splitmix64). */
uint64_t random_next(uint64_t *state);
/* Uniform in 0 .. bound - 1; bound > 0. */
uint64_t random_below(uint64_t *state, uint64_t bound);

#endif
