/* meters.c - what is counted of events, for metrics */
#include "api/read/meters.h"

#include <stdlib.h>

#include "base/memory.h"

int64_t meter_bound_ms(int bucket)
{
	static const int64_t bounds[METER_BUCKETS] = { 1,      5,       10,      50,      100,
		                                       500,    1000,    5000,    10000,   60000,
		                                       300000, 1800000, 7200000, 86400000 };
	return bounds[bucket];
}

static void add_latency(struct meters *meters, int64_t latency_ms)
{
	int bucket = 0;
	while (bucket < METER_BUCKETS && latency_ms > meter_bound_ms(bucket))
		bucket++;
	meters->latency_buckets[bucket]++;
	meters->latency_count++;
	meters->latency_sum_ms += latency_ms;
}

/* The state that a job entered, or -1 if the event is about something else. */
static int state_entered(const struct event *event)
{
	switch (event->kind) {
	case EVENT_JOB_SUBMITTED:
	case EVENT_JOB_REQUEUED:
		return JOB_PENDING;
	case EVENT_JOB_SCHEDULED:
		return JOB_SCHEDULED;
	case EVENT_JOB_STARTED:
		return JOB_RUNNING;
	case EVENT_JOB_PREEMPTED:
		return JOB_PREEMPTED;
	case EVENT_JOB_SUSPENDED:
		return JOB_SUSPENDED;
	case EVENT_JOB_RESUMED:
		return JOB_RUNNING;
	case EVENT_JOB_ENDED:
		INVARIANT(event->value >= JOB_COMPLETED && event->value < METER_STATES);
		return (int)event->value;
	default:
		return -1;
	}
}

/* Every tenant counts those below it as they are now, so that removing one of them takes
 * nothing away from its parent's counters. */
static void add_entered(struct meters *meters, const struct event *event,
                        const struct roster *roster)
{
	int state = state_entered(event);
	int64_t id = event->tenant_id;
	if (state < 0)
		return;
	meters->entered[state]++;
	for (size_t level = 0; id != 0 && level <= roster->by_id.count; level++) {
		int64_t *counts = map_get(&meters->tenants, id);
		if (!counts) {
			counts = memory_zero(METER_STATES, sizeof(*counts));
			map_put(&meters->tenants, id, counts);
		}
		counts[state]++;
		const struct roster_tenant *tenant = roster_find(roster, id);
		id = tenant ? tenant->parent_id : 0;
	}
}

int64_t meters_entered(const struct meters *meters, int64_t tenant_id, enum job_state state)
{
	INVARIANT((int)state < METER_STATES);
	if (tenant_id == 0)
		return meters->entered[state];
	const int64_t *counts = map_get(&meters->tenants, tenant_id);
	return counts ? counts[state] : 0;
}

void meters_free(struct meters *meters)
{
	for (size_t i = 0; i < meters->tenants.capacity; i++)
		free(meters->tenants.entries[i].value);
	map_free(&meters->tenants);
}

void meters_event(struct meters *meters, const struct event *event, struct catalogue *catalogue,
                  const struct roster *roster)
{
	struct catalogue_job job;

	add_entered(meters, event, roster);
	switch (event->kind) {
	case EVENT_JOB_SUBMITTED:
		meters->submitted++;
		break;
	case EVENT_JOB_PREEMPTED:
		meters->preemptions++;
		break;
	case EVENT_JOB_REQUEUED:
		meters->requeues++;
		break;
	case EVENT_JOB_STARTED:
		meters->started++;
		break;
	case EVENT_JOB_ENDED:
		meters->ended++;
		break;
	case EVENT_TASK_OVER:
	case EVENT_TASK_IDLE:
	case EVENT_TASK_UNGUARDED:
	case EVENT_TASK_CROWDED:
	case EVENT_TASK_UNEXPLAINED:
		meters->notices[notice_of_event(event->kind)]++;
		break;
	case EVENT_JOB_SCHEDULED:
		catalogue_lock(catalogue);
		if (catalogue_job(catalogue, event->job_id, &job))
			add_latency(meters, max64(event->time_ms - job.state->queued_ms, 0));
		catalogue_unlock(catalogue);
		break;
	default:
		break;
	}
}
