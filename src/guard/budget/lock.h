/* lock.h - the lock of a segment, which survives the death of its holder
 *
 * Held for a few dozen nanoseconds by each allocation, never by a kernel launch.
 * If the holder dies, the next one repairs the counters: only a total and the dead
 * process's own entry can be wrong. */
#ifndef GUARD_BUDGET_LOCK_H
#define GUARD_BUDGET_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "guard/budget/process.h"
#include "guard/budget/segment.h"

/* The calling process in a segment. */
struct member {
	struct segment *segment;
	struct process_identity identity;
	uint32_t place; /* in segment->processes; the process has taken it */
};

/* Takes the lock. Returns true if its holder was gone: then the totals must be recounted
 * before anything is decided. A holder that is not visible from here (another namespace of
 * process ids) counts as gone when it has held the lock for seconds. */
bool lock_take(const struct member *member);

/* Gives the lock back, unless it was taken away. */
void lock_give(const struct member *member);

/* True if the process in that place is certainly gone, as far as `member` can see, or
 * as the agent says: it cannot see into other namespaces by itself. */
bool lock_holder_is_gone(const struct member *member, uint32_t place);

#endif
