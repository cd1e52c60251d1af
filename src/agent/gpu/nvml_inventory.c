/* nvml_inventory.c - which GPUs there are, what is an instance of which, what connects them */
#include <stdlib.h>
#include <string.h>

#include "agent/gpu/nvml.h"
#include "core/record/heat.h"

#define DEVICES_MAX 512

struct inventory {
	struct nvml_source *nvml;
	struct nvml_gpu *gpus;
	size_t count;
};

static struct nvml_gpu *nvml_inventory_add(struct inventory *inventory, nvml_device device)
{
	const struct nvml_api *api = &inventory->nvml->api;
	struct nvml_gpu *gpu = &inventory->gpus[inventory->count];

	*gpu = (struct nvml_gpu){ .device = device, .minor = -1 };
	if (inventory->count == DEVICES_MAX ||
	    api->uuid(device, gpu->uuid, sizeof(gpu->uuid)) != NVML_SUCCESS)
		return NULL;
	if (api->name(device, gpu->model, sizeof(gpu->model)) != NVML_SUCCESS)
		gpu->model[0] = '\0';
	gpu->place = (int64_t)inventory->count++;
	return gpu;
}

static void add_instances(struct inventory *inventory, const struct nvml_gpu *parent)
{
	const struct nvml_api *api = &inventory->nvml->api;
	unsigned most = 0;
	nvml_device device;

	if (!api->mig_count || !api->mig_by_index ||
	    api->mig_count(parent->device, &most) != NVML_SUCCESS)
		return;
	for (unsigned i = 0; i < most; i++) {
		if (api->mig_by_index(parent->device, i, &device) != NVML_SUCCESS)
			continue;
		struct nvml_gpu *gpu = nvml_inventory_add(inventory, device);
		if (!gpu)
			continue;
		memcpy(gpu->parent, parent->uuid, sizeof(gpu->parent));
		gpu->minor = parent->minor;
		gpu->slowdown_c = parent->slowdown_c;
		if (api->gpu_instance)
			api->gpu_instance(device, &gpu->gpu_instance);
		if (api->compute_instance)
			api->compute_instance(device, &gpu->compute_instance);
	}
}

static void nvml_inventory_add_gpu(struct inventory *inventory, nvml_device device)
{
	const struct nvml_api *api = &inventory->nvml->api;
	struct nvml_gpu *gpu = nvml_inventory_add(inventory, device);
	unsigned minor = 0, mode = 0, pending = 0, slowdown_c = 0;
	struct nvml_pci pci = { 0 };

	if (!gpu)
		return;
	if (api->minor && api->minor(device, &minor) == NVML_SUCCESS)
		gpu->minor = (int64_t)minor;
	if (api->temperature_threshold &&
	    api->temperature_threshold(device, NVML_TEMPERATURE_SLOWDOWN, &slowdown_c) ==
	        NVML_SUCCESS &&
	    slowdown_c <= HEAT_MOST_C)
		gpu->slowdown_c = (int64_t)slowdown_c;
	if (api->pci && api->pci(device, &pci) == NVML_SUCCESS)
		memcpy(gpu->bus_id, pci.bus_id, sizeof(gpu->bus_id));
	gpu->mig_mode = api->mig_mode && api->mig_mode(device, &mode, &pending) == NVML_SUCCESS &&
	                mode == NVML_FEATURE_ENABLED;
	if (gpu->mig_mode)
		add_instances(inventory, gpu);
}

static struct nvml_gpu *at_bus(struct inventory *inventory, const char *bus_id)
{
	for (size_t i = 0; i < inventory->count; i++)
		if (!inventory->gpus[i].parent[0] && strcmp(inventory->gpus[i].bus_id, bus_id) == 0)
			return &inventory->gpus[i];
	return NULL;
}

static void nvml_inventory_join(struct inventory *inventory, int64_t from, int64_t to)
{
	for (size_t i = 0; i < inventory->count; i++)
		if (inventory->gpus[i].nvlink_group == from)
			inventory->gpus[i].nvlink_group = to;
}

/* Links to other GPUs make a group of both; all that are linked to a switch are one group. */
static void follow_links(struct inventory *inventory, struct nvml_gpu *gpu, int64_t *switched)
{
	const struct nvml_api *api = &inventory->nvml->api;

	for (unsigned link = 0; link < NVML_LINKS_MAX; link++) {
		struct nvml_pci remote = { 0 };
		int state = 0;
		if (api->link_state(gpu->device, link, &state) != NVML_SUCCESS ||
		    state != NVML_FEATURE_ENABLED ||
		    api->link_remote(gpu->device, link, &remote) != NVML_SUCCESS)
			continue;
		if (gpu->nvlink_group == 0)
			gpu->nvlink_group = gpu->place + 1;
		struct nvml_gpu *other = at_bus(inventory, remote.bus_id);
		if (other && other->nvlink_group == 0)
			other->nvlink_group = gpu->nvlink_group;
		else if (other)
			nvml_inventory_join(inventory, other->nvlink_group, gpu->nvlink_group);
		else if (*switched == 0)
			*switched = gpu->nvlink_group;
		else
			nvml_inventory_join(inventory, gpu->nvlink_group, *switched);
	}
}

static void find_groups(struct inventory *inventory)
{
	int64_t switched = 0;

	if (!inventory->nvml->api.link_state || !inventory->nvml->api.link_remote)
		return;
	for (size_t i = 0; i < inventory->count; i++)
		if (!inventory->gpus[i].parent[0] && !inventory->gpus[i].mig_mode)
			follow_links(inventory, &inventory->gpus[i], &switched);
}

/* Fatal errors stay until the driver is restarted. */
static void carry_over(struct inventory *inventory)
{
	const struct nvml_source *nvml = inventory->nvml;

	for (size_t i = 0; i < inventory->count; i++)
		for (size_t j = 0; j < nvml->count; j++)
			if (strcmp(inventory->gpus[i].uuid, nvml->gpus[j].uuid) == 0)
				inventory->gpus[i].xid = nvml->gpus[j].xid;
}

static void listen(struct nvml_source *nvml)
{
	if (nvml->events || !nvml->api.events_new || !nvml->api.events_add ||
	    !nvml->api.events_wait)
		return;
	if (nvml->api.events_new(&nvml->events) != NVML_SUCCESS) {
		nvml->events = NULL;
		return;
	}
	for (size_t i = 0; i < nvml->count; i++)
		if (!nvml->gpus[i].parent[0])
			nvml->api.events_add(nvml->gpus[i].device, NVML_EVENT_XID, nvml->events);
}

bool nvml_inventory(struct nvml_source *nvml, struct error *error)
{
	struct inventory inventory = { nvml, memory_zero(DEVICES_MAX + 1, sizeof(struct nvml_gpu)),
		                       0 };
	unsigned count = 0;
	nvml_device device;
	int code = nvml->api.count(&count);

	if (code != NVML_SUCCESS) {
		free(inventory.gpus);
		return error_set(error, ERROR_UNAVAILABLE,
		                 "NVIDIA's driver does not count its GPUs: %s",
		                 nvml->api.error_text(code));
	}
	for (unsigned i = 0; i < count; i++)
		if (nvml->api.by_index(i, &device) == NVML_SUCCESS)
			nvml_inventory_add_gpu(&inventory, device);
	find_groups(&inventory);
	carry_over(&inventory);
	pthread_mutex_lock(&nvml->lock);
	free(nvml->gpus);
	nvml->gpus = inventory.gpus;
	nvml->count = inventory.count;
	pthread_mutex_unlock(&nvml->lock);
	listen(nvml);
	return true;
}
