/* serve.h - many models on few GPUs: the core and a gateway serve the requests of a trace */
#ifndef SIM_SERVE_SERVE_H
#define SIM_SERVE_SERVE_H

#include "sim/serve/serve_trace.h"

enum serve_policy {
	SERVE_STATIC, /* the models asked most, as many as fit, stay loaded; others never are */
	SERVE_LRU,    /* first come, first served; the least recently used idle model goes */
	SERVE_OURS,   /* the core with its default settings; idle slots sleep as the setup says */
	SERVE_OURS_NOSLEEP, /* the same, and no slot ever sleeps */
	SERVE_ORACLE,       /* all models stay loaded: GPU memory has no end */
	SERVE_POLICIES,
};
extern const char *const serve_policies[SERVE_POLICIES];

/* Where idle models sleep: their weights in host memory, and awake again sooner than loaded. */
enum serve_sleep {
	SERVE_SLEEP_NONE,
	SERVE_SLEEP_HOME, /* a slot wakes on the GPU where it sleeps, and leaves a residue there */
	SERVE_SLEEP_ANY,  /* the weights stay in host memory, from where any GPU has them */
};

struct serve_setup {
	int gpus;
	double gpu_gb, load_gbps, start_s;
	bool one_per_gpu;
	enum serve_sleep sleep;
};

/* Goals of the published traces: the first token after 10 s at the most, the others after 0.1 s
 * each on average. */
#define SERVE_FIRST_US INT64_C(10000000)
#define SERVE_NEXT_US INT64_C(100000)

struct serve_result {
	double attainment;  /* share of all requests that met both goals */
	double first_share; /* ... the goal for the first token */
	double next_share;  /* ... the goal for the others */
	double worst_tenth; /* mean attainment of the tenth of the models with the lowest */
	double first_p50_s, first_p99_s;
	double load_time_share; /* of the GPUs' time */
	double busy_share;      /* of the GPUs' time that steps took */
	double goodput;         /* requests a second that met both goals */
	int64_t loads, wakes, refused, cut, closed;
};

/* Serves the trace. Ends at the last request, or 300 s after it arrived: what was not answered by
 * then was late. `tick` is told of each request that arrives. False with a reason. */
bool serve_run(const struct serve_trace *trace, const struct serve_setup *setup,
               enum serve_policy policy, struct serve_result *result, void (*tick)(void *context),
               void *context, struct error *error);

#endif
