/* promise.c - expected starts, and who may pass in the meantime */
#include "core/promise/promise.h"

#include <stdlib.h>
#include <string.h>

#include "core/promise/forecast.h"
#include "core/room/commit.h"
#include "core/state.h"
#include "core/tenant/fairshare.h"

static struct gpu *row_gpu(const struct sched *sched, const int64_t *row)
{
	return map_get(&sched->cluster.gpu_by_id, row[1]);
}

static void count_promised(struct sched *sched, struct node *node, int sign)
{
	node->promised += sign;
	if (sched->index.built)
		index_promised(&sched->index, node);
}

static void unmark_all(struct sched *sched)
{
	for (size_t i = 0; i < sched->promise_count; i++)
		for (int64_t j = 0; j < sched->promises[i]->r.parts.count; j++) {
			struct gpu *gpu =
			    row_gpu(sched, sched->promises[i]->rows + j * PROMISE_WIDTH);
			if (gpu->promised_ms != INT64_MAX)
				count_promised(sched, gpu->node, -1);
			gpu->promised_ms = INT64_MAX;
			gpu->promised_to = 0;
		}
}

static void mark(struct sched *sched, const struct promise *promise)
{
	for (int64_t i = 0; i < promise->r.parts.count; i++) {
		struct gpu *gpu = row_gpu(sched, promise->rows + i * PROMISE_WIDTH);
		if (gpu->promised_ms == INT64_MAX)
			count_promised(sched, gpu->node, 1);
		if (promise->r.start_ms >= gpu->promised_ms)
			continue;
		gpu->promised_ms = promise->r.start_ms;
		gpu->promised_to = promise->r.job_id;
	}
}

static void mark_all(struct sched *sched)
{
	for (size_t i = 0; i < sched->promise_count; i++)
		mark(sched, sched->promises[i]);
}

/* After its marks were taken away what did not fit may fit, if there is anything
 * free on its GPUs. */
static void lifted(struct sched *sched, const struct promise *promise)
{
	bool any = false;

	for (int64_t i = 0; i < promise->r.parts.count && !any; i++) {
		const struct gpu *gpu = row_gpu(sched, promise->rows + i * PROMISE_WIDTH);
		any = max64(gpu_free_now(gpu), gpu_free_later(gpu)) > 0;
	}
	if (any)
		sched->index.free_version = ++sched->index.last_version;
	sched->pass.change_seq++;
}

static struct promise *insert(struct sched *sched, struct job *job)
{
	struct promise *promise = NEW(struct promise);
	size_t at = sched->promise_count;

	promise->job = job;
	promise->r.job_id = job->r.id;
	job->promise = promise;
	array_reserve(sched->promises, sched->promise_capacity, sched->promise_count + 1);
	for (; at > 0 && sched->promises[at - 1]->r.job_id > job->r.id; at--)
		sched->promises[at] = sched->promises[at - 1];
	sched->promises[at] = promise;
	sched->promise_count++;
	return promise;
}

static void set_rows(struct promise *promise, const int64_t *rows, int64_t count)
{
	size_t size = (size_t)count * PROMISE_WIDTH * sizeof(*rows);

	free(promise->rows);
	promise->rows = memory_alloc(size);
	if (size > 0)
		memcpy(promise->rows, rows, size);
	promise->r.parts = (struct rows){ promise->rows, count };
}

static void add_lines(const struct sched *sched, const struct promise *promise,
                      struct gpu_lines *lines)
{
	for (int i = 0; i < promise->r.parts.count && i < GPU_LINES_MAX; i++) {
		const int64_t *row = promise->rows + (size_t)i * PROMISE_WIDTH;
		lines_add_gpu(lines, row_gpu(sched, row))[LINE_ASKED] = row[2];
	}
}

static void promise_decide(struct sched *sched, const struct promise *promise)
{
	const struct promise_record *r = &promise->r;
	struct decision_record decision = { .kind = r->instead ? DECISION_WAIT : DECISION_PROMISE,
		                            .job_id = r->job_id,
		                            .tenant_id = promise->job->r.tenant_id,
		                            .tasks = promise->job->class->shape->tasks,
		                            .until_ms = r->start_ms,
		                            .wait_gpu_ms = r->wait_gpu_ms,
		                            .lost_gpu_ms = r->lost_gpu_ms };
	struct gpu_lines lines;

	lines_clear(&lines);
	add_lines(sched, promise, &lines);
	lines_give(&lines, &decision);
	sched_decide(sched, &decision);
}

void promise_give(struct sched *sched, struct job *job, const struct promise_record *record)
{
	struct promise *promise = job->promise;

	INVARIANT(!sched->plan.open && job->class);
	unmark_all(sched);
	if (promise)
		lifted(sched, promise);
	else
		promise = insert(sched, job);
	set_rows(promise, record->parts.at, record->parts.count);
	struct rows own = promise->r.parts;
	promise->r = *record;
	promise->r.parts = own;
	promise->r.job_id = job->r.id;
	promise->r.made_ms = sched_now(sched);
	mark_all(sched);
	sched->pass.change_seq++;
	effects_put(sched->effects, RECORD_PROMISE, &promise->r);
	if (!promise->r.instead)
		margin_promise(sched, job, promise->r.start_ms);
	promise_decide(sched, promise);
}

void promise_instead(struct sched *sched, struct job *job, int64_t start_ms, int64_t wait_gpu_ms,
                     int64_t lost_gpu_ms, const int64_t *rows, int count)
{
	promise_give(sched, job,
	             &(struct promise_record){ .start_ms = start_ms,
	                                       .instead = true,
	                                       .wait_gpu_ms = wait_gpu_ms,
	                                       .lost_gpu_ms = lost_gpu_ms,
	                                       .parts = { rows, count } });
}

void promise_drop(struct sched *sched, struct job *job)
{
	struct promise *promise = job->promise;
	size_t at = 0;

	if (!promise)
		return;
	INVARIANT(!sched->plan.open);
	unmark_all(sched);
	while (sched->promises[at] != promise)
		at++;
	sched->promise_count--;
	memmove(sched->promises + at, sched->promises + at + 1,
	        (sched->promise_count - at) * sizeof(*sched->promises));
	mark_all(sched);
	lifted(sched, promise);
	effects_delete(sched->effects, RECORD_PROMISE, job->r.id, 0);
	job->promise = NULL;
	free(promise->rows);
	free(promise);
}

bool promise_load(struct sched *sched, const struct promise_record *record, struct error *error)
{
	struct job *job = map_get(&sched->jobs, record->job_id);

	if (!job || job->promise)
		return error_set(error, ERROR_CORRUPT, "a promise is stored for job-%lld, which %s",
		                 (long long)record->job_id, job ? "has one already" : "is not");
	for (int64_t i = 0; i < record->parts.count; i++)
		if (!row_gpu(sched, record->parts.at + i * PROMISE_WIDTH))
			return error_set(error, ERROR_CORRUPT,
			                 "the promise of job-%lld is stored with a GPU that is not",
			                 (long long)record->job_id);
	struct promise *promise = insert(sched, job);
	promise->r = *record;
	set_rows(promise, record->parts.at, record->parts.count);
	unmark_all(sched);
	mark_all(sched);
	return true;
}

int64_t promise_earliest(struct sched *sched, struct job *job, int64_t *parts, int room, int *count)
{
	struct forecast forecast;
	struct forecast_rows rows = { .at = parts, .room = room };

	INVARIANT(room <= PROMISE_ROWS || job->promise == NULL);
	INVARIANT(job->class);
	forecast_make(&forecast, sched);
	int64_t start_ms = forecast_start(&forecast, sched, job, INT64_MAX, &rows);
	forecast_free(&forecast);
	*count = rows.count;
	return start_ms;
}
