/* nvml.c - the stand-in's NVML: what is on the GPUs of the stand-in driver */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "standin.h"

struct nvmlDevice_st {
	int gpu;
};

static struct nvmlDevice_st devices[STANDIN_GPUS_MAX] = { { 0 }, { 1 }, { 2 }, { 3 } };

/* What this process uses, as the stand-in driver says if it is there. */
static int64_t used_bytes(int gpu)
{
	int64_t (*used)(int) = NULL;
	void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	if (driver != NULL)
		*(void **)&used = dlsym(driver, "standin_shown");
	return used != NULL ? used(gpu) : 0;
}

nvmlReturn_t nvmlInit_v2(void)
{
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
	if (index >= 2)
		return NVML_ERROR_INVALID_ARGUMENT;
	*device = &devices[index];
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
	snprintf(uuid, length, "GPU-57000000-0000-0000-0000-00000000000%d", device->gpu);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
	for (int gpu = 0; gpu < STANDIN_GPUS_MAX; gpu++) {
		char text[96];
		nvmlDeviceGetUUID(&devices[gpu], text, sizeof text);
		if (strcmp(text, uuid) == 0) {
			*device = &devices[gpu];
			return NVML_SUCCESS;
		}
	}
	return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
                                                     nvmlProcessInfo_t *processes)
{
	if (*count < 2) {
		*count = 2;
		return NVML_ERROR_INSUFFICIENT_SIZE;
	}
	*count = 2;
	processes[0] = (nvmlProcessInfo_t){ .pid = 1, .usedGpuMemory = UINT64_C(1) << 40 };
	processes[1] =
	    (nvmlProcessInfo_t){ .pid = (unsigned int)getpid(),
		                 .usedGpuMemory = (unsigned long long)used_bytes(device->gpu) };
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
	memory->total = UINT64_C(16) << 30;
	memory->used = (unsigned long long)used_bytes(device->gpu);
	memory->free = memory->total - memory->used;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
	memory->total = UINT64_C(16) << 30;
	memory->reserved = UINT64_C(500) << 20;
	memory->used = (unsigned long long)used_bytes(device->gpu);
	memory->free = memory->total - memory->used - memory->reserved;
	return NVML_SUCCESS;
}
