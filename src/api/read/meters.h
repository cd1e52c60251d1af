/* meters.h - what is counted of events, for metrics */
#ifndef API_READ_METERS_H
#define API_READ_METERS_H

#include "api/read/catalogue.h"
#include "api/read/roster.h"
#include "base/map.h"
#include "core/record/effects.h"

enum { METER_BUCKETS = 14, METER_STATES = JOB_STATES };

/* Since the start. A bucket counts what took up to its bound, the last one all else. */
struct meters {
	int64_t preemptions, requeues, submitted, started, ended;
	int64_t latency_buckets[METER_BUCKETS + 1]; /* from being queued to being placed */
	int64_t latency_count, latency_sum_ms;
	int64_t notices[NOTICES];      /* what nodes had to say about tasks */
	int64_t entered[METER_STATES]; /* jobs that entered each state */
	struct map tenants; /* id -> int64_t[METER_STATES]: likewise, with the tenants below it */
};

/* The upper bound of a bucket in milliseconds. */
int64_t meter_bound_ms(int bucket);

/* Counts an event. The roster says which tenants are above the job's. */
void meters_event(struct meters *meters, const struct event *event, struct catalogue *catalogue,
                  const struct roster *roster);
/* How often jobs entered a state: of a tenant and those below it, or of all (0). Never
 * decreases, even if tenants are moved or removed. */
int64_t meters_entered(const struct meters *meters, int64_t tenant_id, enum job_state state);
void meters_free(struct meters *meters);

#endif
