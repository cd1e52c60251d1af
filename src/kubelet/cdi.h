/* cdi.h - what a container runtime gives to the containers of a claim (Container Device Interface)
 */
#ifndef KUBELET_CDI_H
#define KUBELET_CDI_H

#include "kubelet/claim.h"

#define CDI_KIND "gpu-scheduler.io/gpu"

struct cdi_mount {
	const char *from, *to;
	bool read_only;
};

/* What the node gives beside the GPUs' names. */
struct cdi_node {
	const char *const *devices; /* paths of device files */
	int64_t device_count;
	const struct cdi_mount *mounts;
	int64_t mount_count;
	const char *const *environment; /* NAME=VALUE */
	int64_t environment_count;
};

/* Name of the claim's file in the runtime's directory, and what its containers name. To be freed.
 */
char *cdi_file(const char *uid);
char *cdi_device(const char *uid);
/* The file: the claim's GPUs in NVIDIA_VISIBLE_DEVICES and CUDA_VISIBLE_DEVICES, what they have of
 * memory in GPU_SCHEDULER_MEMORY_MIB, and what the node gives. */
void cdi_write(const struct claim *claim, const struct cdi_node *node, struct buffer *json);

#endif
