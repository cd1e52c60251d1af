/* pods.c - the pods of a Kubernetes cluster as jobs of the core: beginning, end, and rounds */
#include "pods/pods.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pods/pods_local.h"

enum { FLYING_MAX = 64, UNITS_MS = 200 };

char *text_print(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	int size = vsnprintf(NULL, 0, format, arguments); /* NOLINT(*valist*) */
	va_end(arguments);
	char *text = memory_alloc((size_t)size + 1);
	va_start(arguments, format);
	vsnprintf(text, (size_t)size + 1, format, arguments); /* NOLINT(*valist*) */
	va_end(arguments);
	return text;
}

struct pods *pods_new(const struct pods_settings *settings, const struct pods_port *port)
{
	struct pods *pods = NEW(struct pods);

	pods->settings = *settings;
	pods->port = *port;
	pods->writer = (struct writer){
		.sink = order_answer, .context = pods, .flying_max = FLYING_MAX, .seed = 1
	};
	pods->gpu_resources = pod_gpus_resources();
	pods->namespaces = json_array();
	return pods;
}

static void free_node(struct kube_node *node)
{
	free(node->name);
	free(node->pods);
	json_decref(node->object);
	free(node);
}

static void free_pod(struct pod *pod)
{
	free(pod->uid);
	free(pod->namespace);
	free(pod->name);
	free(pod->node);
	free(pod->said);
	free(pod->succeeded);
	json_decref(pod->claim);
	json_decref(pod->object);
	free(pod);
}

static void free_class(struct use_of_class *class)
{
	free(class->name);
	free(class->told);
	json_decref(class->sample);
	json_decref(class->volumes);
	free(class);
}

static void free_known(struct pods *pods)
{
	for (size_t i = 0; i < pods->known.capacity; i++) {
		struct known_job *known = pods->known.entries[i].value;
		if (!known)
			continue;
		free(known->key);
		free(known->at);
		free(known->has);
		free(known);
	}
	map_free(&pods->known);
}

#define FREE_ALL(map, type, free_one)                                                              \
	for (size_t at = 0; at < (map).capacity; at++)                                             \
		if ((map).entries[at].value)                                                       \
	free_one((type)(map).entries[at].value)

void pods_free(struct pods *pods)
{
	if (!pods)
		return;
	pods->ending = true;
	writer_free(&pods->writer);
	free_known(pods);
	while (pods->serials.count > 0)
		for (size_t i = 0; i < pods->serials.capacity; i++)
			if (pods->serials.entries[i].value) {
				unit_free(pods, pods->serials.entries[i].value);
				break;
			}
	FREE_ALL(pods->nodes, struct kube_node *, free_node);
	FREE_ALL(pods->pods, struct pod *, free_pod);
	FREE_ALL(pods->classes, struct use_of_class *, free_class);
	FREE_ALL(pods->groups, json_t *, json_decref);
	FREE_ALL(pods->slices, json_t *, json_decref);
	for (size_t i = 0; i < pods->lingering_count; i++)
		free_pod(pods->lingering[i]);
	text_map_free(&pods->nodes);
	text_map_free(&pods->pods);
	text_map_free(&pods->units);
	FREE_ALL(pods->queues, struct kube_queue *, kube_queue_free);
	text_map_free(&pods->queues);
	text_map_free(&pods->groups);
	text_map_free(&pods->slices);
	text_map_free(&pods->succeeded);
	text_map_free(&pods->classes);
	map_free(&pods->jobs);
	map_free(&pods->serials);
	map_free(&pods->reservations);
	free(pods->arrivals);
	free(pods->lingering);
	for (size_t i = 0; i < pods->ghost_count; i++)
		free(pods->ghosts[i].node);
	free(pods->ghosts);
	json_decref(pods->gpu_resources);
	json_decref(pods->namespaces);
	free(pods);
}

void pods_send(struct pods *pods, const struct command *command)
{
	if (!pods->ending)
		pods->port.command(pods->port.context, command, 0);
}

void pods_send_job(struct pods *pods, enum command_kind kind, int64_t job_id)
{
	pods_send(pods, &(struct command){ .kind = kind, .id = job_id });
}

void pods_note(struct pods *pods, const char *format, ...)
{
	char text[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments); /* NOLINT(*valist*) */
	va_end(arguments);
	pods->port.note(pods->port.context, text);
}

struct unit *pods_unit(struct pods *pods, const char *key)
{
	const char *run = strstr(key, JOB_KEY_RUN);
	char *name = text_print("%.*s", (int)strcspn(key, JOB_KEY_RUN), key);
	struct unit *unit = text_map_get(&pods->units, name);

	free(name);
	return unit && run && (!unit->job_key || strcmp(unit->job_key, key) != 0) ? NULL : unit;
}

bool pods_are_ours(const struct pods *pods, const json_t *object)
{
	const char *name = member_text(json_object_get(object, "spec"), "schedulerName");

	for (size_t i = 0; pods->settings.scheduler_names[i]; i++)
		if (strcmp(pods->settings.scheduler_names[i], name) == 0)
			return true;
	return false;
}

void pods_know(struct pods *pods, const struct pods_known *known)
{
	struct known_job *job = NEW(struct known_job);
	size_t tasks = (size_t)max64(known->tasks, 1);

	job->job_id = known->job_id;
	job->tasks = (int64_t)tasks;
	job->key = memory_text(known->key);
	job->held = known->held;
	job->at = memory_zero(tasks, sizeof(*job->at));
	job->has = memory_zero(tasks, sizeof(*job->has));
	map_put(&pods->known, known->job_id, job);
}

void pods_know_task(struct pods *pods, const struct pods_known_task *task)
{
	struct known_job *job = map_get(&pods->known, task->job_id);

	if (!job || task->task < 0 || task->task >= job->tasks)
		return;
	job->at[task->task] = *task;
	/* The names of its GPUs are asked for when a unit is made of it. */
	job->has[task->task] = true;
}

/* Namespaces are few and change seldom: all are kept for selectors of namespaces. */
void pods_namespace(struct pods *pods, enum reflector_event event, const json_t *object)
{
	const char *name = member_text(json_object_get(object, "metadata"), "name");
	const json_t *known;
	size_t i;

	if (event == REFLECTOR_SYNCED)
		return;
	json_array_foreach(pods->namespaces, i, known)
	{
		if (strcmp(member_text(json_object_get(known, "metadata"), "name"), name) == 0) {
			json_array_remove(pods->namespaces, i);
			break;
		}
	}
	if (event == REFLECTOR_PUT)
		json_array_append(pods->namespaces, (json_t *)object);
}

void pods_group(struct pods *pods, const char *resource, enum reflector_event event,
                const json_t *object)
{
	const json_t *metadata = json_object_get(object, "metadata");

	bool is_claim = strcmp(resource, PODS_CLAIMS) == 0;
	if (strcmp(resource, PODS_SLICES) == 0) {
		claims_slice(pods, event, object);
		return;
	}
	if (event == REFLECTOR_SYNCED) {
		pods->claims_synced |= is_claim;
		return;
	}
	char *key = text_print("%s %s/%s", resource, member_text(metadata, "namespace"),
	                       member_text(metadata, "name"));
	json_t *before = text_map_remove(&pods->groups, key);
	bool is_known = before && is_claim;
	json_decref(before);
	if (event == REFLECTOR_PUT)
		text_map_put(&pods->groups, key, json_incref((json_t *)object));
	free(key);
	if (is_known && event == REFLECTOR_PUT)
		return; /* what it asks for never changes */
	bool of_volumes = is_claim || strcmp(resource, PODS_CLAIM_CLASSES) == 0 ||
	                  strcmp(resource, PODS_VOLUMES) == 0 ||
	                  strcmp(resource, PODS_VOLUME_CLAIMS) == 0;
	for (size_t i = 0; i < pods->units.capacity; i++) {
		struct unit *unit = pods->units.entries[i].value;
		if (unit && unit->state == UNIT_GATHERING && (unit->is_group || of_volumes))
			unit->retry_ms = 0;
	}
}

void pods_begin(struct pods *pods)
{
	pods->begun = true;
}

bool pods_is_ready(const struct pods *pods)
{
	return pods->ready;
}

void pods_time(struct pods *pods, int64_t now_ms)
{
	pods->now_ms = now_ms;
}

static void release_the_gone(struct pods *pods)
{
	for (size_t i = 0; i < pods->lingering_count;) {
		struct pod *pod = pods->lingering[i];
		/* A kubelet that comes back has that long to end what it does not find any more. */
		if (pod_may_run_on(pods, pod))
			pod->release_ms = pods->now_ms + pods->settings.force_release_ms;
		if (pod->release_ms > pods->now_ms) {
			i++;
			continue;
		}
		pods->lingering[i] = pods->lingering[--pods->lingering_count];
		pod_released(pods, pod);
	}
}

static void begin_if_all_is_there(struct pods *pods)
{
	if (pods->ready || !pods->begun || !pods->nodes_synced || !pods->pods_synced)
		return;
	pods->ready = true;
	pods_adopt(pods);
	nodes_begin(pods);
	free_known(pods);
}

/* True if there were any. Those that cannot be taken in yet arrive again. */
static bool take_in_arrivals(struct pods *pods)
{
	size_t count = pods->arrival_count;

	for (size_t i = 0; i < count; i++) {
		struct pod *pod = pods->arrivals[i];
		if (!pod)
			continue;
		pod->queued = false;
		pod_take_in(pods, pod);
	}
	pods->arrival_count -= count;
	if (pods->arrival_count > 0)
		memmove(pods->arrivals, pods->arrivals + count,
		        pods->arrival_count * sizeof(struct pod *));
	return count > pods->arrival_count;
}

void pods_flush(struct pods *pods)
{
	begin_if_all_is_there(pods);
	if (!pods->ready)
		return;
	release_the_gone(pods);
	ghosts_time(pods);
	kube_queues_flush(pods);
	nodes_flush(pods);
	bool arrived = take_in_arrivals(pods);
	if (arrived || pods->now_ms - pods->units_ms >= UNITS_MS) {
		pods->units_ms = pods->now_ms;
		units_time(pods);
		pods_look_for_unbound(pods);
	}
	if (pods->classes_dirty)
		classes_flush(pods);
}

int64_t pods_wake_ms(const struct pods *pods)
{
	return pods->ready ? pods->now_ms + 500 : pods->now_ms + 100;
}

struct writer *pods_writer(struct pods *pods)
{
	return &pods->writer;
}

struct pods_figures pods_figures(const struct pods *pods)
{
	struct pods_figures figures = pods->figures;

	figures.nodes = (int64_t)pods->nodes.count;
	figures.pods = (int64_t)pods->pods.count;
	for (size_t i = 0; i < pods->pods.capacity; i++) {
		const struct pod *pod = pods->pods.entries[i].value;
		if (!pod || !pod->unit)
			continue;
		figures.ours++;
		figures.bound += pod->binding == BINDING_DONE;
		figures.waiting += pod->binding == BINDING_NONE;
	}
	return figures;
}
