/* pool_calls.c - the driver's functions that take memory from pools and wait for the GPU */
#include "guard/budget/budget.h"
#include "guard/budget/share.h"
#include "guard/calls/charge.h"
#include "guard/calls/device.h"
#include "guard/calls/entry.h"
#include "guard/calls/pool.h"
#include "guard/calls/state.h"

static bool is_capturing(CUstream stream)
{
	int status = 0;
	return CALL(cuStreamIsCapturing, stream, &status) == CUDA_SUCCESS &&
	       status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

/* What a stream allocates while it is being captured is a part of the graph, and
 * taken when that is launched. All that can be said now is that it will never fit. */
static bool capture_begin(CUdevice device, size_t bytes)
{
	struct charge charge;
	if (!charge_begin(&charge, device_gpu(device), charge_size(bytes)))
		return false;
	charge_cancel(&charge);
	pool_watch_graphs(device);
	return true;
}

/* Remembers an allocation; undoes it if that fails or if it exceeds the limit. */
static CUresult finish(const struct pool_charge *charge, CUresult result, CUdeviceptr *pointer,
                       CUstream stream)
{
	bool within = pool_end(charge, result == CUDA_SUCCESS);
	if (result == CUDA_ERROR_OUT_OF_MEMORY && charge->owner != 0)
		budget_fail(state_member(), charge->gpu, charge->bytes);
	if (result != CUDA_SUCCESS || (within && charge->owner == 0))
		return result;
	CUcontext context = NULL;
	(void)CALL(cuCtxGetCurrent, &context);
	struct track_item item = { .key = *pointer,
		                   .bytes = charge->bytes,
		                   .context = (uint64_t)(uintptr_t)context,
		                   .owner = charge->owner,
		                   .references = 1,
		                   .share = SHARE_NONE,
		                   .kind = TRACK_POINTER,
		                   .gpu = (int8_t)charge->gpu };
	if (within && track_add(&item))
		return result;
	if (within)
		pool_free(charge->owner, charge->bytes);
	(void)CALL(cuMemFreeAsync, *pointer, stream);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Before an allocation: which pool it comes from. With the stream's device for the
 * pool that the device uses now, when none was named. */
enum before { BEFORE_REFUSED, BEFORE_PASS, BEFORE_CHARGED };
static enum before pool_start(struct pool_charge *charge, CUmemoryPool pool, size_t bytes,
                              CUstream stream)
{
	CUdevice device = state_active() ? device_of_stream(stream) : -1;
	if (device < 0)
		return BEFORE_PASS;
	if (is_capturing(stream))
		return capture_begin(device, bytes) ? BEFORE_PASS : BEFORE_REFUSED;
	if (pool == NULL && CALL(cuDeviceGetMemPool, &pool, device) != CUDA_SUCCESS)
		return BEFORE_PASS;
	int gpu = device_gpu(device);
	if (gpu == DEVICE_UNKNOWN)
		return BEFORE_PASS;
	return pool_begin(charge, pool, gpu, bytes) ? BEFORE_CHARGED : BEFORE_REFUSED;
}

#define ALLOCATE(pool, symbol, ...)                                                                \
	struct pool_charge charge;                                                                 \
	enum before before = pool_start(&charge, pool, bytes, stream);                             \
	if (before == BEFORE_REFUSED)                                                              \
		return CUDA_ERROR_OUT_OF_MEMORY;                                                   \
	CUresult result = CALL(symbol, __VA_ARGS__);                                               \
	return before == BEFORE_PASS ? result : finish(&charge, result, pointer, stream)

CUresult cuMemAllocAsync(CUdeviceptr *pointer, size_t bytes, CUstream stream)
{
	ALLOCATE(NULL, cuMemAllocAsync, pointer, bytes, stream);
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr *pointer, size_t bytes, CUstream stream)
{
	ALLOCATE(NULL, cuMemAllocAsync_ptsz, pointer, bytes, stream);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool,
                                 CUstream stream)
{
	ALLOCATE(pool, cuMemAllocFromPoolAsync, pointer, bytes, pool, stream);
}

CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool,
                                      CUstream stream)
{
	ALLOCATE(pool, cuMemAllocFromPoolAsync_ptsz, pointer, bytes, pool, stream);
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream)
{
	struct track_item item;
	bool known = charge_free_begin(TRACK_POINTER, pointer, &item);
	CUresult result = CALL(cuMemFreeAsync, pointer, stream);
	charge_free_end(known, &item, result == CUDA_SUCCESS);
	return result;
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream)
{
	struct track_item item;
	bool known = charge_free_begin(TRACK_POINTER, pointer, &item);
	CUresult result = CALL(cuMemFreeAsync_ptsz, pointer, stream);
	charge_free_end(known, &item, result == CUDA_SUCCESS);
	return result;
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
	CUresult result = CALL(cuMemPoolCreate, pool, properties);
	if (result != CUDA_SUCCESS || !state_active())
		return result;
	bool host = properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE &&
	            properties->location.type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
	int gpu = host ? -1 : device_gpu(properties->location.id);
	bool managed = properties->allocType == CU_MEM_ALLOCATION_TYPE_MANAGED;
	if (gpu != DEVICE_REFUSED && pool_made(*pool, gpu, managed))
		return result;
	(void)CALL(cuMemPoolDestroy, *pool);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* A pool that the driver has made for itself: it says where the pool is when it hands it out. */
static CUresult pool_found(CUresult result, const CUmemoryPool *pool, const CUmemLocation *location,
                           int type)
{
	if (result != CUDA_SUCCESS || !state_active() || location == NULL)
		return result;
	bool host = location->type != CU_MEM_LOCATION_TYPE_DEVICE &&
	            location->type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
	int gpu = host ? -1 : device_gpu(location->id);
	if (gpu != DEVICE_REFUSED)
		(void)pool_made(*pool, gpu, type == CU_MEM_ALLOCATION_TYPE_MANAGED);
	return result;
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *location, int type)
{
	return pool_found(CALL(cuMemGetDefaultMemPool, pool, location, type), pool, location, type);
}

CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, int type)
{
	return pool_found(CALL(cuMemGetMemPool, pool, location, type), pool, location, type);
}

/* Its memory counts where it is from. */
CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool, void *shareable, int type,
                                            unsigned long long flags)
{
	CUresult result = CALL(cuMemPoolImportFromShareableHandle, pool, shareable, type, flags);
	if (result != CUDA_SUCCESS || !state_active())
		return result;
	struct track_item item = { .key = (uint64_t)(uintptr_t)*pool,
		                   .references = 1,
		                   .share = SHARE_NONE,
		                   .kind = TRACK_POOL,
		                   .gpu = -1,
		                   .imported = 1 };
	if (track_add(&item))
		budget_import(state_member(), 1);
	return result;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	struct track_item item;
	/* Off the list first: its handle may be another pool's as soon as it is free. */
	if (state_active())
		pool_destroyed(pool);
	bool imported = charge_free_begin(TRACK_POOL, (uint64_t)(uintptr_t)pool, &item);
	CUresult result = CALL(cuMemPoolDestroy, pool);
	charge_free_end(imported, &item, result == CUDA_SUCCESS);
	return result;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep_bytes)
{
	CUresult result = CALL(cuMemPoolTrimTo, pool, keep_bytes);
	if (state_active())
		pool_trimmed(pool);
	return result;
}

CUresult cuStreamSynchronize(CUstream stream)
{
	CUresult result = CALL(cuStreamSynchronize, stream);
	pool_synchronized();
	return result;
}

CUresult cuStreamSynchronize_ptsz(CUstream stream)
{
	CUresult result = CALL(cuStreamSynchronize_ptsz, stream);
	pool_synchronized();
	return result;
}

CUresult cuEventSynchronize(CUevent event)
{
	CUresult result = CALL(cuEventSynchronize, event);
	pool_synchronized();
	return result;
}

CUresult cuCtxSynchronize(void)
{
	CUresult result =
	    REAL(cuCtxSynchronize) != NULL ? REAL(cuCtxSynchronize)() : CUDA_ERROR_NOT_SUPPORTED;
	pool_synchronized();
	return result;
}

CUresult cuCtxSynchronize_v2(CUcontext context)
{
	CUresult result = CALL(cuCtxSynchronize_v2, context);
	pool_synchronized();
	return result;
}
