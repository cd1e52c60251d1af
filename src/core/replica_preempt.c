/* replica_preempt.c - jobs that go so that a model can be served */
#include "core/pass.h"
#include "core/replica.h"
#include "core/room.h"
#include "core/site.h"
#include "core/state.h"

#define VICTIM_ROWS 64 /* victims that one decision shows */

bool replica_may_preempt(const struct sched *sched, const struct model *model)
{
	const struct rank_entry *first = ranktree_first(&model->tenant->victims);

	return sched->config.enable_preemption && model->tenant->r.can_preempt_others && first &&
	       first->major < model->r.priority &&
	       !(model->preempt_failed.state == sched->pass.state &&
	         sched_now(sched) < model->preempt_failed.retry_ms);
}

/* Whether the job may be stopped for the model; notes when it is not safe any more. */
static bool may_stop(const struct sched *sched, const struct job *job, const struct model *model,
                     int64_t *retry_ms)
{
	if (job->r.priority >= model->r.priority || job->counts.claims > 0 ||
	    job->counts.held + job->counts.live == 0)
		return false;
	if (!job_is_protected(sched, job))
		return true;
	if (job->r.preemptible && job->s.preempted_count < job->tenant->r.max_preemptions)
		*retry_ms = min64(*retry_ms, job->s.started_ms + sched->config.min_runtime_ms);
	return false;
}

static bool runs(const struct reservation *reservation)
{
	return reservation &&
	       (reservation->phase == PHASE_HELD || reservation->phase == PHASE_LIVE);
}

static void release_all(struct sched *sched, const struct job *job)
{
	for (int i = 0; i < job->r.tasks; i++)
		if (runs(job->tasks[i].reservation))
			plan_release(sched, job->tasks[i].reservation);
}

/* The best place on the nodes that the job would leave. */
static bool find_where(struct sched *sched, const struct site_need *need, const struct job *job,
                       struct site *site)
{
	for (int i = 0; i < job->r.tasks; i++) {
		const struct reservation *reservation = job->tasks[i].reservation;
		if (reservation && reservation->phase == PHASE_RELEASING &&
		    site_on_node(sched, need, reservation->node, site))
			return true;
	}
	return false;
}

/* Jobs that were released in the plan, in the order in which they would go. */
struct losers {
	struct job *jobs[VICTIM_ROWS];
	bool kept[VICTIM_ROWS];
	int count;
};

static bool was_released(const struct job *job, int task)
{
	enum task_state state = job->tasks[task].state;

	return job->tasks[task].reservation &&
	       job->tasks[task].reservation->phase == PHASE_RELEASING &&
	       (state == TASK_PLACED || state == TASK_RUNNING);
}

/* Lets everyone stay who is not in the way, the last named first. */
static void keep_others(struct sched *sched, struct losers *losers)
{
	for (int i = losers->count - 1; i >= 0; i--) {
		const struct job *job = losers->jobs[i];
		size_t mark = plan_mark(sched);
		bool kept = true;
		for (int t = 0; t < job->r.tasks && kept; t++)
			kept = !was_released(job, t) || plan_keep(sched, job->tasks[t].reservation);
		if (!kept)
			plan_rollback(sched, mark);
		losers->kept[i] = kept;
	}
}

/* Victims are released one after the other until the slot fits where one was. */
static struct slot *make_room(struct sched *sched, struct model *model, struct losers *losers,
                              struct site *site)
{
	struct site_need need = site_need_of(model);
	struct rank_cursor cursor = ranktree_seek(&model->tenant->victims, INT64_MIN, INT64_MIN);
	int64_t retry_ms = INT64_MAX;
	const struct rank_entry *entry;

	while (losers->count < VICTIM_ROWS && (entry = rank_cursor_next(&cursor)) &&
	       entry->major < model->r.priority) {
		struct job *job = entry->value;
		if (!may_stop(sched, job, model, &retry_ms))
			continue;
		losers->jobs[losers->count++] = job;
		release_all(sched, job);
		if (!find_where(sched, &need, job, site))
			continue;
		struct slot *slot = plan_reserve_slot(sched, model, site->node, PHASE_CLAIM,
		                                      site->parts, site->part_count, NULL);
		if (slot)
			return slot;
	}
	model->preempt_failed.state = sched->pass.state;
	model->preempt_failed.retry_ms = retry_ms;
	return NULL;
}

static void stop_job(struct sched *sched, struct job *job, const struct slot *slot)
{
	struct decision_record decision = { .kind = DECISION_EVICTED,
		                            .job_id = job->r.id,
		                            .tenant_id = job->r.tenant_id,
		                            .for_model_id = slot->r.model_id,
		                            .lost_gpu_ms =
		                                job_work_at_risk(job, sched_now(sched)) };

	for (int i = 0; i < job->r.tasks; i++)
		if (was_released(job, i)) {
			decision.tasks++;
			job_evicted(sched, job->tasks[i].reservation);
		}
	sched_decide(sched, &decision);
	sched->pass.units--;
	job_interrupted(sched, job);
}

static int victim_rows(const struct sched *sched, const struct losers *losers, int64_t *rows)
{
	int count = 0;

	for (int i = 0; i < losers->count; i++) {
		if (losers->kept[i])
			continue;
		int64_t *row = rows + (size_t)count++ * VICTIM_WIDTH;
		row[0] = losers->jobs[i]->r.id;
		row[1] = -1;
		row[2] = 0;
		row[3] = job_work_at_risk(losers->jobs[i], sched_now(sched));
	}
	return count;
}

bool replica_preempt(struct sched *sched, struct model *model)
{
	int64_t rows[VICTIM_ROWS * VICTIM_WIDTH];
	struct losers losers = { .count = 0 };
	struct site site;

	if (replica_want(sched, model) != WANT_SERVE || !replica_may_preempt(sched, model))
		return false;
	plan_begin(sched);
	struct slot *slot = make_room(sched, model, &losers, &site);
	if (!slot) {
		plan_abandon(sched);
		return false;
	}
	keep_others(sched, &losers);
	plan_commit(sched);
	struct decision_record decision = { .kind = DECISION_PREEMPT };
	decision.victims = (struct rows){ rows, victim_rows(sched, &losers, rows) };
	replica_decide(sched, slot, &site, &decision);
	slot_begins(sched, slot);
	for (int i = 0; i < losers.count; i++)
		if (!losers.kept[i])
			stop_job(sched, losers.jobs[i], slot);
	sched->pass.units--;
	sched->pass.state++;
	return true;
}
