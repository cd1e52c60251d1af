/* slice.h - the ResourceSlice of a node: its GPUs, as kube-scheduler and our scheduler see them */
#ifndef KUBELET_SLICE_H
#define KUBELET_SLICE_H

#include <jansson.h>

#include "kubelet/claim.h"

/* A physical GPU. Time slices and other names of it are no devices. */
struct slice_gpu {
	const char *uuid, *model;
	int64_t index, memory_mib; /* memory: what claims may take of it in sum */
	bool is_hot, is_healthy;
	const char *reason; /* why it is not healthy; may be NULL or empty */
};

/* Name of a GPU as a device: its UUID as a DNS label. To be freed. */
char *slice_device(const char *uuid);

/* The object, new: one device for each GPU, with its memory as a capacity that claims consume, and
 * taints for those that nothing new may start on. `node_uid` may be empty. */
json_t *slice_make(const char *node, const char *node_uid, const struct slice_gpu *gpus,
                   int64_t gpu_count);

/* What is to be written, given what the server has (NULL: nothing): NULL where that says the same,
 * else the object with the server's resourceVersion, and a new generation of the pool. A capacity
 * that moved by less than `step_mib` is left as it is. */
json_t *slice_update(const json_t *wanted, const json_t *there, int64_t step_mib);

#endif
