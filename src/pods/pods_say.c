/* pods_say.c - why a pod waits, as its condition and as an event */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pods/pods_local.h"

#define REPORTER "gpu-scheduler"
enum { TEXT_MAX = 1000, WHY_AGAIN_MS = 20000, WHY_GAP_MS = 2000 };

char *time_print(int64_t unix_ms, bool micro)
{
	time_t seconds = (time_t)(unix_ms / 1000);
	struct tm parts;
	char text[32];

	gmtime_r(&seconds, &parts);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
	return micro ? text_print("%s.%03d000Z", text, (int)(unix_ms % 1000))
	             : text_print("%sZ", text);
}

void say_event(struct pods *pods, const struct pod *pod, const char *type, const char *reason,
               const char *text)
{
	char *micro = time_print(pods->now_ms, true), *object = text_print("%s/event", pod->uid);
	char *name =
	    text_print("%.200s.%llx", pod->name,
	               (unsigned long long)pods->now_ms << 8 | (pods->figures.binds & 0xff));
	json_t *event = json_pack(
	    "{s:s, s:s, s:{s:s, s:s}, s:{s:s, s:s, s:s, s:s, s:s}, s:s, s:s, s:s, s:s, s:s, s:s, "
	    "s:s}",
	    "apiVersion", "events.k8s.io/v1", "kind", "Event", "metadata", "name", name,
	    "namespace", pod->namespace, "regarding", "apiVersion", "v1", "kind", "Pod",
	    "namespace", pod->namespace, "name", pod->name, "uid", pod->uid, "eventTime", micro,
	    "reportingController", REPORTER, "reportingInstance", REPORTER, "action", "Scheduling",
	    "type", type, "reason", reason, "note", text);
	char *path = text_print("/apis/events.k8s.io/v1/namespaces/%s/events", pod->namespace);

	writer_put(&pods->writer,
	           write_new(WRITE_EVENT, object, "POST", path, json_dumps(event, JSON_COMPACT)));
	json_decref(event);
	free(name);
	free(micro);
	free(object);
}

void say_waits(struct pods *pods, struct pod *pod, const char *reason, const char *text)
{
	char *cut = text_print("%.*s", TEXT_MAX, text), *now;

	if (pod->said && strcmp(pod->said, cut) == 0) {
		free(cut);
		return;
	}
	/* Numbers change all the time; people and the API server need not hear of each. */
	bool soon = pod->said && pods->now_ms - pod->said_ms < WHY_GAP_MS;
	if (soon || pod->gone || pod->binding != BINDING_NONE) {
		free(cut);
		return;
	}
	free(pod->said);
	pod->said = cut;
	pod->said_ms = pods->now_ms;
	now = time_print(pods->now_ms, false);
	json_t *patch =
	    json_pack("{s:{s:s}, s:{s:[{s:s, s:s, s:s, s:s, s:s}]}}", "metadata", "uid", pod->uid,
	              "status", "conditions", "type", "PodScheduled", "status", "False", "reason",
	              "Unschedulable", "message", cut, "lastTransitionTime", now);
	struct write *write =
	    write_new(WRITE_STATUS, pod->uid, "PATCH",
	              text_print("/api/v1/namespaces/%s/pods/%s/status", pod->namespace, pod->name),
	              json_dumps(patch, JSON_COMPACT));
	write->content_type = "application/strategic-merge-patch+json";
	writer_put(&pods->writer, write);
	json_decref(patch);
	free(now);
	say_event(pods, pod, "Warning",
	          strcmp(reason, "Unschedulable") == 0 ? "FailedScheduling" : reason, cut);
}

static bool wants_why(const struct pods *pods, const struct unit *unit)
{
	if (unit->state != UNIT_QUEUED || unit->held || pods->now_ms < unit->why_ms)
		return false;
	for (int i = 0; i < unit->task_count; i++)
		if (unit->tasks[i].pod && unit->tasks[i].pod->binding == BINDING_NONE &&
		    !unit->tasks[i].reservation_id)
			return true;
	return false;
}

int64_t pods_wants_why(struct pods *pods)
{
	for (size_t i = 0; i < pods->serials.capacity; i++) {
		size_t at = (pods->why_at + i) % pods->serials.capacity;
		struct unit *unit = pods->serials.entries[at].value;
		if (!unit || !wants_why(pods, unit))
			continue;
		pods->why_at = at + 1;
		unit->why_ms = pods->now_ms + WHY_AGAIN_MS;
		return unit->job_id;
	}
	return 0;
}

void pods_why(struct pods *pods, int64_t job_id, const char *text)
{
	struct unit *unit = map_get(&pods->jobs, job_id);
	struct buffer line = { 0 };

	if (!unit)
		return;
	buffer_text(&line, "");
	for (const char *at = text; *at;) {
		size_t size = strcspn(at, "\n");
		buffer_print(&line, "%s%.*s", line.size > 0 && size > 0 ? "; " : "", (int)size, at);
		at += size + (at[size] == '\n');
	}
	for (int i = 0; i < unit->task_count; i++) {
		struct pod *pod = unit->tasks[i].pod;
		if (pod && pod->binding == BINDING_NONE && !unit->tasks[i].reservation_id)
			say_waits(pods, pod, "Unschedulable", line.data);
	}
	buffer_free(&line);
}
