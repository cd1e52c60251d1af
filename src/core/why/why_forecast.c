/* why_forecast.c - what would become of a job if it were submitted now */
#include "core/state.h"
#include "core/tenant/fairshare.h"
#include "core/why/why.h"

const struct words forecast_kind_words = WORDS("now", "later", "waits", "never", "repeats");

static void add_place(struct submit_forecast *forecast, int64_t node_id, int64_t gpu_id)
{
	forecast->places++;
	if (forecast->place_count == FORECAST_GPUS_MAX)
		return;
	forecast->node_ids[forecast->place_count] = node_id;
	forecast->gpu_ids[forecast->place_count++] = gpu_id;
}

/* The GPUs that the open plan gives its tasks. */
static void note_plan(const struct job *job, struct submit_forecast *forecast)
{
	for (int i = 0; i < job->r.tasks; i++) {
		const struct task *task = &job->tasks[i];
		const struct reservation *right =
		    task->reservation ? task->reservation : task->claim;
		for (int p = 0; right && p < right->part_count; p++)
			add_place(forecast, right->node->r.id, right->parts[p].gpu->r.id);
		if (right && right->part_count == 0)
			add_place(forecast, right->node->r.id, 0);
	}
}

/* It fits: at once, or as soon as memory that is being freed is back. */
static void forecast_fit(struct sched *sched, struct job *job, struct submit_forecast *forecast,
                         struct buffer *reasons)
{
	struct search search = applicant_job(&sched->placement, job);
	bool now;

	plan_begin(&sched->ledger);
	now = place_job(&sched->placement, &search, search.shape->tasks);
	if (!now) {
		search.view = VIEW_LATER;
		place_job(&sched->placement, &search, search.shape->tasks);
	}
	note_plan(job, forecast);
	plan_abandon(&sched->ledger);
	forecast->kind = now ? FORECAST_NOW : FORECAST_LATER;
	forecast->start_ms = sched_now(sched);
	if (!now)
		buffer_text(reasons, "it starts when memory that is being freed is back\n");
}

static void forecast_wait(struct sched *sched, struct job *job, int64_t start_ms,
                          struct submit_forecast *forecast)
{
	int64_t rows[PROMISE_ROWS * PROMISE_WIDTH];
	int count;

	forecast->kind = FORECAST_LATER;
	forecast->start_ms = start_ms;
	promise_earliest(sched, job, rows, PROMISE_ROWS, &count);
	for (int i = 0; i < count; i++) {
		int64_t gpu_id = rows[i * PROMISE_WIDTH + 1];
		const struct gpu *gpu = map_get(&sched->cluster.gpu_by_id, gpu_id);
		if (gpu)
			add_place(forecast, gpu->node->r.id, gpu_id);
	}
}

/* Whether making room for it would be tried at all, by the shares of the last pass: see room.h. */
static bool forecast_may_preempt(struct sched *sched, const struct job *job)
{
	const struct tenant *tenant = job->tenant;
	const struct rank_entry *lowest = ranktree_first(&tenant->victims);

	INVARIANT(job->class != NULL);
	struct amounts amounts = job_amounts(sched, job, job->class->shape->tasks);
	if (!sched->config.enable_preemption || !tenant->r.can_preempt_others ||
	    sched->victims == 0 || shape_never_preempts(job->class->shape))
		return false;
	return (lowest && lowest->major < job->r.priority) ||
	       (sched->victims > (int64_t)tenant->victims.count &&
	        fairshare_within(tenant, NULL, &amounts));
}

static void forecast_job(struct sched *sched, struct job *job, int64_t viewer,
                         struct submit_forecast *forecast, struct buffer *reasons)
{
	struct error impossible;
	struct why why;

	forecast->kind = FORECAST_WAITS;
	forecast->expected_ms = job->s.expected_ms;
	forecast->p90_ms = job->s.expected_p90_ms;
	forecast->confidence = job->s.confidence;
	sched_prepare(sched);
	if (sched->cluster.node_count > 0 && !place_possible(&sched->placement, job, &impossible)) {
		forecast->kind = FORECAST_NEVER;
		buffer_print(reasons, "it can never run on this cluster: %s\n", impossible.text);
		return;
	}
	why_job(sched, job, &why);
	forecast->queued = job->class != NULL;
	forecast->position = why.position;
	forecast->tenant_position = why.tenant_position;
	if (why.reason == WAIT_PASS) {
		forecast_fit(sched, job, forecast, reasons);
		return;
	}
	if (why.reason == WAIT_ROOM)
		forecast->may_preempt = forecast_may_preempt(sched, job);
	if (why.reason == WAIT_ROOM && why.expected_start_ms > 0)
		forecast_wait(sched, job, why.expected_start_ms, forecast);
	if (why.reason == WAIT_BACKOFF)
		forecast->start_ms = job_not_before(job);
	why_print_wait(sched, job, &why, viewer, reasons);
}

bool sched_forecast(struct sched *sched, const struct submit_command *submit, int64_t now_ms,
                    int64_t viewer, struct submit_forecast *forecast, struct buffer *reasons,
                    struct error *error)
{
	int64_t before_ms = sched->meta.now_ms;
	const struct job *known;

	error_clear(error);
	sched->meta.now_ms = max64(before_ms, now_ms);
	*forecast =
	    (struct submit_forecast){ .kind = FORECAST_REPEATS, .count = submit_count(submit) };
	struct job *job = job_trial(sched, submit, &known, error);
	if (known && !error->code)
		forecast->job_id = known->r.id;
	if (job) {
		job_trial_wait(sched, job);
		forecast_job(sched, job, viewer, forecast, reasons);
		forecast->deadline_ms = job->r.deadline_ms;
		forecast->deadline_risk = deadline_risk(sched, job, forecast->start_ms);
		forecast->at_risk = deadline_is_at_risk(sched, forecast->deadline_risk);
		job_trial_leave(sched, job);
		job_trial_end(sched, job);
	}
	sched->meta.now_ms = before_ms;
	return job != NULL || forecast->job_id > 0;
}
