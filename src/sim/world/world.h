/* world.h - a keeper of records in memory: what a store is to the core, without a disk */
#ifndef SIM_WORLD_WORLD_H
#define SIM_WORLD_WORLD_H

#include "base/ranktree.h"
#include "core/record/effects.h"
#include "core/sched.h"

/* Copies of records, by kind and key. `kept` is what a new core is loaded from,
 * `archived` what was put aside for readers; a record is in one of them.
 * Zero-initialised is empty. */
struct world {
	struct ranktree kept[RECORD_KINDS];
	struct ranktree archived[RECORD_KINDS];
};

/* Keeps a copy in place of the record with its key. */
void world_put(struct world *world, enum record_kind kind, const void *record);
/* Applies the effects to the records. Deleting or archiving a missing record does nothing, as
 * with a store. */
void world_apply(struct world *world, const struct effects *effects);

/* The record with this key, kept or archived, or NULL. Valid until it is put,
 * deleted or archived. */
const void *world_find(const struct world *world, enum record_kind kind, int64_t first,
                       int64_t second);

/* A new core from what is kept, in the order of kinds and keys; NULL with a
 * reason if the records contradict themselves. The caller frees it. */
struct sched *world_load(const struct world *world, struct error *error);

void world_free(struct world *world);

#endif
