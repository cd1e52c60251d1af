/* deadline.c - how likely a job misses its deadline */
#include "core/promise/deadline.h"

#include "core/state.h"

#define LOOK_LEAST_MS 60000 /* between two looks at a job */
#define LOOKS 16            /* in the time that is left, at first */
#define RISK_STEP 20        /* thousandths: smaller changes are not recorded */
#define LATE_START 100      /* thousandths: jobs that start later than promised */

/* The chance to end within `left_ms` when it starts, in CHANCE_ONE. */
static int64_t chance_in_time(const struct lifetime *lifetime, int64_t left_ms)
{
	return left_ms > 0 ? lifetime_ends_within(lifetime, 0, left_ms) : 0;
}

static int64_t waiting_chance(const struct sched *sched, const struct job *job,
                              const struct lifetime *lifetime, int64_t start_ms)
{
	int64_t deadline_ms = job->r.deadline_ms, now_ms = sched_now(sched);

	if (start_ms > 0 || job->s.promised_ms == 0)
		return chance_in_time(lifetime, deadline_ms - max64(start_ms, now_ms));
	int64_t likely_ms = job->promise ? job->promise->r.start_ms : job->s.likely_ms;
	int64_t promised_ms = max64(job->s.promised_ms, likely_ms);
	int64_t half = chance_in_time(lifetime, deadline_ms - max64(likely_ms, now_ms));
	int64_t rest = chance_in_time(lifetime, deadline_ms - max64(promised_ms, now_ms));
	return (half * 500 + rest * (500 - LATE_START)) / 1000;
}

int64_t deadline_risk(struct sched *sched, struct job *job, int64_t start_ms)
{
	int64_t now_ms = sched_now(sched), in_time;
	struct lifetime lifetime;

	INVARIANT(start_ms >= 0);
	if (job->r.deadline_ms <= 0)
		return 0;
	if (job->r.deadline_ms <= now_ms)
		return 1000;
	if (!predict_lifetime(sched, job, &lifetime))
		return 0;
	if (job->s.started_ms > 0)
		in_time = lifetime_ends_within(&lifetime, predict_age(job, now_ms),
		                               job->r.deadline_ms - now_ms);
	else
		in_time = waiting_chance(sched, job, &lifetime, start_ms);
	return max64(1000 - muldiv_down(in_time, 1000, CHANCE_ONE), 1);
}

bool deadline_is_at_risk(const struct sched *sched, int64_t risk)
{
	return sched->config.deadline_risk > 0 && risk >= sched->config.deadline_risk;
}

void deadline_look(struct sched *sched, struct job *job)
{
	int64_t now_ms = sched_now(sched), before = job->s.deadline_risk;

	INVARIANT(!sched->plan.open);
	if (job->s.look_ms > 0)
		sched_dirty_job(sched, job);
	job->s.look_ms = 0;
	if (job->r.deadline_ms <= 0 || sched->config.deadline_risk == 0 ||
	    job_state_is_final((enum job_state)job->s.state))
		return;
	int64_t risk = deadline_risk(sched, job, 0);
	bool was = deadline_is_at_risk(sched, before), is = deadline_is_at_risk(sched, risk);
	bool moved = risk > before ? risk - before >= RISK_STEP : before - risk >= RISK_STEP;
	int64_t left_ms = job->r.deadline_ms - now_ms;
	if (left_ms > 0)
		job->s.look_ms = now_ms + max64(left_ms / LOOKS, LOOK_LEAST_MS);
	if (was != is || moved || left_ms <= 0 || (before == 0) != (risk == 0))
		job->s.deadline_risk = risk;
	sched_dirty_job(sched, job);
	if (is && sched->config.deadline_first && job->s.urgent_ms == 0)
		job->s.urgent_ms = now_ms;
	if (was != is)
		sched_event(sched, (struct event){ .kind = EVENT_JOB_DEADLINE,
		                                   .job_id = job->r.id,
		                                   .tenant_id = job->r.tenant_id,
		                                   .value = risk });
}
