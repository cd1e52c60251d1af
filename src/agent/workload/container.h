/* container.h - tasks in containers, by podman or docker */
#ifndef AGENT_WORKLOAD_CONTAINER_H
#define AGENT_WORKLOAD_CONTAINER_H

#include <jansson.h>

#include "agent/workload/run.h"

struct container_order {
	const char *image;
	const char *directory; /* inside; NULL: the image's own */
	const json_t *secrets; /* names of variables that nobody may see; NULL: none */
};

/* Turns a spec that runs a command into one that runs it in a container of the image, with the
 * variables of its environment, its GPUs and its limits; and that removes the container
 * afterwards. The runtime and the clean-up run as the task's user. False with a reason: there is
 * no runtime on this node. */
bool container_plan(struct arena *arena, const struct run_settings *settings,
                    const struct node_order *order, const struct container_order *wanted,
                    struct run_plan *plan, struct error *error);

/* Turns the spec of a container into one that runs the command of a session in it, with
 * these variables beside the container's. */
void container_session(struct arena *arena, const struct session_open *open, char **variables,
                       struct spec *spec);

#endif
