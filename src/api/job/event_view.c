/* event_view.c - something that happened, as people read it */
#include "api/job/event_view.h"

#include "api/text/ids.h"
#include "api/text/times.h"

const char *const event_topic_names[TOPICS] = { "jobs", "nodes", "slots", "tenants" };

enum event_topic event_topic(enum event_kind kind)
{
	switch (kind) {
	case EVENT_NODE_CHANGED:
	case EVENT_GPU_OVER:
	case EVENT_GPU_FREE_AGAIN:
	case EVENT_RELEASE_LATE:
	case EVENT_NODE_MISREPORTED:
	case EVENT_CLOCK_MOVED:
	case EVENT_WINDOW_CHANGED:
		return TOPIC_NODES;
	case EVENT_TENANT_CHANGED:
		return TOPIC_TENANTS;
	case EVENT_MODEL_CHANGED:
	case EVENT_SLOT_LOADING:
	case EVENT_SLOT_READY:
	case EVENT_SLOT_STOPPING:
	case EVENT_SLOT_GONE:
	case EVENT_SLOT_ASLEEP:
	case EVENT_SLOT_WAKING:
	case EVENT_MODEL_FAILED:
		return TOPIC_SLOTS;
	default:
		return TOPIC_JOBS;
	}
}

/* The state that the job was in after the event; NULL: it says nothing about that. */
static const char *state_after(const struct event *event)
{
	switch (event->kind) {
	case EVENT_JOB_SUBMITTED:
	case EVENT_JOB_REQUEUED:
	case EVENT_JOB_HELD:
	case EVENT_JOB_RELEASED:
		return word_of(&job_state_words, JOB_PENDING);
	case EVENT_JOB_SCHEDULED:
		return word_of(&job_state_words, JOB_SCHEDULED);
	case EVENT_JOB_STARTED:
		return word_of(&job_state_words, JOB_RUNNING);
	case EVENT_JOB_PREEMPTED:
		return word_of(&job_state_words, JOB_PREEMPTED);
	case EVENT_JOB_SUSPENDED:
		return word_of(&job_state_words, JOB_SUSPENDED);
	case EVENT_JOB_RESUMED:
		return word_of(&job_state_words, JOB_RUNNING);
	case EVENT_JOB_ENDED:
		return word_of(&job_state_words, event->value);
	default:
		return NULL;
	}
}

static void event_view_write_job(struct json_writer *json, const struct event *event,
                                 const struct catalogue *catalogue)
{
	struct catalogue_job job;
	const char *state = state_after(event);
	json_put_id(json, "job_id", ID_JOB, event->job_id);
	if (event->kind == EVENT_TASK_STARTED || event->kind == EVENT_TASK_ENDED ||
	    notice_of_event(event->kind) >= 0)
		json_put_integer(json, "task", event->task);
	if (event->kind == EVENT_TASK_ENDED)
		json_put_integer(json, "exit_code", event->value);
	if (state)
		json_put_string(json, "state", state);
	if (catalogue_job(catalogue, event->job_id, &job))
		json_put_string(json, "name", job.job->name);
}

/* What the number of an event of its kind means. */
static void write_value(struct json_writer *json, const struct event *event)
{
	switch (event->kind) {
	case EVENT_NODE_CHANGED:
		json_put_string(json, "node_state",
		                event->value < 0 ? "removed"
		                                 : word_of(&node_state_words, event->value));
		break;
	case EVENT_GPU_OVER:
		json_put_integer(json, "over_by_mb", event->value);
		break;
	case EVENT_MODEL_FAILED:
		json_put_integer(json, "failures", event->value);
		break;
	case EVENT_JOB_DEADLINE:
		json_put_decimal(json, "deadline_risk", event->value, 3);
		break;
	case EVENT_CLOCK_MOVED:
		json_put_integer(json, "moved_by_ms", event->value);
		break;
	case EVENT_NODE_MISREPORTED:
		json_put_integer(json, "reservation_id", event->value);
		break;
	case EVENT_SLOT_LOADING:
	case EVENT_SLOT_READY:
	case EVENT_SLOT_STOPPING:
	case EVENT_SLOT_GONE:
	case EVENT_SLOT_ASLEEP:
	case EVENT_SLOT_WAKING:
		json_put_id(json, "slot_id", ID_SLOT, event->value);
		break;
	default:
		break;
	}
}

void event_view_write(struct json_writer *json, const struct event *event,
                      const struct catalogue *catalogue)
{
	json_open_object(json, NULL);
	json_put_integer(json, "seq", event->number);
	json_put_string(json, "type", word_of(&event_words, (int64_t)event->kind));
	json_put_string(json, "topic", event_topic_names[event_topic(event->kind)]);
	json_put_moment(json, "time", event->time_ms);
	if (event->job_id > 0)
		event_view_write_job(json, event, catalogue);
	if (event->tenant_id > 0)
		json_put_id(json, "tenant_id", ID_TENANT, event->tenant_id);
	if (event->node_id > 0) {
		const struct node_record *node =
		    catalogue_get(catalogue, RECORD_NODE, event->node_id, 0);
		json_put_string(json, "node", node ? node->name : NULL);
	}
	if (event->gpu_id > 0) {
		const struct gpu_record *gpu =
		    catalogue_get(catalogue, RECORD_GPU, event->gpu_id, 0);
		json_put_string(json, "gpu", gpu ? gpu->uuid : NULL);
	}
	if (event->model_id > 0) {
		const struct model_record *model =
		    catalogue_get(catalogue, RECORD_MODEL, event->model_id, 0);
		json_put_id(json, "model_id", ID_MODEL, event->model_id);
		json_put_string(json, "model", model ? model->name : NULL);
	}
	write_value(json, event);
	json_close(json);
}
