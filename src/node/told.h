/* told.h - what the core was told about a node's GPUs, so that only news is told */
#ifndef NODE_TOLD_H
#define NODE_TOLD_H

#include "node/session.h"

struct told_gpu {
	char *uuid;
	int64_t foreign_mib, unexplained_mib;
	int64_t slowdown_c;
	bool hot, healthy;
};

/* What a work was said to use of a GPU. The core counts that where it is more than
 * was reserved; and as foreign, for as long as it is not told otherwise, where it
 * does not know the work. */
struct told_use {
	int64_t reservation_id;
	int gpu;
	int64_t memory_mib;
};

struct told {
	struct told_gpu *gpus;
	int gpu_count;
	size_t gpu_capacity;
	struct told_use *uses; /* by GPU and reservation */
	size_t use_count, use_capacity;
	int64_t *ids; /* scratch */
	size_t id_capacity;
};

/* All of the node was told. */
void told_snapshot(struct told *told, const struct node_report_command *report,
                   const struct session_policy *policy);
/* True if a sample says something about its GPU that the core does not know. The
 * uses are all of the same beat. */
bool told_is_news(struct told *told, const struct gpu_sample *sample, const struct use_sample *uses,
                  int64_t use_count, const struct session_policy *policy);
/* A sample was told, news or not, with what was measured on that GPU. */
void told_sample(struct told *told, const struct gpu_sample *sample,
                 const struct measurement *measurements, int64_t count,
                 const struct session_policy *policy);
/* Of a GPU's foreign memory, what no process explains, as told last. */
int64_t told_unexplained_mib(const struct told *told, const char *uuid);
bool told_has(const struct told *told, const char *uuid);
void told_clear(struct told *told);
void told_free(struct told *told);

#endif
