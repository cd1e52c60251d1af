/* pool.c - what the driver's memory pools hold */
#include "guard/calls/pool.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "guard/budget/budget.h"
#include "guard/budget/mutex.h"
#include "guard/calls/device.h"
#include "guard/calls/entry.h"
#include "guard/calls/state.h"

enum { POOLS_MAX = 1024 };

/* Pools grow by pieces of so much. */
#define PIECE_BYTES ((int64_t)32 << 20)

/* One pool of this process. `charged_bytes` is its charge; after a look at the pool it equals
 * what the pool holds, and never less than what is in use. */
struct pool {
	bool taken;
	bool destroyed; /* what is in use stays until it is freed */
	bool managed;
	bool graphs; /* not a pool, but the memory of the device's graphs */
	CUmemoryPool handle;
	CUdevice device; /* of graphs */
	int gpu;         /* -1: not memory of a GPU */
	int64_t live_bytes;
	int64_t charged_bytes;
};

static struct pool pools[POOLS_MAX];
static struct mutex pools_mutex;
/* Something was freed that a pool may give back later. */
static _Atomic(bool) pools_dirty;

static struct pool *pool_find(CUmemoryPool handle, bool graphs, CUdevice device)
{
	for (int i = 0; i < POOLS_MAX; i++) {
		struct pool *pool = &pools[i];
		if (pool->taken && !pool->destroyed && pool->graphs == graphs &&
		    (graphs ? pool->device == device : pool->handle == handle))
			return pool;
	}
	return NULL;
}

static struct pool *pool_add(const struct pool *added)
{
	for (int i = 0; i < POOLS_MAX; i++) {
		if (!pools[i].taken) {
			pools[i] = *added;
			pools[i].taken = true;
			return &pools[i];
		}
	}
	return NULL;
}

/* What the pool holds; -1 if the driver does not say. */
static int64_t held_bytes(const struct pool *pool)
{
	uint64_t bytes = 0;
	CUresult result = pool->graphs ? CALL(cuDeviceGetGraphMemAttribute, pool->device,
	                                      CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &bytes)
	                               : CALL(cuMemPoolGetAttribute, pool->handle,
	                                      CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes);
	return result == CUDA_SUCCESS && bytes <= INT64_MAX ? (int64_t)bytes : -1;
}

/* So much more was charged for what the pool holds. */
static void pool_charged(const struct member *member, struct pool *pool, int64_t bytes)
{
	pool->charged_bytes += bytes;
	if (pool->managed)
		budget_hide(member, pool->gpu, bytes);
}

static void set_charged(const struct member *member, struct pool *pool, int64_t bytes)
{
	budget_take_fact(member, pool->gpu, bytes - pool->charged_bytes);
	pool_charged(member, pool, bytes - pool->charged_bytes);
}

/* Charges what the pool holds now. */
static void pool_settle(const struct member *member, struct pool *pool)
{
	if (pool->gpu < 0)
		return;
	int64_t held = pool->destroyed ? -1 : held_bytes(pool);
	int64_t bytes = held > pool->live_bytes ? held : pool->live_bytes;
	if (bytes != pool->charged_bytes)
		set_charged(member, pool, bytes);
	if (pool->destroyed && pool->live_bytes == 0)
		pool->taken = false;
}

/* True if a pool will give back by itself what it holds and nobody uses. */
static bool will_shrink(const struct pool *pool)
{
	uint64_t keep_bytes = 0;
	return pool->gpu >= 0 && (pool->graphs || (pool->charged_bytes > pool->live_bytes &&
	                                           CALL(cuMemPoolGetAttribute, pool->handle,
	                                                CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
	                                                &keep_bytes) == CUDA_SUCCESS &&
	                                           keep_bytes < (uint64_t)pool->charged_bytes));
}

void pool_synchronized(void)
{
	if (!atomic_load_explicit(&pools_dirty, memory_order_relaxed))
		return;
	const struct member *member = state_member();
	if (member == NULL)
		return;
	mutex_lock(&pools_mutex);
	atomic_store(&pools_dirty, false);
	bool dirty = false;
	for (int i = 0; i < POOLS_MAX; i++) {
		if (!pools[i].taken)
			continue;
		pool_settle(member, &pools[i]);
		dirty |= pools[i].taken && !pools[i].destroyed && will_shrink(&pools[i]);
	}
	if (dirty)
		atomic_store(&pools_dirty, true);
	mutex_unlock(&pools_mutex);
}

static void reclaim(const struct member *member, int gpu)
{
	for (int i = 0; i < POOLS_MAX; i++) {
		struct pool *pool = &pools[i];
		if (!pool->taken || pool->gpu != gpu)
			continue;
		if (pool->graphs)
			(void)CALL(cuDeviceGraphMemTrim, pool->device);
		else if (!pool->destroyed)
			(void)CALL(cuMemPoolTrimTo, pool->handle, 0);
		pool_settle(member, pool);
	}
}

void pool_reclaim(int gpu)
{
	const struct member *member = state_member();
	if (member == NULL)
		return;
	mutex_lock(&pools_mutex);
	reclaim(member, gpu);
	mutex_unlock(&pools_mutex);
}

void pool_free(uint64_t owner, int64_t bytes)
{
	const struct member *member = state_member();
	struct pool *pool = &pools[owner - 1];
	mutex_lock(&pools_mutex);
	pool->live_bytes -= bytes;
	if (pool->destroyed && member != NULL)
		pool_settle(member, pool);
	mutex_unlock(&pools_mutex);
	atomic_store(&pools_dirty, true);
}

void pool_watch_graphs(CUdevice device)
{
	mutex_lock(&pools_mutex);
	if (pool_find(NULL, true, device) == NULL)
		pool_add(
		    &(struct pool){ .graphs = true, .device = device, .gpu = device_gpu(device) });
	mutex_unlock(&pools_mutex);
	atomic_store(&pools_dirty, true);
}

bool pool_made(CUmemoryPool handle, int gpu, bool managed)
{
	mutex_lock(&pools_mutex);
	bool added =
	    pool_find(handle, false, -1) != NULL ||
	    pool_add(&(struct pool){ .handle = handle, .gpu = gpu, .managed = managed }) != NULL;
	mutex_unlock(&pools_mutex);
	return added;
}

void pool_destroyed(CUmemoryPool handle)
{
	const struct member *member = state_member();
	mutex_lock(&pools_mutex);
	struct pool *pool = pool_find(handle, false, -1);
	if (pool != NULL && member != NULL) {
		pool->destroyed = true;
		if (pool->gpu < 0)
			pool->taken = false;
		pool_settle(member, pool);
	}
	mutex_unlock(&pools_mutex);
}

void pool_trimmed(CUmemoryPool handle)
{
	const struct member *member = state_member();
	mutex_lock(&pools_mutex);
	struct pool *pool = pool_find(handle, false, -1);
	if (pool != NULL && member != NULL)
		pool_settle(member, pool);
	mutex_unlock(&pools_mutex);
}

/* What graphs hold on a device, and what of that is not in use. */
static int64_t graphs_idle(CUdevice device)
{
	uint64_t held_bytes = 0;
	uint64_t used_bytes = 0;
	if (CALL(cuDeviceGetGraphMemAttribute, device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT,
	         &held_bytes) != CUDA_SUCCESS ||
	    CALL(cuDeviceGetGraphMemAttribute, device, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT,
	         &used_bytes) != CUDA_SUCCESS ||
	    used_bytes > held_bytes)
		return 0;
	return (int64_t)(held_bytes - used_bytes);
}

/* Charges what a launch may add to what graphs hold. */
static bool take_launch(const struct member *member, CUdevice device, int64_t bytes)
{
	mutex_lock(&pools_mutex);
	struct pool *pool = pool_find(NULL, true, device);
	bool fits = pool == NULL || pool->gpu < 0;
	if (!fits) {
		pool_settle(member, pool);
		int64_t more_bytes = bytes - graphs_idle(device);
		fits = more_bytes <= 0 || budget_take(member, pool->gpu, more_bytes);
		if (fits && more_bytes > 0)
			pool_charged(member, pool, more_bytes);
	}
	mutex_unlock(&pools_mutex);
	return fits;
}

bool pool_launch_begin(CUdevice device, int64_t bytes)
{
	const struct member *member = state_member();
	int gpu = device_gpu(device);
	if (member == NULL || gpu < 0 || take_launch(member, device, bytes))
		return true;
	/* What earlier launches use is free when they have ended. */
	if (REAL(cuCtxSynchronize) != NULL)
		(void)REAL(cuCtxSynchronize)();
	pool_reclaim(gpu);
	if (take_launch(member, device, bytes))
		return true;
	budget_refuse(member, gpu, bytes);
	return false;
}

void pool_launched(CUdevice device)
{
	(void)device;
	atomic_store(&pools_dirty, true);
}

/* What the pool will take from the GPU to hand out so much: whole pieces. */
static int64_t growth_bytes(const struct pool *pool, int64_t bytes)
{
	int64_t live_bytes = pool->live_bytes + bytes;
	if (live_bytes <= pool->charged_bytes)
		return 0;
	return (live_bytes + PIECE_BYTES - 1) / PIECE_BYTES * PIECE_BYTES - pool->charged_bytes;
}

/* Charges the part of the bytes that the pool does not hold yet, as far as we know. */
static bool take_growth(const struct member *member, struct pool *pool, struct pool_charge *charge)
{
	int64_t more_bytes = growth_bytes(pool, charge->bytes);
	charge->grew = more_bytes > 0;
	if (more_bytes > 0 && !budget_take(member, pool->gpu, more_bytes)) {
		reclaim(member, pool->gpu);
		more_bytes = growth_bytes(pool, charge->bytes);
		if (more_bytes > 0 && !budget_take(member, pool->gpu, more_bytes)) {
			budget_refuse(member, pool->gpu, more_bytes);
			return false;
		}
	}
	pool_charged(member, pool, more_bytes);
	pool->live_bytes += charge->bytes;
	return true;
}

bool pool_begin(struct pool_charge *charge, CUmemoryPool handle, int gpu, size_t bytes)
{
	*charge = (struct pool_charge){ .gpu = -1 };
	const struct member *member = state_member();
	if (gpu == DEVICE_REFUSED || member == NULL || bytes > (size_t)(INT64_MAX / 4))
		return false;
	charge->bytes = (int64_t)((bytes + 511) / 512 * 512);
	mutex_lock(&pools_mutex);
	struct pool *pool = pool_find(handle, false, -1);
	if (pool == NULL)
		pool = pool_add(&(struct pool){ .handle = handle, .gpu = gpu });
	bool begun = pool != NULL && pool->live_bytes < INT64_MAX / 4;
	if (begun && pool->gpu >= 0) {
		charge->gpu = pool->gpu;
		charge->owner = (uint64_t)(pool - pools) + 1;
		begun = take_growth(member, pool, charge);
	}
	mutex_unlock(&pools_mutex);
	return begun;
}

bool pool_end(const struct pool_charge *charge, bool made)
{
	const struct member *member = state_member();
	bool as_expected = made && !charge->grew;
	if (charge->owner == 0 || member == NULL || as_expected)
		return true;
	struct pool *pool = &pools[charge->owner - 1];
	bool within = true;
	mutex_lock(&pools_mutex);
	if (!made)
		pool->live_bytes -= charge->bytes;
	pool_settle(member, pool);
	if (made && !budget_fits(member->segment, (uint32_t)pool->gpu, 0)) {
		/* The pool has taken more than pieces of that size. What others hold idle
		 * may make up for it. */
		reclaim(member, pool->gpu);
		within = budget_fits(member->segment, (uint32_t)pool->gpu, 0);
	}
	if (!within) {
		budget_refuse(member, pool->gpu, charge->bytes);
		pool->live_bytes -= charge->bytes;
		atomic_store(&pools_dirty, true);
	}
	mutex_unlock(&pools_mutex);
	return within;
}

void pool_reset(void)
{
	for (int i = 0; i < POOLS_MAX; i++)
		pools[i] = (struct pool){ 0 };
	atomic_store(&pools_mutex.word, 0);
	atomic_store(&pools_dirty, false);
}
