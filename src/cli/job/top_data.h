/* top_data.h - what gpu-cli top shows: every GPU with who holds what on it, and the jobs */
#ifndef CLI_JOB_TOP_DATA_H
#define CLI_JOB_TOP_DATA_H

#include <jansson.h>

#include "base/memory.h"
#include "cli/session.h"

enum top_phase { TOP_LIVE, TOP_HELD, TOP_RELEASING, TOP_FOREIGN, TOP_UNEXPLAINED, TOP_OVERHEAD };

/* A part of a GPU's memory. `owner` is a job or a slot; "" where that is not ours to know. */
struct top_part {
	size_t gpu;
	const char *owner, *label;
	int64_t mib;
	enum top_phase phase;
};

/* `busy` is in hundredths, `heat_c` in degrees; -1: not measured. Its parts follow each other
 * in the list of all. */
struct top_gpu {
	const char *node, *uuid, *model;
	int64_t index, total_mib, used_mib, free_mib;
	int64_t foreign_mib, overhead_mib, reserved_mib, releasing_mib;
	int64_t unexplained_mib; /* of foreign_mib: no process explains it */
	int busy, heat_c;
	bool hot, over, unhealthy, draining, online;
	size_t first_part, part_count;
};

struct top_job {
	const char *id, *name, *tenant, *state, *node, *gpus;
	int64_t priority, position;                 /* 0: it does not wait */
	int64_t submitted_ms, started_ms, start_ms; /* -1: not known */
	int64_t allocated;                          /* GPUs it is on */
};

/* Texts are in the arena. */
struct top_data {
	struct top_gpu *gpus;
	size_t gpu_count, gpu_capacity;
	struct top_part *parts;
	size_t part_count, part_capacity;
	struct top_job *jobs; /* those that wait, in their order, then those that run */
	size_t job_count, job_capacity;
	int64_t nodes, online_nodes, total_gpus, free_gpus, waiting, running;
	int64_t total_mib, reserved_mib, releasing_mib, foreign_mib;
	int busy; /* in hundredths; -1: not measured */
	struct arena arena;
};

/* Replaces the data by what the service says now. False with a reason, and nothing changed. */
bool top_data_load(struct top_data *data, struct session *session, struct error *error);
/* Reads the data from documents: lists of GPUs, nodes, running jobs, slots and the queue, and
 * the status of the cluster. */
void top_data_read(struct top_data *data, struct session *session, const json_t *documents);
void top_data_free(struct top_data *data);

#endif
