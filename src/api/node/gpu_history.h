/* gpu_history.h - who had which GPU when */
#ifndef API_NODE_GPU_HISTORY_H
#define API_NODE_GPU_HISTORY_H

#include "api/request/request.h"

/* GET /api/v1/gpus/history: current owners of GPUs, from the ledger; previous ones, from
 * the decisions that placed them and the events that ended them. */
void gpu_history_get(struct request *request);

#endif
