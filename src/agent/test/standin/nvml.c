/* nvml.c - an NVML of our own for tests without a GPU: what a file says
 *
 * The file that NVML_STANDIN names is read again for every query. Its lines:
 *	gpu UUID MIB POWER_MW BUSY_PERCENT [TEMPERATURE_C SLOWDOWN_C]
 *	mig PARENT_UUID UUID MIB
 *	process UUID PID MIB */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/gpu/nvml_api.h"

enum { DEVICES_MAX = 16, NOT_FOUND = 6 };

/* A handle is the place of a UUID here; they are never forgotten. */
struct nvmlDevice_st {
	char uuid[NVML_TEXT_MAX];
};
static struct nvmlDevice_st known[DEVICES_MAX];

struct line {
	char kind[16], first[NVML_TEXT_MAX], second[NVML_TEXT_MAX];
	unsigned numbers[5];
};

static FILE *begin(void)
{
	const char *path = getenv("NVML_STANDIN");
	return path != NULL ? fopen(path, "r") : NULL;
}

static bool next(FILE *file, struct line *line)
{
	char text[512];
	*line = (struct line){ 0 };
	if (file == NULL || fgets(text, sizeof text, file) == NULL)
		return false;
	sscanf(text, "%15s %95s", line->kind, line->first);
	if (strcmp(line->kind, "mig") == 0)
		sscanf(text, "%*s %*s %95s %u", line->second, &line->numbers[0]);
	else
		sscanf(text, "%*s %*s %u %u %u %u %u", &line->numbers[0], &line->numbers[1],
		       &line->numbers[2], &line->numbers[3], &line->numbers[4]);
	return true;
}

static void nvml_end(FILE *file)
{
	if (file != NULL)
		fclose(file);
}

static nvml_device device_of(const char *uuid)
{
	int at = 0;
	while (at < DEVICES_MAX - 1 && known[at].uuid[0] != '\0' &&
	       strcmp(known[at].uuid, uuid) != 0)
		at++;
	snprintf(known[at].uuid, sizeof known[at].uuid, "%s", uuid);
	return &known[at];
}

/* The line of the GPU or instance; false where there is none. */
static bool nvml_find(nvml_device device, struct line *line)
{
	FILE *file = begin();
	bool found = false;
	while (!found && next(file, line))
		found =
		    (strcmp(line->kind, "gpu") == 0 && strcmp(line->first, device->uuid) == 0) ||
		    (strcmp(line->kind, "mig") == 0 && strcmp(line->second, device->uuid) == 0);
	nvml_end(file);
	return found;
}

/* The so-many-th GPU, or (of a parent) instance. */
static int find_at(unsigned index, nvml_device parent, nvml_device *device)
{
	FILE *file = begin();
	struct line line;
	int result = NOT_FOUND;
	while (result != NVML_SUCCESS && next(file, &line)) {
		bool fits = parent == NULL ? strcmp(line.kind, "gpu") == 0
		                           : strcmp(line.kind, "mig") == 0 &&
		                                 strcmp(line.first, parent->uuid) == 0;
		if (!fits || index-- > 0)
			continue;
		*device = device_of(parent == NULL ? line.first : line.second);
		result = NVML_SUCCESS;
	}
	nvml_end(file);
	return result;
}

static unsigned instance_count(nvml_device device)
{
	unsigned count = 0;
	nvml_device instance;
	while (find_at(count, device, &instance) == NVML_SUCCESS)
		count++;
	return count;
}

#pragma GCC visibility push(default)

int nvmlInit_v2(void);
int nvmlInit_v2(void)
{
	return NVML_SUCCESS;
}

int nvmlShutdown(void);
int nvmlShutdown(void)
{
	return NVML_SUCCESS;
}

const char *nvmlErrorString(int code);
const char *nvmlErrorString(int code)
{
	return code == NVML_SUCCESS ? "Success" : "Not Found";
}

int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetCount_v2(unsigned *count)
{
	nvml_device device;
	for (*count = 0; find_at(*count, NULL, &device) == NVML_SUCCESS; ++*count)
		;
	return NVML_SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, nvml_device *device);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, nvml_device *device)
{
	return find_at(index, NULL, device);
}

int nvmlDeviceGetUUID(nvml_device device, char *uuid, unsigned size);
int nvmlDeviceGetUUID(nvml_device device, char *uuid, unsigned size)
{
	snprintf(uuid, size, "%s", device->uuid);
	return NVML_SUCCESS;
}

int nvmlDeviceGetName(nvml_device device, char *name, unsigned size);
int nvmlDeviceGetName(nvml_device device, char *name, unsigned size)
{
	(void)device;
	snprintf(name, size, "Stand-in");
	return NVML_SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses_v3(nvml_device device, unsigned *count,
                                            struct nvml_process *processes);
int nvmlDeviceGetComputeRunningProcesses_v3(nvml_device device, unsigned *count,
                                            struct nvml_process *processes)
{
	FILE *file = begin();
	struct line line;
	unsigned most = *count;
	*count = 0;
	while (*count < most && next(file, &line))
		if (strcmp(line.kind, "process") == 0 && strcmp(line.first, device->uuid) == 0)
			processes[(*count)++] = (struct nvml_process){
				.pid = line.numbers[0],
				.used_bytes = (unsigned long long)line.numbers[1] << 20,
			};
	nvml_end(file);
	return NVML_SUCCESS;
}

int nvmlDeviceGetMemoryInfo(nvml_device device, struct nvml_memory *memory);
int nvmlDeviceGetMemoryInfo(nvml_device device, struct nvml_memory *memory)
{
	struct line line;
	struct nvml_process processes[64];
	unsigned count = 64;
	if (!nvml_find(device, &line))
		return NOT_FOUND;
	*memory = (struct nvml_memory){ .total = (unsigned long long)line.numbers[0] << 20 };
	nvmlDeviceGetComputeRunningProcesses_v3(device, &count, processes);
	for (unsigned i = 0; i < count; i++)
		memory->used += processes[i].used_bytes;
	memory->free = memory->total - memory->used;
	return NVML_SUCCESS;
}

int nvmlDeviceGetPowerUsage(nvml_device device, unsigned *power_mw);
int nvmlDeviceGetPowerUsage(nvml_device device, unsigned *power_mw)
{
	struct line line;
	if (!nvml_find(device, &line) || strcmp(line.kind, "gpu") != 0)
		return NVML_ERROR_NOT_SUPPORTED;
	*power_mw = line.numbers[1];
	return NVML_SUCCESS;
}

int nvmlDeviceGetUtilizationRates(nvml_device device, struct nvml_utilisation *utilisation);
int nvmlDeviceGetUtilizationRates(nvml_device device, struct nvml_utilisation *utilisation)
{
	struct line line;
	if (!nvml_find(device, &line) || strcmp(line.kind, "gpu") != 0)
		return NVML_ERROR_NOT_SUPPORTED;
	utilisation->gpu = line.numbers[2];
	return NVML_SUCCESS;
}

static int temperature(nvml_device device, int which, unsigned *degrees)
{
	struct line line;
	if (!nvml_find(device, &line) || strcmp(line.kind, "gpu") != 0 || line.numbers[which] == 0)
		return NVML_ERROR_NOT_SUPPORTED;
	*degrees = line.numbers[which];
	return NVML_SUCCESS;
}

int nvmlDeviceGetTemperature(nvml_device device, int sensor, unsigned *degrees);
int nvmlDeviceGetTemperature(nvml_device device, int sensor, unsigned *degrees)
{
	(void)sensor;
	return temperature(device, 3, degrees);
}

int nvmlDeviceGetTemperatureThreshold(nvml_device device, int which, unsigned *degrees);
int nvmlDeviceGetTemperatureThreshold(nvml_device device, int which, unsigned *degrees)
{
	return which == NVML_TEMPERATURE_SLOWDOWN ? temperature(device, 4, degrees)
	                                          : NVML_ERROR_NOT_SUPPORTED;
}

int nvmlDeviceGetMigMode(nvml_device device, unsigned *mode, unsigned *pending);
int nvmlDeviceGetMigMode(nvml_device device, unsigned *mode, unsigned *pending)
{
	*mode = *pending = instance_count(device) > 0;
	return NVML_SUCCESS;
}

int nvmlDeviceGetMaxMigDeviceCount(nvml_device device, unsigned *count);
int nvmlDeviceGetMaxMigDeviceCount(nvml_device device, unsigned *count)
{
	*count = instance_count(device);
	return NVML_SUCCESS;
}

int nvmlDeviceGetMigDeviceHandleByIndex(nvml_device device, unsigned index, nvml_device *instance);
int nvmlDeviceGetMigDeviceHandleByIndex(nvml_device device, unsigned index, nvml_device *instance)
{
	return find_at(index, device, instance);
}
#pragma GCC visibility pop
