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

static bool read_decision(struct ask *ask, struct store *store, struct error *error)
{
	struct story *story = call_of(ask)->state;
	struct decision_filter newest = { .job_id = story->id, .kind = -1, .limit = 1 };
	return archive_decisions(store, &newest, &ask->arena, &story->decisions,
	                         &story->decision_count, error);
}

/* Keeps the explanation in the arena and leaves the text empty. */
static bool look_decision(struct ask *ask, struct sched *sched, struct error *error)
{
	struct call *call = call_of(ask);
	struct story *story = call->state;
	(void)error;
	buffer_clear(&ask->text);
	if (story->decision_count > 0 &&
	    sched_explain(sched, &story->decisions[0], call_viewer(call), &ask->text)) {
		buffer_text(&ask->text, "");
		story->explanation = arena_string(&ask->arena, ask->text.data);
		buffer_clear(&ask->text);
	}
	return true;
}

static bool look_why(struct ask *ask, struct sched *sched, struct error *error)
{
	struct call *call = call_of(ask);
	const struct story *story = call->state;
	if (!look_decision(ask, sched, error))
		return false;
	if (story->trace)
		return sched_trace(sched, story->id, &ask->text, error);
	return sched_why(sched, story->id, call_viewer(call), &ask->text, error);
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

static void answer_sentences(struct ask *ask)
{
	struct call *call = call_of(ask);
	const struct story *story = call->state;
	struct json_writer *json = call_object(call);
	json_put_id(json, "job_id", ID_JOB, story->id);
	put_sentences(json, "why", (struct text){ ask->text.data, ask->text.size });
	if (story->with_decision)
		put_sentences(json, "decision",
		              text_of(story->explanation ? story->explanation : ""));
	json_close(json);
	call_answer_json(call, 200);
}

static struct story *new_story(struct call *call)
{
	struct story *story = arena_alloc(&call->ask.arena, sizeof(*story));
	memset(story, 0, sizeof(*story));
	call->state = story;
	return story;
}

/* One that has left memory is over: that is all there is to say. */

static bool read_end(struct ask *ask, struct store *store, struct error *error)
{
	struct story *story = call_of(ask)->state;
	return archive_find(store, story->id, &ask->arena, &story->archived, NULL, NULL, error) &&
	       (!story->with_decision || read_decision(ask, store, error));
}

static void answer_finished(struct ask *ask)
{
	struct call *call = call_of(ask);
	const struct story *story = call->state;
	const struct job_state_record *state = &story->archived.state;
	if (!ask->ok) {
		call_fail(call, &ask->error);
		return;
	}
	buffer_clear(&ask->text);
	buffer_print(&ask->text, "job-%lld finished at ", (long long)story->id);
	calendar_print(&ask->text, state->completed_ms);
	buffer_print(&ask->text, ": %s", word_of(&job_state_words, state->state));
	if (*state->message)
		buffer_print(&ask->text, ", %s", state->message);
	answer_sentences(ask);
}

static void answer_end(struct ask *ask)
{
	struct call *call = call_of(ask);
	const struct story *story = call->state;
	if (!ask->ok && ask->error.code != ERROR_NOT_FOUND) {
		call_fail(call, &ask->error);
		return;
	}
	if (!ask->ok || !roster_may_see(&call->service->roster, &call->identity,
	                                story->archived.job.tenant_id)) {
		call_unknown(call, "job", call_segment(call, 3));
		return;
	}
	if (story->decision_count > 0)
		call_look(call, look_decision, answer_finished);
	else
		answer_finished(ask);
}

/* A job may leave memory while its decision is read. */
static void answer_why(struct ask *ask)
{
	struct call *call = call_of(ask);
	if (ask->ok)
		answer_sentences(ask);
	else if (ask->error.code == ERROR_NOT_FOUND)
		call_read(call, read_end, answer_end);
	else
		call_fail(call, &ask->error);
}

static void got_decision(struct ask *ask)
{
	if (ask->ok)
		call_look(call_of(ask), look_why, answer_why);
	else
		call_fail(call_of(ask), &ask->error);
}

void jobs_why(struct call *call)
{
	struct story *story = new_story(call);
	struct catalogue *catalogue = service_catalogue(call->service);
	struct text segment = call_segment(call, 3);
	struct catalogue_job job;
	struct error error = { 0 };

	if (!query_flag(&call->exchange->query, "trace", false, &story->trace, &error) ||
	    !query_flag(&call->exchange->query, "decision", false, &story->with_decision, &error)) {
		call_fail(call, &error);
		return;
	}
	if (!id_read(segment, ID_JOB, &story->id)) {
		call_unknown(call, "job", segment);
		return;
	}
	catalogue_lock(catalogue);
	story->in_memory = catalogue_job(catalogue, story->id, &job);
	bool allowed = story->in_memory &&
	               roster_may_see(&call->service->roster, &call->identity, job.job->tenant_id);
	catalogue_unlock(catalogue);
	if (!story->in_memory)
		call_read(call, read_end, answer_end);
	else if (allowed && story->with_decision)
		call_read(call, read_decision, got_decision);
	else if (allowed)
		call_look(call, look_why, answer_why);
	else
		call_unknown(call, "job", segment);
}

/* Events are kept longer than jobs are in memory, so whose the job is may have to be read. */
static bool read_events(struct ask *ask, struct store *store, struct error *error)
{
	struct story *story = call_of(ask)->state;

	if (!story->in_memory &&
	    !archive_find(store, story->id, &ask->arena, &story->archived, NULL, NULL, error))
		return false;
	return archive_events(store,
	                      &(struct event_filter){ .job_id = story->id,
	                                              .since = story->since,
	                                              .limit = story->limit },
	                      &ask->arena, &story->events, &story->count, error);
}

static void answer_events(struct ask *ask)
{
	struct call *call = call_of(ask);
	const struct story *story = call->state;
	bool unknown = !ask->ok && ask->error.code == ERROR_NOT_FOUND;
	if (!ask->ok && !unknown) {
		call_fail(call, &ask->error);
		return;
	}
	if (unknown ||
	    (!story->in_memory && !roster_may_see(&call->service->roster, &call->identity,
	                                          story->archived.job.tenant_id))) {
		call_unknown(call, "job", call_segment(call, 3));
		return;
	}
	struct catalogue *catalogue = service_catalogue(call->service);
	struct json_writer *json = call_object(call);
	json_put_id(json, "job_id", ID_JOB, story->id);
	json_open_array(json, "events");
	catalogue_lock(catalogue);
	for (int64_t i = 0; i < story->count; i++)
		event_view_write(json, &story->events[i], catalogue);
	catalogue_unlock(catalogue);
	json_close(json);
	json_close(json);
	call_answer_json(call, 200);
}

void jobs_events(struct call *call)
{
	struct story *story = new_story(call);
	struct catalogue *catalogue = service_catalogue(call->service);
	struct error error = { 0 };
	struct catalogue_job job;
	struct text segment = call_segment(call, 3);

	if (!query_integer(&call->exchange->query, "since", 0, INT64_MAX, 0, &story->since,
	                   &error) ||
	    !query_integer(&call->exchange->query, "limit", 1, 10000, 1000, &story->limit,
	                   &error)) {
		call_fail(call, &error);
		return;
	}
	if (!id_read(segment, ID_JOB, &story->id)) {
		call_unknown(call, "job", segment);
		return;
	}
	catalogue_lock(catalogue);
	bool found = catalogue_job(catalogue, story->id, &job);
	bool allowed =
	    found && roster_may_see(&call->service->roster, &call->identity, job.job->tenant_id);
	catalogue_unlock(catalogue);
	story->in_memory = found;
	if (found && !allowed)
		call_unknown(call, "job", segment);
	else
		call_read(call, read_events, answer_events);
}
