/* replica.h - how many slots a model should have, and its turn in a pass */
#ifndef CORE_MODEL_REPLICA_H
#define CORE_MODEL_REPLICA_H

#include "core/model/slot.h"

/* Why a model wants another slot, the most urgent first. */
enum want {
	WANT_NOTHING,
	WANT_SERVE,   /* requests wait and it has no slot, nor is one coming */
	WANT_MINIMUM, /* it has fewer than its minimum */
	WANT_REPLICA, /* more requests wait than the slots that are coming have places for */
	WANT_PREWARM, /* it has none, and is to be loaded before anyone asks */
};

/* What the model wants now: nothing while it backs off. A model never has more
 * slots than its maximum; those that are coming count, and so do those on nodes
 * that have not reported yet, so nothing piles up. */
enum want replica_want(const struct sched *sched, const struct model *model);

/* Lists the model among those that want something, or takes it out. */
void replica_list(struct sched *sched, struct model *model);

/* Whether it wants a slot that would be had in the way that the pass is at: where it
 * fits; by evicting idle slots, unless it is only to be prewarmed; by preempting jobs,
 * if requests wait and it has no slot at all. */
bool replica_wants_room(const struct sched *sched, const struct model *model);

/* How urgently a model waits: first those whose turn has come (rotation.h), then those with a
 * request that can still be served within its goal, then the others; of equal ones that whose
 * request came first. */
enum urgency_rank { URGENCY_DUE, URGENCY_IN_TIME, URGENCY_LATE };
struct urgency {
	enum urgency_rank rank;
	int64_t number;
};
struct urgency replica_urgency(const struct sched *sched, const struct model *model);
/* Below 0: a is more urgent. */
int urgency_compare(struct urgency a, struct urgency b);

/* A model that wants a slot. */
struct wanting {
	struct model *model;
	struct urgency urgency;
};

/* In a pass, models take their turn with the jobs of their tenants: by priority,
 * which does not age, and before a job of the same; of equal ones the most urgent. Opens all that
 * want a slot and could have one in the way that the pass is at; the first of a tenant, or NULL. */
void replica_open(struct sched *sched);
struct model *replica_first(const struct tenant *tenant);
bool replica_goes_before(const struct model *model, int64_t effective_priority);
void replica_close(struct sched *sched);

#endif
