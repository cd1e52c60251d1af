/* job_logs.c - the output of a job, read from the node where it runs or ran */
#include <stdio.h>
#include <stdlib.h>

#include "api/job/jobs.h"
#include "api/service/service_state.h"
#include "api/text/ids.h"
#include "store/archive.h"

enum { EVENTS_MAX = 10000, NODE_NAME_MAX = 256 };

/* `call` is ours until the answer has ended. What the client does not take yet is in
 * `pending`, and the node is paused meanwhile. */
struct logs {
	struct request *request;
	struct stream stream;
	int64_t job_id, task, reservation_id, offset;
	bool follow, errors;
	char node[NODE_NAME_MAX];
	struct agents_output *output;
	struct buffer pending;
	bool begun, ended;
	/* Where it ran, from what is stored. */
	int64_t tenant_id, node_id;
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

static void job_logs_begin(struct logs *logs)
{
	if (logs->begun)
		return;
	logs->begun = true;
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
	(void)offset;
	job_logs_begin(logs);
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
	job_logs_begin(logs);
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
	job_logs_begin(logs);
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
	if (logs->in_memory)
		logs->tenant_id = job.job->tenant_id;
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
	}
	if (!archive_events(store,
	                    &(struct event_filter){ .job_id = logs->job_id, .limit = EVENTS_MAX },
	                    &engine->arena, &history, &count, error))
		return false;
	for (int64_t i = 0; i < count; i++)
		if (history[i].kind == EVENT_TASK_STARTED && history[i].task == logs->task)
			logs->node_id = history[i].node_id;
	return true;
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
	int64_t task = logs->task;
	job_logs_drop(logs);
	request_refuse(request, 409, "conflict",
	               "task %lld has not started, so there is no output yet", (long long)task);
}

static bool read_query(struct request *request, struct logs *logs, struct error *error)
{
	const struct query *query = &request->exchange->query;
	struct text stream = query_get(query, "stream");
	int64_t tail;
	if (!query_integer(query, "task", 0, TASKS_MAX - 1, 0, &logs->task, error) ||
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
	bool is_placed = is_id && find_in_memory(logs);
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
