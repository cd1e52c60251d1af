/* pass.h - decide: who is next, and what can be done for them */
#ifndef CORE_PASS_H
#define CORE_PASS_H

#include "core/place/applicant.h"
#include "core/place/place.h"
#include "core/queue/job.h"
#include "core/tenant/turn.h"

/* What a pass keeps between calls, so that it allocates nothing. */
struct pass {
	struct turn turn;
	int64_t budget; /* left */
	bool making_room;
	int room_kind;        /* enum room_kind, while making room */
	uint64_t change_seq;  /* another number after every change that may matter to it */
	struct amounts *fair; /* shares of the last pass, by tenant, to see whether they changed */
	size_t fair_count, fair_capacity;
};

/* One pass, in steps: claims whose memory is back start; what fits starts, by
 * fair share and priority; then room is made for what does not: by moving
 * others together, by reclaiming from other tenants, by preempting; then the
 * first of those that still wait are promised a start. Stops after `units` of
 * work, which are starts, claims, evictions and long searches in vain. EFFECT_MORE says
 * that another pass should follow: work is left, or jobs that ended are to be archived. A
 * pass that follows a complete one, with nothing changed, has no effects. */
void pass_run(struct sched *sched, int64_t units);

/* What came of trying something for a job. */
enum outcome {
	OUTCOME_DONE,
	OUTCOME_MAY_TRY,  /* nothing is known that speaks against it */
	OUTCOME_NONE,     /* nor for any other of its group */
	OUTCOME_TOO_LONG, /* shorter jobs of its group may have better luck */
	OUTCOME_TOO_LOW,  /* jobs of its group with a higher priority may */
};

/* Tries to start the applicant, or to claim for it; commits and writes the decision.
 * Unless that is done, nothing has changed. */
enum outcome pass_try(struct sched *sched, struct search *search);

void pass_free(struct pass *pass);

#endif
