/* gpu_source.h - where readings of GPUs come from: NVIDIA's library, a simulation, or nowhere */
#ifndef AGENT_GPU_GPU_SOURCE_H
#define AGENT_GPU_GPU_SOURCE_H

#include "agent/host/cgroup.h"
#include "base/error.h"
#include "base/memory.h"
#include "node/node.h"

/* One work on one GPU, as the agent knows it: what simulated GPUs are used by. */
struct gpu_user {
	int64_t reservation_id, pid;
	const char *uuid;
	int64_t memory_mib;  /* what it reserved, or says that it uses */
	int64_t utilisation; /* thousandths; negative: does not say */
};

/* One measurement of everything. Texts and lists are in the arena. */
struct gpu_readings {
	struct arena arena;
	struct gpu_reading *gpus;
	size_t gpu_count, gpu_capacity;
	struct process_reading *processes; /* reservation_id is for the agent to fill in */
	size_t process_count, process_capacity;
};

/* An empty one of each, at the end of its list. */
struct gpu_reading *gpu_readings_add(struct gpu_readings *readings);
struct process_reading *gpu_readings_add_process(struct gpu_readings *readings);
void gpu_readings_clear(struct gpu_readings *readings);
void gpu_readings_free(struct gpu_readings *readings);

struct gpu_source;

/* What each kind of source can do. `read` may take its time (a driver that hangs), so it is
 * called in a thread of its own, one call at a time; `devices` in another, at any time. */
struct gpu_source_kind {
	const char *name;
	bool (*read)(struct gpu_source *source, int64_t now_ms, const struct gpu_user *users,
	             size_t user_count, struct gpu_readings *readings, struct error *error);
	/* Appends the devices that a work on this GPU must be able to open. */
	void (*devices)(struct gpu_source *source, const char *uuid, struct buffer *rules);
	void (*close)(struct gpu_source *source);
	/* GPUs are devices here, so every task may open only those of its own. */
	bool limits_devices;
};
struct gpu_source {
	const struct gpu_source_kind *kind;
};

/* Simulated GPUs: "8x80G", "2x40G:A100,4x24G:A10". They have the memory that works on them say
 * they use (FAKE_GPU_MEMORY_MIB in a task's environment, else what they reserved), and get warm
 * as works run. `control` is a file that may come and go, with lines
 *     GPU foreign MIB | GPU temperature C | GPU unhealthy | GPU absent | GPU lingers MIB |
 *     GPU slowdown C
 * (GPU: its number from 0, or its UUID): memory of strangers, and so on. NULL with a reason. */
struct gpu_source *fake_open(const char *spec, const char *node, const char *control,
                             struct error *error);

/* What NVIDIA's library tells. NULL with a reason: there is no driver, or no GPU. `path`: of
 * the library; NULL: where the system finds it. `replicas`: names that each GPU is advertised
 * under. */
struct gpu_source *nvml_open(const char *path, int64_t replicas, struct error *error);

/* No GPUs. */
struct gpu_source *none_open(void);

void gpu_source_close(struct gpu_source *source);

#endif
