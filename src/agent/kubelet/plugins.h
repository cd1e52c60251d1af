/* plugins.h - the device plugins of a node, for the GPUs that it has now */
#ifndef AGENT_KUBELET_PLUGINS_H
#define AGENT_KUBELET_PLUGINS_H

#include <uv.h>

#include "agent/gpu/gpu_source.h"

/* Which resources of them the node advertises. */
enum plugins_of {
	PLUGINS_NONE,
	PLUGINS_MARKER, /* gpu-scheduler.io/gpu */
	PLUGINS_ALL,    /* nvidia.com/gpu too: nobody else may */
};

struct plugins;

struct plugins_settings {
	uv_loop_t *loop;
	enum plugins_of of;
	const char *kubelet_directory, *root; /* as in struct driver_settings */
	struct gpu_source *source;
};

/* Nothing is advertised before the first measurement. */
struct plugins *plugins_new(const struct plugins_settings *settings);
void plugins_free(struct plugins *plugins);
/* The node's GPUs: when they are others than before, the plugins are made again. */
void plugins_measured(struct plugins *plugins, const struct measured *measured);

#endif
