/* jct.h - jobs of a trace arrive, share a cluster and end: how long they take */
#ifndef SIM_TRACE_JCT_H
#define SIM_TRACE_JCT_H

#include "sim/trace/philly.h"
#include "sim/world/usage.h"

/* A cluster of `nodes` nodes with `gpus` GPUs each, one tenant or one for each virtual
 * cluster, and the real core, which is told of arrivals and ends and asked to decide after each. A
 * job of more GPUs than a node has is a gang on as few nodes as possible. Nodes do at once what
 * they are told; a stopped job resumes from there, and its next run is longer by the cost of the
 * interruption.
 *
 * Estimates are wrong by a factor of e to the power of a standard normal number, so
 * that every other job is estimated at more than twice or less than half of what it
 * takes. */
struct jct_world {
	int64_t nodes, gpus;
	int64_t cost_ms;  /* of each interruption; -1: 7 s for one GPU, 30 s up to a node's, else 60
	                     s */
	bool tenants;     /* one for each virtual cluster, with equal weights */
	bool unpredicted; /* nothing is learned about run times */
};

enum jct_kind {
	JCT_STRICT,    /* in the order of arrival, nobody passes */
	JCT_SKIP,      /* in that order, but what does not fit is passed */
	JCT_BACKFILL,  /* by default: others pass a promised start where they do not delay it */
	JCT_SHORTEST,  /* least GPU time first, which an oracle tells; nobody is stopped */
	JCT_URGENT,    /* one job in five is urgent and preempts the others */
	JCT_LEVELS,    /* two levels: who had an hour of GPU time gives way to who had not */
	JCT_ATTAINED,  /* as users run it, with time_sharing: attained_service; nobody is moved */
	JCT_ESTIMATE,  /* as JCT_ATTAINED, with estimates of how long jobs run */
	JCT_GITTINS,   /* as JCT_PREDICTED, but by Gittins' index alone */
	JCT_PREDICTED, /* as users run it, with time_sharing: predicted_service */
	JCT_MOVES,     /* as JCT_ATTAINED, and jobs are moved together where that makes room */
	JCT_SUSPEND,   /* as JCT_MOVES, and jobs of one node are suspended; GPUs of a node one after
	                * the other */
	JCT_PARALLEL,  /* as JCT_SUSPEND, with GPUs of a node at the same time */
};
struct jct_policy {
	const char *name, *purpose;
	enum jct_kind kind;
};
extern const struct jct_policy jct_policies[];
extern const int jct_policy_count;
/* NULL if there is none of that name. `ours` is attained. */
const struct jct_policy *jct_policy(const char *name);

/* Starts that were promised, of which each job's first one in a wait counts. */
struct jct_promises {
	int64_t given;
	int64_t kept, likely;      /* started by the promised time, and by the likely one */
	int64_t wait_ms, ahead_ms; /* sums: how long they waited, and how far ahead was promised */
};

/* What became of each job, by its place in the trace, and of all. */
struct jct_result {
	int64_t *completion_ms; /* from submission to end */
	int64_t preemptions;    /* kills and suspends */
	int64_t pointless;      /* of those: it would have ended while room was being made */
	int64_t suspends;
	int64_t lost_ms; /* GPU time that they took: of restarts, or to move memory */
	struct jct_promises promises;
	int64_t longest_wait_ms; /* without running at all, at a time */
	int64_t served_ms;       /* GPU time of all jobs up to the last submission */
	struct usage usage;      /* by virtual cluster, up to then; to be freed */
};
/* `completion_ms` has room for all jobs. `tick` is called with the jobs that have
 * ended since, unless it is NULL. False with a reason if the core refuses a command,
 * which it should not, or a job never ends. */
bool jct_run(const struct philly *philly, const struct jct_world *world,
             const struct jct_policy *policy, struct jct_result *result,
             void (*tick)(void *context, int64_t ended), void *context, struct error *error);

#endif
