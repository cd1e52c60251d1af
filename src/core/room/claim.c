/* claim.c - claims: memory that is being freed, and who is waiting for it */
#include "core/room/claim.h"

#include "core/model/slot.h"
#include "core/place/window_rules.h"
#include "core/queue/job.h"
#include "core/room/commit.h"
#include "core/state.h"

/* Those that are on it once claims are served share it in one way. */
static bool shares_are_sound(const struct gpu *gpu)
{
	struct compute_view later = compute_later(gpu);

	return later.sum.parts == 0 || (gpu_gives_compute(gpu) && later.owners == later.sum.parts &&
	                                compute_left(&later) >= 0);
}

bool claim_is_sound(const struct sched *sched, const struct reservation *claim)
{
	const struct node *node = claim->node;

	if (!node_is_open(node) || window_keeps_off(&sched->placement, claim) ||
	    (claim->cpu_milli > 0 && host_free_later(&node->cpu, node_cpu_milli(node)) < 0) ||
	    (claim->host_bytes > 0 && host_free_later(&node->host, node_host_bytes(node)) < 0))
		return false;
	for (int i = 0; i < claim->part_count; i++) {
		const struct gpu *gpu = claim->parts[i].gpu;
		const struct gpu_books *books = &gpu->books;
		if (!gpu_is_open(gpu, &sched->config) || gpu_free_later(gpu) < 0)
			return false;
		if (claim->parts[i].whole
		        ? books->owners > books->releasing_owners || books->claims > 1
		        : books->whole_owners > books->whole_releasing || !shares_are_sound(gpu))
			return false;
	}
	return true;
}

/* A gang that lost more since, so that its claims do not complete it any more, is
 * placed again: it starts with all that it must have or not at all. */
static bool job_is_sound(const struct sched *sched, const struct job *job)
{
	if (job->r.split_gpus == 0 && job_active(job) + job->ended < job->r.min_available)
		return false;
	for (int i = 0; i < job->r.tasks; i++)
		if (job->tasks[i].claim && !claim_is_sound(sched, job->tasks[i].claim))
			return false;
	return true;
}

static void lapse_job(struct sched *sched, struct job *job)
{
	struct decision_record decision = { .kind = DECISION_LAPSED,
		                            .job_id = job->r.id,
		                            .tenant_id = job->r.tenant_id,
		                            .tasks = job->counts.claims };

	job_drop_claims(sched, job);
	sched_decide(sched, &decision);
	job_settle(sched, job);
	if (job->timer_ms <= sched_now(sched)) { /* its deadline passed while it had the claim */
		heap_remove(&sched->timers, job);
		job_timer(sched, job);
	}
}

static void lapse_slot(struct sched *sched, struct slot *slot)
{
	struct decision_record decision = { .kind = DECISION_LAPSED,
		                            .tenant_id = slot->model->r.tenant_id,
		                            .model_id = slot->r.model_id,
		                            .slot_id = slot->r.id };

	sched_decide(sched, &decision);
	if (slot->r.state == SLOT_WAKING)
		slot_sleeps_on(sched, slot);
	else
		slot_drop(sched, slot);
}

/* Commits the open plan, in which claims became rights, and writes the decision. */
static void claim_commit(struct sched *sched, struct decision_record *decision, struct job *job)
{
	const struct plan *plan = &sched->plan;
	struct gpu_lines lines;

	lines_clear(&lines);
	sched_commit(sched);
	if (job)
		job_begins(sched, job);
	for (size_t i = 0; i < plan->count; i++) {
		lines_add(&lines, plan->steps[i].reservation);
		if (job)
			job_granted(sched, plan->steps[i].reservation);
	}
	lines_give(&lines, decision);
	sched_decide(sched, decision);
	sched->pass.budget--;
}

static bool redeem_job(struct sched *sched, struct job *job)
{
	struct decision_record decision = { .kind = DECISION_START,
		                            .job_id = job->r.id,
		                            .tenant_id = job->r.tenant_id };

	plan_begin(&sched->ledger);
	for (int i = 0; i < job->r.tasks; i++) {
		if (!job->tasks[i].claim)
			continue;
		if (!plan_grant(&sched->ledger, job->tasks[i].claim, NULL)) {
			plan_abandon(&sched->ledger);
			return false;
		}
		decision.tasks++;
	}
	claim_commit(sched, &decision, job);
	job_settle(sched, job);
	return true;
}

/* It had a claim on its GPUs, and gets them. */
static bool wake_slot(struct sched *sched, struct slot *slot)
{
	struct decision_record decision = { .kind = DECISION_WAKE,
		                            .tenant_id = slot->model->r.tenant_id,
		                            .model_id = slot->r.model_id,
		                            .slot_id = slot->r.id };

	plan_begin(&sched->ledger);
	if (!plan_resume(&sched->ledger, slot->reservation, NULL)) {
		plan_abandon(&sched->ledger);
		return false;
	}
	claim_commit(sched, &decision, NULL);
	slot_wakes(sched, slot);
	return true;
}

static bool redeem_slot(struct sched *sched, struct slot *slot)
{
	struct decision_record decision = { .kind = DECISION_LOAD,
		                            .tenant_id = slot->model->r.tenant_id,
		                            .model_id = slot->r.model_id,
		                            .slot_id = slot->r.id };

	plan_begin(&sched->ledger);
	if (!plan_grant(&sched->ledger, slot->reservation, NULL)) {
		plan_abandon(&sched->ledger);
		return false;
	}
	claim_commit(sched, &decision, NULL);
	slot_granted(sched, slot);
	return true;
}

/* True if something changed. */
static bool serve_job(struct sched *sched, void *claimant)
{
	struct job *job = claimant;

	INVARIANT(job->counts.claims > 0);
	if (job_is_sound(sched, job))
		return redeem_job(sched, job);
	lapse_job(sched, job);
	return true;
}

static bool serve_slot(struct sched *sched, void *claimant)
{
	struct slot *slot = claimant;

	bool wakes = slot->reservation->phase == PHASE_WAKING;

	INVARIANT(slot->claims);
	if (claim_is_sound(sched, slot->reservation))
		return wakes ? wake_slot(sched, slot) : redeem_slot(sched, slot);
	lapse_slot(sched, slot);
	return true;
}

/* Claimants leave the tree as they are served. */
static void serve_all(struct sched *sched, const struct ranktree *claimants,
                      bool (*serve)(struct sched *, void *))
{
	int64_t after = 0;

	while (sched->pass.budget > 0) {
		struct rank_cursor cursor = ranktree_seek(claimants, after + 1, 0);
		const struct rank_entry *entry = rank_cursor_next(&cursor);
		if (!entry)
			return;
		after = entry->major;
		if (serve(sched, entry->value))
			sched->pass.change_seq++;
	}
}

void claims_serve(struct sched *sched)
{
	INVARIANT(!sched->plan.open);
	serve_all(sched, &sched->claimants, serve_job);
	serve_all(sched, &sched->models.claimants, serve_slot);
}
