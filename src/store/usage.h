/* usage.h - what tenants used in a period and what it cost, from their runs */
#ifndef STORE_USAGE_H
#define STORE_USAGE_H

#include "store/store.h"

/* What a run had GPUs for and did not get far with. Idle: they were reserved, and its node had not
 * started the task yet. Lost: it ran, and what it did from its last checkpoint on, or all of it
 * where there was none, is gone, because it was preempted, stopped to be run again, lost with its
 * node or cancelled, or because it failed. What still runs, and slots, have lost nothing. Both in
 * thousandths of GPUs x ms. */
struct waste {
	int64_t idle_gpu_ms, lost_gpu_ms;
};

/* Every run counts with its part inside the period, at the tenant's price at the time;
 * current runs count up to now. Counts jobs and models of the tenant itself, not of those
 * below it. Over all time this equals the tenant's meters, except for runs that were deleted
 * by age and for truncated fractions of a millionth. */
struct usage {
	int64_t tenant_id;
	int64_t jobs;                         /* that had a run in the period */
	int64_t completed, failed, cancelled; /* that ended in it */
	int64_t runs;                         /* in it, of tasks and slots */
	int64_t gpu_ms;                       /* thousandths of GPUs x ms */
	struct waste waste;
	int64_t cost;         /* millionths of the currency */
	int64_t gpu_memory_s; /* MiB x s: of parts of GPUs */
	int64_t cpu_s;        /* thousandths of cores x s */
};

/* An array by tenant, in the order of their ids, those without any left out. Read through
 * a store that does not lead. `tenant_id` 0: all. `now_ms` ends what still runs. */
bool usage_read(struct store *store, int64_t tenant_id, int64_t from_ms, int64_t until_ms,
                int64_t now_ms, struct arena *arena, struct usage **usage, int64_t *count,
                struct error *error);

/* What one job used in a period, by the same rules. */
struct job_usage {
	int64_t job_id, tenant_id;
	int64_t gpu_ms; /* thousandths of GPUs x ms */
	int64_t cost;   /* millionths of the currency */
	struct waste waste;
};

/* What one owner's jobs used in a period, by the same rules. */
struct owner_usage {
	int64_t tenant_id;
	const char *user; /* "": nobody is known */
	int64_t jobs, gpu_ms, cost;
	struct waste waste;
};

struct job_usage_filter {
	int64_t from_ms, until_ms, now_ms; /* as for usage_read() */
	const int64_t *tenant_ids;         /* of these tenants; count 0: of all */
	size_t tenant_count;
	int64_t before_id; /* jobs with smaller ids only; 0: all */
	int64_t limit;
};

/* An array of the newest jobs with a run in the period, by id, the newest first. */
bool usage_read_jobs(struct store *store, const struct job_usage_filter *filter,
                     struct arena *arena, struct job_usage **usage, int64_t *count,
                     struct error *error);

/* An array by tenant and owner, at most `limit` of them, those who
 * used most first. `before_id` is not looked at. */
bool usage_read_owners(struct store *store, const struct job_usage_filter *filter,
                       struct arena *arena, struct owner_usage **usage, int64_t *count,
                       struct error *error);

#endif
