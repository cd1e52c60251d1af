/* latency.c - buckets of times */
#include "base/latency.h"

#include "base/number.h"

enum { EXACT = 8, PARTS = 4 };

int latency_bucket(int64_t ms)
{
	if (ms < EXACT)
		return (int)max64(ms, 0);
	int power = 63 - __builtin_clzll((unsigned long long)ms);
	int bucket = EXACT + (power - 3) * PARTS + (int)(ms >> (power - 2) & (PARTS - 1));

	return bucket < LATENCY_BUCKETS ? bucket : LATENCY_BUCKETS - 1;
}

int64_t latency_longest_ms(int bucket)
{
	if (bucket < EXACT)
		return bucket;
	int power = 3 + (bucket - EXACT) / PARTS;
	int64_t part = (bucket - EXACT) % PARTS;

	return ((PARTS + part + 1) << (power - 2)) - 1;
}

int64_t latency_percentile_ms(const int64_t counts[LATENCY_BUCKETS], int percent)
{
	int64_t all = 0, below = 0;

	for (int at = 0; at < LATENCY_BUCKETS; at++)
		all += counts[at];
	for (int at = 0; at < LATENCY_BUCKETS; at++) {
		below += counts[at];
		if (all > 0 && below * 100 >= all * percent)
			return latency_longest_ms(at);
	}
	return -1;
}
