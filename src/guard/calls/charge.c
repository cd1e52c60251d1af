/* charge.c - an allocation in the accounting: charged before, kept after, returned when freed */
#include "guard/calls/charge.h"

#include <stdatomic.h>

#include "guard/budget/budget.h"
#include "guard/budget/share.h"
#include "guard/calls/device.h"
#include "guard/calls/overhead.h"
#include "guard/calls/pool.h"
#include "guard/calls/stash.h"
#include "guard/calls/state.h"

#define MIB ((int64_t)1 << 20)

/* How often this process holds each share: the segment only knows whether. */
static _Atomic(uint32_t) share_holds[SEGMENT_SHARES_MAX];

static int64_t round_up(int64_t bytes, int64_t unit)
{
	return (bytes + unit - 1) / unit * unit;
}

int64_t charge_size(size_t bytes)
{
	if (bytes > (size_t)(INT64_MAX - 2 * MIB))
		return INT64_MAX;
	int64_t size = (int64_t)bytes;
	return size > MIB ? round_up(size, 2 * MIB) : round_up(size, 512);
}

static bool charge_take(const struct member *member, int gpu, int64_t bytes)
{
	if (budget_take(member, gpu, bytes))
		return true;
	/* Pools may hold memory that nobody uses, and descriptors may be closed. */
	stash_sweep();
	pool_reclaim(gpu);
	if (budget_take(member, gpu, bytes))
		return true;
	budget_refuse(member, gpu, bytes);
	return false;
}

bool charge_begin(struct charge *charge, int gpu, int64_t bytes)
{
	*charge = (struct charge){ .gpu = gpu < 0 ? DEVICE_UNKNOWN : gpu, .bytes = bytes };
	if (gpu == DEVICE_UNKNOWN)
		return true;
	const struct member *member = state_member();
	if (gpu == DEVICE_REFUSED || member == NULL)
		return false;
	overhead_look(member, bytes);
	return charge_take(member, gpu, bytes);
}

bool charge_begin_here(struct charge *charge, size_t bytes)
{
	uint64_t context;
	int gpu = device_current(&context);
	bool begun = charge_begin(charge, gpu, charge_size(bytes));
	charge->context = context;
	return begun;
}

bool charge_change(struct charge *charge, int64_t bytes)
{
	const struct member *member = state_member();
	if (charge->gpu < 0 || member == NULL || bytes == charge->bytes)
		return true;
	if (bytes < charge->bytes)
		budget_give(member, charge->gpu, charge->bytes - bytes);
	else if (!charge_take(member, charge->gpu, bytes - charge->bytes))
		return false;
	charge->bytes = bytes;
	return true;
}

void charge_cancel(const struct charge *charge)
{
	const struct member *member = state_member();
	if (charge->gpu >= 0 && member != NULL)
		budget_give(member, charge->gpu, charge->bytes);
}

void charge_failed(const struct charge *charge, CUresult result)
{
	const struct member *member = state_member();
	if (charge->gpu >= 0 && member != NULL && result == CUDA_ERROR_OUT_OF_MEMORY)
		budget_fail(member, charge->gpu, charge->bytes);
	charge_cancel(charge);
}

bool charge_keep(const struct charge *charge, enum track_kind kind, uint64_t key)
{
	if (charge->gpu < 0)
		return true;
	struct track_item item = { .key = key,
		                   .bytes = charge->bytes,
		                   .context = charge->context,
		                   .references = 1,
		                   .share = SHARE_NONE,
		                   .kind = (uint8_t)kind,
		                   .gpu = (int8_t)charge->gpu,
		                   .hidden = charge->hidden };
	if (!track_add(&item))
		return false;
	if (charge->hidden)
		budget_hide(state_member(), charge->gpu, charge->bytes);
	return true;
}

static void drop_share(const struct member *member, int share)
{
	if (atomic_fetch_sub(&share_holds[share], 1) == 1)
		share_drop(member, share);
}

void charge_give(const struct track_item *item)
{
	const struct member *member = state_member();
	if (item->imported && member != NULL)
		budget_import(member, -1);
	if (item->gpu < 0 || member == NULL)
		return;
	if (item->hidden)
		budget_hide(member, item->gpu, -item->bytes);
	if (item->share >= 0)
		drop_share(member, item->share);
	else if (item->kind == TRACK_POINTER && item->owner != 0)
		pool_free(item->owner, item->bytes);
	else
		budget_give(member, item->gpu, item->bytes);
}

bool charge_free_begin(enum track_kind kind, uint64_t key, struct track_item *item)
{
	return state_active() && track_remove(kind, key, item);
}

void charge_free_end(bool known, const struct track_item *item, bool freed)
{
	if (!known)
		return;
	if (freed) {
		charge_give(item);
		overhead_freed(item->bytes);
	} else {
		(void)track_add(item); /* it had a place a moment ago */
	}
}

void charge_share_hold(int share)
{
	atomic_fetch_add(&share_holds[share], 1);
}

void charge_unshare(int share)
{
	const struct member *member = state_member();
	if (member != NULL && atomic_fetch_sub(&share_holds[share], 1) == 1)
		share_withdraw(member, share);
}

uint64_t charge_handle_key(const void *handle, size_t size)
{
	const unsigned char *bytes = handle;
	uint64_t key = UINT64_C(0xcbf29ce484222325);
	for (size_t i = 0; i < size; i++)
		key = (key ^ bytes[i]) * UINT64_C(0x100000001b3);
	return key;
}

uint64_t charge_class_key(int kind, int gpu, int64_t bytes)
{
	return ((uint64_t)bytes ^ (uint64_t)gpu << 56 ^ (uint64_t)kind << 62) *
	       UINT64_C(0x9e3779b97f4a7c15);
}

void charge_reset(void)
{
	for (int share = 0; share < SEGMENT_SHARES_MAX; share++)
		atomic_store(&share_holds[share], 0);
}
