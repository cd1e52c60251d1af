/* evict.h - idle slots, as those who need their memory see them */
#ifndef CORE_EVICT_H
#define CORE_EVICT_H

#include "base/ranktree.h"
#include "core/site.h"

struct job;
struct search;

/* A slot may be evicted when it is cold (ready, without a request in flight and
 * not used for its time to live), not pinned, and its model keeps its minimum
 * of replicas without it. Those slots are listed by what loading them again
 * takes and then by when they were last used, so that the first is the one that
 * loses least. `version` changes whenever one is added. */
struct cold_slots {
	struct ranktree by_cost; /* struct slot *, by (cold_key, id) */
	uint64_t version;
	uint64_t search; /* numbers the searches for what to evict */
};

/* Puts the slot into the list or takes it out, as things are. */
void evict_list(struct sched *sched, struct slot *slot);
/* The same for all slots of a model: its minimum or its number of slots changed. */
void evict_list_model(struct sched *sched, struct model *model);
/* How many slots of the model may go at the same time. Slots on nodes that are
 * drained do not count for its minimum. */
int64_t evict_spare(const struct model *model);

/* What is measured of it has changed. */
void evict_measured(struct slot *slot);

/* In an open plan: if a limit or a quota refuses the tenant these amounts,
 * releases idle slots of those who count for it, the cheapest first, until it
 * does not. False if that is not enough; the plan is then to be rolled back. */
bool evict_within_limits(struct sched *sched, struct tenant *tenant, const struct amounts *amounts,
                         bool preemptible, struct site *site);
/* In an open plan: releases what the site evicts. */
void evict_release(struct sched *sched, const struct site *site);
/* After the plan is committed: stops them, and writes why. For a slot or a job. */
void evict_stop(struct sched *sched, const struct site *site, const struct slot *for_slot,
                const struct job *for_job);
/* Rows of enum evicted_column; `rows` has room for SITE_VICTIMS_MAX. */
int evict_rows(const struct sched *sched, const struct site *site, int64_t *rows);

/* For a job that does not fit: the idle slots that lose least go, it gets a claim
 * on their memory. Commits and writes the decision; false, and nothing changed
 * but sched.room.retry_ms (when time alone may help), if there is no way. */
bool evict_for_job(struct sched *sched, struct search *search);

/* Panics unless the list is that of a recount. */
void evict_check(const struct sched *sched);

#endif
