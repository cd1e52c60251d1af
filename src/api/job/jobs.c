/* jobs.c - jobs: taken in, shown, and changed */
#include "api/job/jobs.h"

#include "api/job/job_json.h"
#include "api/job/job_look_up.h"
#include "api/service/service_state.h"
#include "api/text/ids.h"
#include "wire/text/utf8.h"

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

static void show(struct call *call)
{
	call_answer_json(call, 200);
}

void jobs_get(struct call *call)
{
	int64_t id;
	if (job_of_path(call, &id))
		job_look_up(call, &(struct job_look_up){
				      .id = id, .name = call_segment(call, 3), .found = show });
}

bool jobs_find(struct call *call, int64_t *id)
{
	int64_t tenant_id;
	if (!job_of_path(call, id))
		return false;
	if (job_in_memory(call, *id, &tenant_id) && tenant_id != 0)
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

/* Only finished jobs leave memory. */
static void refuse_final(struct call *call)
{
	const struct job_look_up *look_up = call->state;
	call_refuse(
	    call, 409, "conflict", "job-%lld has already finished (%s) and cannot be changed",
	    (long long)look_up->id, word_of(&job_state_words, look_up->archived.state.state));
}

/* Sends a command about the job in the path to the core, if it is the caller's. A job that has
 * left memory is finished, which is revealed only to callers that may see it. */
static void change(struct call *call, enum command_kind kind, void (*done)(struct ask *ask))
{
	int64_t id, tenant_id;
	if (!job_of_path(call, &id))
		return;
	if (!job_in_memory(call, id, &tenant_id)) {
		job_look_up_archived(call, &(struct job_look_up){ .id = id,
		                                                  .name = call_segment(call, 3),
		                                                  .found = refuse_final });
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
