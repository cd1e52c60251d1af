/* info.c - questions about memory, answered with the budget */
#include <stddef.h>

#include "guard/budget/budget.h"
#include "guard/budget/uuid.h"
#include "guard/calls/device.h"
#include "guard/calls/entry.h"
#include "guard/calls/state.h"

/* A GPU's memory as the task is to see it. */
struct view {
	uint64_t total_bytes;
	uint64_t free_bytes;
};

/* What the task may still take: a multiple of the driver's pages, so that it can be
 * had in one piece. */
static uint64_t remaining_bytes(const struct segment_gpu *gpu, int64_t limit_bytes)
{
	const int64_t page_bytes = (int64_t)2 << 20;
	int64_t remaining = limit_bytes - segment_get(&gpu->used_bytes);
	if (remaining <= 0)
		return 0;
	return (uint64_t)(remaining < page_bytes ? remaining : remaining / page_bytes * page_bytes);
}

/* Narrows what the driver says. A GPU on which the task has no memory keeps its size,
 * since programs divide by it, and has none free. */
static void narrow(int gpu, struct view *view)
{
	const struct member *member = gpu >= 0 ? state_member() : NULL;
	if (member == NULL)
		return;
	const struct segment_gpu *budget = &member->segment->gpus[gpu];
	int64_t limit_bytes = segment_get(&budget->limit_bytes);
	if (limit_bytes < 0 || limit_bytes == SEGMENT_NO_LIMIT)
		return;
	/* Other processes of the task may have ended. */
	if (segment_process_end(member->segment) > SEGMENT_FIRST_PLACE + 1)
		budget_reap(member);
	uint64_t remaining = remaining_bytes(budget, limit_bytes);
	if (limit_bytes > 0 && (uint64_t)limit_bytes < view->total_bytes)
		view->total_bytes = (uint64_t)limit_bytes;
	if (remaining < view->free_bytes)
		view->free_bytes = remaining;
}

static unsigned int clip(uint64_t bytes)
{
	return bytes > UINT32_MAX ? UINT32_MAX : (unsigned int)bytes;
}

CUresult cuMemGetInfo_v2(size_t *free, size_t *total)
{
	CUresult result = CALL(cuMemGetInfo_v2, free, total);
	uint64_t context;
	if (result != CUDA_SUCCESS || free == NULL || total == NULL)
		return result;
	struct view view = { .total_bytes = *total, .free_bytes = *free };
	narrow(device_current(&context), &view);
	*total = view.total_bytes;
	*free = view.free_bytes;
	return result;
}

CUresult cuMemGetInfo(unsigned int *free, unsigned int *total)
{
	CUresult result = CALL(cuMemGetInfo, free, total);
	uint64_t context;
	if (result != CUDA_SUCCESS || free == NULL || total == NULL)
		return result;
	struct view view = { .total_bytes = *total, .free_bytes = *free };
	narrow(device_current(&context), &view);
	*total = clip(view.total_bytes);
	*free = clip(view.free_bytes);
	return result;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
	CUresult result = CALL(cuDeviceTotalMem_v2, bytes, device);
	if (result != CUDA_SUCCESS || bytes == NULL)
		return result;
	struct view view = { .total_bytes = *bytes };
	narrow(device_gpu(device), &view);
	*bytes = view.total_bytes;
	return result;
}

CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice device)
{
	CUresult result = CALL(cuDeviceTotalMem, bytes, device);
	if (result != CUDA_SUCCESS || bytes == NULL)
		return result;
	struct view view = { .total_bytes = *bytes };
	narrow(device_gpu(device), &view);
	*bytes = clip(view.total_bytes);
	return result;
}

/* NVML shows every GPU of the machine: those that are not the task's stay as they are,
 * and are not listed for having been looked at. */
static int info_gpu_of(nvmlDevice_t device)
{
	char text[96];
	uint8_t uuid[16];
	const struct segment *segment = state_segment();
	if (segment == NULL ||
	    CALL_OR(NVML_ERROR_FUNCTION_NOT_FOUND, nvmlDeviceGetUUID, device, text,
	            (unsigned int)sizeof text) != NVML_SUCCESS ||
	    !uuid_parse(text, uuid))
		return -1;
	int gpu = budget_find_gpu(segment, uuid);
	int64_t others_bytes = segment_get(&segment->others_limit_bytes);
	if (gpu < 0 && others_bytes > 0 && others_bytes < SEGMENT_NO_LIMIT) {
		const struct member *member = state_member();
		gpu = member != NULL ? budget_gpu(member, uuid) : -1;
	}
	int64_t limit_bytes = gpu >= 0 ? segment_get(&segment->gpus[gpu].limit_bytes) : 0;
	return limit_bytes > 0 && limit_bytes < SEGMENT_NO_LIMIT ? gpu : -1;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
	nvmlReturn_t result =
	    CALL_OR(NVML_ERROR_FUNCTION_NOT_FOUND, nvmlDeviceGetMemoryInfo, device, memory);
	int gpu = result == NVML_SUCCESS ? info_gpu_of(device) : -1;
	if (gpu < 0)
		return result;
	struct view view = { .total_bytes = memory->total, .free_bytes = memory->free };
	narrow(gpu, &view);
	memory->total = view.total_bytes;
	memory->free = view.free_bytes;
	memory->used = view.total_bytes - view.free_bytes;
	return result;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
	nvmlReturn_t result =
	    CALL_OR(NVML_ERROR_FUNCTION_NOT_FOUND, nvmlDeviceGetMemoryInfo_v2, device, memory);
	int gpu = result == NVML_SUCCESS ? info_gpu_of(device) : -1;
	if (gpu < 0)
		return result;
	struct view view = { .total_bytes = memory->total, .free_bytes = memory->free };
	narrow(gpu, &view);
	memory->total = view.total_bytes;
	memory->reserved = 0;
	memory->free = view.free_bytes;
	memory->used = view.total_bytes - view.free_bytes;
	return result;
}
