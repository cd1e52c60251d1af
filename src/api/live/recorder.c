/* recorder.c - samples the use of the cluster, its tenants and its GPUs */
#include "api/live/recorder.h"

#include <stdlib.h>

#include "api/live/recorder_local.h"
#include "api/read/gpu_books.h"
#include "api/session/agents.h"
#include "base/clock.h"
#include "base/memory.h"

static void recorder_on_timer(struct timer *timer);

static void tracks_clear(struct track *tracks, size_t count)
{
	for (size_t i = 0; i < count; i++)
		track_clear(&tracks[i]);
}

struct recorder *recorder_new(struct service *service)
{
	struct recorder *recorder = NEW(struct recorder);
	recorder->service = service;
	recorder->loop = service->port->loop;
	recorder->timer = TIMER(recorder_on_timer);
	tracks_clear(recorder->cluster, RECORDER_CLUSTER);
	return recorder;
}

void recorder_free(struct recorder *recorder)
{
	if (!recorder)
		return;
	loop_timer_clear(recorder->loop, &recorder->timer);
	engine_request_free(&recorder->engine);
	for (size_t i = 0; i < recorder->tenants.capacity; i++)
		free(recorder->tenants.entries[i].value);
	map_free(&recorder->tenants);
	for (size_t i = 0; i < recorder->gpus.capacity; i++) {
		struct recorded_gpu *gpu = recorder->gpus.entries[i].value;
		if (gpu)
			free(gpu->uuid);
		free(gpu);
	}
	text_map_free(&recorder->gpus);
	free(recorder);
}

void recorder_begin(struct recorder *recorder)
{
	struct loop *loop = recorder->loop;
	recorder->keep_ms = loop_now_ms(loop);
	loop_timer_set(loop, &recorder->timer, RECORDER_FIRST_MS);
}

struct recorded_tenant *recorder_tenant(struct recorder *recorder, int64_t id)
{
	struct recorded_tenant *tenant = map_get(&recorder->tenants, id);
	if (tenant || recorder->tenants.count >= RECORDER_TENANTS_MAX)
		return tenant;
	tenant = NEW(struct recorded_tenant);
	tenant->id = id;
	tracks_clear(tenant->tracks, RECORDER_TENANT);
	map_put(&recorder->tenants, id, tenant);
	return tenant;
}

struct recorded_gpu *recorder_gpu(struct recorder *recorder, const char *uuid)
{
	struct recorded_gpu *gpu = text_map_get(&recorder->gpus, uuid);
	if (gpu || recorder->gpus.count >= RECORDER_GPUS_MAX)
		return gpu;
	gpu = NEW(struct recorded_gpu);
	gpu->uuid = memory_text(uuid);
	tracks_clear(gpu->tracks, RECORDER_GPU);
	text_map_put(&recorder->gpus, uuid, gpu);
	return gpu;
}

struct sums {
	int64_t gpus, free, capacity_mib, reserved_mib, used_mib, utilization, samples;
};

static void sample_gpu(struct recorder *recorder, const struct node_record *node,
                       const struct gpu_record *gpu, int64_t unix_ms, struct sums *sums)
{
	struct service *service = recorder->service;
	struct gpu_books books = gpu_books(service_catalogue(service), gpu);
	struct agents_sample sample;

	sums->gpus++;
	sums->free += gpu_is_available(node, &books);
	sums->capacity_mib += books.capacity;
	sums->reserved_mib += books.reserved + books.releasing;
	if (node->state != NODE_ONLINE || !agents_sample(service->agents, gpu->uuid, &sample))
		return;
	sums->used_mib += sample.used_mib;
	sums->utilization += sample.utilisation;
	sums->samples++;
	struct recorded_gpu *recorded = recorder_gpu(recorder, gpu->uuid);
	if (!recorded)
		return;
	track_add(&recorded->tracks[RECORDER_GPU_UTILIZATION], unix_ms, sample.utilisation);
	track_add(&recorded->tracks[RECORDER_GPU_MEMORY], unix_ms, sample.used_mib);
	track_add(&recorded->tracks[RECORDER_GPU_TEMPERATURE], unix_ms, sample.temperature_c);
}

static int64_t count_jobs(const struct catalogue *catalogue, int state)
{
	int64_t archived;
	return catalogue_count(catalogue, &(struct catalogue_filter){ .state = state }, &archived);
}

static void sample_cluster(struct recorder *recorder, int64_t unix_ms)
{
	struct catalogue *catalogue = service_catalogue(recorder->service);
	struct catalogue_cursor cursor = { .kind = RECORD_NODE };
	const struct gpu_record *const *gpus;
	const struct node_record *node;
	struct sums sums = { 0 };

	catalogue_lock(catalogue);
	for (int64_t done = 0; (node = catalogue_next(catalogue, &cursor)) != NULL; done++) {
		size_t count = catalogue_node_gpus(catalogue, node->id, &gpus);
		for (size_t i = 0; i < count; i++)
			if (!gpus[i]->mig_mode && gpus[i]->present)
				sample_gpu(recorder, node, gpus[i], unix_ms, &sums);
		service_breathe(recorder->service, done);
	}
	int64_t running = count_jobs(catalogue, JOB_RUNNING) + count_jobs(catalogue, JOB_SCHEDULED);
	int64_t waiting = count_jobs(catalogue, JOB_PENDING);
	catalogue_unlock(catalogue);

	struct track *tracks = recorder->cluster;
	if (sums.samples > 0)
		track_add(&tracks[RECORDER_UTILIZATION], unix_ms, sums.utilization / sums.samples);
	if (sums.capacity_mib > 0) {
		track_add(&tracks[RECORDER_RESERVED], unix_ms,
		          1000 * sums.reserved_mib / sums.capacity_mib);
		track_add(&tracks[RECORDER_USED], unix_ms,
		          1000 * sums.used_mib / sums.capacity_mib);
	}
	track_add(&tracks[RECORDER_FREE], unix_ms, sums.free);
	track_add(&tracks[RECORDER_GPUS], unix_ms, sums.gpus);
	track_add(&tracks[RECORDER_RUNNING], unix_ms, running);
	track_add(&tracks[RECORDER_WAITING], unix_ms, waiting);
}

/* In the core's thread, while `ids` and `figures` are the engine's. */
static bool look_at_figures(struct engine_request *engine, struct sched *sched, struct error *error)
{
	struct recorder *recorder = engine->context;
	(void)error;
	for (size_t i = 0; i < recorder->count; i++)
		if (!sched_tenant_figures(sched, recorder->ids[i], &recorder->figures[i]))
			recorder->ids[i] = 0;
	return true;
}

static void sample_tenant(struct recorder *recorder, size_t place, int64_t unix_ms)
{
	const struct tenant_figures *figures = &recorder->figures[place];
	struct recorded_tenant *tenant =
	    recorder->ids[place] > 0 ? recorder_tenant(recorder, recorder->ids[place]) : NULL;
	if (!tenant)
		return;
	track_add(&tenant->tracks[RECORDER_TENANT_GPUS], unix_ms,
	          figures->allocated.of[AMOUNT_GPU]);
	track_add(&tenant->tracks[RECORDER_TENANT_RUNNING], unix_ms,
	          figures->allocated.of[AMOUNT_JOBS]);
	track_add(&tenant->tracks[RECORDER_TENANT_WAITING], unix_ms, figures->waiting_jobs);
	int64_t passed_ms = unix_ms - tenant->cost_ms;
	if (tenant->cost_ms > 0 && passed_ms > 0 && figures->cost >= tenant->cost)
		track_add(&tenant->tracks[RECORDER_TENANT_COST], unix_ms,
		          (figures->cost - tenant->cost) * 3600 / passed_ms);
	tenant->cost = figures->cost;
	tenant->cost_ms = unix_ms;
	tenant->changed = true;
}

static void on_figures(struct engine_request *engine)
{
	struct recorder *recorder = engine->context;
	struct loop *loop = recorder->loop;
	int64_t unix_ms = clock_unix_ms();

	recorder->busy = false;
	if (!engine->ok)
		return;
	for (size_t i = 0; i < recorder->count; i++)
		sample_tenant(recorder, i, unix_ms);
	if (loop_now_ms(loop) < recorder->keep_ms)
		return;
	recorder->keep_ms = loop_now_ms(loop) + RECORDER_KEEP_MS;
	recorder_keep(recorder);
}

static void ask_for_tenants(struct recorder *recorder)
{
	const struct roster *roster = &recorder->service->roster;
	struct engine_request *engine = &recorder->engine;

	recorder->count = 0;
	for (size_t i = 0; i < roster->by_id.capacity && recorder->count < RECORDER_TENANTS_MAX;
	     i++)
		if (roster->by_id.entries[i].value)
			recorder->ids[recorder->count++] = roster->by_id.entries[i].key;
	engine_request_reset(engine);
	engine->look = look_at_figures;
	engine->done = on_figures;
	engine->context = recorder;
	recorder->busy = true;
	engine_port_send(recorder->service->port, engine);
}

static void recorder_on_timer(struct timer *timer)
{
	struct recorder *recorder =
	    (struct recorder *)(void *)((char *)timer - offsetof(struct recorder, timer));

	loop_timer_set(recorder->loop, timer, RECORDER_SAMPLE_MS);
	sample_cluster(recorder, clock_unix_ms());
	if (!recorder->busy)
		ask_for_tenants(recorder);
}
