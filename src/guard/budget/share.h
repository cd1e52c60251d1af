/* share.h - memory that several processes of a task hold, charged once
 *
 * Memory that one process exports and others import is one piece of memory. It is charged to
 * one of them, the bearer. When the bearer releases it, the charge moves to another holder. */
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

/* The process now holds a share with that key that it did not hold before, or a new one,
 * charged to it. SHARE_REFUSED if that exceeds the limit; SHARE_NONE if the table is full,
 * and nothing was charged. With `again`, a share that it already holds is accepted. */
int share_import(const struct member *member, uint64_t key, int gpu, int64_t bytes, bool again);

/* The process releases a share. Its bytes are no longer charged after the last holder's release. */
void share_drop(const struct member *member, int share);

/* The process withdraws an export that was not used: its charge stays, unless others hold the
 * share by now. */
void share_withdraw(const struct member *member, int share);

/* Under the lock: releases all shares of a process whose own charges have been
 * removed. The caller recounts the totals. */
void share_drop_all(struct segment *segment, uint32_t place);

#endif
