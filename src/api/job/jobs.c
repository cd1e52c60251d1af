/* jobs.c - jobs: taken in, shown, and changed */
#include "api/job/jobs.h"

#include "api/job/job_forecast.h"
#include "api/job/job_json.h"
#include "api/job/job_look_up.h"
#include "api/service/service_state.h"
#include "api/text/ids.h"
#include "wire/text/utf8.h"

/* Taking in. */

/* The answer that is given most, as it stands. */
static void answer_plain(struct request *request, int64_t id)
{
	static const char before[] = "{\"job_id\":\"";
	static const char behind[] =
	    "\",\"status\":\"submitted\",\"message\":\"Job submitted successfully\"}";
	char text[ID_TEXT_MAX];
	size_t size = id_write(text, ID_JOB, id);
	buffer_clear(&request->body);
	buffer_bytes(&request->body, before, sizeof(before) - 1);
	buffer_bytes(&request->body, text, size);
	buffer_bytes(&request->body, behind, sizeof(behind) - 1);
	request_answer_json(request, 201);
}

/* The chance that a job that was just submitted misses its deadline, in thousandths, if that is
 * as much as is told; else 0. */
static int64_t submitted_risk(struct request *request, int64_t id)
{
	struct catalogue *catalogue = service_catalogue(request->service);
	struct catalogue_job job;
	int64_t risk = 0;

	if (request->engine.command.submit.job.deadline_ms == 0)
		return 0;
	catalogue_lock(catalogue);
	const struct config_record *config = catalogue_get(catalogue, RECORD_CONFIG, 1, 0);
	if (config && config->deadline_risk > 0 && catalogue_job(catalogue, id, &job) &&
	    job.state->deadline_risk >= config->deadline_risk)
		risk = job.state->deadline_risk;
	catalogue_unlock(catalogue);
	return risk;
}

static void put_message(struct json_writer *json, const struct engine_request *engine, int64_t risk)
{
	struct buffer text = { 0 };

	buffer_text(&text, engine->repeated ? "Job was submitted before under this idempotency key"
	                                    : "Job submitted successfully");
	if (risk > 0)
		buffer_print(&text, "; it may miss its deadline, with a probability of %lld%%",
		             (long long)(risk / 10));
	json_put_string(json, "message", text.data);
	buffer_free(&text);
}

static void submitted(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	if (!engine->ok) {
		request_fail(request, &engine->error);
		return;
	}
	int64_t risk = submitted_risk(request, engine->reply_id);
	if (!engine->repeated && engine->reply_count == 1 && risk == 0) {
		answer_plain(request, engine->reply_id);
		return;
	}
	struct json_writer *json = request_object(request);
	json_put_id(json, "job_id", ID_JOB, engine->reply_id);
	json_put_string(json, "status", "submitted");
	put_message(json, engine, risk);
	if (risk > 0)
		json_put_decimal(json, "deadline_risk", risk, 3);
	if (engine->repeated)
		json_put_flag(json, "repeated", true);
	if (engine->reply_count > 1) {
		json_put_integer(json, "count", engine->reply_count);
		json_put_id(json, "last_job_id", ID_JOB,
		            engine->reply_id + engine->reply_count - 1);
	}
	json_close(json);
	request_answer_json(request, engine->repeated ? 200 : 201);
}

struct job_reading job_reading_of(struct request *request, struct arena *arena)
{
	struct service *service = request->service;
	return (struct job_reading){
		.arena = arena,
		.buffer = &service->scratch,
		.roster = &service->roster,
		.identity = &request->identity,
		.secret_keys = service->settings.secret_keys,
		.node_gpus = service_node_gpus(service),
		.check_possible = service->settings.check_possible,
		.may_notify = service->settings.job_recipients,
		.may_notify_private = service->settings.allow_private_webhooks,
		.notify_only = service->job_recipients_only,
	};
}

bool jobs_read_key(struct request *request, struct text *key, struct error *error)
{
	*key = headers_get(&request->exchange->headers, "idempotency-key");
	if (key->size > JOB_KEY_BYTES_MAX)
		return error_set(error, ERROR_INVALID,
		                 "the header Idempotency-Key is longer than %d bytes",
		                 JOB_KEY_BYTES_MAX);
	if (key->size > 0 && (!utf8_is_valid(*key) || text_has_control(*key)))
		return error_set(error, ERROR_INVALID,
		                 "the header Idempotency-Key is not a line of UTF-8");
	return true;
}

static bool read_submission(struct request *request, struct error *error)
{
	struct job_reading reading = job_reading_of(request, &request->engine.arena);
	struct json_scan scan =
	    json_scan_of(request->exchange->body, &request->engine.arena, error);

	if (!jobs_read_key(request, &reading.key, error))
		return false;
	request->engine.command.kind = COMMAND_SUBMIT;
	if (request->exchange->body.size == 0)
		return error_set(error, ERROR_INVALID,
		                 "the body is empty: send the job as a JSON object, {...}");
	return job_json_read(&scan, &reading, &request->engine.command.submit, error) &&
	       json_scan_end(&scan);
}

void jobs_submit(struct request *request)
{
	struct error error = { 0 };
	bool check;
	if (!query_flag(&request->exchange->query, "check", false, &check, &error)) {
		request_fail(request, &error);
		return;
	}
	if (jobs_is_bulk(request) && check) {
		request_reject(request, ERROR_INVALID,
		               "check takes one job: send it as a JSON object, {...}");
		return;
	}
	if (jobs_is_bulk(request)) {
		jobs_submit_bulk(request);
		return;
	}
	if (!read_submission(request, &error))
		request_fail(request, &error);
	else if (check)
		job_forecast(request);
	else
		request_command(request, submitted);
}

/* Finding. */

/* The id in the path; answers 404 where it is none. */
static bool job_of_path(struct request *request, int64_t *id)
{
	struct text segment = request_segment(request, 3);
	if (id_read(segment, ID_JOB, id))
		return true;
	request_unknown(request, "job", segment);
	return false;
}

static void jobs_show(struct request *request)
{
	request_answer_json(request, 200);
}

void jobs_get(struct request *request)
{
	int64_t id;
	if (job_of_path(request, &id))
		job_look_up(request, &(struct job_look_up){ .id = id,
		                                            .name = request_segment(request, 3),
		                                            .found = jobs_show });
}

bool jobs_find(struct request *request, int64_t *id)
{
	int64_t tenant_id;
	if (!job_of_path(request, id))
		return false;
	if (job_in_memory(request, *id, &tenant_id) && tenant_id != 0)
		return true;
	request_unknown(request, "job", request_segment(request, 3));
	return false;
}

/* Changing. */

static void answer_done(struct engine_request *engine, const char *message)
{
	struct request *request = request_of(engine);
	if (engine->ok)
		request_answer_message(request, 200, message);
	else
		request_fail(request, &engine->error);
}

static void cancelled(struct engine_request *engine)
{
	answer_done(engine, "Job cancelled successfully");
}

static void held(struct engine_request *engine)
{
	answer_done(engine, "Job held: it does not start until it is released");
}

static void released(struct engine_request *engine)
{
	answer_done(engine, "Job released");
}

static void requeued(struct engine_request *engine)
{
	answer_done(engine, "Job is stopped and queued again");
}

static void suspending(struct engine_request *engine)
{
	answer_done(engine, "Job is being suspended: it resumes when it is told to");
}

static void resuming(struct engine_request *engine)
{
	answer_done(engine, "Job resumes as soon as its GPUs are free");
}

static void reprioritised(struct engine_request *engine)
{
	answer_done(engine, "Priority changed");
}

/* Only finished jobs leave memory. */
static void refuse_final(struct request *request)
{
	const struct job_look_up *look_up = request->state;
	request_refuse(
	    request, 409, "conflict", "job-%lld has already finished (%s) and cannot be changed",
	    (long long)look_up->id, word_of(&job_state_words, look_up->archived.state.state));
}

/* Sends a command about the job in the path to the core, if it is the caller's. A job that has
 * left memory is finished, which is revealed only to callers that may see it. */
static void jobs_change(struct request *request, enum command_kind kind,
                        void (*done)(struct engine_request *engine))
{
	int64_t id, tenant_id;
	if (!job_of_path(request, &id))
		return;
	if (!job_in_memory(request, id, &tenant_id)) {
		job_look_up_archived(request,
		                     &(struct job_look_up){ .id = id,
		                                            .name = request_segment(request, 3),
		                                            .found = refuse_final });
		return;
	}
	if (tenant_id == 0) {
		request_unknown(request, "job", request_segment(request, 3));
		return;
	}
	if (!job_is_changeable(request, id))
		return;
	request->engine.command.kind = kind;
	if (kind == COMMAND_REPRIORITISE)
		request->engine.command.reprioritise.id = id;
	else
		request->engine.command.id = id;
	request_command(request, done);
}

void jobs_cancel(struct request *request)
{
	jobs_change(request, COMMAND_CANCEL, cancelled);
}

void jobs_hold(struct request *request)
{
	jobs_change(request, COMMAND_HOLD, held);
}

void jobs_release(struct request *request)
{
	jobs_change(request, COMMAND_UNHOLD, released);
}

void jobs_requeue(struct request *request)
{
	jobs_change(request, COMMAND_REQUEUE, requeued);
}

void jobs_suspend(struct request *request)
{
	jobs_change(request, COMMAND_SUSPEND, suspending);
}

void jobs_resume(struct request *request)
{
	jobs_change(request, COMMAND_RESUME, resuming);
}

void jobs_priority(struct request *request)
{
	static const char *const known[] = { "priority", NULL };
	struct error error = { 0 };
	json_t *body = json_read(request->exchange->body, NULL, &error);
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
		request_fail(request, &error);
		return;
	}
	request->engine.command.reprioritise.priority = priority;
	jobs_change(request, COMMAND_REPRIORITISE, reprioritised);
}
