/* meters.h - what is counted of events, for metrics */
#ifndef API_METERS_H
#define API_METERS_H

#include "api/catalogue.h"
#include "core/record/effects.h"

enum { METER_BUCKETS = 14 };

/* Since the start. A bucket counts what took up to its bound, the last one all else. */
struct meters {
	int64_t preemptions, requeues, submitted, started, ended;
	int64_t latency_buckets[METER_BUCKETS + 1]; /* from being queued to being placed */
	int64_t latency_count, latency_sum_ms;
	int64_t notices[NOTICES]; /* what nodes had to say about tasks */
};

/* The upper bound of a bucket in milliseconds. */
int64_t meter_bound_ms(int bucket);

void meters_event(struct meters *meters, const struct event *event, struct catalogue *catalogue);

#endif
