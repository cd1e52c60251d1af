/* recorder_keep.c - the history of the cluster in the database, and back */
#include <stdio.h>
#include <stdlib.h>

#include "api/live/recorder_local.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/number_text.h"

static const char tenant_prefix[] = "tenant-", gpu_prefix[] = "gpu ";

static void add(struct recorder *recorder, struct kept *keeps, const char *key,
                const struct track *tracks, size_t count)
{
	struct engine_request *engine = &recorder->engine;
	struct buffer text = { 0 };
	for (size_t i = 0; i < count; i++)
		track_write(&tracks[i], &text);
	keeps[engine->keep_count++] = (struct kept){
		"history",
		arena_string(&engine->arena, key),
		arena_string(&engine->arena, text.data),
	};
	buffer_free(&text);
}

/* The next GPUs in turn. */
static void add_gpus(struct recorder *recorder, struct kept *keeps)
{
	const struct text_map *gpus = &recorder->gpus;
	size_t added = 0;
	for (size_t i = 0; i < gpus->capacity && added < RECORDER_GPUS_KEPT; i++) {
		if (recorder->gpu_turn >= gpus->capacity)
			recorder->gpu_turn = 0;
		const struct recorded_gpu *gpu = gpus->entries[recorder->gpu_turn++].value;
		if (!gpu)
			continue;
		struct buffer key = { 0 };
		buffer_print(&key, "%s%s", gpu_prefix, gpu->uuid);
		add(recorder, keeps, key.data, gpu->tracks, RECORDER_GPU);
		buffer_free(&key);
		added++;
	}
}

static void on_kept(struct engine_request *engine)
{
	struct recorder *recorder = engine->context;
	recorder->busy = false;
	if (!engine->ok)
		log_at(LOG_WARNING, "the history of the cluster was not kept",
		       LOG_TEXT("reason", engine->error.text));
}

void recorder_keep(struct recorder *recorder)
{
	struct engine_request *engine = &recorder->engine;
	char key[48];

	engine_request_reset(engine);
	struct kept *keeps = arena_alloc(
	    &engine->arena, (1 + recorder->tenants.count + RECORDER_GPUS_KEPT) * sizeof(*keeps));
	add(recorder, keeps, "cluster", recorder->cluster, RECORDER_CLUSTER);
	for (size_t i = 0; i < recorder->tenants.capacity; i++) {
		struct recorded_tenant *tenant = recorder->tenants.entries[i].value;
		if (!tenant || !tenant->changed)
			continue;
		tenant->changed = false;
		snprintf(key, sizeof(key), "%s%lld", tenant_prefix, (long long)tenant->id);
		add(recorder, keeps, key, tenant->tracks, RECORDER_TENANT);
	}
	add_gpus(recorder, keeps);
	engine->keeps = keeps;
	engine->done = on_kept;
	engine->context = recorder;
	recorder->busy = true;
	engine_port_send(recorder->service->port, engine);
}

static void read_tracks(struct track *tracks, size_t count, const char *value)
{
	struct text rest = text_of(value);
	struct error error = { 0 };
	for (size_t i = 0; i < count; i++)
		if (!track_read(&tracks[i], &rest, &error))
			break;
}

void recorder_load(struct recorder *recorder, const char *key, const char *value)
{
	struct text name = text_of(key);
	int64_t id;
	if (text_is(name, "cluster")) {
		read_tracks(recorder->cluster, RECORDER_CLUSTER, value);
	} else if (text_starts(name, gpu_prefix)) {
		struct recorded_gpu *gpu = recorder_gpu(recorder, key + sizeof(gpu_prefix) - 1);
		if (gpu)
			read_tracks(gpu->tracks, RECORDER_GPU, value);
	} else if (text_starts(name, tenant_prefix) &&
	           number_read(text_from(name, sizeof(tenant_prefix) - 1), 1, INT64_MAX, &id)) {
		struct recorded_tenant *tenant = recorder_tenant(recorder, id);
		if (tenant)
			read_tracks(tenant->tracks, RECORDER_TENANT, value);
	}
}
