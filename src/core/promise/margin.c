/* margin.c - starts that nine of ten waiting jobs keep */
#include "core/promise/margin.h"

#include "core/predict/durations.h"
#include "core/state.h"

#define MINUTE_MS INT64_C(60000)
#define HOUR_MS (60 * MINUTE_MS)
#define STEP 32       /* of a margin, 1/1024 octave */
#define FACTOR_LOG 20 /* of 2^margin, which is below 1 too */
#define AHEAD_MAX_MS (10000 * HOUR_MS)

void margins_init(struct margins *margins)
{
	*margins = (struct margins){ 0 };
	for (int i = 0; i < MARGIN_BINS; i++)
		margins->of[i].id = i + 1;
}

static int margin_bin(int64_t ahead_ms)
{
	static const int64_t bounds_ms[MARGIN_BINS - 1] = { 10 * MINUTE_MS, HOUR_MS, 4 * HOUR_MS,
		                                            24 * HOUR_MS, 168 * HOUR_MS };
	int bin = 0;

	while (bin < MARGIN_BINS - 1 && ahead_ms > bounds_ms[bin])
		bin++;
	return bin;
}

int64_t margin_of(const struct margins *margins, int64_t ahead_ms)
{
	INVARIANT(ahead_ms > 0);
	int64_t margin = margins->of[margin_bin(ahead_ms)].margin;
	int64_t factor = power_of((int32_t)(FACTOR_LOG * LOG_ONE + margin));

	return muldiv_up(min64(ahead_ms, AHEAD_MAX_MS), factor, INT64_C(1) << FACTOR_LOG);
}

void margin_promise(struct sched *sched, struct job *job, int64_t likely_ms)
{
	int64_t now_ms = sched_now(sched);

	INVARIANT(likely_ms > 0);
	if (job->s.promised_ms > 0 || job->s.started_ms > 0 || likely_ms <= now_ms)
		return;
	job->s.promise_made_ms = now_ms;
	job->s.likely_ms = likely_ms;
	int64_t by_ms = now_ms + margin_of(&sched->margins, likely_ms - now_ms);
	job->s.promised_ms = (by_ms + MINUTE_MS - 1) / MINUTE_MS * MINUTE_MS;
	sched_dirty_job(sched, job);
	job_look_soon(sched, job);
}

void margin_started(struct sched *sched, const struct job *job)
{
	if (job->s.promised_ms == 0)
		return;
	int64_t ahead_ms = max64(job->s.likely_ms - job->s.promise_made_ms, 1);
	struct margin_record *record = &sched->margins.of[margin_bin(ahead_ms)];
	bool kept = job->s.started_ms <= job->s.promised_ms;

	record->promised++;
	record->kept += kept;
	record->likely += job->s.started_ms <= job->s.likely_ms;
	record->margin += kept ? -STEP : 9 * STEP;
	record->margin = max64(min64(record->margin, MARGIN_MOST), MARGIN_LEAST);
	effects_put(sched->effects, RECORD_MARGIN, record);
}

void margin_forget(struct job *job)
{
	job->s.promised_ms = job->s.likely_ms = job->s.promise_made_ms = 0;
}

bool margin_load(struct margins *margins, const struct margin_record *record, struct error *error)
{
	if (record->id < 1 || record->id > MARGIN_BINS || record->margin < MARGIN_LEAST ||
	    record->margin > MARGIN_MOST || record->promised < 0 || record->kept < 0 ||
	    record->kept > record->promised || record->likely < 0 ||
	    record->likely > record->promised)
		return error_set(error, ERROR_CORRUPT, "margin %lld cannot be",
		                 (long long)record->id);
	margins->of[record->id - 1] = *record;
	return true;
}
