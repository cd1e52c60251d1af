/* grpc_submit.c - SubmitJob and CancelJob: the rules are those of REST */
#include "api/grpc/grpc_local.h"
#include "api/job/jobs.h"
#include "api/text/ids.h"
#include "api/text/resource_message.h"
#include "scheduler.pb-c.h"

static void on_submitted(struct ask *ask)
{
	struct call *call = call_of(ask);
	Scheduler__SubmitJobResponse response = SCHEDULER__SUBMIT_JOB_RESPONSE__INIT;
	static char submitted[] = "submitted", message[] = "Job submitted successfully";
	char id[ID_TEXT_MAX];

	if (!ask->ok) {
		call_fail(call, &ask->error);
		return;
	}
	id_write(id, ID_JOB, ask->reply_id);
	response.job_id = id;
	response.status = submitted;
	response.message = message;
	grpc_answer(call, &response);
}

void grpc_submit_job(struct call *call)
{
	struct buffer *scratch = &call->service->services->scratch;
	struct json_writer json = json_writer_to(scratch);
	struct job_reading reading = job_reading_of(call, &call->ask.arena);
	struct error error = { 0 };

	buffer_clear(scratch);
	if (!resource_message_read(&job_resource, call->message, &json, &error)) {
		call_fail(call, &error);
		return;
	}
	struct json_scan scan =
	    json_scan_of((struct text){ scratch->data, scratch->size }, &call->ask.arena, &error);
	call->ask.command.kind = COMMAND_SUBMIT;
	if (job_json_read(&scan, &reading, &call->ask.command.submit, &error))
		call_command(call, on_submitted);
	else
		call_fail(call, &error);
}

static void on_cancelled(struct ask *ask)
{
	struct call *call = call_of(ask);
	Scheduler__CancelJobResponse response = SCHEDULER__CANCEL_JOB_RESPONSE__INIT;
	static char message[] = "Job cancelled successfully";

	if (!ask->ok) {
		call_fail(call, &ask->error);
		return;
	}
	response.success = true;
	response.message = message;
	grpc_answer(call, &response);
}

/* The tenant of a job in memory; 0: there is none. */
static int64_t tenant_of(const struct call *call, int64_t job_id)
{
	struct catalogue *catalogue = service_catalogue(call->service);
	struct catalogue_job job;

	catalogue_lock(catalogue);
	int64_t tenant_id = catalogue_job(catalogue, job_id, &job) ? job.job->tenant_id : 0;
	catalogue_unlock(catalogue);
	return tenant_id;
}

void grpc_cancel_job(struct call *call)
{
	const struct service *service = call->service;
	const Scheduler__CancelJobRequest *request = call->message;
	int64_t id, named, owner;

	if (!grpc_tenant(call, request->tenant_id, &named))
		return;
	bool known = id_read(text_of(request->job_id), ID_JOB, &id) &&
	             (owner = tenant_of(call, id)) > 0 &&
	             roster_may_see(&service->roster, &call->identity, owner) &&
	             (!request->tenant_id[0] || owner == named);
	if (!known) {
		call_reject(call, ERROR_NOT_FOUND, "there is no job %.60s", request->job_id);
		return;
	}
	call->ask.command.kind = COMMAND_CANCEL;
	call->ask.command.id = id;
	grpc_command(call, "/api/v1/jobs/", request->job_id, on_cancelled);
}
