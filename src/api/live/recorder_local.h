/* recorder_local.h - the inside of the recorder */
#ifndef API_LIVE_RECORDER_LOCAL_H
#define API_LIVE_RECORDER_LOCAL_H

#include "api/live/recorder.h"
#include "api/service/service_state.h"
#include "base/map.h"

struct recorded_tenant {
	int64_t id;
	int64_t cost, cost_ms; /* what it had cost then; 0: not known */
	bool changed;          /* since it was kept */
	struct track tracks[RECORDER_TENANT];
};

struct recorded_gpu {
	char *uuid;
	struct track tracks[RECORDER_GPU];
};

struct recorder {
	struct service *service;
	struct loop *loop; /* outlives the engine's port */
	struct timer timer;
	struct track cluster[RECORDER_CLUSTER];
	struct map tenants;   /* by id: recorded_tenant */
	struct text_map gpus; /* by UUID: recorded_gpu */
	int64_t keep_ms;      /* when it is to be kept next, by the loop's clock */
	size_t gpu_turn;      /* of the GPUs, by place in the map, the one that is kept next */
	struct engine_request engine; /* looks at tenants, then keeps: one at a time */
	bool busy;
	int64_t ids[RECORDER_TENANTS_MAX];
	struct tenant_figures figures[RECORDER_TENANTS_MAX];
	size_t count;
};

struct recorded_tenant *recorder_tenant(struct recorder *recorder, int64_t id);
struct recorded_gpu *recorder_gpu(struct recorder *recorder, const char *uuid);
/* Hands in what is to be kept now. */
void recorder_keep(struct recorder *recorder);

#endif
