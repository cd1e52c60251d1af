/* pool.c - the stand-in's pools, which take memory in pieces of 32 MiB */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

enum { POOLS_MAX = 64 };

static struct CUmemPoolHandle_st default_pools[STANDIN_GPUS_MAX];
static CUmemoryPool pools[POOLS_MAX];
static struct CUstream_st streams[64];
static _Atomic(int) stream_count;

static int64_t in_pieces(int64_t bytes)
{
	const char *setting = getenv("STANDIN_PIECE");
	int64_t piece_bytes = setting != NULL ? strtoll(setting, NULL, 10) : INT64_C(32) << 20;
	return (bytes + piece_bytes - 1) / piece_bytes * piece_bytes;
}

static void pool_hold(CUmemoryPool pool, int64_t bytes)
{
	(void)standin_take(pool->gpu, bytes - pool->held_bytes);
	pool->held_bytes = bytes;
}

static void shrink(CUmemoryPool pool, int64_t keep_bytes)
{
	int64_t keep = pool->live_bytes > keep_bytes ? pool->live_bytes : keep_bytes;
	if (in_pieces(keep) < pool->held_bytes)
		pool_hold(pool, in_pieces(keep));
}

void standin_shrink_pools(void)
{
	for (int gpu = 0; gpu < STANDIN_GPUS_MAX; gpu++)
		shrink(&default_pools[gpu], default_pools[gpu].keep_bytes);
	for (int i = 0; i < POOLS_MAX; i++) {
		if (pools[i] == NULL)
			continue;
		shrink(pools[i], pools[i]->destroyed ? 0 : pools[i]->keep_bytes);
		if (pools[i]->destroyed && pools[i]->live_bytes == 0) {
			free(pools[i]);
			pools[i] = NULL;
		}
	}
}

void standin_forget_pools(void)
{
	memset(default_pools, 0, sizeof default_pools);
	memset(pools, 0, sizeof pools);
	standin_forget_graphs();
}

static CUmemoryPool default_pool(int gpu)
{
	default_pools[gpu].gpu = gpu;
	return &default_pools[gpu];
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device)
{
	if (standin_gpu(device) < 0)
		return CUDA_ERROR_INVALID_DEVICE;
	*pool = default_pool(standin_gpu(device));
	return CUDA_SUCCESS;
}

/* Of the host there is one, too. */
CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *location, int type)
{
	static struct CUmemPoolHandle_st host = { .gpu = -1 };
	(void)type;
	if (location->type == CU_MEM_LOCATION_TYPE_DEVICE)
		return cuDeviceGetMemPool(pool, location->id);
	*pool = &host;
	return CUDA_SUCCESS;
}

CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, int type)
{
	return cuMemGetDefaultMemPool(pool, location, type);
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
	return cuDeviceGetMemPool(pool, device);
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
	pthread_mutex_lock(&standin_mutex);
	int at = 0;
	while (at < POOLS_MAX && pools[at] != NULL)
		at++;
	if (at < POOLS_MAX) {
		bool device = properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
		pools[at] = calloc(1, sizeof **pools);
		pools[at]->gpu = device ? standin_gpu(properties->location.id) : -1;
		*pool = pools[at];
	}
	pthread_mutex_unlock(&standin_mutex);
	return at < POOLS_MAX ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Nothing of what is behind the handle can be had from it. */
CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool, void *shareable, int type,
                                            unsigned long long flags)
{
	CUmemPoolProps properties = { .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
	(void)shareable, (void)type, (void)flags;
	return cuMemPoolCreate(pool, &properties);
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	pthread_mutex_lock(&standin_mutex);
	pool->destroyed = true;
	standin_shrink_pools();
	pthread_mutex_unlock(&standin_mutex);
	return CUDA_SUCCESS;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep_bytes)
{
	pthread_mutex_lock(&standin_mutex);
	shrink(pool, (int64_t)keep_bytes);
	pthread_mutex_unlock(&standin_mutex);
	return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value)
{
	if (attribute != CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&standin_mutex);
	memcpy(&pool->keep_bytes, value, sizeof pool->keep_bytes);
	pthread_mutex_unlock(&standin_mutex);
	return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value)
{
	pthread_mutex_lock(&standin_mutex);
	int64_t bytes = attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT ? pool->held_bytes
	                : attribute == CU_MEMPOOL_ATTR_USED_MEM_CURRENT   ? pool->live_bytes
	                                                                  : pool->keep_bytes;
	memcpy(value, &bytes, sizeof bytes);
	pthread_mutex_unlock(&standin_mutex);
	return CUDA_SUCCESS;
}

static CUresult allocate(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool, CUstream stream)
{
	standin_count_call();
	if ((uintptr_t)stream > 2 && stream->capturing) {
		return standin_capture_allocation(stream, pointer, (int64_t)bytes);
	}
	pthread_mutex_lock(&standin_mutex);
	CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
	int64_t live_bytes = pool->live_bytes + (int64_t)bytes;
	bool grows = live_bytes > pool->held_bytes;
	if (!grows || standin_take(pool->gpu, in_pieces(live_bytes) - pool->held_bytes)) {
		if (grows)
			pool->held_bytes = in_pieces(live_bytes);
		struct piece *piece = standin_add(PIECE_MEMORY, -1, (int64_t)bytes);
		piece->pool = pool;
		pool->live_bytes = live_bytes;
		*pointer = piece->handle;
		result = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&standin_mutex);
	return result;
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool,
                                 CUstream stream)
{
	return allocate(pointer, bytes, pool, stream);
}

CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool,
                                      CUstream stream)
{
	return allocate(pointer, bytes, pool, stream);
}

CUresult cuMemAllocAsync(CUdeviceptr *pointer, size_t bytes, CUstream stream)
{
	CUcontext context = (uintptr_t)stream > 2 ? stream->context : standin_current();
	if (context == NULL)
		return CUDA_ERROR_INVALID_CONTEXT;
	return allocate(pointer, bytes, default_pool(standin_gpu(context->device)), stream);
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr *pointer, size_t bytes, CUstream stream)
{
	return cuMemAllocAsync(pointer, bytes, stream);
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream)
{
	(void)stream;
	standin_count_call();
	pthread_mutex_lock(&standin_mutex);
	struct piece *piece = standin_find(PIECE_MEMORY, pointer);
	if (piece != NULL)
		standin_remove(piece);
	pthread_mutex_unlock(&standin_mutex);
	return piece != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream)
{
	return cuMemFreeAsync(pointer, stream);
}

static CUresult synchronize(void)
{
	pthread_mutex_lock(&standin_mutex);
	standin_shrink_pools();
	pthread_mutex_unlock(&standin_mutex);
	return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream)
{
	(void)stream;
	return synchronize();
}

CUresult cuStreamSynchronize_ptsz(CUstream stream)
{
	(void)stream;
	return synchronize();
}

CUresult cuEventSynchronize(CUevent event)
{
	(void)event;
	return synchronize();
}

CUresult cuCtxSynchronize(void)
{
	return synchronize();
}

CUresult cuCtxSynchronize_v2(CUcontext context)
{
	(void)context;
	return synchronize();
}

CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
	(void)flags;
	int number = atomic_fetch_add(&stream_count, 1);
	if (number >= 64)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*stream = &streams[number];
	(*stream)->context = standin_current();
	return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext *context)
{
	*context = stream->context;
	return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream stream, int *status)
{
	*status = (uintptr_t)stream > 2 && stream->capturing;
	return CUDA_SUCCESS;
}

void standin_capture(CUstream stream, int capturing)
{
	stream->capturing = capturing != 0;
}
