/* plugin.h - a device plugin that gives every container the same answer */
#ifndef AGENT_KUBELET_PLUGIN_H
#define AGENT_KUBELET_PLUGIN_H

#include <uv.h>

#include "agent/gpu/gpu_source.h"

/* A kubelet asks a device plugin for some of a number of equal devices, and does not say for which
 * pod. So this one never tells pods apart: each container gets the device files of all GPUs of the
 * node, and the driver's libraries; which GPUs it may use, its pod's annotations say. It can give
 * two resources: a marker, of which there are more than a node has pods, and whole GPUs. */
struct plugin;

#define PLUGIN_MARKER "gpu-scheduler.io/gpu"
#define PLUGIN_WHOLE "nvidia.com/gpu"
enum { PLUGIN_MARKERS = 1024 };

struct plugin_settings {
	uv_loop_t *loop;
	const char *resource;
	int64_t count;
	const char *kubelet_directory, *root; /* as in struct driver_settings */
	struct gpu_source *source;
	const char *const *uuids; /* of all GPUs; copied */
	int64_t uuid_count;
};

/* Listens, and is found by the kubelet. NULL with a reason. */
struct plugin *plugin_new(const struct plugin_settings *settings, struct error *error);
void plugin_free(struct plugin *plugin);

#endif
