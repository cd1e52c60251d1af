/* commit.c - an applicant that was placed: orders, states and the decision */
#include "core/room/commit.h"

#include "core/state.h"

static void fill_line(const struct reservation *reservation, const struct part *part, int64_t *line)
{
	const struct gpu *gpu = part->gpu;
	bool claim = reservation->phase == PHASE_CLAIM || reservation->phase == PHASE_WAKING;
	int64_t asked_mib = part->mib - reservation->residue_mib; /* what wakes has that already */

	line[LINE_GPU] = gpu->r.id;
	line[LINE_CAPACITY] = gpu->r.capacity_mib;
	line[LINE_OVERHEAD] = gpu->r.overhead_mib;
	line[LINE_FOREIGN] = gpu->r.foreign_mib;
	line[LINE_USED_BEFORE] = gpu->books.used_mib - (claim ? 0 : asked_mib);
	line[LINE_RELEASING] = gpu->books.releasing_mib;
	line[LINE_CLAIMED] = gpu->books.claimed_mib - (claim ? asked_mib : 0);
	line[LINE_ASKED] = asked_mib;
	line[LINE_USED_AFTER] = gpu->books.used_mib;
}

int lines_add(const struct reservation *reservation, int64_t *lines, int count)
{
	for (int i = 0; i < reservation->part_count && count < GPU_LINES_MAX; i++, count++)
		fill_line(reservation, &reservation->parts[i], lines + (size_t)count * LINE_WIDTH);
	return count;
}

/* What became of a reservation that the plan made for the job. */
static void settle_task(struct sched *sched, struct reservation *reservation)
{
	if (reservation->phase == PHASE_GRANTED)
		job_granted(sched, reservation);
	else
		job_claimed(sched, reservation);
}

static void describe_job(const struct search *search, struct decision_record *decision, bool grows)
{
	const struct job *job = search->job;

	if (decision->kind == DECISION_START && job->counts.claims > 0)
		decision->kind = DECISION_CLAIM;
	else if (decision->kind == DECISION_START && grows)
		decision->kind = DECISION_GROW;
	decision->job_id = job->r.id;
	decision->tenant_id = job->r.tenant_id;
	decision->premium_milli = search->scarcity * INT64_C(1000) / SCARCITY_UNIT;
	decision->candidates = search->candidates;
}

static void describe_slot(const struct slot *slot, struct decision_record *decision)
{
	if (slot->reservation->phase == PHASE_GRANTED)
		decision->kind = DECISION_LOAD;
	else if (decision->kind == DECISION_START)
		decision->kind = DECISION_CLAIM;
	decision->tenant_id = slot->model->r.tenant_id;
	decision->model_id = slot->r.model_id;
	decision->slot_id = slot->r.id;
}

void applicant_commit(struct sched *sched, struct search *search, struct decision_record *decision)
{
	const struct plan *plan = &sched->plan;
	struct job *job = search->job;
	struct slot *slot = NULL;
	int64_t lines[GPU_LINES_MAX * LINE_WIDTH];
	int count = 0;
	bool claims = false;
	bool grows = job && job->r.split_gpus == 0 && job_active(job) > search->shape->tasks;

	INVARIANT(sched->plan.open);
	sched_commit(sched);
	if (job)
		job_begins(sched, job);
	for (size_t i = 0; i < plan->count; i++) {
		struct reservation *reservation = plan->steps[i].reservation;
		if (plan->steps[i].kind != STEP_ENTER || reservation->job != job)
			continue;
		count = lines_add(reservation, lines, count);
		if (job) {
			decision->tasks++;
			settle_task(sched, reservation);
		}
		claims = claims || reservation->phase == PHASE_CLAIM;
		slot = reservation->slot;
	}
	INVARIANT(job || (slot && slot->model == search->model));
	if (job)
		describe_job(search, decision, grows);
	else
		describe_slot(slot, decision);
	decision->score = search->score;
	if (claims || (job && job->counts.claims > 0))
		decision->until_ms =
		    sched_now(sched) + sched->config.grace_ms + sched->config.release_timeout_ms;
	decision->gpus = (struct rows){ lines, count };
	sched_decide(sched, decision);
	if (job)
		job_settle(sched, job);
	else
		slot_begins(sched, slot);
	sched->pass.budget--;
	sched->pass.change_seq++;
}
