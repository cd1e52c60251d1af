/* job_story.c - why a job waits or where it went, and its history */
#include "api/job/event_view.h"
#include "api/job/jobs.h"
#include "api/service/page.h"
#include "api/service/service_state.h"
#include "api/text/ids.h"
#include "base/calendar.h"
#include "core/why/why_text.h"
#include "store/archive.h"

struct story {
	int64_t id;
	struct archived_job archived;
	bool trace, in_memory;
	bool with_decision; /* the answer has the newest decision about it, explained */
	struct decision_record *decisions;
	int64_t decision_count;
	const char *explanation; /* of the newest decision; NULL: none */
	int64_t since, limit;
	struct event *events;
	int64_t count;
};

static bool read_decision(struct engine_request *engine, struct store *store, struct error *error)
{
	struct story *story = request_of(engine)->state;
	struct decision_filter newest = { .job_id = story->id, .kind = -1, .limit = 1 };
	return archive_decisions(store, &newest, &engine->arena, &story->decisions,
	                         &story->decision_count, error);
}

/* Keeps the explanation in the arena and leaves the text empty. */
static bool look_decision(struct engine_request *engine, struct sched *sched, struct error *error)
{
	struct request *request = request_of(engine);
	struct story *story = request->state;
	(void)error;
	buffer_clear(&engine->text);
	if (story->decision_count > 0 &&
	    sched_explain(sched, &story->decisions[0], request_viewer(request), &engine->text)) {
		buffer_text(&engine->text, "");
		story->explanation = arena_string(&engine->arena, engine->text.data);
		buffer_clear(&engine->text);
	}
	return true;
}

static bool look_why(struct engine_request *engine, struct sched *sched, struct error *error)
{
	struct request *request = request_of(engine);
	const struct story *story = request->state;
	if (!look_decision(engine, sched, error))
		return false;
	if (story->trace)
		return sched_trace(sched, story->id, &engine->text, error);
	return sched_why(sched, story->id, request_viewer(request), &engine->text, error);
}

static void put_sentences(struct json_writer *json, const char *key, struct text sentences)
{
	struct text line;
	json_open_array(json, key);
	while (text_next(&sentences, '\n', &line))
		if (line.size > 0)
			json_put_text(json, NULL, line);
	json_close(json);
}

static void answer_sentences(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	const struct story *story = request->state;
	struct json_writer *json = request_object(request);
	json_put_id(json, "job_id", ID_JOB, story->id);
	put_sentences(json, "why", (struct text){ engine->text.data, engine->text.size });
	if (story->with_decision)
		put_sentences(json, "decision",
		              text_of(story->explanation ? story->explanation : ""));
	json_close(json);
	request_answer_json(request, 200);
}

static struct story *new_story(struct request *request)
{
	struct story *story = arena_alloc(&request->engine.arena, sizeof(*story));
	memset(story, 0, sizeof(*story));
	request->state = story;
	return story;
}

/* A job that has left memory has finished: the store has all there is to say about it. */
static bool read_end(struct engine_request *engine, struct store *store, struct error *error)
{
	struct story *story = request_of(engine)->state;
	return archive_find(store, story->id, &engine->arena, &story->archived, NULL, NULL,
	                    error) &&
	       (!story->with_decision || read_decision(engine, store, error));
}

static void answer_finished(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	const struct story *story = request->state;
	const struct job_state_record *state = &story->archived.state;
	if (!engine->ok) {
		request_fail(request, &engine->error);
		return;
	}
	buffer_clear(&engine->text);
	buffer_print(&engine->text, "job-%lld finished at ", (long long)story->id);
	calendar_print(&engine->text, state->completed_ms);
	buffer_print(&engine->text, ": %s", word_of(&job_state_words, state->state));
	if (*state->message)
		buffer_print(&engine->text, ", %s", state->message);
	answer_sentences(engine);
}

static void answer_end(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	const struct story *story = request->state;
	if (!engine->ok && engine->error.code != ERROR_NOT_FOUND) {
		request_fail(request, &engine->error);
		return;
	}
	if (!engine->ok || !roster_may_see(&request->service->roster, &request->identity,
	                                   story->archived.job.tenant_id)) {
		request_unknown(request, "job", request_segment(request, 3));
		return;
	}
	if (story->decision_count > 0)
		request_look(request, look_decision, answer_finished);
	else
		answer_finished(engine);
}

/* A job may leave memory while its decision is read. */
static void answer_why(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	if (engine->ok)
		answer_sentences(engine);
	else if (engine->error.code == ERROR_NOT_FOUND)
		request_read(request, read_end, answer_end);
	else
		request_fail(request, &engine->error);
}

static void got_decision(struct engine_request *engine)
{
	if (engine->ok)
		request_look(request_of(engine), look_why, answer_why);
	else
		request_fail(request_of(engine), &engine->error);
}

void jobs_why(struct request *request)
{
	struct story *story = new_story(request);
	struct catalogue *catalogue = service_catalogue(request->service);
	struct text segment = request_segment(request, 3);
	struct catalogue_job job;
	struct error error = { 0 };

	if (!query_flag(&request->exchange->query, "trace", false, &story->trace, &error) ||
	    !query_flag(&request->exchange->query, "decision", false, &story->with_decision,
	                &error)) {
		request_fail(request, &error);
		return;
	}
	if (!id_read(segment, ID_JOB, &story->id)) {
		request_unknown(request, "job", segment);
		return;
	}
	catalogue_lock(catalogue);
	story->in_memory = catalogue_job(catalogue, story->id, &job);
	bool allowed = story->in_memory && roster_may_see(&request->service->roster,
	                                                  &request->identity, job.job->tenant_id);
	catalogue_unlock(catalogue);
	if (!story->in_memory)
		request_read(request, read_end, answer_end);
	else if (allowed && story->with_decision)
		request_read(request, read_decision, got_decision);
	else if (allowed)
		request_look(request, look_why, answer_why);
	else
		request_unknown(request, "job", segment);
}

/* Events are kept longer than jobs are in memory, so whose the job is may have to be read. */
static bool job_story_read_events(struct engine_request *engine, struct store *store,
                                  struct error *error)
{
	struct story *story = request_of(engine)->state;

	if (!story->in_memory &&
	    !archive_find(store, story->id, &engine->arena, &story->archived, NULL, NULL, error))
		return false;
	return archive_events(store,
	                      &(struct event_filter){ .job_id = story->id,
	                                              .since = story->since,
	                                              .limit = story->limit },
	                      &engine->arena, &story->events, &story->count, error);
}

static void answer_events(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	const struct story *story = request->state;
	bool unknown = !engine->ok && engine->error.code == ERROR_NOT_FOUND;
	if (!engine->ok && !unknown) {
		request_fail(request, &engine->error);
		return;
	}
	if (unknown ||
	    (!story->in_memory && !roster_may_see(&request->service->roster, &request->identity,
	                                          story->archived.job.tenant_id))) {
		request_unknown(request, "job", request_segment(request, 3));
		return;
	}
	struct catalogue *catalogue = service_catalogue(request->service);
	struct json_writer *json = request_object(request);
	json_put_id(json, "job_id", ID_JOB, story->id);
	json_open_array(json, "events");
	catalogue_lock(catalogue);
	for (int64_t i = 0; i < story->count; i++)
		event_view_write(json, &story->events[i], catalogue);
	catalogue_unlock(catalogue);
	json_close(json);
	json_close(json);
	request_answer_json(request, 200);
}

void jobs_events(struct request *request)
{
	struct story *story = new_story(request);
	struct catalogue *catalogue = service_catalogue(request->service);
	struct error error = { 0 };
	struct catalogue_job job;
	struct text segment = request_segment(request, 3);

	if (!query_integer(&request->exchange->query, "since", 0, INT64_MAX, 0, &story->since,
	                   &error) ||
	    !query_integer(&request->exchange->query, "limit", 1, 10000, 1000, &story->limit,
	                   &error)) {
		request_fail(request, &error);
		return;
	}
	if (!id_read(segment, ID_JOB, &story->id)) {
		request_unknown(request, "job", segment);
		return;
	}
	catalogue_lock(catalogue);
	bool found = catalogue_job(catalogue, story->id, &job);
	bool allowed = found && roster_may_see(&request->service->roster, &request->identity,
	                                       job.job->tenant_id);
	catalogue_unlock(catalogue);
	story->in_memory = found;
	if (found && !allowed)
		request_unknown(request, "job", segment);
	else
		request_read(request, job_story_read_events, answer_events);
}
