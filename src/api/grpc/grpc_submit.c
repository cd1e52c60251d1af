/* grpc_submit.c - SubmitJob and CancelJob: the rules are those of REST */
#include "api/grpc/grpc_local.h"
#include "api/job/job_look_up.h"
#include "api/job/jobs.h"
#include "api/text/ids.h"
#include "api/text/resource_message.h"
#include "scheduler.pb-c.h"

static void on_submitted(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	Scheduler__SubmitJobResponse response = SCHEDULER__SUBMIT_JOB_RESPONSE__INIT;
	static char submitted[] = "submitted", message[] = "Job submitted successfully";
	char id[ID_TEXT_MAX];

	if (!engine->ok) {
		request_fail(request, &engine->error);
		return;
	}
	id_write(id, ID_JOB, engine->reply_id);
	response.job_id = id;
	response.status = submitted;
	response.message = message;
	grpc_answer(request, &response);
}

void grpc_submit_job(struct request *request)
{
	struct buffer *scratch = &request->service->services->scratch;
	struct json_writer json = json_writer_to(scratch);
	struct job_reading reading = job_reading_of(request, &request->engine.arena);
	struct error error = { 0 };

	buffer_clear(scratch);
	if (!resource_message_read(&job_resource, request->message, &json, &error)) {
		request_fail(request, &error);
		return;
	}
	struct json_scan scan = json_scan_of((struct text){ scratch->data, scratch->size },
	                                     &request->engine.arena, &error);
	request->engine.command.kind = COMMAND_SUBMIT;
	if (job_json_read(&scan, &reading, &request->engine.command.submit, &error))
		request_command(request, on_submitted);
	else
		request_fail(request, &error);
}

static void on_cancelled(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	Scheduler__CancelJobResponse response = SCHEDULER__CANCEL_JOB_RESPONSE__INIT;
	static char message[] = "Job cancelled successfully";

	if (!engine->ok) {
		request_fail(request, &engine->error);
		return;
	}
	response.success = true;
	response.message = message;
	grpc_answer(request, &response);
}

/* The tenant of a job in memory; 0: there is none. */
static int64_t grpc_submit_tenant_of(const struct request *request, int64_t job_id)
{
	struct catalogue *catalogue = service_catalogue(request->service);
	struct catalogue_job job;

	catalogue_lock(catalogue);
	int64_t tenant_id = catalogue_job(catalogue, job_id, &job) ? job.job->tenant_id : 0;
	catalogue_unlock(catalogue);
	return tenant_id;
}

void grpc_cancel_job(struct request *request)
{
	const struct service *service = request->service;
	const Scheduler__CancelJobRequest *message = request->message;
	int64_t id, named, owner;

	if (!grpc_tenant(request, message->tenant_id, &named))
		return;
	bool known = id_read(text_of(message->job_id), ID_JOB, &id) &&
	             (owner = grpc_submit_tenant_of(request, id)) > 0 &&
	             roster_may_see(&service->roster, &request->identity, owner) &&
	             (!message->tenant_id[0] || owner == named);
	if (!known) {
		request_reject(request, ERROR_NOT_FOUND, "there is no job %.60s", message->job_id);
		return;
	}
	if (!job_is_changeable(request, id))
		return;
	request->engine.command.kind = COMMAND_CANCEL;
	request->engine.command.id = id;
	grpc_command(request, "/api/v1/jobs/", message->job_id, on_cancelled);
}
