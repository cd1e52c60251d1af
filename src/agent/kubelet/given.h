/* given.h - what a node gives to containers that use its GPUs: device files and the driver's files
 */
#ifndef AGENT_KUBELET_GIVEN_H
#define AGENT_KUBELET_GIVEN_H

#include "agent/gpu/gpu_source.h"
#include "kubelet/cdi.h"

enum { GIVEN_MAX = 128 };

/* Paths are those of the node. */
struct given {
	struct arena arena;
	const char *devices[GIVEN_MAX];
	struct cdi_mount mounts[GIVEN_MAX];
	int64_t device_count, mount_count;
	struct buffer rules; /* of the devices */
};

/* Adds what the GPU needs; nothing for a simulated one. */
void given_add(struct given *given, struct gpu_source *source, const char *uuid);
/* Looks for the files of all that was added. `root` is where the node's / is mounted; "": it is
 * ours. */
void given_find(struct given *given, const char *root);
void given_free(struct given *given);

#endif
