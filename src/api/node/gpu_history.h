/* gpu_history.h - who had which GPU when */
#ifndef API_NODE_GPU_HISTORY_H
#define API_NODE_GPU_HISTORY_H

#include "api/service/call.h"

/* GET /api/v1/gpus/history: what has GPUs now, from the books; what had them before, from the
 * decisions that placed it and the events that ended it. */
void gpu_history_get(struct call *call);

#endif
