/* recorder.h - the use of the cluster, its tenants and its GPUs in the last day and week */
#ifndef API_LIVE_RECORDER_H
#define API_LIVE_RECORDER_H

#include "api/live/track.h"
#include "api/request/request.h"

/* Samples every RECORDER_SAMPLE_MS while this scheduler leads, in the loop's thread. Its memory is
 * bounded: RECORDER_TENANTS_MAX tenants and RECORDER_GPUS_MAX GPUs have tracks (some 25 MB at
 * most), those that came later have none. It is kept in the database (kind "history") every
 * RECORDER_KEEP_MS: all of the cluster and of tenants, and RECORDER_GPUS_KEPT GPUs in turn, so a
 * restart loses minutes, and in a large cluster an hour of single GPUs. */
struct recorder;
struct service;

enum {
	RECORDER_FIRST_MS = 2000,
	RECORDER_SAMPLE_MS = 15000,
	RECORDER_KEEP_MS = 300000,
	RECORDER_TENANTS_MAX = 512,
	RECORDER_GPUS_MAX = 2048,
	RECORDER_GPUS_KEPT = 64,
};

/* Ratios are thousandths, GPUs of tenants too; costs are thousandths of the currency. */
enum recorder_cluster {
	RECORDER_UTILIZATION,
	RECORDER_RESERVED,
	RECORDER_USED,
	RECORDER_FREE,
	RECORDER_GPUS,
	RECORDER_RUNNING,
	RECORDER_WAITING,
	RECORDER_CLUSTER
};
enum recorder_tenant {
	RECORDER_TENANT_GPUS,
	RECORDER_TENANT_RUNNING,
	RECORDER_TENANT_WAITING,
	RECORDER_TENANT_COST, /* for an hour */
	RECORDER_TENANT
};
enum recorder_gpu {
	RECORDER_GPU_UTILIZATION,
	RECORDER_GPU_MEMORY,
	RECORDER_GPU_TEMPERATURE,
	RECORDER_GPU
};

struct recorder *recorder_new(struct service *service);
void recorder_free(struct recorder *recorder);
/* This scheduler leads from now on. */
void recorder_begin(struct recorder *recorder);
/* At the start: restores what the store kept under a key. Unreadable values are skipped. */
void recorder_load(struct recorder *recorder, const char *key, const char *value);

/* GET /api/v1/history */
void recorder_get(struct request *request);

#endif
