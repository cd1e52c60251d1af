/* notify_event.c - what happened to a job, in words for its tenant */
#include <stdio.h>

#include "api/notify/notify_local.h"
#include "api/text/ids.h"
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

/* Copies what is told out of the catalogue, so that it is locked only that long. */
static bool notify_event_describe(struct notify *notify, const struct event *event,
                                  enum notify_kind *kind, struct buffer *details, char *subject,
                                  char *sentence, size_t size)
{
	struct catalogue *catalogue = notify->port->catalogue;
	struct catalogue_job job;

	catalogue_lock(catalogue);
	bool found =
	    catalogue_job(catalogue, event->job_id, &job) && kind_of(event, job.state, kind);
	if (found) {
		notify_event_write_job(details, &job);
		snprintf(subject, size, "job-%lld (%.100s) %s", (long long)event->job_id,
		         job.job->name, verbs[*kind]);
		snprintf(sentence, size, "%.250s%s%.200s", subject,
		         job.state->message[0] ? ": " : ".", job.state->message);
	}
	catalogue_unlock(catalogue);
	return found;
}

static void job_event(struct notify *notify, const struct event *event)
{
	char subject[512], sentence[512];
	struct buffer details = { 0 };
	enum notify_kind kind;

	if (notify_tenant(notify, event->tenant_id)->on == 0)
		return;
	if (notify_event_describe(notify, event, &kind, &details, subject, sentence,
	                          sizeof(subject)))
		notify_tell_tenant(notify, event->tenant_id, kind,
		                   &(struct notify_message){ .event = names[kind],
		                                             .about = "job",
		                                             .details = &details,
		                                             .subject = subject,
		                                             .sentence = sentence,
		                                             .unix_ms = event->time_ms });
	buffer_free(&details);
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
