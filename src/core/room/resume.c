/* resume.c - suspended jobs get their GPUs back */
#include "core/room/resume.h"

#include <stdlib.h>

#include "core/place/window_rules.h"
#include "core/queue/suspend.h"
#include "core/room/claim.h"
#include "core/room/commit.h"
#include "core/state.h"

static int resume_order(const void *a, const void *b)
{
	const struct job *x = *(struct job *const *)a, *y = *(struct job *const *)b;

	if (x->r.priority != y->r.priority)
		return x->r.priority > y->r.priority ? -1 : 1;
	if (x->s.suspended_ms != y->s.suspended_ms)
		return x->s.suspended_ms < y->s.suspended_ms ? -1 : 1;
	return x->r.id < y->r.id ? -1 : x->r.id > y->r.id;
}

/* All that are suspended, in the order in which they resume; to be freed. */
static struct job **suspended_jobs(const struct sched *sched, size_t *count)
{
	struct job **jobs = memory_alloc((sched->suspended.count + 1) * sizeof(*jobs));
	struct rank_cursor cursor = ranktree_seek(&sched->suspended, INT64_MIN, INT64_MIN);
	const struct rank_entry *entry;

	*count = 0;
	while ((entry = rank_cursor_next(&cursor)))
		jobs[(*count)++] = entry->value;
	qsort(jobs, *count, sizeof(*jobs), resume_order);
	return jobs;
}

/* Whether its GPUs and its node could take it if all else were gone. */
static bool could_resume(const struct reservation *reservation)
{
	if (reservation->cpu_milli > node_cpu_milli(reservation->node))
		return false;
	for (int i = 0; i < reservation->part_count; i++) {
		const struct gpu *gpu = reservation->parts[i].gpu;
		if (!gpu->r.present || gpu->r.mig_mode ||
		    reservation->parts[i].mib > gpu_usable_mib(gpu))
			return false;
	}
	return true;
}

static bool may_wake(struct sched *sched, struct job *job)
{
	return job_not_before(job) <= sched->meta.timed_ms &&
	       !window_keeps_off(&sched->placement, suspend_reservation(job)) &&
	       !pass_goes_before(sched, job);
}

/* Whether it has waited for its GPUs for as long as it ran since its last checkpoint, which it
 * does again when it starts elsewhere: so it loses no more than it has waited. */
static bool waited_enough(const struct sched *sched, const struct job *job)
{
	int64_t suspended_ms = job->s.suspended_ms, ran_ms = job_run_ms(job, suspended_ms);

	INVARIANT(suspended_ms > 0);
	if (job->s.checkpoint_ms > 0)
		ran_ms = min64(ran_ms, max64(suspended_ms - job->s.checkpoint_ms, 0));
	return sched_now(sched) - suspended_ms >= max64(ran_ms, sched->config.suspend_wait_ms);
}

/* It claims its GPUs no more. */
static void resume_give_up(struct sched *sched, struct reservation *reservation)
{
	ledger_phase(&sched->ledger, reservation, PHASE_SUSPENDED, false);
	reservation->since_ms = sched_now(sched);
	sched_dirty_reservation(sched, reservation);
	sched->pass.change_seq++;
}

static void resume_commit(struct sched *sched, struct reservation *reservation)
{
	struct job *job = reservation->job;
	struct decision_record decision = { .kind = DECISION_RESUME,
		                            .job_id = job->r.id,
		                            .tenant_id = job->r.tenant_id,
		                            .tasks = 1 };
	struct gpu_lines lines;

	sched_commit(sched);
	sched->pass.budget--;
	sched->pass.change_seq++;
	if (reservation->phase != PHASE_RESUMING)
		return;
	lines_clear(&lines);
	lines_add(&lines, reservation);
	lines_give(&lines, &decision);
	sched_decide(sched, &decision);
	job_resumes(sched, reservation);
}

/* Whether it resumes, or claims its GPUs: then the plan is committed. */
static bool try_resume(struct sched *sched, struct reservation *reservation)
{
	bool wakes = reservation->phase == PHASE_WAKING;

	plan_begin(&sched->ledger);
	bool resumes = (wakes || plan_wake(&sched->ledger, reservation, NULL)) &&
	               plan_resume(&sched->ledger, reservation, NULL);
	if (reservation->phase == PHASE_SUSPENDED || (wakes && !resumes)) {
		plan_abandon(&sched->ledger);
		return false;
	}
	resume_commit(sched, reservation);
	return true;
}

static void resume_job(struct sched *sched, struct job *job)
{
	struct reservation *reservation = suspend_reservation(job);
	bool wakes = reservation->phase == PHASE_WAKING;

	INVARIANT(phase_is_suspended(reservation->phase));
	if (reservation->phase != PHASE_SUSPENDED && !wakes)
		return;
	if (wakes && (job->s.parked || !claim_is_sound(sched, reservation))) {
		resume_give_up(sched, reservation);
		return;
	}
	if (!wakes && job->s.parked)
		return;
	if (!wakes && node_is_open(reservation->node) && !could_resume(reservation)) {
		suspend_stop(sched, reservation, "its GPUs do not have room for it any more");
		return;
	}
	bool resumes = (wakes || may_wake(sched, job)) && try_resume(sched, reservation);
	if (!wakes && !resumes && waited_enough(sched, job))
		suspend_stop(sched, reservation, "its GPUs did not come free");
}

void resume_serve(struct sched *sched)
{
	size_t count;

	INVARIANT(!sched->plan.open && sched->index.built);
	if (sched->suspended.count == 0)
		return;
	struct job **jobs = suspended_jobs(sched, &count);
	for (size_t i = 0; i < count && sched->pass.budget > 0; i++)
		resume_job(sched, jobs[i]);
	free(jobs);
}
