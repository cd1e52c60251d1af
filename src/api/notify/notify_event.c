/* notify_event.c - what happened to a job, in words for its tenant */
#include <stdio.h>
#include <string.h>

#include "api/notify/notify_local.h"
#include "api/text/ids.h"
#include "resource/resource.h"
#include "wire/text/json_scan.h"
#include "wire/text/json_writer.h"

/* What a job's end was; false: it has not ended, whatever the event said. */
static bool kind_of_end(int32_t state, enum notify_kind *kind)
{
	switch ((enum job_state)state) {
	case JOB_COMPLETED:
		*kind = NOTIFY_COMPLETED;
		return true;
	case JOB_FAILED:
		*kind = NOTIFY_FAILED;
		return true;
	case JOB_CANCELLED:
		*kind = NOTIFY_CANCELLED;
		return true;
	default:
		return false;
	}
}

static bool kind_of(const struct event *event, const struct job_state_record *state,
                    enum notify_kind *kind)
{
	if (event->kind == EVENT_JOB_ENDED)
		return kind_of_end(state->state, kind);
	*kind = event->kind == EVENT_JOB_STARTED ? NOTIFY_STARTED : NOTIFY_PREEMPTED;
	return true;
}

static const char *const verbs[NOTIFY_KINDS] = { "has started",   "is complete",
	                                         "has failed",    "was cancelled",
	                                         "was preempted", "has exceeded its budget" };
static const char *const names[NOTIFY_KINDS] = {
	"job.started",   "job.completed", "job.failed",
	"job.cancelled", "job.preempted", "tenant.budget"
};

static void notify_event_write_job(struct buffer *buffer, const struct catalogue_job *job)
{
	struct json_writer json = json_writer_to(buffer);

	json_open_object(&json, NULL);
	json_put_id(&json, "id", ID_JOB, job->job->id);
	json_put_string(&json, "name", job->job->name);
	json_put_id(&json, "tenant_id", ID_TENANT, job->job->tenant_id);
	json_put_string(&json, "state", job_state_words.at[job->state->state]);
	json_put_string(&json, "message", job->state->message);
	json_put_integer(&json, "exit_code", job->state->exit_code);
	json_put_integer(&json, "preempted_count", job->state->preempted_count);
	json_put_time(&json, "submitted_at", job->job->submitted_ms * 1000);
	if (job->state->started_ms > 0)
		json_put_time(&json, "started_at", job->state->started_ms * 1000);
	if (job->state->completed_ms > 0)
		json_put_time(&json, "completed_at", job->state->completed_ms * 1000);
	json_close(&json);
}

/* What is told about a job. */
struct told {
	enum notify_kind kind;
	struct buffer details;
	char subject[512], sentence[512];
	struct arena arena;
	const char *recipients[JOB_RECIPIENTS_MAX]; /* that the job names, for this kind */
	size_t recipient_count;
};

static const char *notify_event_copy(struct arena *arena, struct text text)
{
	char *copy = arena_alloc(arena, text.size + 1);
	memcpy(copy, text.data, text.size);
	copy[text.size] = '\0';
	return copy;
}

/* Whether a list of the payload has that kind in it. */
static bool notify_event_reads_kind(struct json_scan *scan, enum notify_kind kind)
{
	struct text word = { NULL, 0 };
	bool found = false;

	json_scan_open(scan, JSON_KIND_ARRAY);
	while (json_scan_element(scan) && json_scan_text(scan, &word))
		found = found || text_equal(word, text_from(text_of(names[kind]), strlen("job.")));
	return found;
}

/* Those come first in a payload that has any. */
static void notify_event_read_recipients(struct told *told, const char *payload)
{
	struct json_scan scan = json_scan_of(text_of(payload), &told->arena, NULL);
	struct text key = { NULL, 0 }, one = { NULL, 0 };
	bool is_wanted = told->kind == NOTIFY_COMPLETED || told->kind == NOTIFY_FAILED ||
	                 told->kind == NOTIFY_CANCELLED;

	json_scan_open(&scan, JSON_KIND_OBJECT);
	if (!json_scan_member(&scan, &key) || !json_scan_open(&scan, JSON_KIND_ARRAY))
		return;
	while (told->recipient_count < JOB_RECIPIENTS_MAX && json_scan_element(&scan) &&
	       json_scan_text(&scan, &one))
		told->recipients[told->recipient_count++] = notify_event_copy(&told->arena, one);
	if (json_scan_member(&scan, &key) && text_is(key, "notify_on"))
		is_wanted = notify_event_reads_kind(&scan, told->kind);
	if (!is_wanted)
		told->recipient_count = 0;
}

/* Copies what is told out of the catalogue, so that it is locked only that long. */
static bool notify_event_describe(struct notify *notify, const struct event *event,
                                  struct told *told)
{
	static const char first[] = "{\"notify\":";
	struct catalogue *catalogue = notify->port->catalogue;
	unsigned on = notify_tenant(notify, event->tenant_id)->on;
	struct catalogue_job job;
	size_t size = sizeof(told->subject);

	catalogue_lock(catalogue);
	bool found =
	    catalogue_job(catalogue, event->job_id, &job) && kind_of(event, job.state, &told->kind);
	if (found && strncmp(job.job->payload, first, sizeof(first) - 1) == 0)
		notify_event_read_recipients(told, job.job->payload);
	found = found && (on != 0 || told->recipient_count > 0);
	if (found) {
		notify_event_write_job(&told->details, &job);
		snprintf(told->subject, size, "job-%lld (%.100s) %s", (long long)event->job_id,
		         job.job->name, verbs[told->kind]);
		snprintf(told->sentence, size, "%.250s%s%.200s", told->subject,
		         job.state->message[0] ? ": " : ".", job.state->message);
	}
	catalogue_unlock(catalogue);
	return found;
}

static void job_event(struct notify *notify, const struct event *event)
{
	struct told told = { 0 };

	if (notify_event_describe(notify, event, &told)) {
		struct notify_message message = { .event = names[told.kind],
			                          .about = "job",
			                          .details = &told.details,
			                          .subject = told.subject,
			                          .sentence = told.sentence,
			                          .unix_ms = event->time_ms };
		notify_tell_tenant(notify, event->tenant_id, told.kind, &message);
		for (size_t i = 0; i < told.recipient_count; i++)
			notify_tell_recipient(notify, event->tenant_id, told.kind,
			                      told.recipients[i], &message);
	}
	buffer_free(&told.details);
	arena_free(&told.arena);
}

void notify_event(struct notify *notify, const struct event *event)
{
	if (!notify->begun)
		return;
	switch (event->kind) {
	case EVENT_JOB_STARTED:
	case EVENT_JOB_PREEMPTED:
	case EVENT_JOB_ENDED:
		job_event(notify, event);
		break;
	case EVENT_TENANT_CHANGED:
		notify_forget_tenant(notify, event->tenant_id);
		break;
	default:
		break;
	}
}
