/* job_runs.c - the runs of a job: where, from when to when, and how each ended */
#include <stdlib.h>

#include "api/job/jobs.h"
#include "api/service/service_state.h"
#include "api/text/ids.h"
#include "api/text/resource_json.h"
#include "store/archive.h"

struct history {
	int64_t id, tenant_id;
	struct run_record *runs; /* the last to end first */
	int64_t count;
};

/* Whose the job is has to be read where it has left memory. */
static bool read_runs(struct engine_request *engine, struct store *store, struct error *error)
{
	struct history *history = request_of(engine)->state;
	struct archived_job job;

	if (history->tenant_id == 0) {
		if (!archive_find(store, history->id, &engine->arena, &job, NULL, NULL, error))
			return false;
		history->tenant_id = job.job.tenant_id;
	}
	return archive_runs(store, history->id, &engine->arena, &history->runs, &history->count,
	                    error);
}

/* How many of the runs up to this one its task has started. */
static int64_t attempt_of(const struct history *history, int64_t place)
{
	int64_t attempt = 0;
	for (int64_t i = place; i < history->count; i++)
		attempt += history->runs[i].task == history->runs[place].task &&
		           history->runs[i].started_ms > 0;
	return attempt;
}

static void put_run(struct json_writer *json, const struct catalogue *catalogue,
                    const struct history *history, int64_t place)
{
	const struct run_record *run = &history->runs[place];
	const struct node_record *node = catalogue_get(catalogue, RECORD_NODE, run->node_id, 0);
	const void *const records[RECORD_KINDS] = { [RECORD_RUN] = run };
	bool has_exit = run->ending == RUN_COMPLETED || run->ending == RUN_FAILED;
	const struct field_value values[RUN_FIELDS_COUNT] = {
		[RUN_FIELD_attempt] =
		    FIELD_NUMBER_IF(run->started_ms > 0, attempt_of(history, place)),
		[RUN_FIELD_node] = FIELD_STRING(node ? node->name : NULL),
		[RUN_FIELD_exit_code] = FIELD_NUMBER_IF(has_exit, run->exit_code),
	};

	json_open_object(json, NULL);
	resource_write(&(struct resource_writer){
	    .resource = &run_resource, .json = json, .records = records, .values = values });
	json_close(json);
}

static void answer_runs(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	const struct history *history = request->state;
	struct catalogue *catalogue = service_catalogue(request->service);
	bool unknown = !engine->ok && engine->error.code == ERROR_NOT_FOUND;

	if (!engine->ok && !unknown) {
		request_fail(request, &engine->error);
		return;
	}
	if (unknown ||
	    !roster_may_see(&request->service->roster, &request->identity, history->tenant_id)) {
		request_unknown(request, "job", request_segment(request, 3));
		return;
	}
	struct json_writer *json = request_object(request);
	json_put_id(json, "job_id", ID_JOB, history->id);
	json_open_array(json, "runs");
	catalogue_lock(catalogue);
	for (int64_t i = history->count; i-- > 0;)
		put_run(json, catalogue, history, i);
	catalogue_unlock(catalogue);
	json_close(json);
	json_close(json);
	request_answer_json(request, 200);
}

void jobs_runs(struct request *request)
{
	struct history *history = arena_alloc(&request->engine.arena, sizeof(*history));
	struct catalogue *catalogue = service_catalogue(request->service);
	struct catalogue_job job;

	*history = (struct history){ 0 };
	request->state = history;
	if (!id_read(request_segment(request, 3), ID_JOB, &history->id)) {
		request_unknown(request, "job", request_segment(request, 3));
		return;
	}
	catalogue_lock(catalogue);
	if (catalogue_job(catalogue, history->id, &job))
		history->tenant_id = job.job->tenant_id;
	catalogue_unlock(catalogue);
	request_read(request, read_runs, answer_runs);
}
