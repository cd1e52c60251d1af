/* node_calls.h - the requests about nodes, their GPUs and the cluster as a whole */
#ifndef API_NODE_NODE_CALLS_H
#define API_NODE_NODE_CALLS_H

#include "api/request/request.h"

void node_calls_list(struct request *request);
void node_calls_get(struct request *request);
void node_calls_gpus(struct request *request);
void node_calls_drain(struct request *request);
void node_calls_resume(struct request *request);
void node_calls_dead(struct request *request);
void node_calls_remove(struct request *request);
void node_calls_runner(struct request *request);

void cluster_status(struct request *request);
void cluster_health(struct request *request);

/* The node of the path, by its name, which lasts as long as the request; or answers 404. */
const char *node_calls_of_path(struct request *request);

#endif
