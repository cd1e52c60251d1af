/* slot_command.h - how a model's server is started */
#ifndef AGENT_WORKLOAD_SLOT_COMMAND_H
#define AGENT_WORKLOAD_SLOT_COMMAND_H

#include <jansson.h>

#include "agent/host/environment.h"
#include "agent/workload/run.h"

/* Fills what a slot runs, where it is asked whether it is ready, its network, and the port that it
 * listens on there, which was free just now. What is the model's own fault becomes spec.failure. */
bool slot_command_plan(struct arena *arena, const struct run_settings *settings,
                       const struct node_order *order, const json_t *payload,
                       struct environment *environment, struct run_plan *plan, struct error *error);

#endif
