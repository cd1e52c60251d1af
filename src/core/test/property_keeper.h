/* property_keeper.h - keeps the records that effects tell it to, as a store would */
#ifndef CORE_TEST_PROPERTY_KEEPER_H
#define CORE_TEST_PROPERTY_KEEPER_H

#include "base/map.h"
#include "core/record/effects.h"
#include "core/sched.h"

/* A record, and its place in its table. */
struct keeper_entry {
	const void *record;
	size_t place;
};

/* The records of one kind. Their order depends on nothing but the effects. */
struct keeper_table {
	struct keeper_entry **entries;
	size_t count, capacity;
	struct map by_key;
};

/* Decisions are not kept: the core does not want them back. */
struct keeper {
	struct keeper_table tables[RECORD_KINDS];
	struct arena arena; /* where the records live */
	size_t copied;      /* into it, since it was last tidied up */
};

/* Applies the effects. Panics if they delete or archive a missing record. Records that were
 * read before become invalid. */
void keeper_apply(struct keeper *keeper, const struct effects *effects);
void keeper_free(struct keeper *keeper);

/* The record with this key, or NULL; its place in its table, or -1. */
const void *keeper_find(const struct keeper *keeper, enum record_kind kind, int64_t first,
                        int64_t second);
int64_t keeper_place(const struct keeper *keeper, enum record_kind kind, int64_t first,
                     int64_t second);

/* A core that was loaded from all that is kept, by kind and key. Panics if it
 * does not take it. */
struct sched *keeper_load(const struct keeper *keeper);

/* Shorthands for the kinds that are looked at most. */
#define KEEPER_GETTER(name, kind_name)                                                             \
	static inline const struct name##_record *keeper_##name(const struct keeper *keeper,       \
	                                                        size_t place)                      \
	{                                                                                          \
		return keeper->tables[kind_name].entries[place]->record;                           \
	}                                                                                          \
	static inline size_t keeper_##name##_count(const struct keeper *keeper)                    \
	{                                                                                          \
		return keeper->tables[kind_name].count;                                            \
	}
KEEPER_GETTER(tenant, RECORD_TENANT)
KEEPER_GETTER(node, RECORD_NODE)
KEEPER_GETTER(gpu, RECORD_GPU)
KEEPER_GETTER(job, RECORD_JOB)
KEEPER_GETTER(job_state, RECORD_JOB_STATE)
KEEPER_GETTER(task, RECORD_TASK)
KEEPER_GETTER(window, RECORD_WINDOW)
KEEPER_GETTER(reservation, RECORD_RESERVATION)
KEEPER_GETTER(model, RECORD_MODEL)
KEEPER_GETTER(slot, RECORD_SLOT)

#endif
