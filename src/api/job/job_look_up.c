/* job_look_up.c - one job, wherever it is: in memory or archived */
#include "api/job/job_look_up.h"

#include "api/service/service_state.h"

enum { EVENTS_MAX = 1000, DECISIONS_MAX = 100 };

bool job_in_memory(struct request *request, int64_t id, int64_t *tenant_id)
{
	struct catalogue *catalogue = service_catalogue(request->service);
	struct catalogue_job job;

	catalogue_lock(catalogue);
	bool found = catalogue_job(catalogue, id, &job);
	*tenant_id = found ? job.job->tenant_id : 0;
	catalogue_unlock(catalogue);
	if (found && !roster_may_see(&request->service->roster, &request->identity, *tenant_id))
		*tenant_id = 0;
	return found;
}

bool job_is_changeable(struct request *request, int64_t id)
{
	struct catalogue *catalogue = service_catalogue(request->service);
	const char *user = identity_user(&request->identity);
	struct catalogue_job job;

	if (!request->service->settings.owners_only || identity_may_manage(&request->identity))
		return true;
	catalogue_lock(catalogue);
	bool is_own =
	    *user && catalogue_job(catalogue, id, &job) && strcmp(job.job->user, user) == 0;
	catalogue_unlock(catalogue);
	if (!is_own)
		request_refuse(request, 403, "forbidden",
		               "only the user who submitted job-%lld and administrators of its "
		               "tenant may change it (auth.job_changes)",
		               (long long)id);
	return is_own;
}

const char *job_why_line(struct engine_request *engine, struct sched *sched, int64_t id)
{
	struct error error;

	buffer_clear(&engine->text);
	if (!sched_why(sched, id, request_viewer(request_of(engine)), &engine->text, &error))
		return NULL;
	buffer_text(&engine->text, "");
	char *text = arena_string(&engine->arena, engine->text.data);
	text[strcspn(text, "\n")] = '\0';
	return text;
}

const char *job_why_reason(const char *why)
{
	static const char between[] = " waits: ";
	const char *rest = why ? strstr(why, between) : NULL;

	return rest ? rest + strlen(between) : why;
}

static void look_up_miss(struct request *request)
{
	const struct job_look_up *look_up = request->state;
	request_unknown(request, "job", look_up->name);
}

static void job_look_up_write_job(struct request *request, const struct job_view *view)
{
	buffer_clear(&request->body);
	request->json = json_writer_to(&request->body);
	job_view_write(&request->json, NULL, view);
}

static void look_up_in_store(struct request *request);

/* A finished job may have left memory since it was seen there: the store has it. */
static void show_from_memory(struct request *request, bool waits)
{
	const struct job_look_up *look_up = request->state;
	struct catalogue *catalogue = service_catalogue(request->service);
	struct catalogue_job job;

	catalogue_lock(catalogue);
	bool found = catalogue_job(catalogue, look_up->id, &job);
	if (found)
		job_look_up_write_job(
		    request, &(struct job_view){ .job = job.job,
		                                 .state = job.state,
		                                 .tasks = job.tasks,
		                                 .task_count = job.task_count,
		                                 .promise = job.promise,
		                                 .wait = waits ? &look_up->wait : NULL,
		                                 .reason = job_why_reason(look_up->why),
		                                 .past = look_up->has_past ? &look_up->past : NULL,
		                                 .catalogue = catalogue,
		                                 .agents = request->service->agents,
		                                 .arena = &request->engine.arena,
		                                 .now_ms = service_time_ms(request->service) });
	catalogue_unlock(catalogue);
	if (found)
		look_up->found(request);
	else
		look_up_in_store(request);
}

static bool look_at_wait(struct engine_request *engine, struct sched *sched, struct error *error)
{
	struct job_look_up *look_up = request_of(engine)->state;

	if (look_up->with_reason)
		look_up->why = job_why_line(engine, sched, look_up->id);
	return sched_wait(sched, look_up->id, &look_up->wait, error);
}

static void looked_at_wait(struct engine_request *engine)
{
	show_from_memory(request_of(engine), engine->ok);
}

/* Where it was, from what is stored: the last start counts. */
static bool read_past(struct job_look_up *look_up, struct arena *arena, struct store *store,
                      struct error *error)
{
	struct job_past *past = &look_up->past;
	struct decision_filter filter = { .job_id = look_up->id,
		                          .kind = -1,
		                          .limit = DECISIONS_MAX };
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

static bool read_past_only(struct engine_request *engine, struct store *store, struct error *error)
{
	return read_past(request_of(engine)->state, &engine->arena, store, error);
}

/* Its history is more than it needs: without it, what memory has is told. */
static void got_past(struct engine_request *engine)
{
	show_from_memory(request_of(engine), false);
}

static bool read_archived(struct engine_request *engine, struct store *store, struct error *error)
{
	struct job_look_up *look_up = request_of(engine)->state;
	return archive_find(store, look_up->id, &engine->arena, &look_up->archived, &look_up->tasks,
	                    &look_up->task_count, error) &&
	       read_past(look_up, &engine->arena, store, error);
}

static void show_archived(struct request *request)
{
	const struct job_look_up *look_up = request->state;
	struct catalogue *catalogue = service_catalogue(request->service);
	const struct task_record **tasks =
	    arena_alloc(&request->engine.arena,
	                ((size_t)look_up->task_count + 1) * sizeof(struct task_record *));

	for (int64_t i = 0; i < look_up->task_count; i++)
		tasks[i] = &look_up->tasks[i];
	catalogue_lock(catalogue);
	job_look_up_write_job(request,
	                      &(struct job_view){ .job = &look_up->archived.job,
	                                          .state = &look_up->archived.state,
	                                          .tasks = tasks,
	                                          .task_count = (size_t)look_up->task_count,
	                                          .past = look_up->has_past ? &look_up->past : NULL,
	                                          .catalogue = catalogue,
	                                          .agents = request->service->agents,
	                                          .arena = &request->engine.arena,
	                                          .now_ms = service_time_ms(request->service) });
	catalogue_unlock(catalogue);
	look_up->found(request);
}

static bool look_up_owns(struct request *request, int64_t tenant_id)
{
	const struct job_look_up *look_up = request->state;
	return tenant_id > 0 && (look_up->tenant_id == 0 || look_up->tenant_id == tenant_id) &&
	       roster_may_see(&request->service->roster, &request->identity, tenant_id);
}

/* True if the archive has a job that the caller may see; or else the request is answered. */
static bool check_archived(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	const struct job_look_up *look_up = request->state;

	if (!engine->ok && engine->error.code != ERROR_NOT_FOUND)
		request_fail(request, &engine->error);
	else if (!engine->ok || !look_up_owns(request, look_up->archived.job.tenant_id))
		look_up_miss(request);
	else
		return true;
	return false;
}

static void found_to_show(struct engine_request *engine)
{
	if (check_archived(engine))
		show_archived(request_of(engine));
}

static void look_up_in_store(struct request *request)
{
	request_read(request, read_archived, found_to_show);
}

static void found_archived(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	const struct job_look_up *look_up = request->state;

	if (check_archived(engine))
		look_up->found(request);
}

static void look_up_begin(struct request *request, const struct job_look_up *look_up)
{
	INVARIANT(look_up->found && look_up->name.data);
	request->state = arena_copy(&request->engine.arena, look_up, sizeof(*look_up));
}

void job_look_up_archived(struct request *request, const struct job_look_up *look_up)
{
	look_up_begin(request, look_up);
	request_read(request, read_archived, found_archived);
}

static int look_up_state(struct request *request, int64_t id)
{
	struct catalogue *catalogue = service_catalogue(request->service);
	struct catalogue_job job;

	catalogue_lock(catalogue);
	int state = catalogue_job(catalogue, id, &job) ? job.state->state : -1;
	catalogue_unlock(catalogue);
	return state;
}

void job_look_up(struct request *request, const struct job_look_up *look_up)
{
	int state = look_up_state(request, look_up->id);
	int64_t tenant_id;

	look_up_begin(request, look_up);
	if (!job_in_memory(request, look_up->id, &tenant_id))
		look_up_in_store(request);
	else if (!look_up_owns(request, tenant_id))
		look_up_miss(request);
	else if (state == JOB_PENDING)
		request_look(request, look_at_wait, looked_at_wait);
	else if (state >= 0 && job_state_is_final((enum job_state)state))
		request_read(request, read_past_only, got_past);
	else
		show_from_memory(request, false);
}
