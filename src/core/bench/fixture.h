/* fixture.h - a core with a cluster that does at once what it is told */
#ifndef CORE_BENCH_FIXTURE_H
#define CORE_BENCH_FIXTURE_H

#include "base/map.h"
#include "core/sched.h"

#define SECOND_MS INT64_C(1000)
#define HOUR_MS (3600 * SECOND_MS)
#define GIB (INT64_C(1) << 30)

/* A job that runs. Its tasks have the reservations from the first on. */
struct running {
	int64_t job_id, first_reservation, tasks;
	int64_t share; /* thousandths of GPUs, all tasks together */
};

#define BEGIN_MS INT64_C(1767225600000) /* the first of January 2026 */

/* Zero-initialised, it has no core: take one from fixture_begin. */
struct fixture {
	struct sched *sched;
	struct effects effects; /* of the last command */
	int64_t now_ms;         /* the time that commands are sent with */
	uint64_t random;
	struct running *running; /* in no order */
	size_t running_count, running_capacity;
	struct map by_job; /* job id to its place in `running`, plus 1 */
	int64_t share;     /* thousandths of GPUs of all that runs */
	int64_t *stopping; /* reservations that were told to stop, not confirmed yet */
	size_t stopping_count, stopping_capacity;
	int64_t *started; /* jobs that the last pass started, to be confirmed */
	size_t started_count, started_capacity;
	int64_t stop_orders; /* of the last pass */
};

void fixture_begin(struct fixture *fixture);
void fixture_end(struct fixture *fixture);

/* Applies a command at `now_ms`. A benchmark whose commands are refused measures
 * nothing: that ends the program with the reason. */
void fixture_send(struct fixture *fixture, struct command *command);

/* A tenant with a quota of GPUs, in thousandths, and of CPU and host memory in
 * proportion to that, or (QUOTA_UNSET) without any. Returns its id. */
int64_t fixture_tenant(struct fixture *fixture, const char *name, int64_t parent_id,
                       int64_t quota_gpu, int64_t weight);

struct node_kind {
	int gpus;
	const char *model;
	int64_t memory_mib;
	int64_t cpu_milli, host_bytes;
};
/* Reports a healthy node of the kind; its GPUs are linked with each other. */
void fixture_node(struct fixture *fixture, const char *name, const char *rack,
                  const struct node_kind *kind);

/* A job of one task that may be preempted, to be changed before it is sent. */
struct command fixture_job(int64_t tenant_id, const char *name);

/* Configures a placement policy other than the default. */
void fixture_policy(struct fixture *fixture, enum policy policy);

/* Passes until nothing is left to decide. What that starts runs, but is not
 * confirmed. */
void fixture_pass(struct fixture *fixture);
/* Like fixture_pass, with `units` of work in each pass. Returns the time of the longest
 * pass, in seconds. */
double fixture_pass_within(struct fixture *fixture, int64_t units);
/* Confirms that all of `started` runs and that all that was stopped is gone. */
void fixture_confirm(struct fixture *fixture);
/* All tasks of the running job at this place exit, and their memory is back. */
void fixture_finish(struct fixture *fixture, size_t at);

/* Of processor time: the machines that this runs on are shared. */
double clock_seconds(void);
/* Memory of this process that is resident, in MiB. */
double memory_resident_mib(void);

#endif
