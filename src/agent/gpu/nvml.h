/* nvml.h - the inside of NVIDIA's GPUs as a source: what its files share */
#ifndef AGENT_GPU_NVML_H
#define AGENT_GPU_NVML_H

#include <pthread.h>

#include "agent/gpu/gpu_source.h"
#include "agent/gpu/nvml_api.h"

/* Said to be of a GPU that slows itself down because of heat: hot by any threshold. */
#define NVML_SLOWED_DOWN_C 90

/* A GPU, or an instance of one. What does not change while the driver runs is kept. */
struct nvml_gpu {
	nvml_device device;
	char uuid[NVML_TEXT_MAX], model[NVML_TEXT_MAX];
	char parent[NVML_TEXT_MAX]; /* instances: the UUID of their GPU; else empty */
	char bus_id[32];
	unsigned gpu_instance, compute_instance;
	int64_t place, minor; /* minor: of its device; -1: not known */
	int64_t nvlink_group; /* 0: none */
	int64_t slowdown_c;   /* at which the driver slows it down; 0: not known */
	bool mig_mode;
	unsigned long long xid; /* the last fatal error; 0: none */
};

/* `gpus` is changed by the thread that reads, under the lock; others read it under the lock. */
struct nvml_source {
	struct gpu_source source;
	struct nvml_api api;
	pthread_mutex_t lock;
	struct nvml_gpu *gpus;
	size_t count;
	nvml_events events;             /* NULL: not to be had */
	struct nvml_process *processes; /* for one call */
	int64_t reads;
	int64_t replicas; /* names that each GPU is advertised under */
};

/* An error after which a GPU is not used before somebody has looked at it. Others (an illegal
 * address, a page fault) are of a program, not of the GPU. */
bool nvml_is_fatal(unsigned long long xid);
/* nvml_inventory.c: which GPUs there are, and what connects them. */
bool nvml_inventory(struct nvml_source *nvml, struct error *error);
/* nvml_devices.c */
void nvml_devices(struct gpu_source *source, const char *uuid, struct buffer *rules);

#endif
