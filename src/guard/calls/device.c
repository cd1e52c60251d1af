/* device.c - from the driver's numbers of devices to the GPUs of the segment */
#include "guard/calls/device.h"

#include <stdatomic.h>

#include "guard/budget/budget.h"
#include "guard/calls/entry.h"
#include "guard/calls/state.h"

enum { DEVICES_MAX = 128 };

/* The GPU of each device, plus one; 0: not asked yet. */
static _Atomic(int) gpus[DEVICES_MAX];

static int find_gpu(CUdevice device)
{
	CUuuid uuid;
	/* The second version tells the instances of one GPU apart. */
	CUresult result = CALL(cuDeviceGetUuid_v2, &uuid, device);
	if (result == CUDA_ERROR_NOT_SUPPORTED)
		result = CALL(cuDeviceGetUuid, &uuid, device);
	if (result != CUDA_SUCCESS)
		return DEVICE_UNKNOWN;
	const struct member *member = state_member();
	int gpu = member != NULL ? budget_gpu(member, uuid.bytes) : -1;
	return gpu >= 0 ? gpu : DEVICE_REFUSED;
}

int device_gpu(CUdevice device)
{
	if (!state_active() || device < 0 || device >= DEVICES_MAX)
		return DEVICE_UNKNOWN;
	int known = atomic_load_explicit(&gpus[device], memory_order_relaxed);
	if (known > 0)
		return known - 1;
	int gpu = find_gpu(device);
	if (gpu >= 0)
		atomic_store_explicit(&gpus[device], gpu + 1, memory_order_relaxed);
	return gpu;
}

int device_current(uint64_t *context)
{
	*context = 0;
	CUdevice device;
	if (!state_active() || CALL(cuCtxGetDevice, &device) != CUDA_SUCCESS)
		return DEVICE_UNKNOWN;
	CUcontext current = NULL;
	if (CALL(cuCtxGetCurrent, &current) == CUDA_SUCCESS)
		*context = (uint64_t)(uintptr_t)current;
	return device_gpu(device);
}

CUdevice device_of_stream(CUstream stream)
{
	CUdevice device = -1;
	CUcontext current = NULL;
	CUcontext context = NULL;
	/* The values up to 2 are the default streams of whatever context is current. */
	bool elsewhere = (uintptr_t)stream > 2 &&
	                 CALL(cuStreamGetCtx, stream, &context) == CUDA_SUCCESS &&
	                 CALL(cuCtxGetCurrent, &current) == CUDA_SUCCESS && context != current;
	if (elsewhere && CALL(cuCtxPushCurrent_v2, context) != CUDA_SUCCESS)
		return -1;
	if (CALL(cuCtxGetDevice, &device) != CUDA_SUCCESS)
		device = -1;
	if (elsewhere)
		(void)CALL(cuCtxPopCurrent_v2, &context);
	return device;
}

void device_reset(void)
{
	for (int device = 0; device < DEVICES_MAX; device++)
		atomic_store_explicit(&gpus[device], 0, memory_order_relaxed);
}
