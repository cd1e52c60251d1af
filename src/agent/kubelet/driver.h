/* driver.h - the driver of GPUs on a node of Kubernetes: what its kubelet prepares and unprepares
 */
#ifndef AGENT_KUBELET_DRIVER_H
#define AGENT_KUBELET_DRIVER_H

#include <uv.h>

#include "agent/gpu/gpu_source.h"
#include "agent/kubelet/plugins.h"
#include "agent/workload/measurement.h"
#include "node/node.h"

/* Set by the administrator of the node. */
struct driver_settings {
	bool is_on;
	enum plugins_of plugins;       /* beside it, or without */
	const char *kubelet_directory; /* /var/lib/kubelet, as the kubelet has it */
	const char *cdi_directory;     /* /var/run/cdi */
	const char *kubeconfig;        /* "": the account of the pod that we run in */
	const char *root;              /* where the node's / is mounted; "": it is ours */
};

struct driver;

struct driver_parts {
	uv_loop_t *loop;
	const char *node, *state_directory;
	const struct node_policy *policy;
	const struct local_node *local;
	struct measurements *measurements;
	struct gpu_source *source;
};

/* Loads what was kept, and listens. NULL with a reason. */
struct driver *driver_new(const struct driver_settings *settings, const struct driver_parts *parts,
                          struct error *error);
/* Its claims stay prepared. */
void driver_free(struct driver *driver);

/* The node has taken a measurement. */
void driver_measured(struct driver *driver, const struct measured *measured);
/* The loop is about to wait. */
void driver_flush(struct driver *driver);

#endif
