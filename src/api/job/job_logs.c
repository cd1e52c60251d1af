/* job_logs.c - the output of a job or of a model's server, read from the node where it runs or ran
 */
#include <stdio.h>
#include <stdlib.h>

#include "api/job/job_place.h"
#include "api/job/jobs.h"
#include "api/service/service_state.h"
#include "api/text/ids.h"
#include "store/archive.h"

enum { EVENTS_MAX = 10000 };

/* `call` is ours until the answer has ended. What the client does not take yet is in
 * `pending`, and the node is paused meanwhile. */
struct logs {
	struct request *request;
	struct stream stream;
	int64_t job_id, task, reservation_id, offset;
	int64_t run;      /* of the task, from 1: 0: the last */
	int64_t model_id; /* 0: of a job */
	bool follow, errors;
	char node[NODE_NAME_MAX];
	struct agents_output *output;
	struct buffer pending;
	bool begun, ended;
	char offset_text[24];
	/* Where it ran, from what is stored. */
	int64_t tenant_id, node_id, tasks;
	bool in_memory;
};

static void job_logs_drop(struct logs *logs)
{
	streams_remove(&logs->stream);
	buffer_free(&logs->pending);
	free(logs);
}

static void job_logs_finish(struct logs *logs)
{
	struct request *request = logs->request;
	job_logs_drop(logs);
	request_complete(request);
}

/* `offset`: where in the output the answer begins, so that a reader of the last part of it can
 * continue from there. */
static void job_logs_begin(struct logs *logs, int64_t offset)
{
	if (logs->begun)
		return;
	logs->begun = true;
	int size =
	    snprintf(logs->offset_text, sizeof(logs->offset_text), "%lld", (long long)offset);
	request_header(logs->request, "output-offset",
	               (struct text){ logs->offset_text, (size_t)size });
	/* It is the text of strangers: no browser may take it for a page. */
	request_header(logs->request, "content-disposition",
	               TEXT("inline; filename=\"output.txt\""));
	request_header(logs->request, "content-security-policy",
	               TEXT("sandbox; default-src 'none'"));
	request_begin(logs->request, 200, "text/plain; charset=utf-8");
}

static void on_part(void *context, int64_t offset, const void *data, size_t size)
{
	struct logs *logs = context;
	job_logs_begin(logs, offset);
	bool waits = logs->pending.size > 0;
	if (!waits && exchange_write(logs->request->exchange, (struct text){ data, size }))
		return;
	buffer_bytes(&logs->pending, data, size);
	if (!waits && logs->output)
		agents_pause_output(logs->output, true);
}

static void job_logs_on_end(void *context, const struct error *error)
{
	struct logs *logs = context;
	logs->output = NULL;
	logs->ended = true;
	if (error && !logs->begun) {
		struct request *request = logs->request;
		struct error copy = *error;
		job_logs_drop(logs);
		request_fail(request, &copy);
		return;
	}
	/* Output that follows is not there now: the client must not take this for all of it. */
	if (error) {
		struct request *request = logs->request;
		job_logs_drop(logs);
		request_abort(request);
		return;
	}
	job_logs_begin(logs, logs->offset > 0 ? logs->offset : 0);
	if (logs->pending.size == 0)
		job_logs_finish(logs);
}

static void job_logs_on_writable(struct exchange *exchange)
{
	struct request *request = exchange->context;
	struct logs *logs = request->state;
	struct text text = { logs->pending.data, logs->pending.size };
	if (text.size > 0 && !exchange_write(exchange, text))
		return;
	buffer_clear(&logs->pending);
	if (logs->ended)
		job_logs_finish(logs);
	else
		agents_pause_output(logs->output, false);
}

static void job_logs_on_gone(struct exchange *exchange)
{
	struct request *request = exchange->context;
	struct logs *logs = request->state;
	if (logs->output)
		agents_stop_output(logs->output);
	job_logs_begin(logs, logs->offset > 0 ? logs->offset : 0);
	job_logs_finish(logs);
}

/* Who reads is not who it was let in as any more. */
static void end_reading(struct stream *stream, const char *reason)
{
	struct logs *logs = (struct logs *)(void *)((char *)stream - offsetof(struct logs, stream));
	struct request *request = logs->request;
	bool begun = logs->begun;
	if (logs->output)
		agents_stop_output(logs->output);
	job_logs_drop(logs);
	if (begun)
		request_abort(request);
	else
		request_refuse(request, 401, "unauthenticated", "%s", reason);
}

static const struct exchange_events events = { .writable = job_logs_on_writable,
	                                       .gone = job_logs_on_gone };

static void job_logs_start(struct logs *logs)
{
	struct request *request = logs->request;
	request->exchange->events = &events;
	request->exchange->hangup_is_gone = true;
	if (exchange_is_gone(request->exchange)) {
		job_logs_on_gone(request->exchange);
		return;
	}
	streams_add(request->service->streams, &logs->stream, &request->identity, end_reading);
	struct agents_output *output =
	    agents_read_output(request->service->agents, &(struct agents_output_options){
							     .node = logs->node,
							     .reservation_id = logs->reservation_id,
							     .job_id = logs->job_id,
							     .task = logs->task,
							     .follow = logs->follow,
							     .offset = logs->offset,
							     .errors = logs->errors,
							     .part = on_part,
							     .end = job_logs_on_end,
							     .context = logs,
							 });
	logs->output = output;
}

/* From the task's reservation, while it has one. */
static bool find_in_memory(struct logs *logs)
{
	struct catalogue *catalogue = service_catalogue(logs->request->service);
	struct catalogue_job job;
	const struct node_record *node = NULL;

	catalogue_lock(catalogue);
	logs->in_memory = catalogue_job(catalogue, logs->job_id, &job);
	if (logs->in_memory) {
		logs->tenant_id = job.job->tenant_id;
		logs->tasks = job.job->split_gpus > 0 ? TASKS_MAX : job.job->tasks;
	}
	for (size_t i = 0; logs->in_memory && i < job.task_count; i++) {
		if (job.tasks[i]->place != logs->task || job.tasks[i]->reservation_id == 0)
			continue;
		const struct reservation_record *reservation =
		    catalogue_get(catalogue, RECORD_RESERVATION, job.tasks[i]->reservation_id, 0);
		if (!reservation)
			continue;
		logs->reservation_id = reservation->id;
		node = catalogue_get(catalogue, RECORD_NODE, reservation->node_id, 0);
	}
	if (node)
		snprintf(logs->node, sizeof(logs->node), "%s", node->name);
	catalogue_unlock(catalogue);
	return node != NULL;
}

/* The run that was asked for: they come last first. */
static bool read_run(struct engine_request *engine, struct store *store, struct error *error)
{
	struct logs *logs = request_of(engine)->state;
	struct run_record *runs;
	int64_t count, attempt = 0;

	if (!archive_runs(store, logs->job_id, &engine->arena, &runs, &count, error))
		return false;
	for (int64_t i = count; i-- > 0;) {
		const struct run_record *run = &runs[i];
		if (run->task != logs->task || run->started_ms == 0 || ++attempt != logs->run)
			continue;
		logs->node_id = run->node_id;
		logs->reservation_id = run->reservation_id;
	}
	return true;
}

/* From its history: the last node that it started on. */
static bool read_history(struct engine_request *engine, struct store *store, struct error *error)
{
	struct logs *logs = request_of(engine)->state;
	struct archived_job job;
	struct event *history;
	int64_t count;

	if (!logs->in_memory) {
		if (!archive_find(store, logs->job_id, &engine->arena, &job, NULL, NULL, error))
			return false;
		logs->tenant_id = job.job.tenant_id;
		logs->tasks = job.job.tasks;
	}
	if (logs->run > 0)
		return read_run(engine, store, error);
	if (!archive_events(store,
	                    &(struct event_filter){ .job_id = logs->job_id, .limit = EVENTS_MAX },
	                    &engine->arena, &history, &count, error))
		return false;
	for (int64_t i = 0; i < count; i++)
		if (history[i].kind == EVENT_TASK_STARTED && history[i].task == logs->task)
			logs->node_id = history[i].node_id;
	return true;
}

static void refuse_unstarted(struct logs *logs)
{
	struct request *request = logs->request;
	long long task = logs->task, tasks = logs->tasks, run = logs->run, job = logs->job_id;

	job_logs_drop(logs);
	if (task >= tasks)
		request_refuse(request, 404, "not_found", "job-%lld has no task %lld: it has %lld",
		               job, task, tasks);
	else if (run > 0)
		request_refuse(request, 404, "not_found", "task %lld of job-%lld has no run %lld",
		               task, job, run);
	else
		request_refuse(request, 409, "conflict",
		               "task %lld has not started, so there is no output yet", task);
}

static void got_history(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	struct logs *logs = request->state;
	struct catalogue *catalogue = service_catalogue(request->service);

	if (!engine->ok ||
	    !roster_may_see(&request->service->roster, &request->identity, logs->tenant_id)) {
		bool unknown = engine->ok || engine->error.code == ERROR_NOT_FOUND;
		job_logs_drop(logs);
		if (unknown)
			request_unknown(request, "job", request_segment(request, 3));
		else
			request_fail(request, &engine->error);
		return;
	}
	catalogue_lock(catalogue);
	const struct node_record *node = catalogue_get(catalogue, RECORD_NODE, logs->node_id, 0);
	if (node)
		snprintf(logs->node, sizeof(logs->node), "%s", node->name);
	catalogue_unlock(catalogue);
	if (node) {
		job_logs_start(logs);
		return;
	}
	refuse_unstarted(logs);
}

static bool read_query(struct request *request, struct logs *logs, struct error *error)
{
	const struct query *query = &request->exchange->query;
	struct text stream = query_get(query, "stream");
	int64_t tail;
	if (!query_integer(query, "task", 0, TASKS_MAX - 1, 0, &logs->task, error) ||
	    !query_integer(query, "run", 1, INT64_MAX, 0, &logs->run, error) ||
	    !query_integer(query, "tail", 0, INT64_MAX / 2, -1, &tail, error) ||
	    !query_integer(query, "offset", 0, INT64_MAX / 2, 0, &logs->offset, error) ||
	    !query_flag(query, "follow", false, &logs->follow, error))
		return false;
	if (tail > 0)
		logs->offset = -tail;
	logs->errors = stream.data && text_is(stream, "stderr");
	return !stream.data || logs->errors || text_is(stream, "stdout") ||
	       error_set(error, ERROR_INVALID, "stream must be stdout or stderr");
}

void jobs_logs(struct request *request)
{
	struct text segment = request_segment(request, 3);
	struct logs *logs = NEW(struct logs);
	struct error error = { 0 };
	logs->request = request;
	request->state = logs;
	bool is_id = id_read(segment, ID_JOB, &logs->job_id);
	if (is_id && !read_query(request, logs, &error)) {
		job_logs_drop(logs);
		request_fail(request, &error);
		return;
	}
	/* An earlier run is found in the history; `in_memory` is set all the same. */
	bool is_placed = is_id && find_in_memory(logs) && logs->run == 0;
	if (is_id && logs->run > 0) {
		logs->reservation_id = 0;
		logs->node[0] = '\0';
	}
	if (is_id && !is_placed) {
		request_read(request, read_history, got_history);
		return;
	}
	if (is_placed &&
	    roster_may_see(&request->service->roster, &request->identity, logs->tenant_id)) {
		job_logs_start(logs);
		return;
	}
	job_logs_drop(logs);
	request_unknown(request, "job", segment);
}

/* Of a model's server. */

/* The newest slot that is there, or the one that was asked for. */
static bool find_slot(struct logs *logs)
{
	struct catalogue *catalogue = service_catalogue(logs->request->service);
	struct catalogue_cursor cursor = { .kind = RECORD_SLOT };
	const struct slot_record *slot;
	const struct node_record *node = NULL;
	int64_t wanted = logs->reservation_id, best = 0;

	catalogue_lock(catalogue);
	while ((slot = catalogue_next(catalogue, &cursor)) != NULL)
		if (slot->model_id == logs->model_id && (wanted == 0 || slot->id == wanted))
			best = max64(best, slot->id);
	const struct reservation_record *reservation =
	    best > 0 ? catalogue_get(catalogue, RECORD_RESERVATION, best, 0) : NULL;
	if (reservation && reservation->phase != PHASE_CLAIM)
		node = catalogue_get(catalogue, RECORD_NODE, reservation->node_id, 0);
	if (node) {
		snprintf(logs->node, sizeof(logs->node), "%s", node->name);
		logs->reservation_id = best;
	}
	catalogue_unlock(catalogue);
	return node != NULL;
}

static bool read_slot_run(struct engine_request *engine, struct store *store, struct error *error)
{
	struct logs *logs = request_of(engine)->state;
	struct run_record *run;
	int64_t count;

	if (!archive_slot_run(store, logs->model_id, logs->reservation_id, &engine->arena, &run,
	                      &count, error))
		return false;
	logs->reservation_id = count > 0 ? run->reservation_id : 0;
	logs->node_id = count > 0 ? run->node_id : 0;
	return true;
}

static void got_slot_run(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	struct logs *logs = request->state;
	struct catalogue *catalogue = service_catalogue(request->service);

	if (!engine->ok) {
		job_logs_drop(logs);
		request_fail(request, &engine->error);
		return;
	}
	catalogue_lock(catalogue);
	const struct node_record *node = catalogue_get(catalogue, RECORD_NODE, logs->node_id, 0);
	if (node)
		snprintf(logs->node, sizeof(logs->node), "%s", node->name);
	catalogue_unlock(catalogue);
	if (node) {
		job_logs_start(logs);
		return;
	}
	job_logs_drop(logs);
	request_refuse(request, 409, "conflict",
	               "no server of the model has been started, so there is no output");
}

static bool read_slot_query(struct request *request, struct logs *logs, struct error *error)
{
	struct text slot = query_get(&request->exchange->query, "slot");

	return read_query(request, logs, error) &&
	       (!slot.data || id_read(slot, ID_SLOT, &logs->reservation_id) ||
	        error_set(error, ERROR_INVALID, "slot must be an id, such as slot-12"));
}

void job_logs_of_model(struct request *request, int64_t model_id)
{
	struct error error = { 0 };
	struct logs *logs = NEW(struct logs);
	logs->request = request;
	logs->model_id = model_id;
	request->state = logs;
	if (!read_slot_query(request, logs, &error)) {
		job_logs_drop(logs);
		request_fail(request, &error);
	} else if (find_slot(logs)) {
		job_logs_start(logs);
	} else {
		request_read(request, read_slot_run, got_slot_run);
	}
}
