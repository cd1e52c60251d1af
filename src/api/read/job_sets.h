/* job_sets.h - which jobs there are, by tenant and state, in the orders that lists have */
#ifndef API_READ_JOB_SETS_H
#define API_READ_JOB_SETS_H

#include "base/map.h"
#include "base/ranktree.h"
#include "core/record/types.h"

/* Jobs of one tenant, or of all, in one state. */
struct job_set {
	struct ranktree by_id;       /* (id, 0) */
	struct ranktree by_priority; /* (-priority, id): the highest first, then the oldest */
	int64_t archived;            /* how many have left memory */
};

/* The last set of a group is that of all states. */
struct job_group {
	struct job_set states[JOB_STATES + 1];
};

/* Zero-initialised is empty. */
struct job_sets {
	struct job_group all;
	struct map tenants; /* id -> struct job_group */
};

/* What decides where a job stands. */
struct job_place {
	int64_t id, tenant_id, priority;
	int state; /* enum job_state */
};

void job_sets_add(struct job_sets *sets, const struct job_place *place);
void job_sets_remove(struct job_sets *sets, const struct job_place *place);
/* Moves a job: removes it at the old place and adds it at the new, which has its id. */
void job_sets_move(struct job_sets *sets, const struct job_place *from, const struct job_place *to);
/* Adds `count` archived jobs. */
void job_sets_archive(struct job_sets *sets, int64_t tenant_id, int state, int64_t count);
/* Of a tenant (0: of all) in a state (-1: in all); NULL if there never was one. */
const struct job_set *job_sets_get(const struct job_sets *sets, int64_t tenant_id, int state);
void job_sets_free(struct job_sets *sets);

#endif
