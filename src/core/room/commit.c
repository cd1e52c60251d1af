/* commit.c - an applicant that was placed: orders, states and the decision */
#include "core/room/commit.h"

#include "core/state.h"

void lines_clear(struct gpu_lines *lines)
{
	lines->count = 0;
	lines->any_unexplained = false;
}

int64_t *lines_add_gpu(struct gpu_lines *lines, const struct gpu *gpu)
{
	INVARIANT(lines->count < GPU_LINES_MAX);
	int64_t *line = lines->at + (size_t)lines->count * LINE_WIDTH;

	line[LINE_GPU] = gpu->r.id;
	line[LINE_CAPACITY] = gpu->r.capacity_mib;
	line[LINE_OVERHEAD] = gpu->r.overhead_mib;
	line[LINE_FOREIGN] = gpu->r.foreign_mib;
	line[LINE_RELEASING] = gpu->books.releasing_mib;
	line[LINE_CLAIMED] = gpu->books.claimed_mib;
	line[LINE_USED_BEFORE] = line[LINE_USED_AFTER] = gpu->books.used_mib;
	lines->unexplained[lines->count] = gpu->r.unexplained_mib;
	lines->any_unexplained = lines->any_unexplained || gpu->r.unexplained_mib > 0;
	lines->count++;
	return line;
}

void lines_add(struct gpu_lines *lines, const struct reservation *reservation)
{
	bool claim = reservation->phase == PHASE_CLAIM || reservation->phase == PHASE_WAKING;

	for (int i = 0; i < reservation->part_count && lines->count < GPU_LINES_MAX; i++) {
		const struct part *part = &reservation->parts[i];
		int64_t *line = lines_add_gpu(lines, part->gpu);
		/* What wakes has its residue already. */
		int64_t asked_mib = part->mib - reservation->residue_mib;
		line[LINE_ASKED] = asked_mib;
		line[claim ? LINE_CLAIMED : LINE_USED_BEFORE] -= asked_mib;
	}
}

void lines_give(const struct gpu_lines *lines, struct decision_record *decision)
{
	decision->gpus = (struct rows){ lines->at, lines->count };
	if (lines->any_unexplained)
		decision->unexplained = (struct rows){ lines->unexplained, lines->count };
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
	struct gpu_lines lines;
	bool claims = false;
	bool grows = job && job->r.split_gpus == 0 && job_active(job) > search->shape->tasks;

	INVARIANT(sched->plan.open);
	lines_clear(&lines);
	sched_commit(sched);
	if (job)
		job_begins(sched, job);
	for (size_t i = 0; i < plan->count; i++) {
		struct reservation *reservation = plan->steps[i].reservation;
		if (plan->steps[i].kind != STEP_ENTER || reservation->job != job)
			continue;
		lines_add(&lines, reservation);
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
	lines_give(&lines, decision);
	sched_decide(sched, decision);
	if (job)
		job_settle(sched, job);
	else
		slot_begins(sched, slot);
	sched->pass.budget--;
	sched->pass.change_seq++;
}
