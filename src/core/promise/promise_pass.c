/* promise_pass.c - who is promised a start, and for how long that stands */
#include <stdlib.h>
#include <string.h>

#include "core/promise/forecast.h"
#include "core/promise/promise.h"
#include "core/state.h"
#include "core/tenant/turn.h"

#define MINUTE_MS INT64_C(60000)
#define INSTEAD_SLACK_MS INT64_C(30000) /* how late an awaited end may be, at the least */
#define CANDIDATES_MAX 64               /* jobs of one tenant that may get a promise */
#define VISITS_MAX 128                  /* jobs of one class that are looked at */
#define FAILURES_MAX 4      /* shapes without a start that can be told, until a pass gives up */
#define ROUNDS_MAX 8        /* of renewing, after each of which others may have to be renewed */
#define CLASS_COST 16       /* of looking at a class of large jobs; at a group of others, 1 */
#define COST_MAX 8192       /* once that is spent no more tenants are looked at */
#define ENDINGS_PER_MS 1024 /* examining this many is worth a pause of a millisecond */

/* Whether it asks for so much that it would hardly ever fit without a promise. */
static bool is_large(const struct sched *sched, const struct shape *shape)
{
	int64_t gpus =
	    shape->split_gpus > 0 ? shape->split_gpus : shape->tasks * shape->request.gpu_count;

	if (gpus * WHOLE_GPU < sched->config.promise_gpus)
		return false;
	struct job trial = { .request = shape->request, .r = { .split_gpus = shape->split_gpus } };
	return job_amounts(sched, &trial, shape->tasks).of[AMOUNT_GPU] >=
	       sched->config.promise_gpus;
}

static bool may_hold(const struct sched *sched, const struct job *job)
{
	struct amounts amounts = job_amounts(sched, job, job->class->shape->tasks);
	struct bound bound;

	return tenant_may_hold(job->tenant, &amounts, job->r.preemptible, sched_now(sched), &bound);
}

/* One that has all that it must have, and could grow, does not hold others up. */
static bool has_minimum(const struct job *job)
{
	return job_active(job) > 0 && job_active(job) + job->ended >= job->r.min_available;
}

static bool is_overdue(const struct sched *sched, const struct promise_record *promise)
{
	int64_t slack_ms = max64(INSTEAD_SLACK_MS, (promise->start_ms - promise->made_ms) / 10);

	return sched_now(sched) > promise->start_ms + slack_ms;
}

/* `before` promises of this kind were kept already. */
static bool may_stay(const struct sched *sched, const struct promise *promise, int64_t before)
{
	const struct job *job = promise->job;

	if (!job->class)
		return false;
	if (promise->r.instead)
		return !is_overdue(sched, &promise->r);
	return sched->config.enable_backfill && before < sched->config.promise_jobs &&
	       is_large(sched, job->class->shape) && !has_minimum(job) && may_hold(sched, job);
}

static void drop_some(struct sched *sched)
{
	int64_t kept = 0;

	for (size_t i = 0; i < sched->promise_count;) {
		struct promise *promise = sched->promises[i];
		if (!may_stay(sched, promise, kept)) {
			promise_drop(sched, promise->job);
			continue;
		}
		kept += promise->r.instead ? 0 : 1;
		i++;
	}
}

static bool says(const struct promise_record *promise, int64_t start_ms,
                 const struct forecast_rows *rows)
{
	size_t size = (size_t)rows->count * PROMISE_WIDTH * sizeof(*rows->at);

	return promise->start_ms == start_ms && promise->parts.count == rows->count &&
	       (size == 0 || memcmp(promise->parts.at, rows->at, size) == 0);
}

enum start { START_UNKNOWN, START_AS_BEFORE, START_GIVEN };

static enum start promise_start(struct sched *sched, struct job *job, struct forecast *forecast,
                                int64_t latest_ms)
{
	int64_t parts[PROMISE_ROWS * PROMISE_WIDTH];
	struct forecast_rows rows = { .at = parts, .room = PROMISE_ROWS };
	int64_t start_ms = forecast_start(forecast, sched, job, latest_ms, &rows);

	if (start_ms == INT64_MAX)
		return START_UNKNOWN;
	if (job->promise && says(&job->promise->r, start_ms, &rows))
		return START_AS_BEFORE;
	promise_give(
	    sched, job,
	    &(struct promise_record){ .start_ms = start_ms, .parts = { parts, rows.count } });
	return START_GIVEN;
}

/* A promise that holds is changed only for a start that is sooner by an eighth
 * of the time to wait, so that it can be relied on; one that no longer holds is replaced
 * or removed. True if anything changed, which may matter to others. */
static bool promise_pass_renew(struct sched *sched, struct forecast *forecast)
{
	int64_t now_ms = sched_now(sched);
	bool changed = false;

	for (size_t i = 0; i < sched->promise_count;) {
		struct promise *promise = sched->promises[i++];
		int64_t start_ms = promise->r.start_ms;
		if (promise->r.instead)
			continue;
		bool holds = forecast_holds(sched, promise->job, &promise->r);
		int64_t sooner_ms = max64(MINUTE_MS, (start_ms - now_ms) / 8);
		enum start outcome = promise_start(sched, promise->job, forecast,
		                                   holds ? start_ms - sooner_ms : INT64_MAX);
		bool dropped = !holds && outcome == START_UNKNOWN;
		if (dropped) {
			promise_drop(sched, promise->job);
			i--;
		}
		changed = changed || dropped || outcome == START_GIVEN;
	}
	return changed;
}

static int64_t count_promises(const struct sched *sched)
{
	int64_t count = 0;

	for (size_t i = 0; i < sched->promise_count; i++)
		count += sched->promises[i]->r.instead ? 0 : 1;
	return count;
}

/* The first jobs of a tenant that may be promised a start, those that were
 * included: so it is the same jobs that are looked at in the next pass. */
struct line {
	struct job **jobs; /* NULL: not looked for yet */
	size_t count, next;
};
struct candidates {
	struct line *of; /* by the tenant's place in tenants.all */
	size_t most;     /* in one line */
	int64_t cost;    /* of looking for them */
};

static size_t promise_pass_place_of(const struct tenants *tenants, const struct tenant *tenant)
{
	size_t low = 0, high = tenants->count;

	while (low < high) {
		size_t middle = (low + high) / 2;
		if (tenants->all[middle]->r.id < tenant->r.id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct job *promise_pass_job_of(struct queue_entry *entry)
{
	return (struct job *)(void *)((char *)entry - offsetof(struct job, entry));
}

/* False if there are enough that go before it. */
static bool promise_pass_add_job(struct candidates *candidates, size_t tenant, struct job *job,
                                 int64_t now_ms)
{
	const struct queue_rule *rule = &job->class->queue.rule;
	struct job **jobs = candidates->of[tenant].jobs;
	size_t at = candidates->of[tenant].count;

	if (at == candidates->most &&
	    !queue_before(rule, &job->entry, &jobs[at - 1]->entry, now_ms))
		return false;
	if (at < candidates->most)
		candidates->of[tenant].count++;
	else
		at--;
	for (; at > 0 && queue_before(rule, &job->entry, &jobs[at - 1]->entry, now_ms); at--)
		jobs[at] = jobs[at - 1];
	jobs[at] = job;
	return true;
}

static void add_class(struct sched *sched, struct candidates *candidates, size_t tenant,
                      struct job_class *class)
{
	int64_t now_ms = sched_now(sched);
	size_t count = candidates->of[tenant].count;
	const struct job *last =
	    count == candidates->most ? candidates->of[tenant].jobs[count - 1] : NULL;
	struct queue_entry *entry = queue_first(&class->queue, now_ms);

	if ((last && !queue_before(&class->queue.rule, entry, &last->entry, now_ms)) ||
	    !may_hold(sched, promise_pass_job_of(entry)))
		return;
	struct queue_cursor cursor = queue_walk(&class->queue, now_ms);
	for (int i = 0; i < VISITS_MAX && (entry = queue_walk_next(&cursor)); i++)
		if (!has_minimum(promise_pass_job_of(entry)) &&
		    !promise_pass_add_job(candidates, tenant, promise_pass_job_of(entry), now_ms))
			break;
}

static void find_candidates(struct sched *sched, struct candidates *candidates, size_t tenant)
{
	const struct tenant *whose = sched->tenants.all[tenant];

	candidates->of[tenant].jobs =
	    memory_alloc(candidates->most * sizeof(*candidates->of[tenant].jobs));
	for (size_t g = 0; g < whose->group_count; g++) {
		const struct job_group *group = whose->groups[g];
		bool large = is_large(sched, group->shape);
		candidates->cost += large ? CLASS_COST * (int64_t)group->class_count : 1;
		for (size_t c = 0; large && c < group->class_count; c++)
			add_class(sched, candidates, tenant, group->classes[c]);
	}
}

static struct job *next_candidate(const struct candidates *candidates, size_t tenant)
{
	if (candidates->of[tenant].next == candidates->of[tenant].count)
		return NULL;
	return candidates->of[tenant].jobs[candidates->of[tenant].next];
}

static void promise_pass_offer(struct sched *sched, struct turn *order,
                               const struct candidates *candidates, size_t tenant)
{
	const struct job *job = next_candidate(candidates, tenant);
	struct amounts amounts;

	if (job)
		amounts = job_amounts(sched, job, job->class->shape->tasks);
	turn_offer(order, sched->tenants.all[tenant], job ? &amounts : NULL);
}

/* The next of all candidates, in the order in which they would be served. Jobs
 * are looked for when it is their tenant's turn, the job not counted, and only of
 * the first tenants if there are many jobs. */
static struct job *take_candidate(struct sched *sched, struct turn *order,
                                  struct candidates *candidates)
{
	struct tenant *tenant;

	while ((tenant = turn_first(order))) {
		size_t place = promise_pass_place_of(&sched->tenants, tenant);
		struct job *job = NULL;
		if (candidates->of[place].jobs) {
			job = next_candidate(candidates, place);
			candidates->of[place].next++;
		} else if (candidates->cost < COST_MAX) {
			find_candidates(sched, candidates, place);
		}
		promise_pass_offer(sched, order, candidates, place);
		if (job)
			return job;
	}
	return NULL;
}

static bool is_among(struct shape *const *shapes, int count, const struct shape *shape)
{
	for (int i = 0; i < count; i++)
		if (shapes[i] == shape)
			return true;
	return false;
}

/* Tries candidates until there are `wanted` more promises, or too many of their
 * shapes have no start that can be told. True if it gave any. */
static bool try_candidates(struct sched *sched, struct forecast *forecast, struct turn *order,
                           struct candidates *candidates, int64_t wanted)
{
	struct shape *failed[FAILURES_MAX];
	struct job *job;
	int failures = 0;
	bool given = false;

	INVARIANT(sched->promise_count <= sched->promise_capacity);
	while (wanted > 0 && failures < FAILURES_MAX &&
	       (job = take_candidate(sched, order, candidates))) {
		struct shape *shape = job->class->shape;
		if (job->promise || is_among(failed, failures, shape))
			continue;
		if (promise_start(sched, job, forecast, INT64_MAX) == START_GIVEN) {
			given = true;
			wanted--;
		} else {
			failed[failures++] = shape;
		}
	}
	return given;
}

static bool give_some(struct sched *sched, struct forecast *forecast)
{
	static const struct amounts nothing;
	int64_t most = sched->config.promise_jobs;
	struct turn order = { 0 };
	struct candidates candidates = {
		.most = (size_t)min64(most, CANDIDATES_MAX),
		.of = memory_zero(sched->tenants.count, sizeof(*candidates.of)),
	};

	turn_begin(&order, &sched->cluster.total, false);
	for (size_t i = 0; i < sched->tenants.count; i++)
		if (sched->tenants.all[i]->group_count > 0)
			turn_offer(&order, sched->tenants.all[i], &nothing);
	bool given =
	    try_candidates(sched, forecast, &order, &candidates, most - count_promises(sched));
	for (size_t i = 0; i < sched->tenants.count; i++)
		free(candidates.of[i].jobs);
	free(candidates.of);
	turn_free(&order);
	return given;
}

static bool any_is_large(const struct sched *sched)
{
	for (size_t i = 0; i < sched->shapes.active_count; i++)
		if (is_large(sched, sched->shapes.active[i]))
			return true;
	return false;
}

/* Another promise may let, or make, a job be promised a start that was not. The
 * order is that of the next pass: by shares that count what this one has done. */
static void give_all(struct sched *sched, struct forecast *forecast)
{
	int round = 0;

	fairshare_divide(&sched->tenants, &sched->cluster.total, &sched->config, sched_now(sched));
	while (count_promises(sched) < sched->config.promise_jobs && round++ < ROUNDS_MAX &&
	       give_some(sched, forecast))
		;
}

static void renew_all(struct sched *sched, struct forecast *forecast)
{
	int round = 0;

	while (round++ < ROUNDS_MAX && promise_pass_renew(sched, forecast))
		;
}

void promise_pass(struct sched *sched)
{
	struct forecast forecast;

	INVARIANT(!sched->plan.open && sched->index.built);
	drop_some(sched);
	if (!sched->config.enable_backfill || sched_now(sched) < sched->meta.promise_after_ms)
		return;
	bool frees = sched->ends.count > 0 || sched->cluster.windows.count > 0;
	bool give = frees && any_is_large(sched);
	if (!give && count_promises(sched) == 0)
		return;
	sched->meta.promise_after_ms =
	    sched_now(sched) + (int64_t)(sched->ends.count / ENDINGS_PER_MS);
	forecast_make(&forecast, sched);
	renew_all(sched, &forecast);
	if (give && count_promises(sched) < sched->config.promise_jobs)
		give_all(sched, &forecast);
	forecast_free(&forecast);
}
