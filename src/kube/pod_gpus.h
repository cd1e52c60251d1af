/* pod_gpus.h - the GPUs that a pod asks for, in any of the ways that are in use */
#ifndef KUBE_POD_GPUS_H
#define KUBE_POD_GPUS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum pod_gpu_kind { POD_GPU_NONE, POD_GPU_WHOLE, POD_GPU_FRACTION, POD_GPU_MEMORY };
struct pod_gpus {
	enum pod_gpu_kind kind;
	int64_t count;
	int64_t fraction;    /* POD_GPU_FRACTION: thousandths of each */
	int64_t memory_mib;  /* POD_GPU_MEMORY: of each */
	bool limits_compute; /* it asks for a part of the GPU's compute too, which nobody limits */
};

/* Whole GPUs: nvidia.com/gpu. Parts: the annotations gpu-memory, gpu-fraction and
 * gpu-fraction-num-devices (KAI, Run:ai); nvidia.com/gpumem and gpumem-percentage (HAMi);
 * volcano.sh/vgpu-number, vgpu-memory and vgpu-memory-percentage. False with a reason if they
 * contradict each other or are malformed. */
bool pod_gpus_read(const json_t *pod, struct pod_gpus *gpus, struct error *error);
/* Resources that are read here, and are not to be counted as others are: an array of texts, to
 * be given back with json_decref. */
json_t *pod_gpus_resources(void);

/* A GPU of a node that has no agent. */
struct node_gpu {
	char uuid[128], model[64];
	int64_t memory_mib;
};
enum { NODE_GPUS_MAX = 64 };
/* The GPUs of a node as its annotation gpu-scheduler.io/node-gpus declares them (an array of
 * {"uuid", "model", "memory_mib"}): those can be shared, and `*shared` is true. Otherwise what it
 * advertises as nvidia.com/gpu, divided by the replicas that its labels name: whole GPUs, whose
 * names are made up. Returns how many. */
int node_gpus_read(const json_t *node, struct node_gpu *gpus, bool *shared);
#define NODE_GPUS_ANNOTATION "gpu-scheduler.io/node-gpus"
#define GPU_MEMORY_UNKNOWN_MIB 1024

#endif
