/* share.c - memory that processes of a task hold together, charged once */
#include "guard/budget/share.h"

#include <string.h>

#include "guard/budget/budget.h"

enum { WORDS = SEGMENT_PROCESSES_MAX / 64 };

static bool holds(const struct segment_share *share, uint32_t place)
{
	return (share->holders[place / 64] >> (place % 64) & 1) != 0;
}

static void set_holder(struct segment_share *share, uint32_t place, bool holder)
{
	uint64_t bit = UINT64_C(1) << (place % 64);
	if (holder)
		share->holders[place / 64] |= bit;
	else
		share->holders[place / 64] &= ~bit;
}

/* The first holder; -1 if there is none, so that the share is free. */
static int first_holder(const struct segment_share *share)
{
	for (int word = 0; word < WORDS; word++) {
		if (share->holders[word] != 0)
			return word * 64 + __builtin_ctzll(share->holders[word]);
	}
	return -1;
}

/* A share of that memory which the process holds, or does not hold yet; or -1. */
static int share_find(const struct segment *segment, uint64_t key, uint32_t place, bool held)
{
	for (int i = 0; i < SEGMENT_SHARES_MAX; i++) {
		const struct segment_share *share = &segment->shares[i];
		if (share->key == key && first_holder(share) >= 0 && holds(share, place) == held)
			return i;
	}
	return -1;
}

/* Makes a share that the process alone holds; SHARE_NONE if there is no room. */
static int share_add(struct segment *segment, uint64_t key, int gpu, int64_t bytes, uint32_t place)
{
	for (int i = 0; i < SEGMENT_SHARES_MAX; i++) {
		struct segment_share *share = &segment->shares[i];
		if (first_holder(share) >= 0)
			continue;
		share->key = key;
		share->gpu = (uint32_t)gpu;
		share->bytes = bytes;
		share->bearer = place;
		set_holder(share, place, true);
		return i;
	}
	return SHARE_NONE;
}

int share_export(const struct member *member, uint64_t key, int gpu, int64_t bytes, bool again)
{
	budget_lock(member);
	int share = again ? share_find(member->segment, key, member->place, true) : -1;
	if (share < 0)
		share = share_add(member->segment, key, gpu, bytes, member->place);
	lock_give(member);
	return share;
}

static int import_locked(const struct member *member, uint64_t key, int gpu, int64_t bytes,
                         bool again)
{
	struct segment *segment = member->segment;
	int share = again ? share_find(segment, key, member->place, true) : -1;
	if (share >= 0)
		return share;
	share = share_find(segment, key, member->place, false);
	if (share >= 0) {
		set_holder(&segment->shares[share], member->place, true);
		return share;
	}
	if (!budget_fits(segment, (uint32_t)gpu, bytes))
		return SHARE_REFUSED;
	share = share_add(segment, key, gpu, bytes, member->place);
	if (share >= 0)
		budget_move(segment, member->place, (uint32_t)gpu, bytes);
	return share;
}

int share_import(const struct member *member, uint64_t key, int gpu, int64_t bytes, bool again)
{
	budget_lock(member);
	int share = import_locked(member, key, gpu, bytes, again);
	lock_give(member);
	if (share == SHARE_REFUSED) {
		budget_reap(member);
		budget_lock(member);
		share = import_locked(member, key, gpu, bytes, again);
		lock_give(member);
	}
	return share;
}

void share_drop(const struct member *member, int index)
{
	struct segment *segment = member->segment;
	struct segment_share *share = &segment->shares[index];
	budget_lock(member);
	if (holds(share, member->place)) {
		set_holder(share, member->place, false);
		int next = first_holder(share);
		if (share->bearer == member->place && share->gpu < SEGMENT_GPUS_MAX) {
			budget_move(segment, member->place, share->gpu, -share->bytes);
			if (next >= 0) {
				share->bearer = (uint32_t)next;
				budget_move(segment, share->bearer, share->gpu, share->bytes);
			}
		}
	}
	lock_give(member);
}

void share_withdraw(const struct member *member, int index)
{
	struct segment_share *share = &member->segment->shares[index];
	budget_lock(member);
	if (share->bearer == member->place && holds(share, member->place)) {
		set_holder(share, member->place, false);
		int next = first_holder(share);
		if (next >= 0) {
			share->bearer = (uint32_t)next;
			budget_move(member->segment, share->bearer, share->gpu, share->bytes);
		}
	}
	lock_give(member);
}

void share_drop_all(struct segment *segment, uint32_t place)
{
	for (int i = 0; i < SEGMENT_SHARES_MAX; i++) {
		struct segment_share *share = &segment->shares[i];
		if (!holds(share, place))
			continue;
		set_holder(share, place, false);
		int next = first_holder(share);
		if (share->bearer != place || next < 0 || share->gpu >= SEGMENT_GPUS_MAX)
			continue;
		share->bearer = (uint32_t)next;
		_Atomic(int64_t) *charged_bytes =
		    &segment->processes[next].charged_bytes[share->gpu];
		int64_t sum_bytes;
		if (__builtin_add_overflow(segment_get(charged_bytes), share->bytes, &sum_bytes))
			sum_bytes = INT64_MAX;
		segment_set(charged_bytes, sum_bytes);
	}
}
