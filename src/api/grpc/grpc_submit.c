/* grpc_submit.c - SubmitJob and CancelJob: the rules are those of REST */
#include "api/grpc/grpc_local.h"
#include "api/job/job_json.h"
#include "api/text/ids.h"
#include "api/text/resource_message.h"
#include "scheduler.pb-c.h"

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

void grpc_submit_job(struct grpc_call *call)
{
	struct grpc_services *services = call->services;
	struct json_writer json = json_writer_to(&services->scratch);
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
	if (!resource_message_read(&job_resource, call->request, &json, &error)) {
		grpc_call_fail(call, &error);
		return;
	}
	struct json_scan scan =
	    json_scan_of((struct text){ services->scratch.data, services->scratch.size },
	                 &call->ask.arena, &error);
	call->ask.command.kind = COMMAND_SUBMIT;
	call->ask.has_command = true;
	if (job_json_read(&scan, &reading, &call->ask.command.submit, &error))
		grpc_call_ask(call, on_submitted);
	else
		grpc_call_fail(call, &error);
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
