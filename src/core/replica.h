/* replica.h - how many slots a model should have, and giving it another */
#ifndef CORE_REPLICA_H
#define CORE_REPLICA_H

#include "core/slot.h"

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

/* Gives the model its next slot: where it fits; on memory that is coming back;
 * by evicting idle slots, unless it is only to be prewarmed. Commits and writes
 * the decision. False, and nothing changed, if there is no way. */
bool replica_place(struct sched *sched, struct model *model, bool evict);
/* By preempting jobs of its tenant with a lower priority, for requests that
 * wait and no slot at all. */
bool replica_preempt(struct sched *sched, struct model *model);

/* In a pass: claims whose memory is back become loads; those that cannot be
 * served any more lapse and are planned anew. */
void replica_claims(struct sched *sched);

#endif
