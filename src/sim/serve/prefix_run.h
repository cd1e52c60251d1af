/* prefix_run.h - prompts that begin alike, at several replicas of a model */
#ifndef SIM_SERVE_PREFIX_RUN_H
#define SIM_SERVE_PREFIX_RUN_H

#include "sim/serve/prefix_trace.h"

enum prefix_policy {
	PREFIX_ONE_CACHE,   /* the replicas share one cache: reuse cannot be more */
	PREFIX_ROUND_ROBIN, /* one after the other */
	PREFIX_LEAST,       /* where the fewest tokens are queued */
	PREFIX_LONGEST,     /* where the most blocks are known; the least queued of those */
	PREFIX_OURS,        /* the state machine of the gateway */
	PREFIX_POLICIES,
};
extern const char *const prefix_policies[PREFIX_POLICIES];

struct prefix_setup {
	int replicas, blocks; /* blocks: of each replica's cache */
	double token_ms;      /* that a token of a prompt takes, where it is not cached */
};

struct prefix_result {
	double reuse; /* share of the blocks of all prompts */
	double first_mean_s, first_p50_s, first_p99_s;
	double busiest; /* the most that a replica computed, to the mean of all */
	int64_t refused;
};

/* Each replica computes one prompt after the other, and keeps the blocks that were used last. */
void prefix_run(const struct prefix_trace *trace, const struct prefix_setup *setup,
                enum prefix_policy policy, struct prefix_result *result,
                void (*tick)(void *context), void *context);

#endif
