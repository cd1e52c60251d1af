/* pool.h - memory that the driver hands out in the order of a stream, from pools
 *
 * A pool takes memory in pieces and keeps it for a while when it is freed, so that
 * what counts is what the pool holds, not what was asked of it. A graph's memory
 * is in such a pool too, one for each device. */
#ifndef GUARD_CALLS_POOL_H
#define GUARD_CALLS_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "guard/calls/driver_abi.h"

/* An allocation from a pool that is being made. `owner` is 0 where there is nothing to
 * charge. */
struct pool_charge {
	uint64_t owner;
	int gpu;
	int64_t bytes;
	bool grew; /* the pool has to take more memory for it, as far as we know */
};

/* Charges bytes that a pool is to hand out, unless it already holds them. An unknown pool is
 * assumed to be on `gpu`. False if that exceeds the limit, which is counted as a refusal. */
bool pool_begin(struct pool_charge *charge, CUmemoryPool pool, int gpu, size_t bytes);

/* The allocation succeeded, or not. False if it did, and the pool took so much memory for it
 * that the task exceeds its limit: the caller frees it. That counts as a refusal too. */
bool pool_end(const struct pool_charge *charge, bool made);

/* A pool was made or found (`gpu` -1: not of GPU memory; of managed memory, which NVML shows for
 * no process), destroyed, or trimmed. False if there is no room to remember it. */
bool pool_made(CUmemoryPool pool, int gpu, bool managed);
void pool_destroyed(CUmemoryPool pool);
void pool_trimmed(CUmemoryPool pool);

/* Something of a pool's was freed: `pool` is the owner in the item (track.h). */
void pool_free(uint64_t pool, int64_t bytes);

/* The GPU has come to the end of some work: what was freed may be back. Without
 * effect, and free of locks, unless something was freed since the last time. */
void pool_synchronized(void);

/* Before a refusal: takes back what this process's pools hold on a GPU and nobody
 * uses. */
void pool_reclaim(int gpu);

/* From now on, the memory of a device's graphs is counted. */
void pool_watch_graphs(CUdevice device);

/* Before a graph is launched that allocates up to `bytes`, and after it was: false if that exceeds
 * the limit, which is a refusal. */
bool pool_launch_begin(CUdevice device, int64_t bytes);
void pool_launched(CUdevice device);

/* In a forked child. */
void pool_reset(void);

#endif
