/* jobs.c - jobs: taken in, shown, and changed */
#include "api/job/jobs.h"

#include "api/job/job_json.h"
#include "api/job/job_view.h"
#include "api/service/service_state.h"
#include "api/text/ids.h"
#include "store/archive.h"
#include "wire/text/utf8.h"

enum { EVENTS_MAX = 1000 };

/* Taking in. */

/* The answer that is given most, as it stands. */
static void answer_plain(struct call *call, int64_t id)
{
	static const char before[] = "{\"job_id\":\"";
	static const char behind[] =
	    "\",\"status\":\"submitted\",\"message\":\"Job submitted successfully\"}";
	char text[ID_TEXT_MAX];
	size_t size = id_write(text, ID_JOB, id);
	buffer_clear(&call->body);
	buffer_bytes(&call->body, before, sizeof(before) - 1);
	buffer_bytes(&call->body, text, size);
	buffer_bytes(&call->body, behind, sizeof(behind) - 1);
	call_answer_json(call, 201);
}

static void submitted(struct ask *ask)
{
	struct call *call = call_of(ask);
	if (!ask->ok) {
		call_fail(call, &ask->error);
		return;
	}
	if (!ask->repeated && ask->reply_count == 1) {
		answer_plain(call, ask->reply_id);
		return;
	}
	struct json_writer *json = call_object(call);
	json_put_id(json, "job_id", ID_JOB, ask->reply_id);
	json_put_string(json, "status", "submitted");
	json_put_string(json, "message",
	                ask->repeated ? "Job was submitted before under this idempotency key"
	                              : "Job submitted successfully");
	if (ask->repeated)
		json_put_flag(json, "repeated", true);
	if (ask->reply_count > 1) {
		json_put_integer(json, "count", ask->reply_count);
		json_put_id(json, "last_job_id", ID_JOB, ask->reply_id + ask->reply_count - 1);
	}
	json_close(json);
	call_answer_json(call, ask->repeated ? 200 : 201);
}

struct job_reading job_reading_of(struct call *call, struct arena *arena)
{
	struct service *service = call->service;
	return (struct job_reading){
		.arena = arena,
		.buffer = &service->scratch,
		.roster = &service->roster,
		.identity = &call->identity,
		.secret_keys = service->settings.secret_keys,
		.node_gpus = service_node_gpus(service),
		.check_possible = service->settings.check_possible,
	};
}

bool jobs_read_key(struct call *call, struct text *key, struct error *error)
{
	*key = headers_get(&call->exchange->headers, "idempotency-key");
	if (key->size > JOB_KEY_BYTES_MAX)
		return error_set(error, ERROR_INVALID,
		                 "the header Idempotency-Key is longer than %d bytes",
		                 JOB_KEY_BYTES_MAX);
	if (key->size > 0 && (!utf8_is_valid(*key) || text_has_control(*key)))
		return error_set(error, ERROR_INVALID,
		                 "the header Idempotency-Key is not a line of UTF-8");
	return true;
}

static bool read_submission(struct call *call, struct error *error)
{
	struct job_reading reading = job_reading_of(call, &call->ask.arena);
	struct json_scan scan = json_scan_of(call->exchange->body, &call->ask.arena, error);

	if (!jobs_read_key(call, &reading.key, error))
		return false;
	call->ask.command.kind = COMMAND_SUBMIT;
	if (call->exchange->body.size == 0)
		return error_set(error, ERROR_INVALID,
		                 "the body is empty: send the job as a JSON object, {...}");
	return job_json_read(&scan, &reading, &call->ask.command.submit, error) &&
	       json_scan_end(&scan);
}

void jobs_submit(struct call *call)
{
	struct error error = { 0 };
	if (jobs_is_bulk(call)) {
		jobs_submit_bulk(call);
		return;
	}
	if (read_submission(call, &error))
		call_command(call, submitted);
	else
		call_fail(call, &error);
}

/* Finding. */

/* The id in the path; answers 404 where it is none. */
static bool job_of_path(struct call *call, int64_t *id)
{
	struct text segment = call_segment(call, 3);
	if (id_read(segment, ID_JOB, id))
		return true;
	call_unknown(call, "job", segment);
	return false;
}

/* Whether it is in memory, and whose; the tenant is 0 where it is not the caller's to see. */
static bool find_in_memory(struct call *call, int64_t id, int64_t *tenant_id)
{
	struct catalogue *catalogue = service_catalogue(call->service);
	struct catalogue_job job;

	catalogue_lock(catalogue);
	bool found = catalogue_job(catalogue, id, &job);
	*tenant_id = found ? job.job->tenant_id : 0;
	catalogue_unlock(catalogue);
	if (found && !roster_may_see(&call->service->roster, &call->identity, *tenant_id))
		*tenant_id = 0;
	return found;
}

/* A job that was asked for, on the way through memory, the core and the store. */
struct look_up {
	int64_t id;
	struct wait_figures wait;
	struct archived_job archived;
	struct task_record *tasks;
	int64_t task_count;
	struct job_past past;
	bool has_past;
};

static void answer_from_memory(struct call *call, const struct look_up *look_up, bool waits)
{
	struct catalogue *catalogue = service_catalogue(call->service);
	struct catalogue_job job;

	buffer_clear(&call->body);
	call->json = json_writer_to(&call->body);
	catalogue_lock(catalogue);
	bool found = catalogue_job(catalogue, look_up->id, &job);
	if (found)
		job_view_write(
		    &call->json, NULL,
		    &(struct job_view){ .job = job.job,
		                        .state = job.state,
		                        .tasks = job.tasks,
		                        .task_count = job.task_count,
		                        .promise = job.promise,
		                        .wait = waits ? &look_up->wait : NULL,
		                        .past = look_up->has_past ? &look_up->past : NULL,
		                        .catalogue = catalogue,
		                        .agents = call->service->agents,
		                        .arena = &call->ask.arena,
		                        .now_ms = service_time_ms(call->service) });
	catalogue_unlock(catalogue);
	if (found)
		call_answer_json(call, 200);
	else
		call_unknown(call, "job", call_segment(call, 3));
}

static bool look_at_wait(struct ask *ask, struct sched *sched, struct error *error)
{
	struct look_up *look_up = call_of(ask)->state;
	return sched_wait(sched, look_up->id, &look_up->wait, error);
}

static void looked_at_wait(struct ask *ask)
{
	struct call *call = call_of(ask);
	answer_from_memory(call, call->state, ask->ok);
}

/* Where it was, from what is stored: the last start counts. */
static bool read_past(struct look_up *look_up, struct arena *arena, struct store *store,
                      struct error *error)
{
	struct job_past *past = &look_up->past;
	struct decision_filter filter = { .job_id = look_up->id, .kind = -1, .limit = 100 };
	struct decision_record *decisions;
	struct event *events;
	int64_t count;

	if (!archive_events(store,
	                    &(struct event_filter){ .job_id = look_up->id, .limit = EVENTS_MAX },
	                    arena, &events, &count, error))
		return false;
	for (int64_t i = 0; i < count; i++) {
		if (events[i].kind == EVENT_JOB_SCHEDULED)
			past->scheduled_ms = events[i].time_ms;
		else if (events[i].kind == EVENT_JOB_STARTED)
			past->started_ms = events[i].time_ms;
		else if (events[i].kind == EVENT_TASK_STARTED && events[i].node_id > 0)
			past->node_id = events[i].node_id;
	}
	look_up->has_past = true;
	if (past->started_ms == 0)
		return true;
	if (!archive_decisions(store, &filter, arena, &decisions, &count, error))
		return false;
	for (int64_t i = 0; i < count && past->gpu_count == 0; i++) {
		const struct rows *gpus = &decisions[i].gpus;
		if (decisions[i].kind != DECISION_START && decisions[i].kind != DECISION_CLAIM)
			continue;
		int64_t *ids = arena_alloc(arena, ((size_t)gpus->count + 1) * sizeof(*ids));
		for (int64_t gpu = 0; gpu < gpus->count; gpu++)
			ids[gpu] = gpus->at[gpu * LINE_WIDTH + LINE_GPU];
		past->gpu_ids = ids;
		past->gpu_count = (size_t)gpus->count;
	}
	return true;
}

static bool read_past_only(struct ask *ask, struct store *store, struct error *error)
{
	return read_past(call_of(ask)->state, &ask->arena, store, error);
}

/* Its history is more than it needs: without it, what memory has is told. */
static void got_past(struct ask *ask)
{
	struct call *call = call_of(ask);
	answer_from_memory(call, call->state, false);
}

static bool read_archived(struct ask *ask, struct store *store, struct error *error)
{
	struct look_up *look_up = call_of(ask)->state;
	return archive_find(store, look_up->id, &ask->arena, &look_up->archived, &look_up->tasks,
	                    &look_up->task_count, error) &&
	       read_past(look_up, &ask->arena, store, error);
}

static void answer_archived(struct call *call, const struct look_up *look_up)
{
	const struct task_record **tasks = arena_alloc(
	    &call->ask.arena, ((size_t)look_up->task_count + 1) * sizeof(struct task_record *));
	for (int64_t i = 0; i < look_up->task_count; i++)
		tasks[i] = &look_up->tasks[i];
	struct catalogue *catalogue = service_catalogue(call->service);
	buffer_clear(&call->body);
	call->json = json_writer_to(&call->body);
	catalogue_lock(catalogue);
	job_view_write(&call->json, NULL,
	               &(struct job_view){ .job = &look_up->archived.job,
	                                   .state = &look_up->archived.state,
	                                   .tasks = tasks,
	                                   .task_count = (size_t)look_up->task_count,
	                                   .past = look_up->has_past ? &look_up->past : NULL,
	                                   .catalogue = catalogue,
	                                   .agents = call->service->agents,
	                                   .arena = &call->ask.arena,
	                                   .now_ms = service_time_ms(call->service) });
	catalogue_unlock(catalogue);
	call_answer_json(call, 200);
}

static void found_archived(struct ask *ask)
{
	struct call *call = call_of(ask);
	const struct look_up *look_up = call->state;
	if (!ask->ok && ask->error.code != ERROR_NOT_FOUND)
		call_fail(call, &ask->error);
	else if (!ask->ok || !roster_may_see(&call->service->roster, &call->identity,
	                                     look_up->archived.job.tenant_id))
		call_unknown(call, "job", call_segment(call, 3));
	else
		answer_archived(call, look_up);
}

static struct look_up *new_look_up(struct call *call, int64_t id)
{
	struct look_up *look_up = arena_alloc(&call->ask.arena, sizeof(*look_up));
	memset(look_up, 0, sizeof(*look_up));
	look_up->id = id;
	call->state = look_up;
	return look_up;
}

static int state_of(struct call *call, int64_t id)
{
	struct catalogue *catalogue = service_catalogue(call->service);
	struct catalogue_job job;
	catalogue_lock(catalogue);
	int state = catalogue_job(catalogue, id, &job) ? job.state->state : -1;
	catalogue_unlock(catalogue);
	return state;
}

void jobs_get(struct call *call)
{
	int64_t id, tenant_id;
	if (!job_of_path(call, &id))
		return;
	struct look_up *look_up = new_look_up(call, id);
	int state = state_of(call, id);
	if (!find_in_memory(call, id, &tenant_id))
		call_read(call, read_archived, found_archived);
	else if (tenant_id == 0)
		call_unknown(call, "job", call_segment(call, 3));
	else if (state == JOB_PENDING)
		call_look(call, look_at_wait, looked_at_wait);
	else if (state >= 0 && job_state_is_final((enum job_state)state))
		call_read(call, read_past_only, got_past);
	else
		answer_from_memory(call, look_up, false);
}

bool jobs_find(struct call *call, int64_t *id)
{
	int64_t tenant_id;
	if (!job_of_path(call, id))
		return false;
	if (find_in_memory(call, *id, &tenant_id) && tenant_id != 0)
		return true;
	call_unknown(call, "job", call_segment(call, 3));
	return false;
}

/* Changing. */

static void answer_done(struct ask *ask, const char *message)
{
	struct call *call = call_of(ask);
	if (ask->ok)
		call_answer_message(call, 200, message);
	else
		call_fail(call, &ask->error);
}

static void cancelled(struct ask *ask)
{
	answer_done(ask, "Job cancelled successfully");
}

static void held(struct ask *ask)
{
	answer_done(ask, "Job held: it does not start until it is released");
}

static void released(struct ask *ask)
{
	answer_done(ask, "Job released");
}

static void requeued(struct ask *ask)
{
	answer_done(ask, "Job is stopped and queued again");
}

static void reprioritised(struct ask *ask)
{
	answer_done(ask, "Priority changed");
}

static void read_final(struct ask *ask)
{
	struct call *call = call_of(ask);
	const struct look_up *look_up = call->state;
	if (!ask->ok && ask->error.code != ERROR_NOT_FOUND)
		call_fail(call, &ask->error);
	else if (!ask->ok || !roster_may_see(&call->service->roster, &call->identity,
	                                     look_up->archived.job.tenant_id))
		call_unknown(call, "job", call_segment(call, 3));
	else
		call_refuse(call, 409, "conflict",
		            "job-%lld has already finished (%s) and cannot be changed",
		            (long long)look_up->id,
		            word_of(&job_state_words, look_up->archived.state.state));
}

/* Sends a command about the job in the path to the core, if it is the caller's. A job that has
 * left memory is finished, which is revealed only to callers that may see it. */
static void change(struct call *call, enum command_kind kind, void (*done)(struct ask *ask))
{
	int64_t id, tenant_id;
	if (!job_of_path(call, &id))
		return;
	if (!find_in_memory(call, id, &tenant_id)) {
		new_look_up(call, id);
		call_read(call, read_archived, read_final);
		return;
	}
	if (tenant_id == 0) {
		call_unknown(call, "job", call_segment(call, 3));
		return;
	}
	call->ask.command.kind = kind;
	if (kind == COMMAND_REPRIORITISE)
		call->ask.command.reprioritise.id = id;
	else
		call->ask.command.id = id;
	call_command(call, done);
}

void jobs_cancel(struct call *call)
{
	change(call, COMMAND_CANCEL, cancelled);
}

void jobs_hold(struct call *call)
{
	change(call, COMMAND_HOLD, held);
}

void jobs_release(struct call *call)
{
	change(call, COMMAND_UNHOLD, released);
}

void jobs_requeue(struct call *call)
{
	change(call, COMMAND_REQUEUE, requeued);
}

void jobs_priority(struct call *call)
{
	static const char *const known[] = { "priority", NULL };
	struct error error = { 0 };
	json_t *body = json_read(call->exchange->body, NULL, &error);
	int64_t priority = 0;
	bool read = body != NULL;

	if (read) {
		struct json_reader reader = json_reader_of(body, "", &error);
		priority = json_get_integer(&reader, "priority", INT32_MIN, INT32_MAX, 0);
		if (!json_has(&reader, "priority"))
			json_fail(&reader, "priority", "is missing: send {\"priority\":1000}");
		read = json_reader_end(&reader, known);
		json_decref(body);
	}
	if (!read) {
		call_fail(call, &error);
		return;
	}
	call->ask.command.reprioritise.priority = priority;
	change(call, COMMAND_REPRIORITISE, reprioritised);
}
