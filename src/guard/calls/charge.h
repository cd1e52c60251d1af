/* charge.h - an allocation in the accounting: charged before, kept after, returned when freed
 *
 *	struct charge charge;
 *	if (!charge_begin_here(&charge, bytes))
 *		return CUDA_ERROR_OUT_OF_MEMORY;
 *	... ask the driver ...
 *	then charge_keep() if it succeeded, charge_cancel() if it did not. */
#ifndef GUARD_CALLS_CHARGE_H
#define GUARD_CALLS_CHARGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "guard/calls/driver_abi.h"
#include "guard/calls/track.h"

/* What was charged for an allocation that is being made. `gpu` is -1 where there is
 * nothing to charge. */
struct charge {
	int gpu;
	int64_t bytes;
	uint64_t context;
	bool hidden; /* managed memory, say: NVML will not give it to the process */
};

/* The memory that the driver takes for an allocation of `bytes`: above a MiB it uses pages of
 * 2 MiB, below it cuts such pages into units of 512 bytes. */
int64_t charge_size(size_t bytes);

/* Charges bytes on a GPU (or DEVICE_UNKNOWN: nothing; DEVICE_REFUSED). False if they
 * exceed the limit, which is counted as a refusal; nothing is charged then. */
bool charge_begin(struct charge *charge, int gpu, int64_t bytes);

/* Like charge_begin(), on the current context's GPU, with what the driver takes for `bytes`. */
bool charge_begin_here(struct charge *charge, size_t bytes);

/* Changes a charge to what the driver has really taken. False if that exceeds the
 * limit: the charge is unchanged, and a refusal is counted. */
bool charge_change(struct charge *charge, int64_t bytes);

/* The allocation was not made. */
void charge_cancel(const struct charge *charge);

/* The driver did not make it. If the GPU had no memory left, that is counted. */
void charge_failed(const struct charge *charge, CUresult result);

/* The allocation was made and is freed by that handle. False if there is no memory to
 * remember it: the caller frees it, and cancels. */
bool charge_keep(const struct charge *charge, enum track_kind kind, uint64_t key);

/* Gives back what is charged for an item that is gone. */
void charge_give(const struct track_item *item);

/* Around the driver's function that frees: takes the item off the list first, since
 * its handle may be in use again as soon as it is freed; and then gives its charge
 * back, or puts it back on the list. `charge_free_begin` says whether it was there. */
bool charge_free_begin(enum track_kind kind, uint64_t key, struct track_item *item);
void charge_free_end(bool known, const struct track_item *item, bool freed);

/* Counts how often this process holds a share. */
void charge_share_hold(int share);

/* An export that another thread has made too, or whose memory is gone: the charge
 * stays with the memory. */
void charge_unshare(int share);

/* A key for memory that can only be told by where it is and its size. */
uint64_t charge_class_key(int kind, int gpu, int64_t bytes);

/* A key from the bytes of a handle. */
uint64_t charge_handle_key(const void *handle, size_t size);

/* In a forked child. */
void charge_reset(void);

#endif
