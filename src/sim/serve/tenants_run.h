/* tenants_run.h - many tenants at the replicas of one model, which cannot serve them all */
#ifndef SIM_SERVE_TENANTS_RUN_H
#define SIM_SERVE_TENANTS_RUN_H

#include "sim/serve/serve_trace.h"
#include "sim/serve/tenants_trace.h"

enum tenants_policy {
	TENANTS_FIFO, /* first come, first served, whoever asks */
	TENANTS_OURS, /* the state machine of the gateway */
	TENANTS_POLICIES,
};
extern const char *const tenants_policies[TENANTS_POLICIES];

enum { WEIGHTS_MOST = 16 };

struct tenants_setup {
	int replicas, places;   /* places: requests at once in each */
	struct serve_kind kind; /* the model */
	double kv_gb;
	int64_t weights[WEIGHTS_MOST]; /* in thousandths: of tenants in turn */
	int weight_count;
	double hours;
};

struct tenants_result {
	double overload;   /* tokens asked to tokens served; an answer's count twice */
	double jain;       /* of what each tenant was served over what it asked */
	double jain_share; /* of the same over its fair share: all it asked, or its weight's part */
	int tenants;
	double alone_mean_s; /* first tokens of requests that found no other of their tenant */
	double alone_p99_s;  /* waiting, which wait for others alone; what has none when it ends */
	double alone_most_s; /* counts as it waited then */
	double first_mean_s; /* of all requests */
	int64_t spread;      /* of counters of tenants that wait; tokens */
	int64_t bound;       /* of virtual token counters, for that */
	int64_t refused;
};

/* Runs for that many hours. Requests that are still queued then are not served. */
void tenants_run(const struct tenants_trace *trace, const struct tenants_setup *setup,
                 enum tenants_policy policy, struct tenants_result *result,
                 void (*tick)(void *context), void *context);

#endif
