/* container.h - tasks in containers, by podman or docker */
#ifndef AGENT_CONTAINER_H
#define AGENT_CONTAINER_H

#include "agent/run.h"

/* Turns a spec that runs a command into one that runs it in a container of the image, with the
 * variables of its environment, its GPUs and its limits; and that removes the container
 * afterwards. False with a reason: there is no runtime on this node. */
bool container_plan(struct arena *arena, const struct run_settings *settings,
                    const struct node_order *order, const char *image, struct run_plan *plan,
                    struct error *error);

#endif
