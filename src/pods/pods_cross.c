/* pods_cross.c - bindings of another scheduler that crossed ours: a node that gives too much */
#include <stdlib.h>
#include <string.h>

#include "pods/pods_local.h"

/* So long after a pod was bound, and another scheduler's was seen there, the two may have crossed.
 * Later, a node that has less than its pods take has shrunk, which is nobody's fault. */
#define CROSSING_MS INT64_C(60000)

/* What a pod takes of its node, or a node has: "cpu", "memory" and counts by name. */
static json_t *amounts_new(const struct pod_request *request)
{
	json_t *amounts = json_object();

	counts_add_lines(amounts, request->counts.data);
	json_object_set_new(amounts, "cpu", json_integer(request->cpu_milli));
	json_object_set_new(amounts, "memory", json_integer(request->memory_bytes));
	return amounts;
}

/* NULL if it cannot be read. Parts of GPUs are not counted as whole ones. */
static json_t *pod_amounts(const struct pods *pods, const struct pod *pod)
{
	struct pod_request request;
	struct pod_gpus gpus;
	struct error error;
	bool whole = pod_gpus_read(pod->object, &gpus, &error) && gpus.kind != POD_GPU_FRACTION &&
	             gpus.kind != POD_GPU_MEMORY;
	const struct pod_settings settings = { .ignored_resources =
		                                   whole ? NULL : pods->gpu_resources };
	json_t *amounts = NULL;

	if (pod_request_read(pod->object, &settings, &request, &error))
		amounts = amounts_new(&request);
	buffer_free(&request.counts);
	return amounts;
}

static bool is_staying(const struct pod *pod)
{
	return !pod->crossed && !pod->evicting && !pod->gone && !pod_has_ended(pod->object) &&
	       !member_has(json_object_get(pod->object, "metadata"), "deletionTimestamp");
}

/* What its pods take beyond what the node has, by name; empty if it is enough. */
static json_t *excess_of(const struct pods *pods, const struct kube_node *node,
                         const json_t *capacity)
{
	json_t *sum = json_object(), *value;
	const char *name;
	void *next;

	for (size_t i = 0; i < node->pod_count; i++) {
		json_t *amounts =
		    is_staying(node->pods[i]) ? pod_amounts(pods, node->pods[i]) : NULL;
		json_object_foreach(amounts, name, value) json_object_set_new(
		    sum, name,
		    json_integer(json_integer_value(value) +
		                 json_integer_value(json_object_get(sum, name))));
		json_decref(amounts);
	}
	json_object_foreach_safe(sum, next, name, value)
	{
		json_int_t over =
		    json_integer_value(value) - json_integer_value(json_object_get(capacity, name));
		if (over <= 0 || !json_object_get(capacity, name))
			json_object_del(sum, name);
		else
			json_object_set_new(sum, name, json_integer(over));
	}
	return sum;
}

static bool helps(const struct pods *pods, const struct pod *pod, const json_t *excess)
{
	json_t *amounts = pod_amounts(pods, pod), *value;
	const char *name;
	bool does = false;

	json_object_foreach((json_t *)excess, name, value) does |=
	    json_integer_value(json_object_get(amounts, name)) > 0;
	json_decref(amounts);
	return does;
}

/* When the API server had it bound: text of RFC 3339; "" : the watch has not said it yet. */
static const char *bound_time(const struct pod *pod)
{
	const json_t *conditions =
	    json_object_get(json_object_get(pod->object, "status"), "conditions");
	const json_t *condition;
	size_t i;

	json_array_foreach(conditions, i, condition)
	{
		if (strcmp(member_text(condition, "type"), "PodScheduled") == 0 &&
		    strcmp(member_text(condition, "status"), "True") == 0)
			return member_text(condition, "lastTransitionTime");
	}
	return "";
}

static struct pod *latest_of_ours(const struct pods *pods, const struct kube_node *node,
                                  const json_t *excess, const char *since)
{
	struct pod *latest = NULL;

	for (size_t i = 0; i < node->pod_count; i++) {
		struct pod *pod = node->pods[i];
		const char *bound = bound_time(pod);
		if (!pod->unit || !pod->unit->job_id || !is_staying(pod) ||
		    (*bound && strcmp(bound, since) < 0) || !helps(pods, pod, excess))
			continue;
		if (!latest || !*bound ||
		    (*bound_time(latest) && strcmp(bound, bound_time(latest)) > 0))
			latest = pod;
	}
	return latest;
}

/* It goes back to the queue, and a gang as a whole. */
static void give_way(struct pods *pods, const struct kube_node *node, struct pod *pod)
{
	const struct unit *unit = pod->unit;

	pods_note(pods, "pod %s/%s gives way: another scheduler bound a pod to node %s too",
	          pod->namespace, pod->name, node->name);
	say_event(
	    pods, pod, "Warning", "CrossedBinding",
	    "another scheduler bound a pod to its node at the same time, and both do not fit");
	for (int i = 0; i < unit->task_count; i++)
		if (unit->tasks[i].pod)
			unit->tasks[i].pod->crossed = true;
	pods_send_job(pods, COMMAND_REQUEUE, unit->job_id);
}

void node_uncross(struct pods *pods, struct kube_node *node)
{
	struct pod_request capacity;
	struct error error;

	if (node->guest_ms == 0 || pods->now_ms - node->guest_ms > CROSSING_MS)
		return;
	if (!pod_node_capacity(node->object, &capacity, &error)) {
		buffer_free(&capacity.counts);
		return;
	}
	json_t *has = amounts_new(&capacity);
	char *since = time_print(pods->now_ms - CROSSING_MS, false);
	for (bool again = true; again;) {
		json_t *excess = excess_of(pods, node, has);
		struct pod *pod =
		    json_object_size(excess) > 0 ? latest_of_ours(pods, node, excess, since) : NULL;
		json_decref(excess);
		if (pod)
			give_way(pods, node, pod);
		again = pod != NULL;
	}
	free(since);
	json_decref(has);
	buffer_free(&capacity.counts);
}
