/* forecast.h - when there will be room, if running jobs end as expected */
#ifndef CORE_PROMISE_FORECAST_H
#define CORE_PROMISE_FORECAST_H

#include "core/cluster/node_copy.h"
#include "core/place/place.h"
#include "core/queue/endings.h"

/* The running jobs that are expected to end soonest, and the nodes that they
 * leave, in that order. It is a snapshot: ledger, jobs and time must not change while it
 * is used. The number of ends examined is limited, which bounds its cost. Each is examined on
 * demand, since most callers need only the first few. */
#define FORECAST_ENDS 2048
#define FORECAST_LEAVINGS 4096

/* A task of such a job and its node. */
struct leaving {
	int64_t end_ms;
	const struct job *job; /* NULL: nobody leaves */
	const struct node *node;
	int64_t whole; /* GPUs of the node that may be empty by then, at the most */
};
struct forecast {
	const struct sched *sched;
	struct ending *endings;
	size_t count, next; /* of the endings; the first that is not among `leavings` */
	struct leaving *leavings;
	size_t leaving_count, leaving_capacity;
	struct leaving *openings; /* of windows, by time: nobody leaves, but others may start */
	size_t opening_count, opening_capacity, next_opening;
	int32_t *ended; /* by slot: parts of GPUs that are left by then */
};

void forecast_make(struct forecast *forecast, const struct sched *sched);
void forecast_free(struct forecast *forecast);

/* Where a job is expected to start: rows as in struct promise_record. */
struct forecast_rows {
	int64_t *at;
	int room, count; /* rows that there is room for, and that there are */
};

/* When the next tasks of a waiting job will fit, in whole minutes and not after
 * `latest_ms`, and where; INT64_MAX if that cannot be said, or if they seem to
 * fit already. GPUs that another job is promised do not count. */
int64_t forecast_start(struct forecast *forecast, struct sched *sched, struct job *job,
                       int64_t latest_ms, struct forecast_rows *rows);

/* Whether what the job was promised is still to be expected then and there. */
bool forecast_holds(struct sched *sched, struct job *job, const struct promise_record *promise);

#endif
