/* meters.c - what is counted of events, for metrics */
#include "api/read/meters.h"

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

void meters_event(struct meters *meters, const struct event *event, struct catalogue *catalogue)
{
	struct catalogue_job job;

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
		meters->notices[event->kind - EVENT_TASK_OVER]++;
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
