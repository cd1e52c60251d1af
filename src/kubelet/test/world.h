/* world.h - a node of Kubernetes for tests: an API server, GPUs, files and a kubelet's calls */
#ifndef KUBELET_TEST_WORLD_H
#define KUBELET_TEST_WORLD_H

#include "kubelet/claims.h"

enum { WORLD_CLAIMS = 16, WORLD_GPUS = 2, WORLD_CALLS = 4096 };

/* A pod with a claim of its own. */
struct world_pod {
	char uid[40], claim[40];
	int64_t gpu, asked_mib; /* asked_mib 0: it has no claim on the server */
	int64_t used_mib;       /* by its processes */
	int64_t left_mib;       /* of processes that ended */
	bool is_ordered;        /* the agent has an order to watch it */
	bool is_kept, has_file; /* on disk; lost at a reboot: has_file */
	char kept[2048];
};

struct world_call {
	bool is_answered, is_refused;
	char text[ERROR_TEXT_MAX];
	char uuid[64];
	int64_t memory_mib;
};

struct world {
	struct claims *claims;
	struct world_pod pods[WORLD_CLAIMS];
	int64_t capacity_mib, overhead_mib, foreign_mib[WORLD_GPUS], unexplained_mib[WORLD_GPUS];
	bool is_sick[WORLD_GPUS], keeps_failing;
	int64_t now_ms, asked, measured, gave_up, gave_up_mib;
	struct world_call calls[WORLD_CALLS];
	int64_t call_count;
	int64_t fetches[WORLD_CLAIMS]; /* not answered yet */
};

struct world *world_new(void);
void world_free(struct world *world);

/* The agent is started again, with what is on disk; `reboot`: of that, the runtime's files are
 * gone, and all processes. */
void world_restart(struct world *world, bool reboot);
/* The number of the call. */
int64_t world_prepare(struct world *world, int64_t pod);
int64_t world_unprepare(struct world *world, int64_t pod);
/* Answers what was fetched; `failure` NULL: with the object. */
void world_fetched(struct world *world, const char *failure);
/* One that began after all that was asked for. */
void world_measure(struct world *world);
void world_sleep(struct world *world, int64_t ms);
/* All of it: fetched and measured. */
const struct world_call *world_prepared(struct world *world, int64_t pod);

#endif
