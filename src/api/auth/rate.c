/* rate.c - how often one client may ask: token buckets in a table that never grows */
#include "api/auth/rate.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/number.h"

/* A client is looked for in one of `WAYS` places, beginning at that of its hash. */
enum { WAYS = 8, ONE = 1000, RATE_MAX = 1000000000 };

/* `level` is in thousandths as of `time_ms`. */
struct bucket {
	uint64_t client; /* 0: empty */
	int64_t level, time_ms;
};

struct rates {
	int64_t rate_per_s, burst;
	uint32_t mask;
	struct bucket buckets[];
};

struct rates *rates_new(int64_t rate_per_s, int64_t burst, uint32_t clients_max)
{
	uint32_t count = WAYS;

	while (count < clients_max)
		count *= 2;
	struct rates *rates =
	    memory_zero(1, sizeof(*rates) + (count + WAYS) * sizeof(struct bucket));
	rates->rate_per_s = max64(0, min64(rate_per_s, RATE_MAX));
	rates->burst = min64(max64(burst, max64(rates->rate_per_s, 1)), RATE_MAX);
	rates->mask = count - 1;
	return rates;
}

void rates_free(struct rates *rates)
{
	free(rates);
}

static int64_t level_at(const struct rates *rates, const struct bucket *bucket, int64_t now_ms)
{
	int64_t full = rates->burst * ONE;

	if (bucket->client == 0)
		return full;
	int64_t elapsed_ms = max64(now_ms - bucket->time_ms, 0);
	/* Thousandths per millisecond are units per second. */
	if (elapsed_ms > full / rates->rate_per_s)
		return full;
	return min64(full, bucket->level + elapsed_ms * rates->rate_per_s);
}

/* The client's bucket, brought up to now; a new one in place of the fullest. */
static struct bucket *rate_find(struct rates *rates, uint64_t client, int64_t now_ms)
{
	struct bucket *first = &rates->buckets[hash_number(client) & rates->mask];
	struct bucket *fullest = first;
	int64_t most = -1;

	client |= client == 0;
	for (int i = 0; i < WAYS; i++) {
		struct bucket *bucket = first + i;
		int64_t level = level_at(rates, bucket, now_ms);
		if (bucket->client == client) {
			bucket->level = level;
			bucket->time_ms = now_ms;
			return bucket;
		}
		if (level > most) {
			most = level;
			fullest = bucket;
		}
	}
	*fullest = (struct bucket){ client, rates->burst * ONE, now_ms };
	return fullest;
}

static bool has_one(const struct rates *rates, const struct bucket *bucket, int64_t *wait_ms)
{
	if (bucket->level >= ONE)
		return true;
	if (wait_ms)
		*wait_ms = (ONE - bucket->level + rates->rate_per_s - 1) / rates->rate_per_s;
	return false;
}

bool rates_take(struct rates *rates, uint64_t client, int64_t now_ms, int64_t *wait_ms)
{
	if (rates->rate_per_s == 0)
		return true;
	struct bucket *bucket = rate_find(rates, client, now_ms);
	if (!has_one(rates, bucket, wait_ms))
		return false;
	bucket->level -= ONE;
	return true;
}

bool rates_has(struct rates *rates, uint64_t client, int64_t now_ms, int64_t *wait_ms)
{
	return rates->rate_per_s == 0 || has_one(rates, rate_find(rates, client, now_ms), wait_ms);
}
