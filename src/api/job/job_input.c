/* job_input.c - the standard input of a task, passed on to the node where it runs */
#include <stdio.h>
#include <stdlib.h>

#include "api/job/job_look_up.h"
#include "api/job/job_payload.h"
#include "api/job/job_place.h"
#include "api/job/jobs.h"
#include "api/service/service_state.h"
#include "api/text/ids.h"
#include "base/memory.h"

/* The request is ours until the answer of the node, or until the client is gone. */
struct job_input {
	struct request *request;
	int64_t job_id, task, offset;
	bool end;
	int64_t tenant_id, reservation_id;
	bool reads; /* the task has a standard input */
	char node[NODE_NAME_MAX];
	struct agents_input *input;
};

static bool read_input_query(const struct request *request, struct job_input *wanted,
                             struct error *error)
{
	const struct query *query = &request->exchange->query;

	return query_integer(query, "task", 0, TASKS_MAX - 1, 0, &wanted->task, error) &&
	       query_integer(query, "offset", 0, INT64_MAX / 2, 0, &wanted->offset, error) &&
	       query_flag(query, "end", false, &wanted->end, error);
}

/* False where the job is not in memory. */
static bool find_task(struct job_input *wanted)
{
	struct service *service = wanted->request->service;
	struct catalogue *catalogue = service_catalogue(service);
	struct catalogue_job job;
	struct arena arena = { 0 };

	catalogue_lock(catalogue);
	bool found = catalogue_job(catalogue, wanted->job_id, &job);
	if (found) {
		struct text tasks =
		    job_payload_text(job.job->payload, TEXT("standard_input"), &arena);
		wanted->tenant_id = job.job->tenant_id;
		wanted->reads = tasks.size > 0 && (wanted->task == 0 || text_is(tasks, "all"));
		wanted->reservation_id =
		    job_place_find(catalogue, &job, wanted->task, wanted->node);
	}
	catalogue_unlock(catalogue);
	arena_free(&arena);
	return found;
}

static void job_input_done(void *context, const struct agents_input_answer *answer,
                           const struct error *error)
{
	struct job_input *wanted = context;
	struct request *request = wanted->request;

	free(wanted);
	if (error) {
		request_fail(request, error);
		return;
	}
	struct json_writer *json = request_object(request);
	json_put_integer(json, "offset", answer->offset);
	json_put_flag(json, "closed", answer->closed);
	json_close(json);
	request_answer_json(request, 200);
}

static void job_input_on_gone(struct exchange *exchange)
{
	struct request *request = exchange->context;
	struct job_input *wanted = request->state;

	agents_stop_input(wanted->input);
	free(wanted);
	request_drop(request);
}

static const struct exchange_events events = { .gone = job_input_on_gone };

static void job_input_pass_on(const struct job_input *found)
{
	struct job_input *wanted = NEW(struct job_input);
	struct request *request = found->request;

	*wanted = *found;
	request->state = wanted;
	request->exchange->events = &events;
	request->exchange->hangup_is_gone = true;
	wanted->input = agents_write_input(request->service->agents,
	                                   &(struct agents_input_options){
					       .node = wanted->node,
					       .reservation_id = wanted->reservation_id,
					       .offset = wanted->offset,
					       .data = request->exchange->body,
					       .end = wanted->end,
					       .done = job_input_done,
					       .context = wanted,
					   });
}

void jobs_input(struct request *request)
{
	struct text segment = request_segment(request, 3);
	struct job_input wanted = { .request = request };
	struct error error = { 0 };

	if (!read_input_query(request, &wanted, &error)) {
		request_fail(request, &error);
		return;
	}
	if (!id_read(segment, ID_JOB, &wanted.job_id) || !find_task(&wanted) ||
	    !roster_may_see(&request->service->roster, &request->identity, wanted.tenant_id)) {
		request_unknown(request, "job", segment);
		return;
	}
	if (!job_is_changeable(request, wanted.job_id))
		return;
	if (!wanted.reads)
		request_refuse(request, 409, "conflict",
		               "task %lld has no standard input: submit the job with "
		               "standard_input, or with 'gpu-cli run'",
		               (long long)wanted.task);
	else if (wanted.reservation_id == 0)
		request_refuse(request, 409, "conflict", "task %lld is not running",
		               (long long)wanted.task);
	else if (exchange_is_gone(request->exchange))
		request_drop(request);
	else
		job_input_pass_on(&wanted);
}
