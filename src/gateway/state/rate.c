/* rate.c - how much a token or a tenant may ask for in a minute */
#include "gateway/state/rate.h"

#include "base/number.h"

enum { MINUTE_MS = 60000 };

static void rate_fill(struct rate *rate, int64_t now_ms)
{
	int64_t elapsed_ms = min64(max64(now_ms - rate->at_ms, 0), INT64_C(24) * 60 * MINUTE_MS);

	rate->level =
	    min64(rate->level + muldiv_down(rate->per_minute * 1000, elapsed_ms, MINUTE_MS),
	          rate->per_minute * 1000);
	rate->at_ms = now_ms;
}

void rate_limit(struct rate *rate, int64_t per_minute, int64_t now_ms)
{
	if (rate->per_minute == per_minute)
		return;
	if (rate->per_minute > 0)
		rate_fill(rate, now_ms);
	int64_t used = rate->per_minute > 0 ? rate->per_minute * 1000 - rate->level : 0;
	rate->per_minute = per_minute;
	rate->level = per_minute * 1000 - min64(used, per_minute * 1000);
	rate->at_ms = now_ms;
}

bool rate_has(struct rate *rate, int64_t amount, int64_t now_ms)
{
	if (rate->per_minute == 0)
		return true;
	rate_fill(rate, now_ms);
	/* One that is larger than the limit is let in when the bucket is full. */
	return rate->level >= min64(amount, rate->per_minute) * 1000;
}

void rate_take(struct rate *rate, int64_t amount, int64_t now_ms)
{
	if (rate->per_minute == 0)
		return;
	rate_fill(rate, now_ms);
	rate->level = min64(rate->level - amount * 1000, rate->per_minute * 1000);
}

int64_t rate_left(struct rate *rate, int64_t now_ms)
{
	rate_fill(rate, now_ms);
	return max64(rate->level / 1000, 0);
}

int64_t rate_wait_ms(struct rate *rate, int64_t amount, int64_t now_ms)
{
	if (rate_has(rate, amount, now_ms))
		return 0;
	int64_t missing = min64(amount, rate->per_minute) * 1000 - rate->level;
	return muldiv_up(missing, MINUTE_MS, rate->per_minute * 1000);
}

int64_t rate_full_ms(struct rate *rate, int64_t now_ms)
{
	return rate->per_minute > 0 ? rate_wait_ms(rate, rate->per_minute, now_ms) : 0;
}
