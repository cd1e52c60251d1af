/* node_calls.h - the requests about nodes, their GPUs and the cluster as a whole */
#ifndef API_NODE_NODE_CALLS_H
#define API_NODE_NODE_CALLS_H

#include "api/request/call.h"

void node_calls_list(struct call *call);
void node_calls_get(struct call *call);
void node_calls_gpus(struct call *call);
void node_calls_drain(struct call *call);
void node_calls_resume(struct call *call);
void node_calls_dead(struct call *call);
void node_calls_remove(struct call *call);
void node_calls_runner(struct call *call);

void cluster_status(struct call *call);
void cluster_health(struct call *call);

/* The node of the path, by its name, which lasts as long as the call; or answers 404. */
const char *node_calls_of_path(struct call *call);

#endif
