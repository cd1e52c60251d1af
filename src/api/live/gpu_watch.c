/* gpu_watch.c - which GPUs have changed since somebody last looked */
#include "api/live/gpu_watch.h"

#include <stdlib.h>

#include "api/node/gpu_view.h"
#include "api/service/service_state.h"

/* A GPU as it was seen last. */
struct seen {
	int64_t gpu_id;
	uint64_t digest;
	int64_t sampled_ms;
	bool differs, measured; /* found by the last look */
};

struct gpu_watch {
	const struct service *service;
	struct map seen; /* by the GPU's id */
};

struct gpu_watch *gpu_watch_new(const struct service *service)
{
	struct gpu_watch *watch = NEW(struct gpu_watch);
	watch->service = service;
	return watch;
}

void gpu_watch_free(struct gpu_watch *watch)
{
	if (!watch)
		return;
	for (size_t i = 0; i < watch->seen.capacity; i++)
		free(watch->seen.entries[i].value);
	map_free(&watch->seen);
	free(watch);
}

static bool look_at(struct gpu_watch *watch, const struct node_record *node,
                    const struct gpu_record *gpu)
{
	struct seen *seen = map_get(&watch->seen, gpu->id);
	uint64_t digest =
	    gpu_view_digest(service_catalogue(watch->service), watch->service->agents, node, gpu);
	struct agents_sample sample = { 0 };

	if (!seen) {
		seen = NEW(struct seen);
		seen->gpu_id = gpu->id;
		map_put(&watch->seen, gpu->id, seen);
	}
	agents_sample(watch->service->agents, gpu->uuid, &sample);
	seen->differs = seen->digest != digest;
	seen->measured = seen->sampled_ms != sample.sampled_ms;
	seen->digest = digest;
	seen->sampled_ms = sample.sampled_ms;
	return seen->differs || seen->measured;
}

bool gpu_watch_look(struct gpu_watch *watch)
{
	struct catalogue *catalogue = service_catalogue(watch->service);
	struct catalogue_cursor cursor = { .kind = RECORD_NODE };
	const struct node_record *node;
	const struct gpu_record *const *gpus;
	bool found = false;

	catalogue_lock(catalogue);
	for (int64_t done = 0; (node = catalogue_next(catalogue, &cursor)) != NULL; done++) {
		size_t count = catalogue_node_gpus(catalogue, node->id, &gpus);
		for (size_t i = 0; i < count; i++)
			found |= look_at(watch, node, gpus[i]);
		service_breathe(watch->service, done);
	}
	catalogue_unlock(catalogue);
	return found;
}

static void write_books(const struct gpu_watch *watch, struct json_writer *json,
                        const struct identity *identity)
{
	struct catalogue *catalogue = service_catalogue(watch->service);
	struct catalogue_cursor cursor = { .kind = RECORD_NODE };
	struct gpu_view view = { watch->service, identity, true };
	const struct node_record *node;
	const struct gpu_record *const *gpus;

	json_open_array(json, "gpus");
	for (int64_t done = 0; (node = catalogue_next(catalogue, &cursor)) != NULL; done++) {
		size_t count = catalogue_node_gpus(catalogue, node->id, &gpus);
		for (size_t i = 0; i < count; i++) {
			const struct seen *seen = map_get(&watch->seen, gpus[i]->id);
			if (seen && seen->differs)
				gpu_view_write(json, &view, node, gpus[i]);
		}
		service_breathe(watch->service, done);
	}
	json_close(json);
}

static void write_sample(struct json_writer *json, const char *uuid,
                         const struct agents_sample *sample)
{
	json_open_array(json, uuid);
	json_put_integer(json, NULL, sample->temperature_c);
	json_put_integer(json, NULL, sample->power_mw / 1000);
	json_put_decimal(json, NULL, sample->utilisation, 3);
	json_put_integer(json, NULL, sample->used_mib);
	json_close(json);
}

static void write_samples(const struct gpu_watch *watch, struct json_writer *json)
{
	const struct catalogue *catalogue = service_catalogue(watch->service);
	struct agents_sample sample;

	json_open_object(json, "samples");
	for (size_t i = 0; i < watch->seen.capacity; i++) {
		const struct seen *seen = watch->seen.entries[i].value;
		const struct gpu_record *gpu =
		    seen && seen->measured ? catalogue_get(catalogue, RECORD_GPU, seen->gpu_id, 0)
					   : NULL;
		if (gpu && agents_sample(watch->service->agents, gpu->uuid, &sample))
			write_sample(json, gpu->uuid, &sample);
	}
	json_close(json);
}

void gpu_watch_write(const struct gpu_watch *watch, struct json_writer *json,
                     const struct identity *identity)
{
	struct catalogue *catalogue = service_catalogue(watch->service);
	catalogue_lock(catalogue);
	write_books(watch, json, identity);
	write_samples(watch, json);
	catalogue_unlock(catalogue);
}
