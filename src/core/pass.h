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

/* One scheduling pass, in steps. Claims whose memory is free start. Jobs that fit start, by fair
 * share and priority. Then the pass makes room for others: by consolidating, reclaiming from
 * other tenants, and preempting. The first jobs that still wait are promised a start. Stops
 * after `units` of work: starts, claims, evictions and long searches without a result.
 * EFFECT_MORE says that another pass should follow: work is left, or finished jobs are to be
 * archived. A pass that follows a complete one, with nothing changed, has no effects. */
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

/* True if a waiting job of the same tenant goes before this suspended one in the queue, and
 * fits now. */
bool pass_goes_before(struct sched *sched, const struct job *job);

void pass_free(struct pass *pass);

#endif
