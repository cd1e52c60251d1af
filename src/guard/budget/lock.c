/* lock.c - the lock of a segment, which outlives whoever holds it */
#include "guard/budget/lock.h"

#include "guard/budget/system.h"

enum {
	SPINS = 100,
	LOOK_EVERY_MS = 10,     /* how long to sleep before looking whether the holder lives */
	STRANGER_MAY_MS = 3000, /* how long one that cannot be seen may hold it */
};

static bool try_take(const struct member *member, uint32_t from)
{
	return atomic_compare_exchange_strong_explicit(&member->segment->lock, &from,
	                                               member->place + 1, memory_order_acquire,
	                                               memory_order_relaxed);
}

bool lock_holder_is_gone(const struct member *member, uint32_t place)
{
	const struct segment_process *process = &member->segment->processes[place];
	uint64_t owner = atomic_load_explicit(&process->owner, memory_order_relaxed);
	uint64_t namespace_id = atomic_load_explicit(&process->namespace_id, memory_order_relaxed);
	if (owner != 0 && owner != member->identity.owner &&
	    atomic_load_explicit(&process->gone_owner, memory_order_relaxed) == owner)
		return true;
	bool seen = namespace_id == member->identity.namespace_id;
	return owner != 0 && owner != member->identity.owner && seen && process_is_gone(owner);
}

/* True if the lock may be taken away from `holder`, who has had it since we began to
 * wait. A number that is no place was written by somebody who does not keep the rules. */
static bool may_take_away(const struct member *member, uint32_t holder, int64_t waited_ms)
{
	if (holder > SEGMENT_PROCESSES_MAX)
		return true;
	const struct segment_process *process = &member->segment->processes[holder - 1];
	uint64_t namespace_id = atomic_load_explicit(&process->namespace_id, memory_order_relaxed);
	uint64_t owner = atomic_load_explicit(&process->owner, memory_order_relaxed);
	if (owner == 0 || namespace_id != member->identity.namespace_id)
		return waited_ms > STRANGER_MAY_MS;
	return lock_holder_is_gone(member, holder - 1);
}

static bool take_slowly(const struct member *member)
{
	struct segment *segment = member->segment;
	int64_t began_ms = system_now_ms();
	uint32_t watched = 0;
	for (;;) {
		uint32_t holder = atomic_load_explicit(&segment->lock, memory_order_relaxed);
		if (holder == 0) {
			if (try_take(member, 0))
				return false;
			continue;
		}
		if (holder != watched) {
			watched = holder;
			began_ms = system_now_ms();
		}
		atomic_fetch_add_explicit(&segment->waiters, 1, memory_order_seq_cst);
		system_wait(&segment->lock, holder, LOOK_EVERY_MS);
		atomic_fetch_sub_explicit(&segment->waiters, 1, memory_order_seq_cst);
		if (atomic_load_explicit(&segment->lock, memory_order_relaxed) == holder &&
		    system_now_ms() - began_ms >= LOOK_EVERY_MS &&
		    may_take_away(member, holder, system_now_ms() - began_ms) &&
		    try_take(member, holder))
			return true;
	}
}

bool lock_take(const struct member *member)
{
	for (int spin = 0; spin < SPINS; spin++) {
		if (atomic_load_explicit(&member->segment->lock, memory_order_relaxed) == 0 &&
		    try_take(member, 0))
			return false;
	}
	return take_slowly(member);
}

void lock_give(const struct member *member)
{
	uint32_t mine = member->place + 1;
	atomic_compare_exchange_strong_explicit(&member->segment->lock, &mine, 0,
	                                        memory_order_seq_cst, memory_order_relaxed);
	/* A waiter that was killed leaves the count too high, which costs a wake-up for
	 * nobody; it can never be too low. */
	if (atomic_load_explicit(&member->segment->waiters, memory_order_seq_cst) != 0)
		system_wake(&member->segment->lock);
}
