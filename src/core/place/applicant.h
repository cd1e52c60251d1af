/* applicant.h - what wants room: the next tasks of a job, or the next slot of a model
 *
 * Tasks, gangs and slots are placed, explained and made room for by one engine. A
 * search (place.h) says who the applicant is and what it keeps to; what follows from
 * that is asked here. The steps are the same for all:
 *
 *     applicant_place    in an open plan: where it fits now, or else a claim
 *     evict_make         idle slots go (evict.h)
 *     room_make          others move, or are stopped (room.h)
 *     applicant_commit   the plan is kept, orders and the decision are written (commit.h)
 *
 * A slot differs in three things: it has several shapes, one for each split, and
 * takes the one with the fewest GPUs that fits; its GPUs are chosen by the policy of
 * its model; and what it counts for depends on the GPUs it gets, so that its tenant's
 * limits are checked by the plan rather than before. */
#ifndef CORE_PLACE_APPLICANT_H
#define CORE_PLACE_APPLICANT_H

#include "core/place/place.h"

struct bound;

/* A search for the next tasks of a waiting job, or for the next slot of a model. */
struct search applicant_job(struct placement *placement, struct job *job);
struct search applicant_slot(struct model *model);

/* Who pays, and how it ranks against jobs that may be stopped for it. */
struct tenant *applicant_tenant(const struct search *search);
int64_t applicant_priority(const struct search *search);
/* What it would count for with its tenant: of a slot, the most that it could, by the
 * smallest GPU. */
struct amounts applicant_amounts(const struct placement *placement, const struct search *search);
/* The amounts of a slot whose GPUs are chosen. */
struct amounts choice_amounts(const struct search *search, const struct choice *choice);
/* Whether its tenant may hold these amounts as well; the bound that refuses them. */
bool applicant_may_hold(const struct placement *placement, const struct search *search,
                        const struct amounts *amounts, struct bound *bound);

/* The best place for a slot: at this moment, or else on memory that is coming back,
 * as the search's view then says. False if there is none, which the model remembers
 * until something comes free. */
bool applicant_find(struct placement *placement, struct search *search, struct choice *choice);
/* In an open plan: all that the applicant asks for at once, or else as claims.
 * Remembers what fails for every applicant of its shape, or for the model. Otherwise
 * the plan is as it was. */
bool applicant_place(struct placement *placement, struct search *search);
/* In an open plan: the slot at this place, held or a claim by the search's view.
 * False if a limit refuses it. */
bool applicant_reserve(struct placement *placement, struct search *search,
                       const struct choice *choice);

#endif
