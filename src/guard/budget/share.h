/* share.h - memory that processes of a task hold together, charged once
 *
 * Memory that one process exports and others import is one piece of memory. It is
 * on the books of one of them, the bearer, and moves to another holder when the
 * bearer lets go of it. */
#ifndef GUARD_BUDGET_SHARE_H
#define GUARD_BUDGET_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "guard/budget/lock.h"
#include "guard/budget/segment.h"

enum {
	SHARE_NONE = -1,    /* not shared: charged like any other memory */
	SHARE_REFUSED = -2, /* over the limit */
};

/* The process lets others hold what it has been charged for: a share, or SHARE_NONE
 * if there is no room for one. The same key again gives the same share, if it is
 * `again`; otherwise it is other memory that cannot be told apart. */
int share_export(const struct member *member, uint64_t key, int gpu, int64_t bytes, bool again);

/* The process holds what others may hold already: a share that it does not hold
 * yet, with that key, or a new one, charged to it. SHARE_REFUSED if that is over
 * the limit; SHARE_NONE if there is no room, and nothing was charged. With `again`,
 * one that it holds already will do. */
int share_import(const struct member *member, uint64_t key, int gpu, int64_t bytes, bool again);

/* The process lets go of a share. Its bytes go off the books with the last holder. */
void share_drop(const struct member *member, int share);

/* The process takes an export back that it made in vain: nothing goes off its books,
 * unless others hold it by now. */
void share_withdraw(const struct member *member, int share);

/* Under the lock: all that a process holds, whose own books have been emptied. The
 * caller counts the totals. */
void share_drop_all(struct segment *segment, uint32_t place);

#endif
