/* stash.h - exported memory that only file descriptors still hold
 *
 * Memory that was exported lives until the last handle, the last mapping and the last descriptor of
 * it are gone, wherever that descriptor is: in this process, in another, or on its way between
 * two. The kernel knows: an epoll set drops a file when its last descriptor is closed, and holds
 * none itself. */
#ifndef GUARD_CALLS_STASH_H
#define GUARD_CALLS_STASH_H

#include <stdbool.h>
#include <stdint.h>

#include "guard/calls/track.h"

/* An object (track.h) was exported as this descriptor. */
void stash_watch(uint64_t object, int file);

/* The last handle and mapping of an object are gone. True if a descriptor of it is left: then its
 * charge stays, and is given back when that is closed. */
bool stash_keep(const struct track_item *item);

/* Gives back what is charged for objects whose descriptors are closed by now. */
void stash_sweep(void);

/* In a forked child. */
void stash_reset(void);

#endif
