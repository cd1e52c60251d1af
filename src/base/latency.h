/* latency.h - how long things took, counted in buckets that can be added up
 *
 * Buckets are a millisecond wide up to 8 ms, and then four to each power of two, so that a time is
 * told to within a quarter of it. Both sides of a session use them, so they never change. */
#ifndef BASE_LATENCY_H
#define BASE_LATENCY_H

#include <stdint.h>

enum { LATENCY_BUCKETS = 80 };

/* The bucket of a time; the last has all that are longer than about 30 minutes. */
int latency_bucket(int64_t ms);
/* The longest time of a bucket. */
int64_t latency_longest_ms(int bucket);
/* The time that `percent` of all counted are no longer than; -1: nothing was counted. */
int64_t latency_percentile_ms(const int64_t counts[LATENCY_BUCKETS], int percent);

#endif
