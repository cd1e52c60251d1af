/* replica.h - how many slots a model should have, and giving it another */
#ifndef CORE_REPLICA_H
#define CORE_REPLICA_H

#include "core/slot.h"

struct site;

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

/* The ways to give a model another slot, in the order in which a pass tries them. */
enum replica_way {
	REPLICA_FIT,     /* where it fits now, or on memory that is coming back */
	REPLICA_EVICT,   /* idle slots go; not for what is only to be prewarmed */
	REPLICA_PREEMPT, /* jobs of its tenant with a lower priority go, if its tenant may do
	                    that: for requests that wait where there is no slot at all */
	REPLICA_WAYS,
};

/* Gives the model its next slot that way; commits and writes the decision. False,
 * and nothing changed, if it wants none or there is no way. */
bool replica_place(struct sched *sched, struct model *model, enum replica_way way);
bool replica_preempt(struct sched *sched, struct model *model);
/* Whether that is worth trying: cheap, and true wherever it could succeed. */
bool replica_may_preempt(const struct sched *sched, const struct model *model);
/* Writes the decision about a slot that was just placed, before it begins. */
void replica_decide(struct sched *sched, const struct slot *slot, const struct site *site,
                    struct decision_record *decision);

/* In a pass, models take their turn with the jobs of their tenants: by priority,
 * which does not age, and before a job of the same. Opens all that want a slot
 * and could have one that way; the first of a tenant, or NULL; tries it, and
 * leaves it open while it wants more. */
void replica_open(struct sched *sched, enum replica_way way);
struct model *replica_first(const struct tenant *tenant);
bool replica_goes_before(const struct model *model, int64_t effective_priority);
void replica_serve(struct sched *sched, struct tenant *tenant);
void replica_close(struct sched *sched);
/* What its next slot counts for with its tenant, before its GPUs are known. */
struct amounts replica_amounts(const struct sched *sched, const struct model *model);

/* In a pass: claims whose memory is back become loads; those that cannot be
 * served any more lapse and are planned anew. */
void replica_claims(struct sched *sched);

#endif
