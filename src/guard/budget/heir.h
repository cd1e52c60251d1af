/* heir.h - processes that keep the memory of another, because they inherited its descriptors
 *
 * The driver frees the memory of a process when the last copy of its descriptors is closed. A
 * forked child has copies until it ends, closes them or calls exec. */
#ifndef GUARD_BUDGET_HEIR_H
#define GUARD_BUDGET_HEIR_H

#include <stdbool.h>
#include <stdint.h>

#include "guard/budget/segment.h"

/* In a forked child: it has what `of` has open. Forgotten if there is no room for it. */
void heir_add(struct segment *segment, uint64_t heir, uint64_t of);

/* True if a process that lives has descriptors of `of`, which is gone. Only for processes in the
 * caller's own namespace. */
bool heir_lives(struct segment *segment, uint64_t of);

/* How the driver's files begin; tests set theirs. */
extern const char *heir_files;

#endif
