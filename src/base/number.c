/* number.c - integer arithmetic that neither overflows nor rounds by surprise */
#include "number.h"

#include "error.h"

/* Fixed point: a number in Qn stands for itself / 2^n. */
#define ONE_Q63 (UINT64_C(1) << 63)
#define HALF_Q63 (UINT64_C(1) << 62)
#define LN2_Q64 UINT64_C(0xb17217f7d1cf79ab)            /* ln 2, rounded down */
#define RECIPROCAL_LN2_Q63 UINT64_C(0xb8aa3b295c17f0bb) /* 1 / ln 2, rounded down */

/* The resolution of a fraction of a half-life. One step of it changes
 * 2^-fraction by at least 11 in Q63, more than the error of power_q63, so
 * decay never grows with time. */
enum { FRACTION_BITS = 58, POWER_SLACK_Q63 = 3 };

static uint64_t multiply_high(uint64_t a, uint64_t b)
{
	return (uint64_t)((uint128)a * b >> 64);
}

/* For numbers that are not negative. */
static uint128 wide(int64_t value)
{
	return (uint64_t)value;
}

static int64_t saturate(uint128 value)
{
	return value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

static int64_t muldiv(int64_t a, int64_t b, int64_t c, int64_t extra)
{
	INVARIANT(a >= 0 && b >= 0 && c > 0);
	uint128 product = wide(a) * wide(b) + wide(extra);
	/* Dividing 64 bits is many times faster than dividing 128. */
	if (product <= UINT64_MAX)
		return saturate((uint64_t)product / (uint64_t)c);
	return saturate(product / wide(c));
}

int64_t muldiv_down(int64_t a, int64_t b, int64_t c)
{
	return muldiv(a, b, c, 0);
}

int64_t muldiv_up(int64_t a, int64_t b, int64_t c)
{
	return muldiv(a, b, c, c - 1);
}

int ratio_compare(int64_t a, int64_t b, int64_t c, int64_t d)
{
	INVARIANT(b > 0 && d > 0);
	int128 left = (int128)a * d;
	int128 right = (int128)c * b;
	return (left > right) - (left < right);
}

/* (1 - e^-y) / y in Q63, for 0 <= y <= ln 2 in Q64, by its series
 * 1 - y/2 (1 - y/3 (1 - y/4 (...))): nineteen terms leave less than 2^-70.
 * Each step rounds up by less than 1.5 and passes on at most 0.35 of the error
 * before it with its sign turned, so the result is between 0.6 below and 1.7
 * above the true value. */
static uint64_t mean_decay_q63(uint64_t y_q64)
{
	uint64_t sum = ONE_Q63;
	for (uint64_t term = 20; term >= 2; term--)
		sum = ONE_Q63 - multiply_high(y_q64 / term, sum);
	return sum;
}

/* 2^-fraction in Q63, never above the true value and at most 5 below it: without
 * the slack it would be between 1.2 below and 2.4 above.
 * 0 < fraction < 2^FRACTION_BITS. */
static uint64_t power_q63(uint64_t fraction)
{
	uint64_t y_q64 = multiply_high(fraction << (64 - FRACTION_BITS), LN2_Q64);
	return ONE_Q63 - multiply_high(y_q64, mean_decay_q63(y_q64)) - POWER_SLACK_Q63;
}

int64_t decay(int64_t value, int64_t elapsed, int64_t half_life)
{
	INVARIANT(value >= 0 && elapsed >= 0 && half_life > 0);
	int64_t whole = elapsed / half_life;
	int64_t rest = elapsed % half_life;
	if (whole >= 63)
		return 0;
	if (rest == 0)
		return value >> whole;
	uint128 scaled = wide(rest) << FRACTION_BITS;
	uint64_t fraction = (uint64_t)((scaled + wide(half_life) - 1) / wide(half_life));
	if (fraction == UINT64_C(1) << FRACTION_BITS)
		return value >> (whole + 1);
	return (int64_t)(wide(value) * power_q63(fraction) >> (63 + whole));
}

int64_t decay_sum(int64_t rate, int64_t elapsed, int64_t half_life)
{
	INVARIANT(rate >= 0 && elapsed >= 0 && half_life > 0);
	int64_t whole = elapsed / half_life;
	int64_t rest = elapsed % half_life;
	uint128 sum_q63 = 0;

	/* The whole half-lives give rate * half_life / ln 2 * (1 - 2^-whole). From
	 * 2^64 on, even one is more than can be returned. */
	if (whole > 0) {
		uint128 product = wide(rate) * wide(half_life);
		if (product > UINT64_MAX)
			return INT64_MAX;
		uint128 all_q63 = product * RECIPROCAL_LN2_Q63;
		sum_q63 = all_q63 - (whole < 128 ? all_q63 >> whole : 0);
	}
	/* The rest, which is older than all of them, has decayed by `whole`:
	 * rate * rest * mean decay over the rest * 2^-whole. */
	uint128 product = wide(rate) * wide(rest);
	if (product > UINT64_MAX)
		return INT64_MAX;
	if (rest > 0 && whole < 128) {
		uint64_t fraction_q64 = (uint64_t)((wide(rest) << 64) / wide(half_life));
		uint64_t y_q64 = multiply_high(fraction_q64, LN2_Q64);
		sum_q63 += product * mean_decay_q63(y_q64) >> whole;
	}
	return saturate((sum_q63 + HALF_Q63) >> 63);
}

uint64_t random_next(uint64_t *state)
{
	uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

uint64_t random_below(uint64_t *state, uint64_t bound)
{
	INVARIANT(bound > 0);
	/* Lemire's method: the high half of a product is uniform once the few low
	 * halves that would favor some results are drawn again. */
	uint128 product = (uint128)random_next(state) * bound;
	if ((uint64_t)product < bound) {
		uint64_t unfair = -bound % bound;
		while ((uint64_t)product < unfair)
			product = (uint128)random_next(state) * bound;
	}
	return (uint64_t)(product >> 64);
}
