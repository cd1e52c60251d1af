/* context.c - contexts: what they take, and that allocations end with them */
#include "guard/calls/context.h"

#include <stdatomic.h>

#include "guard/budget/budget.h"
#include "guard/calls/charge.h"
#include "guard/calls/device.h"
#include "guard/calls/entry.h"
#include "guard/calls/overhead.h"
#include "guard/calls/pool.h"
#include "guard/calls/state.h"

enum { DEVICES_MAX = 128 };

/* The primary context of each device, as far as this process has it. */
static _Atomic(uint64_t) primary[DEVICES_MAX];

/* What was allocated in a context ends with it. */
static void forget_context(uint64_t context)
{
	struct track_item item;
	size_t from = 0;
	while (context != 0 && track_remove_of_context(context, &from, &item))
		charge_give(&item);
	pool_synchronized();
}

/* The driver made no context. If the GPU had no memory left, that is counted. */
static void context_failed(CUdevice device, CUresult result)
{
	const struct member *member = state_member();
	int gpu = result == CUDA_ERROR_OUT_OF_MEMORY ? device_gpu(device) : DEVICE_UNKNOWN;
	overhead_context_failed(device);
	if (gpu >= 0 && member != NULL)
		budget_fail(member, gpu, segment_get(&member->segment->gpus[gpu].context_bytes));
}

/* Around the driver's functions that make a context. */
#define MAKE_CONTEXT(symbol, ...)                                                                  \
	if (!overhead_expect(device))                                                              \
		return CUDA_ERROR_OUT_OF_MEMORY;                                                   \
	CUresult result = CALL(symbol, __VA_ARGS__);                                               \
	if (result == CUDA_SUCCESS)                                                                \
		overhead_context_made(device);                                                     \
	else                                                                                       \
		context_failed(device, result);                                                    \
	return result

CUresult cuCtxCreate(CUcontext *context, unsigned int flags, CUdevice device)
{
	MAKE_CONTEXT(cuCtxCreate, context, flags, device);
}

CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device)
{
	MAKE_CONTEXT(cuCtxCreate_v2, context, flags, device);
}

CUresult cuCtxCreate_v3(CUcontext *context, void *affinities, int count, unsigned int flags,
                        CUdevice device)
{
	MAKE_CONTEXT(cuCtxCreate_v3, context, affinities, count, flags, device);
}

CUresult cuCtxCreate_v4(CUcontext *context, void *parameters, unsigned int flags, CUdevice device)
{
	MAKE_CONTEXT(cuCtxCreate_v4, context, parameters, flags, device);
}

/* The device of a context, which has to be asked while it is there. */
static CUdevice context_device_of(CUcontext context)
{
	CUdevice device = -1;
	if (!state_active() || CALL(cuCtxPushCurrent_v2, context) != CUDA_SUCCESS)
		return -1;
	if (CALL(cuCtxGetDevice, &device) != CUDA_SUCCESS)
		device = -1;
	(void)CALL(cuCtxPopCurrent_v2, &context);
	return device;
}

static void destroyed(CUcontext context, CUdevice device)
{
	if (device < 0)
		return;
	forget_context((uint64_t)(uintptr_t)context);
	overhead_context_ended(device);
}

CUresult cuCtxDestroy(CUcontext context)
{
	CUdevice device = context_device_of(context);
	CUresult result = CALL(cuCtxDestroy, context);
	if (result == CUDA_SUCCESS)
		destroyed(context, device);
	return result;
}

CUresult cuCtxDestroy_v2(CUcontext context)
{
	CUdevice device = context_device_of(context);
	CUresult result = CALL(cuCtxDestroy_v2, context);
	if (result == CUDA_SUCCESS)
		destroyed(context, device);
	return result;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
	bool guarded = state_active() && device >= 0 && device < DEVICES_MAX;
	bool first = guarded && atomic_load(&primary[device]) == 0;
	if (first && !overhead_expect(device))
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = CALL(cuDevicePrimaryCtxRetain, context, device);
	uint64_t none = 0;
	if (result == CUDA_SUCCESS && guarded &&
	    atomic_compare_exchange_strong(&primary[device], &none, (uint64_t)(uintptr_t)*context))
		overhead_context_made(device);
	else if (first)
		context_failed(device, result);
	return result;
}

/* After a primary context was released or reset. */
static void primary_released(CUdevice device, bool reset)
{
	if (!state_active() || device < 0 || device >= DEVICES_MAX)
		return;
	unsigned int flags;
	int active = 0;
	bool asked = CALL(cuDevicePrimaryCtxGetState, device, &flags, &active) == CUDA_SUCCESS;
	if (!reset && (!asked || active))
		return;
	uint64_t context = atomic_exchange(&primary[device], 0);
	if (context != 0) {
		forget_context(context);
		overhead_context_ended(device);
	}
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
	CUresult result = CALL(cuDevicePrimaryCtxRelease, device);
	if (result == CUDA_SUCCESS)
		primary_released(device, false);
	return result;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	CUresult result = CALL(cuDevicePrimaryCtxRelease_v2, device);
	if (result == CUDA_SUCCESS)
		primary_released(device, false);
	return result;
}

CUresult cuDevicePrimaryCtxReset(CUdevice device)
{
	CUresult result = CALL(cuDevicePrimaryCtxReset, device);
	if (result == CUDA_SUCCESS)
		primary_released(device, true);
	return result;
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
	CUresult result = CALL(cuDevicePrimaryCtxReset_v2, device);
	if (result == CUDA_SUCCESS)
		primary_released(device, true);
	return result;
}

void context_reset(void)
{
	for (int device = 0; device < DEVICES_MAX; device++)
		atomic_store(&primary[device], 0);
}
