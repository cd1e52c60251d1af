/* nvml.c - GPUs as NVIDIA's library tells of them: what is measured */
#include "agent/gpu/nvml.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/number.h"

#define PROCESSES_MAX 4096
#define MIB (1ULL << 20)
#define INVENTORY_READS 30 /* GPUs do not come and go often; instances may */

bool nvml_is_fatal(unsigned long long xid)
{
	static const unsigned long long fatal[] = { 46, 48, 54, 56,  57,  58,  61,  62,  64,
		                                    74, 79, 95, 110, 119, 120, 136, 140, 143 };

	for (size_t i = 0; i < sizeof(fatal) / sizeof(*fatal); i++)
		if (xid == fatal[i])
			return true;
	return false;
}

/* Asks without waiting. */
static void take_events(struct nvml_source *nvml)
{
	struct nvml_event event = { 0 };
	char uuid[NVML_TEXT_MAX];

	while (nvml->events && nvml->api.events_wait(nvml->events, &event, 0) == NVML_SUCCESS) {
		if (event.kind != NVML_EVENT_XID ||
		    nvml->api.uuid(event.device, uuid, sizeof(uuid)) != NVML_SUCCESS)
			continue;
		log_at(LOG_WARNING, "a GPU tells of an error", LOG_TEXT("gpu", uuid),
		       LOG_NUMBER("xid", (int64_t)event.data));
		for (size_t i = 0; i < nvml->count && nvml_is_fatal(event.data); i++)
			if (strcmp(nvml->gpus[i].uuid, uuid) == 0 ||
			    strcmp(nvml->gpus[i].parent, uuid) == 0)
				nvml->gpus[i].xid = event.data;
	}
}

static int64_t mib_up(unsigned long long bytes)
{
	return (int64_t)((bytes + MIB - 1) / MIB);
}

static bool read_memory(struct nvml_source *nvml, const struct nvml_gpu *gpu,
                        struct gpu_reading *reading)
{
	struct nvml_memory_v2 memory = { .version = NVML_MEMORY_VERSION_2 };
	struct nvml_memory old = { 0 };

	if (nvml->api.memory_v2 && nvml->api.memory_v2(gpu->device, &memory) == NVML_SUCCESS) {
		reading->capacity_mib = (int64_t)(memory.total / MIB);
		reading->overhead_mib = mib_up(memory.reserved);
		reading->used_mib = mib_up(memory.used);
		return true;
	}
	/* Here what the driver needs for itself is in what is used. */
	if (nvml->api.memory(gpu->device, &old) != NVML_SUCCESS)
		return false;
	reading->capacity_mib = (int64_t)(old.total / MIB);
	reading->used_mib = mib_up(old.used);
	return true;
}

/* Thousandths. What an instance does is not told: where it has processes, it does something. */
static int64_t read_utilisation(struct nvml_source *nvml, const struct nvml_gpu *gpu,
                                unsigned process_count)
{
	struct nvml_utilisation utilisation = { 0 };

	if (nvml->api.utilisation &&
	    nvml->api.utilisation(gpu->device, &utilisation) == NVML_SUCCESS)
		return (int64_t)utilisation.gpu * 10;
	return process_count > 0;
}

/* Why it is not to be used; NULL: nothing speaks against it. */
static const char *read_fault(struct nvml_source *nvml, const struct nvml_gpu *gpu,
                              struct arena *arena)
{
	unsigned long long errors = 0;
	struct buffer text = { 0 };

	if (gpu->xid != 0)
		buffer_print(&text, "the driver told of Xid %llu", gpu->xid);
	else if (nvml->api.ecc_errors &&
	         nvml->api.ecc_errors(gpu->device, NVML_UNCORRECTED, NVML_VOLATILE_ECC, &errors) ==
	             NVML_SUCCESS &&
	         errors > 0)
		buffer_print(&text, "%llu errors of its memory could not be corrected", errors);
	const char *fault = text.size > 0 ? arena_string(arena, text.data) : NULL;
	buffer_free(&text);
	return fault;
}

static void read_sensors(struct nvml_source *nvml, const struct nvml_gpu *gpu,
                         struct gpu_reading *reading)
{
	unsigned long long reasons = 0;
	unsigned value = 0;

	if (nvml->api.temperature &&
	    nvml->api.temperature(gpu->device, NVML_TEMPERATURE_GPU, &value) == NVML_SUCCESS)
		reading->temperature_c = (int64_t)value;
	if (nvml->api.power && nvml->api.power(gpu->device, &value) == NVML_SUCCESS)
		reading->power_mw = (int64_t)value;
	/* A GPU that slows itself down is hot, whatever the sensor says. */
	if (nvml->api.slowdown && nvml->api.slowdown(gpu->device, &reasons) == NVML_SUCCESS &&
	    (reasons & (NVML_SLOWDOWN_HARDWARE_THERMAL | NVML_SLOWDOWN_SOFTWARE_THERMAL)))
		reading->temperature_c =
		    max64(reading->temperature_c, max64(NVML_SLOWED_DOWN_C, gpu->slowdown_c));
}

typedef int (*list_processes)(nvml_device, unsigned *, struct nvml_process *);

static unsigned nvml_read_list(struct nvml_source *nvml, const struct nvml_gpu *gpu,
                               list_processes list, struct gpu_readings *readings)
{
	unsigned count = PROCESSES_MAX;

	if (!list || list(gpu->device, &count, nvml->processes) != NVML_SUCCESS)
		return 0;
	for (unsigned i = 0; i < count; i++) {
		const struct nvml_process *process = &nvml->processes[i];
		struct process_reading *reading = gpu_readings_add_process(readings);
		reading->uuid = arena_string(&readings->arena, gpu->uuid);
		reading->pid = process->pid;
		if (process->used_bytes != (unsigned long long)NVML_VALUE_NOT_AVAILABLE)
			reading->memory_mib = mib_up(process->used_bytes);
	}
	return count;
}

/* Drivers before 2021 know no other. */
static unsigned read_old_list(struct nvml_source *nvml, const struct nvml_gpu *gpu,
                              struct gpu_readings *readings)
{
	struct nvml_process_v1 *old = (struct nvml_process_v1 *)(void *)nvml->processes;
	unsigned count = PROCESSES_MAX;

	if (nvml->api.compute_processes || !nvml->api.compute_processes_v1 ||
	    nvml->api.compute_processes_v1(gpu->device, &count, old) != NVML_SUCCESS)
		return 0;
	for (unsigned i = 0; i < count; i++) {
		struct process_reading *reading = gpu_readings_add_process(readings);
		reading->uuid = arena_string(&readings->arena, gpu->uuid);
		reading->pid = old[i].pid;
		if (old[i].used_bytes != (unsigned long long)NVML_VALUE_NOT_AVAILABLE)
			reading->memory_mib = mib_up(old[i].used_bytes);
	}
	return count;
}

static void read_gpu(struct nvml_source *nvml, const struct nvml_gpu *gpu,
                     struct gpu_readings *readings)
{
	struct gpu_reading reading = { .place = gpu->place,
		                       .replicas = nvml->replicas,
		                       .nvlink_group = gpu->nvlink_group,
		                       .slowdown_c = gpu->slowdown_c,
		                       .mig_mode = gpu->mig_mode };

	/* One that does not answer is not there. */
	if (!read_memory(nvml, gpu, &reading))
		return;
	unsigned count = nvml_read_list(nvml, gpu, nvml->api.compute_processes, readings) +
	                 read_old_list(nvml, gpu, readings);
	if (!gpu->parent[0])
		count += nvml_read_list(nvml, gpu, nvml->api.graphics_processes, readings);
	reading.uuid = arena_string(&readings->arena, gpu->uuid);
	reading.model = arena_string(&readings->arena, gpu->model);
	reading.mig_parent = arena_string(&readings->arena, gpu->parent);
	read_sensors(nvml, gpu, &reading);
	reading.utilisation = read_utilisation(nvml, gpu, count);
	reading.reason = read_fault(nvml, gpu, &readings->arena);
	reading.healthy = !reading.reason;
	*gpu_readings_add(readings) = reading;
}

static bool nvml_read(struct gpu_source *source, int64_t now_ms, const struct gpu_user *users,
                      size_t user_count, struct gpu_readings *readings, struct error *error)
{
	struct nvml_source *nvml = (struct nvml_source *)source;

	(void)now_ms, (void)users, (void)user_count;
	gpu_readings_clear(readings);
	if (nvml->reads++ % INVENTORY_READS == 0 && !nvml_inventory(nvml, error))
		return false;
	take_events(nvml);
	for (size_t i = 0; i < nvml->count; i++)
		read_gpu(nvml, &nvml->gpus[i], readings);
	return true;
}

static void nvml_close(struct gpu_source *source)
{
	struct nvml_source *nvml = (struct nvml_source *)source;

	if (nvml->events)
		nvml->api.events_free(nvml->events);
	nvml_api_close(&nvml->api);
	pthread_mutex_destroy(&nvml->lock);
	free(nvml->gpus);
	free(nvml->processes);
	free(nvml);
}

struct gpu_source *nvml_open(const char *path, int64_t replicas, struct error *error)
{
	static const struct gpu_source_kind kind = { "nvml", nvml_read, nvml_devices, nvml_close,
		                                     true };
	struct nvml_source *nvml = NEW(struct nvml_source);
	char version[NVML_TEXT_MAX] = "";

	nvml->source.kind = &kind;
	nvml->replicas = replicas;
	if (!nvml_api_open(&nvml->api, path, error)) {
		free(nvml);
		return NULL;
	}
	pthread_mutex_init(&nvml->lock, NULL);
	nvml->processes = memory_zero(PROCESSES_MAX, sizeof(*nvml->processes));
	if (nvml->api.driver_version)
		nvml->api.driver_version(version, sizeof(version));
	if (!nvml_inventory(nvml, error)) {
		nvml_close(&nvml->source);
		return NULL;
	}
	log_at(LOG_INFO, "NVIDIA's driver answers", LOG_TEXT("driver", version),
	       LOG_NUMBER("gpus", (int64_t)nvml->count));
	return &nvml->source;
}
