/* grpc_status.c - GetJobStatus and ListJobs: jobs as REST shows them */
#include "api/grpc/grpc_local.h"
#include "api/job/job_look_up.h"
#include "api/text/ids.h"
#include "api/text/resource_message.h"
#include "scheduler.pb-c.h"
#include "store/archive.h"

enum { METRICS_MAX = 16, LIMIT_DEFAULT = 50, LIMIT_MAX = 1000, ARCHIVED_MAX = 10000 };

/* A page of whole jobs ends when it has grown to this, as JSON: clients accept messages of 4 MiB
 * unless they are told otherwise, and a job may have a script of half a megabyte. */
enum { PAGE_BYTES = 2 << 20 };

static Google__Protobuf__Timestamp *time_message(int64_t unix_ms, struct arena *arena)
{
	if (unix_ms <= 0)
		return NULL;
	Google__Protobuf__Timestamp *time = arena_alloc(arena, sizeof(*time));
	google__protobuf__timestamp__init(time);
	time->seconds = unix_ms / 1000;
	time->nanos = (int32_t)(unix_ms % 1000 * 1000000);
	return time;
}

/* The job that the call's body shows as JSON; NULL: it does not. */
static Scheduler__Job *job_message(struct request *request, struct error *error)
{
	struct arena *arena = &request->engine.arena;
	struct text json = { request->body.data, request->body.size };
	struct json_scan scan = json_scan_of(json, arena, error);

	return (Scheduler__Job *)resource_message_write(&job_resource, &scheduler__job__descriptor,
	                                                &scan, arena);
}

static void add_metric(Scheduler__GetJobStatusResponse *response, const char *name, double value,
                       struct arena *arena)
{
	Scheduler__GetJobStatusResponse__MetricsEntry *entry = arena_alloc(arena, sizeof(*entry));

	INVARIANT(response->n_metrics < METRICS_MAX);
	scheduler__get_job_status_response__metrics_entry__init(entry);
	entry->key = arena_string(arena, name);
	entry->value = value;
	response->metrics[response->n_metrics++] = entry;
}

/* What its GPUs do now, on average, in percent; -1: unknown. */
static double utilization_of(const struct request *request, const Scheduler__Job *job)
{
	int64_t measured = 0, busy = 0;
	struct agents_sample sample;

	for (size_t i = 0; request->service->agents && i < job->n_allocated_gpus; i++) {
		if (!agents_sample(request->service->agents, job->allocated_gpus[i], &sample))
			continue;
		measured++;
		busy += sample.utilisation;
	}
	return measured > 0 ? (double)busy / (double)measured / 10 : -1;
}

/* The numbers of a job under the names that were published before it was shown whole. */
static void fill_metrics(struct request *request, Scheduler__GetJobStatusResponse *response)
{
	struct arena *arena = &request->engine.arena;
	const Scheduler__Job *job = response->job;
	bool is_final = job->completed_at != NULL;

	response->metrics = arena_alloc(
	    arena, METRICS_MAX * sizeof(Scheduler__GetJobStatusResponse__MetricsEntry *));
	add_metric(response, "preempted_count", (double)job->preempted_count, arena);
	add_metric(response, "exit_code", (double)job->exit_code, arena);
	add_metric(response, "peak_gpu_memory_mb", (double)job->peak_gpu_memory_mb, arena);
	add_metric(response, "gpu_seconds", job->gpu_seconds, arena);
	add_metric(response, "energy_joules", job->energy_joules, arena);
	add_metric(response, "cpu_seconds", job->cpu_seconds, arena);
	if (job->guard) {
		add_metric(response, "guard_limit_mb", (double)job->guard->limit_mb, arena);
		add_metric(response, "guard_refusals", (double)job->guard->refusals, arena);
	}
	double utilization = is_final ? -1 : utilization_of(request, job);
	if (utilization >= 0)
		add_metric(response, "gpu_utilization", utilization, arena);
}

static int32_t small_of(int64_t number)
{
	return (int32_t)max64(min64(number, INT32_MAX), INT32_MIN);
}

static void show_status(struct request *request)
{
	const struct job_look_up *look_up = request->state;
	Scheduler__GetJobStatusResponse response = SCHEDULER__GET_JOB_STATUS_RESPONSE__INIT;
	struct error error = { 0 };
	Scheduler__Job *job = job_message(request, &error);

	if (!job) {
		request_reject(request, ERROR_CORRUPT, "%s cannot be shown: %s", look_up->name.data,
		               error.text);
		return;
	}
	response.job = job;
	response.job_id = job->id;
	response.state = job->state;
	response.message = job->message;
	if (!job->message[0] && look_up->why)
		response.message = arena_string(&request->engine.arena, look_up->why);
	response.allocated_gpus = job->allocated_gpus;
	response.n_allocated_gpus = job->n_allocated_gpus;
	response.node_name = job->node_name;
	response.queue_position = small_of(job->queue_position);
	response.estimated_wait = job->estimated_wait;
	response.submitted_at = job->submitted_at;
	response.started_at = job->started_at;
	response.completed_at = job->completed_at;
	fill_metrics(request, &response);
	grpc_answer(request, &response);
}

void grpc_job_status(struct request *request)
{
	const Scheduler__GetJobStatusRequest *message = request->message;
	struct job_look_up look_up = { .name = text_of(message->job_id),
		                       .with_reason = true,
		                       .found = show_status };
	int64_t named;

	if (!grpc_tenant(request, message->tenant_id, &named))
		return;
	if (message->tenant_id[0])
		look_up.tenant_id = named;
	if (id_read(look_up.name, ID_JOB, &look_up.id))
		job_look_up(request, &look_up);
	else
		request_unknown(request, "job", look_up.name);
}

/* ListJobs: those in memory, the newest first, then those that are archived. */
struct listing {
	Scheduler__ListJobsResponse response;
	struct archive_filter filter;
	int64_t skip; /* of the archived ones */
	struct archived_job *archived;
	int64_t archived_count;
	size_t page_bytes; /* of whole jobs, as JSON */
};

/* Adds one job, and the whole of it where that is asked for. The catalogue is locked. */
static void grpc_status_add_job(struct request *request, const struct job_view *view)
{
	const Scheduler__ListJobsRequest *message = request->message;
	const struct job_record *job = view->job;
	struct listing *listing = request->state;
	Scheduler__JobInfo *info = arena_alloc(view->arena, sizeof(*info));
	struct error error = { 0 };

	scheduler__job_info__init(info);
	info->job_id = arena_alloc(view->arena, ID_TEXT_MAX);
	id_write(info->job_id, ID_JOB, job->id);
	info->name = arena_string(view->arena, job->name);
	info->state = (char *)job_state_words.at[view->state->state];
	info->gpu_count = job->split_gpus > 0 ? (int32_t)job->split_gpus : job->gpu_count;
	info->submitted_at = time_message(job->submitted_ms, view->arena);
	info->started_at = time_message(view->state->started_ms, view->arena);
	info->priority = small_of(job->priority);
	listing->response.jobs[listing->response.n_jobs++] = info;
	if (!message->full)
		return;
	buffer_clear(&request->body);
	request->json = json_writer_to(&request->body);
	job_view_write(&request->json, NULL, view);
	info->job = job_message(request, &error);
	listing->page_bytes += request->body.size;
}

static bool page_is_full(const struct listing *listing)
{
	return listing->page_bytes >= PAGE_BYTES;
}

static bool grpc_status_read_list(struct engine_request *engine, struct store *store,
                                  struct error *error)
{
	struct listing *listing = request_of(engine)->state;

	return archive_list(store, &listing->filter, &engine->arena, &listing->archived,
	                    &listing->archived_count, error);
}

static void on_listed(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	struct listing *listing = request->state;
	struct catalogue *catalogue = service_catalogue(request->service);

	if (!engine->ok) {
		request_fail(request, &engine->error);
		return;
	}
	catalogue_lock(catalogue);
	for (int64_t i = listing->skip; i < listing->archived_count && !page_is_full(listing);
	     i++) {
		grpc_status_add_job(
		    request, &(struct job_view){ .job = &listing->archived[i].job,
		                                 .state = &listing->archived[i].state,
		                                 .catalogue = catalogue,
		                                 .agents = request->service->agents,
		                                 .arena = &engine->arena,
		                                 .now_ms = service_time_ms(request->service) });
		service_breathe(request->service, i);
	}
	catalogue_unlock(catalogue);
	grpc_answer(request, &listing->response);
}

static bool read_state(const char *name, int *state)
{
	*state = -1;
	for (int i = 0; name[0] && i < job_state_words.count; i++)
		if (strcmp(name, job_state_words.at[i]) == 0)
			*state = i;
	return !name[0] || *state >= 0;
}

/* Adds those in memory from `offset` on. Returns how many there are in all. */
static int64_t list_memory(struct request *request, const struct catalogue_filter *filter,
                           int64_t offset, int64_t limit, int64_t *archived)
{
	struct listing *listing = request->state;
	struct catalogue *catalogue = service_catalogue(request->service);
	int64_t *ids = arena_alloc(&request->engine.arena, (size_t)limit * sizeof(*ids));

	catalogue_lock(catalogue);
	int64_t count = catalogue_count(catalogue, filter, archived);
	size_t found = catalogue_list(catalogue, filter, offset, (size_t)limit, ids);
	for (size_t i = 0; i < found && !page_is_full(listing); i++) {
		struct catalogue_job job;
		if (catalogue_job(catalogue, ids[i], &job))
			grpc_status_add_job(
			    request,
			    &(struct job_view){ .job = job.job,
			                        .state = job.state,
			                        .tasks = job.tasks,
			                        .task_count = job.task_count,
			                        .promise = job.promise,
			                        .catalogue = catalogue,
			                        .agents = request->service->agents,
			                        .arena = &request->engine.arena,
			                        .now_ms = service_time_ms(request->service) });
		service_breathe(request->service, (int64_t)i);
	}
	catalogue_unlock(catalogue);
	return count;
}

void grpc_list_jobs(struct request *request)
{
	const Scheduler__ListJobsRequest *message = request->message;
	struct arena *arena = &request->engine.arena;
	struct listing *listing = arena_alloc(arena, sizeof(*listing));
	struct catalogue_filter filter = { .order = ORDER_NEWEST };
	int64_t limit = message->limit == 0 ? LIMIT_DEFAULT : message->limit;
	int64_t archived = 0;

	if (!grpc_tenant(request, message->tenant_id, &filter.tenant_id))
		return;
	if (limit < 0 || limit > LIMIT_MAX || message->offset < 0 ||
	    !read_state(message->state, &filter.state)) {
		request_reject(request, ERROR_INVALID,
		               "limit is 1 to %d, offset not negative, and state one of pending, "
		               "scheduled, running, preempted, completed, failed and cancelled",
		               LIMIT_MAX);
		return;
	}
	*listing = (struct listing){ .response = SCHEDULER__LIST_JOBS_RESPONSE__INIT };
	request->state = listing;
	listing->response.jobs =
	    arena_alloc(arena, (size_t)limit * sizeof(*listing->response.jobs));
	int64_t count = list_memory(request, &filter, message->offset, limit, &archived);
	listing->response.total = (int32_t)min64(count + archived, INT32_MAX);
	int64_t left = limit - (int64_t)listing->response.n_jobs;
	listing->skip = max64(message->offset - count, 0);
	if (left == 0 || archived <= listing->skip || page_is_full(listing)) {
		grpc_answer(request, &listing->response);
	} else if (listing->skip + left > ARCHIVED_MAX) {
		request_reject(request, ERROR_INVALID,
		               "offset goes further back than %d finished jobs: GET /api/v1/jobs "
		               "pages through all of them",
		               ARCHIVED_MAX);
	} else {
		listing->filter = (struct archive_filter){ .tenant_id = filter.tenant_id,
			                                   .state = filter.state,
			                                   .limit = listing->skip + left };
		request->engine.read = grpc_status_read_list;
		request_send(request, on_listed);
	}
}
