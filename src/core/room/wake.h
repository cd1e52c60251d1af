/* wake.h - slots that are asleep: which wake, and which make way for others */
#ifndef CORE_ROOM_WAKE_H
#define CORE_ROOM_WAKE_H

#include "core/model/slot.h"

/* A slot that is asleep wakes on the GPUs where it sleeps, which a model prefers to a load
 * elsewhere: what is idle there goes, if that makes room, also where the GPU rests from loads. If
 * its GPUs do not come free for as long as a load takes, the model is loaded elsewhere, and the
 * slot that is asleep is stopped. */

/* True if the model has a slot that is asleep. */
bool wake_may_help(const struct model *model);
/* True if the model waits for the GPUs of a slot that is asleep rather than load elsewhere: until
 * its oldest request has waited for as long as a load takes. */
bool wake_is_awaited(const struct sched *sched, const struct model *model);
/* Wakes one for the model, or gives it a claim on its GPUs. Commits and writes the decision. False,
 * and nothing changed, if no slot can wake. */
bool wake_make(struct sched *sched, struct model *model);

/* In a pass: stops those whose model has all its slots without them, and the one that was used
 * longest ago where the host has no memory left for what is idle and was used since. */
void wake_trim(struct sched *sched);

#endif
