/* grpc_submit.c - SubmitJob and CancelJob: the rules are those of REST */
#include <stdio.h>

#include "api/grpc/grpc_local.h"
#include "api/job/job_json.h"
#include "api/text/ids.h"
#include "scheduler.pb-c.h"
#include "wire/text/json_writer.h"

static void put_texts(struct json_writer *json, const char *key, char *const *texts, size_t count)
{
	if (count == 0)
		return;
	json_open_array(json, key);
	for (size_t i = 0; i < count; i++)
		json_put_string(json, NULL, texts[i]);
	json_close(json);
}

static void put_text(struct json_writer *json, const char *key, const char *text)
{
	if (text[0])
		json_put_string(json, key, text);
}

/* What is 0 was left out, as far as protobuf can tell. */
static void put_number(struct json_writer *json, const char *key, int64_t number)
{
	if (number != 0)
		json_put_integer(json, key, number);
}

static void put_maps(struct json_writer *json, const Scheduler__SubmitJobRequest *request)
{
	if (request->n_environment > 0) {
		json_open_object(json, "environment");
		for (size_t i = 0; i < request->n_environment; i++)
			json_put_string(json, request->environment[i]->key,
			                request->environment[i]->value);
		json_close(json);
	}
	if (request->n_labels > 0) {
		json_open_object(json, "labels");
		for (size_t i = 0; i < request->n_labels; i++)
			json_put_string(json, request->labels[i]->key, request->labels[i]->value);
		json_close(json);
	}
}

/* As the REST interface has it, so that one reader has all the rules and sentences. */
static void write_job(const Scheduler__SubmitJobRequest *request, struct buffer *buffer)
{
	struct json_writer json = json_writer_to(buffer);

	json_open_object(&json, NULL);
	put_text(&json, "tenant_id", request->tenant_id);
	put_text(&json, "name", request->name);
	put_number(&json, "priority", request->priority);
	put_number(&json, "gpu_count", request->gpu_count);
	put_number(&json, "gpu_memory_mb", request->gpu_memory_mb);
	if (request->gpu_fraction != 0)
		json_put_real(&json, "gpu_fraction", request->gpu_fraction);
	put_number(&json, "cpu_cores", request->cpu_cores);
	put_number(&json, "memory_mb", request->memory_mb);
	put_text(&json, "script", request->script);
	put_text(&json, "image", request->image);
	put_texts(&json, "command", request->command, request->n_command);
	put_texts(&json, "args", request->args, request->n_args);
	put_maps(&json, request);
	put_number(&json, "tasks", request->tasks);
	put_number(&json, "min_available", request->min_available);
	put_text(&json, "idempotency_key", request->idempotency_key);
	if (request->gang_scheduling)
		json_put_flag(&json, "gang_scheduling", true);
	if (request->checkpoint_enabled)
		json_put_flag(&json, "checkpoint_enabled", true);
	if (request->max_runtime) {
		char text[48];
		snprintf(text, sizeof(text), "%lldms",
		         (long long)request->max_runtime->seconds * 1000 +
		             request->max_runtime->nanos / 1000000);
		json_put_string(&json, "max_runtime", text);
	}
	json_close(&json);
}

static void on_submitted(struct ask *ask)
{
	struct grpc_call *call = grpc_call_of(ask);
	Scheduler__SubmitJobResponse response = SCHEDULER__SUBMIT_JOB_RESPONSE__INIT;
	static char submitted[] = "submitted", message[] = "Job submitted successfully";
	char id[ID_TEXT_MAX];

	if (!ask->ok) {
		grpc_call_fail(call, &ask->error);
		return;
	}
	id_write(id, ID_JOB, ask->reply_id);
	response.job_id = id;
	response.status = submitted;
	response.message = message;
	grpc_call_reply(call, &response);
}

static bool check_runtime(const Scheduler__SubmitJobRequest *request, struct error *error)
{
	if (!request->max_runtime ||
	    (request->max_runtime->seconds >= 0 && request->max_runtime->seconds < 1000000000 &&
	     request->max_runtime->nanos >= 0 && request->max_runtime->nanos < 1000000000))
		return true;
	return error_set(error, ERROR_INVALID, "max_runtime must not be negative");
}

void grpc_submit_job(struct grpc_call *call)
{
	struct grpc_services *services = call->services;
	const Scheduler__SubmitJobRequest *request = call->request;
	struct error error = { 0 };
	struct job_reading reading = {
		.arena = &call->ask.arena,
		.buffer = &services->payload,
		.roster = services->settings.roster,
		.identity = &call->identity,
		.secret_keys = services->settings.secret_keys,
		.node_gpus = services->settings.node_gpus
		                 ? services->settings.node_gpus(services->settings.context)
		                 : 0,
		.check_possible = services->settings.check_possible,
	};

	if (!grpc_call_may_change(call))
		return;
	buffer_clear(&services->scratch);
	write_job(request, &services->scratch);
	struct json_scan scan =
	    json_scan_of((struct text){ services->scratch.data, services->scratch.size },
	                 &call->ask.arena, &error);
	call->ask.command.kind = COMMAND_SUBMIT;
	call->ask.has_command = true;
	if (!check_runtime(request, &error) ||
	    !job_json_read(&scan, &reading, &call->ask.command.submit, &error))
		grpc_call_fail(call, &error);
	else
		grpc_call_ask(call, on_submitted);
}

static void on_cancelled(struct ask *ask)
{
	struct grpc_call *call = grpc_call_of(ask);
	Scheduler__CancelJobResponse response = SCHEDULER__CANCEL_JOB_RESPONSE__INIT;
	static char message[] = "Job cancelled successfully";

	if (!ask->ok) {
		grpc_call_fail(call, &ask->error);
		return;
	}
	response.success = true;
	response.message = message;
	grpc_call_reply(call, &response);
}

/* The tenant of a job in memory; 0: there is none. */
static int64_t tenant_of(const struct grpc_call *call, int64_t job_id)
{
	struct catalogue *catalogue = call->services->settings.desk->catalogue;
	struct catalogue_job job;

	catalogue_lock(catalogue);
	int64_t tenant_id = catalogue_job(catalogue, job_id, &job) ? job.job->tenant_id : 0;
	catalogue_unlock(catalogue);
	return tenant_id;
}

void grpc_cancel_job(struct grpc_call *call)
{
	const struct grpc_services_settings *settings = &call->services->settings;
	const Scheduler__CancelJobRequest *request = call->request;
	int64_t id, named, owner;

	if (!grpc_call_may_change(call) || !grpc_call_tenant(call, request->tenant_id, &named))
		return;
	bool known = id_read(text_of(request->job_id), ID_JOB, &id) &&
	             (owner = tenant_of(call, id)) > 0 &&
	             roster_may_see(settings->roster, &call->identity, owner) &&
	             (!request->tenant_id[0] || owner == named);
	if (!known) {
		grpc_call_refuse(call, ERROR_NOT_FOUND, "there is no job %.60s", request->job_id);
		return;
	}
	call->ask.command.kind = COMMAND_CANCEL;
	call->ask.command.id = id;
	call->ask.has_command = true;
	if (settings->audit)
		audit_note(settings->audit, &call->ask,
		           &(struct audit_entry){ .action = "cancel job",
		                                  .object = request->job_id,
		                                  .identity = &call->identity,
		                                  .exchange = call->exchange,
		                                  .unix_ms = clock_unix_ms() });
	grpc_call_ask(call, on_cancelled);
}
