/* state.h - the guard within one process: its segment, and its place in it */
#ifndef GUARD_CALLS_STATE_H
#define GUARD_CALLS_STATE_H

#include <stdbool.h>

#include "guard/budget/lock.h"
#include "guard/budget/segment.h"

/* Attaches the process to the segment in a file, NULL for none; where there is none
 * that can be used, to one of its own with those limits (limits.h), NULL for none. Done
 * once by itself, with what the environment says (guard.h), when the library is loaded
 * or first used. */
void state_attach(const char *path, const char *limits);

/* The segment; NULL if the guard has nothing to guard. */
struct segment *state_segment(void);
static inline bool state_active(void) { return state_segment() != NULL; }

/* The process in the segment, where it joins when this is called first. NULL if there
 * is no segment, or no place left in it. */
const struct member *state_member(void);

#endif
