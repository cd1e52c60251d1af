/* grpc_status.c - GetJobStatus and ListJobs */
#include <stdio.h>

#include "api/grpc/grpc_local.h"
#include "api/job/use_view.h"
#include "api/text/ids.h"
#include "scheduler.pb-c.h"
#include "store/archive.h"

enum { METRICS_MAX = 16, LIMIT_DEFAULT = 50, LIMIT_MAX = 1000, ARCHIVED_MAX = 10000 };

static Google__Protobuf__Timestamp *time_of(int64_t unix_ms, struct arena *arena)
{
	if (unix_ms <= 0)
		return NULL;
	Google__Protobuf__Timestamp *time = arena_alloc(arena, sizeof(*time));
	google__protobuf__timestamp__init(time);
	time->seconds = unix_ms / 1000;
	time->nanos = (int32_t)(unix_ms % 1000 * 1000000);
	return time;
}

static Google__Protobuf__Duration *duration_of(int64_t duration_ms, struct arena *arena)
{
	Google__Protobuf__Duration *duration = arena_alloc(arena, sizeof(*duration));

	google__protobuf__duration__init(duration);
	duration->seconds = duration_ms / 1000;
	duration->nanos = (int32_t)(duration_ms % 1000 * 1000000);
	return duration;
}

static char *state_name(int32_t state)
{
	return (char *)job_state_words.at[state];
}

static void add_metric(Scheduler__GetJobStatusResponse *response, const char *name, double value,
                       struct arena *arena)
{
	Scheduler__GetJobStatusResponse__MetricsEntry *entry = arena_alloc(arena, sizeof(*entry));

	scheduler__get_job_status_response__metrics_entry__init(entry);
	entry->key = arena_string(arena, name);
	entry->value = value;
	response->metrics[response->n_metrics++] = entry;
}

static void fill_job(Scheduler__GetJobStatusResponse *response, const struct job_record *job,
                     const struct job_state_record *state, struct arena *arena)
{
	response->job_id = arena_alloc(arena, ID_TEXT_MAX);
	id_write(response->job_id, ID_JOB, job->id);
	response->state = state_name(state->state);
	response->message = arena_string(arena, state->message);
	response->submitted_at = time_of(job->submitted_ms, arena);
	response->started_at = time_of(state->started_ms, arena);
	response->completed_at = time_of(state->completed_ms, arena);
	response->metrics = arena_alloc(arena, METRICS_MAX * sizeof(*response->metrics));
	add_metric(response, "preempted_count", (double)state->preempted_count, arena);
	add_metric(response, "exit_code", (double)state->exit_code, arena);
}

/* The use of its finished tasks. */
static void fill_use(Scheduler__GetJobStatusResponse *response, const struct task_use *use,
                     struct arena *arena)
{
	add_metric(response, "peak_gpu_memory_mb", (double)use->peak_mib, arena);
	add_metric(response, "gpu_seconds", (double)use->gpu_ms / 1000, arena);
	add_metric(response, "energy_joules", (double)use->energy_mj / 1000, arena);
	add_metric(response, "cpu_seconds", (double)use->cpu_ms / 1000, arena);
	if (use->limit_mib > 0) {
		add_metric(response, "guard_limit_mb", (double)use->limit_mib, arena);
		add_metric(response, "guard_refusals", (double)use->refusals, arena);
	}
}

/* Where its tasks are: all their GPUs, and the node of the first. */
static void fill_places(Scheduler__GetJobStatusResponse *response, const struct catalogue_job *job,
                        const struct call *call, struct arena *arena)
{
	const struct service *service = call->service;
	const struct catalogue *catalogue = service_catalogue(service);
	int64_t measured = 0, busy = 0;
	struct task_use sum = { 0 };

	response->allocated_gpus =
	    arena_alloc(arena, (job->task_count * PARTS_MAX + 1) * sizeof(char *));
	for (size_t i = 0; i < job->task_count; i++) {
		const struct reservation_record *place =
		    catalogue_get(catalogue, RECORD_RESERVATION, job->tasks[i]->reservation_id, 0);
		struct task_use use = task_use_of(job->tasks[i]);
		task_use_add(&sum, &use);
		if (!place)
			continue;
		const struct node_record *node =
		    catalogue_get(catalogue, RECORD_NODE, place->node_id, 0);
		if (node && !response->node_name[0])
			response->node_name = arena_string(arena, node->name);
		for (int64_t k = 0; k < place->parts.count; k++) {
			const struct gpu_record *gpu = catalogue_get(
			    catalogue, RECORD_GPU, place->parts.at[k * PART_WIDTH + PART_GPU], 0);
			struct agents_sample sample;
			if (!gpu)
				continue;
			response->allocated_gpus[response->n_allocated_gpus++] =
			    arena_string(arena, gpu->uuid);
			if (!service->agents || !agents_sample(service->agents, gpu->uuid, &sample))
				continue;
			measured++;
			busy += sample.utilisation;
		}
	}
	fill_use(response, &sum, arena);
	if (measured > 0)
		add_metric(response, "gpu_utilization", (double)busy / (double)measured / 10,
		           arena);
}

/* What only the core knows of a job that waits. */
static bool look_at_queue(struct ask *ask, struct sched *sched, struct error *error)
{
	struct call *call = call_of(ask);
	Scheduler__GetJobStatusResponse *response = call->state;
	int64_t id = 0, place = 0, among_own = 0;
	struct error unknown;

	(void)error;
	if (!id_read(text_of(response->job_id), ID_JOB, &id))
		return true;
	if (sched_position(sched, id, &place, &among_own, &unknown))
		response->queue_position = (int32_t)min64(place + 1, INT32_MAX);
	if (!response->message[0] &&
	    sched_why(sched, id, identity_viewer(&call->identity), &ask->text, &unknown)) {
		const char *end = memchr(ask->text.data, '\n', ask->text.size);
		size_t size = end ? (size_t)(end - ask->text.data) : ask->text.size;
		char *message = arena_alloc(&ask->arena, size + 1);
		memcpy(message, ask->text.data, size);
		message[size] = '\0';
		response->message = message;
	}
	return true;
}

static void on_looked(struct ask *ask)
{
	struct call *call = call_of(ask);

	if (ask->ok)
		grpc_answer(call, call->state);
	else
		call_fail(call, &ask->error);
}

static bool read_archived(struct ask *ask, struct store *store, struct error *error)
{
	struct call *call = call_of(ask);
	const Scheduler__GetJobStatusRequest *request = call->message;
	Scheduler__GetJobStatusResponse *response = call->state;
	struct archived_job job;
	int64_t id = 0;

	id_read(text_of(request->job_id), ID_JOB, &id);
	struct task_record *tasks = NULL;
	int64_t task_count = 0;
	struct task_use sum = { 0 };
	if (!archive_find(store, id, &ask->arena, &job, &tasks, &task_count, error))
		return false;
	ask->reply_id = job.job.tenant_id;
	fill_job(response, &job.job, &job.state, &ask->arena);
	for (int64_t i = 0; i < task_count; i++) {
		struct task_use use = task_use_of(&tasks[i]);
		task_use_add(&sum, &use);
	}
	fill_use(response, &sum, &ask->arena);
	return true;
}

static void refuse_job(struct call *call, const char *id)
{
	call_reject(call, ERROR_NOT_FOUND, "there is no job %.60s", id);
}

static void on_read(struct ask *ask)
{
	struct call *call = call_of(ask);
	const Scheduler__GetJobStatusRequest *request = call->message;

	if (!ask->ok && ask->error.code != ERROR_NOT_FOUND)
		call_fail(call, &ask->error);
	else if (!ask->ok ||
	         !roster_may_see(&call->service->roster, &call->identity, ask->reply_id))
		refuse_job(call, request->job_id);
	else
		grpc_answer(call, call->state);
}

void grpc_job_status(struct call *call)
{
	const Scheduler__GetJobStatusRequest *request = call->message;
	struct catalogue *catalogue = service_catalogue(call->service);
	struct arena *arena = &call->ask.arena;
	Scheduler__GetJobStatusResponse *response = arena_alloc(arena, sizeof(*response));
	struct catalogue_job job;
	int64_t id, named;

	if (!grpc_tenant(call, request->tenant_id, &named))
		return;
	if (!id_read(text_of(request->job_id), ID_JOB, &id)) {
		refuse_job(call, request->job_id);
		return;
	}
	scheduler__get_job_status_response__init(response);
	call->state = response;
	catalogue_lock(catalogue);
	bool found = catalogue_job(catalogue, id, &job);
	int64_t owner = found ? job.job->tenant_id : 0;
	bool waits = found && job.state->state == JOB_PENDING;
	if (found) {
		fill_job(response, job.job, job.state, arena);
		fill_places(response, &job, call, arena);
		if (job.promise)
			response->estimated_wait =
			    duration_of(max64(job.promise->start_ms - clock_unix_ms(), 0), arena);
	}
	catalogue_unlock(catalogue);
	if (!found) {
		call->ask.read = read_archived;
		call_ask(call, on_read);
	} else if (!roster_may_see(&call->service->roster, &call->identity, owner) ||
	           (request->tenant_id[0] && owner != named)) {
		refuse_job(call, request->job_id);
	} else if (waits) {
		call->ask.look = look_at_queue;
		call_ask(call, on_looked);
	} else {
		grpc_answer(call, response);
	}
}

/* ListJobs: those in memory, the newest first, then those that are archived. */
struct listing {
	Scheduler__ListJobsResponse response;
	struct archive_filter filter;
	int64_t skip; /* of the archived ones */
};

static void add_job(Scheduler__ListJobsResponse *response, const struct job_record *job,
                    const struct job_state_record *state, struct arena *arena)
{
	Scheduler__JobInfo *info = arena_alloc(arena, sizeof(*info));

	scheduler__job_info__init(info);
	info->job_id = arena_alloc(arena, ID_TEXT_MAX);
	id_write(info->job_id, ID_JOB, job->id);
	info->name = arena_string(arena, job->name);
	info->state = state_name(state->state);
	info->gpu_count = job->split_gpus > 0 ? (int32_t)job->split_gpus : job->gpu_count;
	info->submitted_at = time_of(job->submitted_ms, arena);
	info->started_at = time_of(state->started_ms, arena);
	info->priority = (int32_t)max64(min64(job->priority, INT32_MAX), INT32_MIN);
	response->jobs[response->n_jobs++] = info;
}

static bool read_list(struct ask *ask, struct store *store, struct error *error)
{
	struct listing *listing = call_of(ask)->state;
	struct archived_job *jobs;
	int64_t count;

	if (!archive_list(store, &listing->filter, &ask->arena, &jobs, &count, error))
		return false;
	for (int64_t i = listing->skip; i < count; i++)
		add_job(&listing->response, &jobs[i].job, &jobs[i].state, &ask->arena);
	return true;
}

static void on_listed(struct ask *ask)
{
	struct call *call = call_of(ask);
	struct listing *listing = call->state;

	if (ask->ok)
		grpc_answer(call, &listing->response);
	else
		call_fail(call, &ask->error);
}

static bool read_state(const char *name, int *state)
{
	*state = -1;
	for (int i = 0; name[0] && i < job_state_words.count; i++)
		if (strcmp(name, job_state_words.at[i]) == 0)
			*state = i;
	return !name[0] || *state >= 0;
}

/* How many of those in memory there are from `offset` on, and how many in all. */
static int64_t list_memory(struct call *call, const struct catalogue_filter *filter, int64_t offset,
                           int64_t limit, int64_t *archived)
{
	struct listing *listing = call->state;
	struct catalogue *catalogue = service_catalogue(call->service);
	int64_t *ids = arena_alloc(&call->ask.arena, (size_t)limit * sizeof(*ids));

	catalogue_lock(catalogue);
	int64_t count = catalogue_count(catalogue, filter, archived);
	size_t found = catalogue_list(catalogue, filter, offset, (size_t)limit, ids);
	for (size_t i = 0; i < found; i++) {
		struct catalogue_job job;
		if (catalogue_job(catalogue, ids[i], &job))
			add_job(&listing->response, job.job, job.state, &call->ask.arena);
	}
	catalogue_unlock(catalogue);
	return count;
}

void grpc_list_jobs(struct call *call)
{
	const Scheduler__ListJobsRequest *request = call->message;
	struct arena *arena = &call->ask.arena;
	struct listing *listing = arena_alloc(arena, sizeof(*listing));
	struct catalogue_filter filter = { .order = ORDER_NEWEST };
	int64_t limit = request->limit == 0 ? LIMIT_DEFAULT : request->limit;
	int64_t archived = 0;

	if (!grpc_tenant(call, request->tenant_id, &filter.tenant_id))
		return;
	if (limit < 0 || limit > LIMIT_MAX || request->offset < 0 ||
	    !read_state(request->state, &filter.state)) {
		call_reject(call, ERROR_INVALID,
		            "limit is 1 to %d, offset not negative, and state one of pending, "
		            "scheduled, running, preempted, completed, failed and cancelled",
		            LIMIT_MAX);
		return;
	}
	*listing = (struct listing){ .response = SCHEDULER__LIST_JOBS_RESPONSE__INIT };
	call->state = listing;
	listing->response.jobs =
	    arena_alloc(arena, (size_t)limit * sizeof(*listing->response.jobs));
	int64_t count = list_memory(call, &filter, request->offset, limit, &archived);
	listing->response.total = (int32_t)min64(count + archived, INT32_MAX);
	int64_t left = limit - (int64_t)listing->response.n_jobs;
	listing->skip = max64(request->offset - count, 0);
	if (left == 0 || archived <= listing->skip) {
		grpc_answer(call, &listing->response);
	} else if (listing->skip + left > ARCHIVED_MAX) {
		call_reject(call, ERROR_INVALID,
		            "offset goes further back than %d finished jobs: GET /api/v1/jobs "
		            "pages through all of them",
		            ARCHIVED_MAX);
	} else {
		listing->filter = (struct archive_filter){ .tenant_id = filter.tenant_id,
			                                   .state = filter.state,
			                                   .limit = listing->skip + left };
		call->ask.read = read_list;
		call_ask(call, on_listed);
	}
}
