/* state.h - what the node's state machine wants kept: for good, and by one agent alone */
#ifndef AGENT_HOST_STATE_H
#define AGENT_HOST_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

/* A directory with a journal: values under keys, appended with a checksum, the last one
 * counts. An entry that a crash cut off at the end is ignored. When most of the journal is
 * outdated, it is rewritten into another file, which then replaces it.
 *
 *     journal     what is kept           works/ID    what keepers write down
 *     lock        held by the agent      output/     what tasks write
 *     node.key    of the node, for secrets: see vault.h
 *     instance    what this directory is called among all on the machine
 *     lease       until when tasks that stop on lease loss may live (int64_t, milliseconds) */
struct state;

/* Opens or makes it. NULL with a reason, such as another agent that has it open. */
struct state *state_open(const char *directory, struct error *error);
void state_close(struct state *state);

/* Everything that is kept, in no order. False, with the reason, when `each` said so. */
bool state_each(const struct state *state,
                bool (*each)(void *context, int64_t key, const void *data, size_t size,
                             struct error *error),
                void *context, struct error *error);
/* Both count from state_sync on. `secret`: nothing of it may stay in the journal once it is
 * replaced or erased, see state_wipe. */
void state_put(struct state *state, int64_t key, const void *data, size_t size, bool secret);
void state_erase(struct state *state, int64_t key);
/* Makes all of that last. False with a reason: nothing may be done that relies on it. */
bool state_sync(struct state *state, struct error *error);

/* Rewrites the journal if it has secrets that were replaced or erased, and overwrites the old
 * one. False with a reason: they are still there, and it can be tried again. */
bool state_wipe(struct state *state, struct error *error);

/* Until when tasks that stop on lease loss may live: read by their keepers. It does not
 * outlive the boot, so it is not synced. */
bool state_set_lease(struct state *state, int64_t until_ms);
int64_t state_lease(const struct state *state); /* 0: not known */

const char *state_directory(const struct state *state);
/* Tells this directory from those of other agents on the machine, which may run nodes of the same
 * name for other schedulers: a few letters, or none for a directory of a version that had no such
 * name, whose works have cgroups without it. Made at the first start, the same from then on. */
const char *state_instance(const struct state *state);

#endif
