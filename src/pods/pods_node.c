/* pods_node.c - nodes of Kubernetes as nodes of the core: what they have, and what others take */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "pods/pods_local.h"

struct kube_node *node_of_name(struct pods *pods, const char *name)
{
	return text_map_get(&pods->nodes, name);
}

static struct kube_node *node_for(struct pods *pods, const char *name)
{
	struct kube_node *node = node_of_name(pods, name);

	if (!node) {
		node = NEW(struct kube_node);
		node->name = memory_text(name);
		text_map_put(&pods->nodes, name, node);
	}
	return node;
}

/* A node with pods and without an object is not there yet, or not any more. */
static bool is_there(const struct kube_node *node)
{
	return node->object != NULL;
}

void node_add_pod(struct pods *pods, struct pod *pod)
{
	struct kube_node *node = node_for(pods, pod->node);

	array_reserve(node->pods, node->pod_capacity, node->pod_count + 1);
	node->pods[node->pod_count++] = pod;
	node->dirty = true;
}

void node_remove_pod(struct pods *pods, struct pod *pod)
{
	struct kube_node *node = pod->node ? node_of_name(pods, pod->node) : NULL;

	for (size_t i = 0; node && i < node->pod_count; i++)
		if (node->pods[i] == pod) {
			node->pods[i] = node->pods[--node->pod_count];
			node->dirty = true;
			return;
		}
}

/* Those whose binding to it is under way lose their GPUs as well: what the binding was decided by
 * does not hold any more, even if a node of that name comes back. */
static void forget_coming(struct pods *pods, const char *node)
{
	for (size_t i = 0; i < pods->pods.capacity; i++) {
		const struct pod *pod = pods->pods.entries[i].value;
		struct unit_task *task =
		    pod && pod->unit && !pod->node ? &pod->unit->tasks[pod->place] : NULL;
		if (!task || !task->reservation_id || !task->node || strcmp(task->node, node) != 0)
			continue;
		order_forget(pods, pod->unit, pod->place);
		task->stopping = true;
	}
}

/* What runs there cannot be asked any more: whoever removed the node says that it is dead. */
static void node_is_removed(struct pods *pods, struct kube_node *node)
{
	json_decref(node->object);
	node->object = NULL;
	pods->classes_dirty = true;
	if (!node->reported || pods->port.node_has_agent(pods->port.context, node->name))
		return;
	node->reported = false;
	node->told = node->told_facts = 0;
	for (size_t i = 0; i < node->pod_count; i++) {
		struct pod *pod = node->pods[i];
		if (pod->unit) {
			pods_note(pods, "node %s is gone, and with it pod %s/%s", node->name,
			          pod->namespace, pod->name);
			/* The core queues it again, for the pod that is made instead. */
			order_forget(pods, pod->unit, pod->place);
			pod->unit->tasks[pod->place].stopping = true;
		}
		if (pod->is_guest) {
			pods_send(pods, &(struct command){ .kind = COMMAND_REMOVE_GUEST,
			                                   .guest_name = pod->uid });
			pod->is_guest = false;
		}
	}
	forget_coming(pods, node->name);
	pods_send(pods, &(struct command){ .kind = COMMAND_NODE_DEAD, .node = node->name });
	pods_send(pods, &(struct command){ .kind = COMMAND_NODE_REMOVE, .node = node->name });
}

void pods_node(struct pods *pods, enum reflector_event event, const json_t *object)
{
	const char *name = member_text(json_object_get(object, "metadata"), "name");

	if (event == REFLECTOR_SYNCED) {
		pods->nodes_synced = true;
		return;
	}
	struct kube_node *node = node_for(pods, name);
	if (event == REFLECTOR_GONE) {
		if (is_there(node))
			node_is_removed(pods, node);
		return;
	}
	json_decref(node->object);
	node->object = json_incref((json_t *)object);
	node->dirty = true;
	pods->classes_dirty = true;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Labels as the core keeps them: lines, in order. The last says that its tasks are pods. */
static void print_labels(const json_t *node, struct buffer *labels)
{
	json_t *map = json_object_get(json_object_get(node, "metadata"), "labels"), *value;
	char **lines = memory_zero(json_object_size(map) + 2, sizeof(*lines));
	size_t count = 0;
	const char *key;

	json_object_foreach(map, key, value)
	{
		const char *text = json_is_string(value) ? json_string_value(value) : "";
		if (!strpbrk(key, "=\n") && !strchr(text, '\n') &&
		    strcmp(key, NODE_ORCHESTRATOR) != 0)
			lines[count++] = text_print("%s=%s", key, text);
	}
	lines[count++] = memory_text(NODE_ORCHESTRATOR "=kubernetes");
	qsort(lines, count, sizeof(*lines), by_text);
	for (size_t i = 0; i < count; i++) {
		buffer_print(labels, "%s%s", i > 0 ? "\n" : "", lines[i]);
		free(lines[i]);
	}
	free(lines);
}

static bool uses_gpu(const struct kube_node *node, const char *uuid)
{
	size_t size = strlen(uuid);

	for (size_t i = 0; i < node->pod_count; i++) {
		const struct pod *pod = node->pods[i];
		const char *at = pod->unit ? pod->unit->tasks[pod->place].uuids : NULL;
		for (; at && (at = strstr(at, uuid)); at += size)
			if (at[size] == ',' || at[size] == '\0')
				return true;
	}
	return false;
}

static bool is_named_by(const struct pod *pod, const char *uuid)
{
	const char *gpus =
	    member_text(json_object_get(json_object_get(pod->object, "metadata"), "annotations"),
	                GPUS_ANNOTATION);
	const char *found = strstr(gpus, uuid);

	return found && (found[strlen(uuid)] == ',' || found[strlen(uuid)] == '\0');
}

/* GPUs that pods of others have. Those that a pod's annotation names are those; of the others
 * nobody says which, so GPUs that nothing of ours is on are taken for them. */
static void mark_taken_gpus(const struct kube_node *node, const struct node_gpu *gpus, int count,
                            bool *taken)
{
	int64_t unnamed = 0;

	for (size_t i = 0; i < node->pod_count; i++) {
		const struct pod *pod = node->pods[i];
		struct pod_gpus asks;
		struct error error;
		bool named = false;
		if (pod->unit || pod_has_ended(pod->object) ||
		    !pod_gpus_read(pod->object, &asks, &error) || asks.kind == POD_GPU_NONE)
			continue;
		for (int g = 0; g < count; g++)
			if (is_named_by(pod, gpus[g].uuid))
				taken[g] = named = true;
		unnamed += named ? 0 : asks.count;
	}
	for (int pass = 0; pass < 2; pass++)
		for (int g = count - 1; g >= 0 && unnamed > 0; g--)
			if (!taken[g] && (pass == 1 || !uses_gpu(node, gpus[g].uuid))) {
				taken[g] = true;
				unnamed--;
			}
}

static void report_node(struct pods *pods, struct kube_node *node, bool snapshot,
                        const int64_t *running, int64_t running_count)
{
	struct node_gpu gpus[NODE_GPUS_MAX];
	struct device devices[NODE_GPUS_MAX];
	bool taken[NODE_GPUS_MAX] = { false }, shared;
	struct buffer labels = { 0 };
	struct pod_request capacity;
	struct error error;
	const json_t *all = json_object_get(json_object_get(node->object, "metadata"), "labels");

	int count = node_gpus_read(node->object, gpus, &shared);
	mark_taken_gpus(node, gpus, count, taken);
	uint64_t hash = 1;
	for (int i = 0; i < count; i++) {
		devices[i] = (struct device){ .uuid = gpus[i].uuid,
			                      .model = gpus[i].model,
			                      .mig_parent = "",
			                      .place = i,
			                      .capacity_mib = gpus[i].memory_mib,
			                      .foreign_mib = taken[i] ? gpus[i].memory_mib : 0,
			                      .healthy = true };
		hash = hash_combine(hash_combine(hash, hash_text(gpus[i].uuid)),
		                    (uint64_t)gpus[i].memory_mib * 2 + taken[i]);
	}
	print_labels(node->object, &labels);
	bool right = pod_node_capacity(node->object, &capacity, &error);
	hash =
	    hash_combine(hash_combine(hash, hash_text(labels.data)), (uint64_t)capacity.cpu_milli);
	hash = hash_combine(hash, (uint64_t)capacity.memory_bytes);
	if (right && (snapshot || hash != node->told)) {
		node->told = hash;
		node->reported = true;
		pods_send(pods,
		          &(struct command){
			      .kind = COMMAND_NODE_REPORT,
			      .report = { .name = node->name,
		                          .boot = KUBERNETES_BOOT,
		                          .zone = member_text(all, "topology.kubernetes.io/zone"),
		                          .rack = member_text(all, "topology.kubernetes.io/rack"),
		                          .labels = labels.data,
		                          .cpu_milli = capacity.cpu_milli,
		                          .host_bytes = capacity.memory_bytes,
		                          .devices = devices,
		                          .device_count = count,
		                          .running = running,
		                          .running_count = running_count,
		                          .snapshot = snapshot } });
	} else if (!right) {
		pods_note(pods, "node %s: %s", node->name, error.text);
	}
	buffer_free(&capacity.counts);
	buffer_free(&labels);
}

void counts_add_lines(json_t *sum, const char *lines)
{
	while (lines && *lines) {
		size_t size = strcspn(lines, "\n");
		const char *equals = memchr(lines, '=', size);
		char name[256];
		snprintf(name, sizeof(name), "%.*s", (int)(equals - lines), lines);
		json_int_t before = json_integer_value(json_object_get(sum, name));
		json_object_set_new(sum, name,
		                    json_integer(before + strtoll(equals + 1, NULL, 10)));
		lines += size + (lines[size] == '\n');
	}
}

static void print_lines(json_t *sum, struct buffer *lines)
{
	const char *name;
	json_t *value;

	json_object_foreach(sum, name, value)
	    buffer_print(lines, "%s%s=%lld", lines->size > 0 ? "\n" : "", name,
	                 (long long)json_integer_value(value));
	buffer_text(lines, "");
}

/* What pods take that are not jobs of ours. */
static void add_taken(struct pods *pods, const struct kube_node *node, json_t *sum,
                      struct node_facts_command *facts)
{
	struct pod_request request;
	struct error error;

	for (size_t i = 0; i < node->pod_count; i++) {
		const struct pod *pod = node->pods[i];
		if (pod->unit || pod_has_ended(pod->object))
			continue;
		if (pod_request_read(pod->object, NULL, &request, &error)) {
			facts->taken_cpu_milli += request.cpu_milli;
			facts->taken_host_bytes += request.memory_bytes;
			counts_add_lines(sum, request.counts.data);
		} else {
			pods_note(pods, "pod %s/%s: %s", pod->namespace, pod->name, error.text);
		}
		buffer_free(&request.counts);
	}
	/* What the machine has and Kubernetes does not give. */
	int64_t cpu_milli = 0, host_bytes = 0;
	struct pod_request capacity;
	pods->port.node_amounts(pods->port.context, node->name, &cpu_milli, &host_bytes);
	if (pod_node_capacity(node->object, &capacity, &error)) {
		facts->taken_cpu_milli += max64(cpu_milli - capacity.cpu_milli, 0);
		facts->taken_host_bytes += max64(host_bytes - capacity.memory_bytes, 0);
	}
	buffer_free(&capacity.counts);
	facts->taken_cpu_milli = min64(facts->taken_cpu_milli, CPU_MILLI_MAX);
	facts->taken_host_bytes = min64(facts->taken_host_bytes, HOST_BYTES_MAX);
}

static void send_facts(struct pods *pods, struct kube_node *node)
{
	struct node_facts_command facts = { .name = node->name };
	struct pod_request capacity;
	struct buffer taken = { 0 };
	struct error error;
	json_t *sum = json_object();

	add_taken(pods, node, sum, &facts);
	print_lines(sum, &taken);
	if (pod_node_capacity(node->object, &capacity, &error)) {
		uint64_t hash =
		    hash_combine(hash_text(capacity.counts.data), hash_text(taken.data));
		hash = hash_combine(hash, (uint64_t)facts.taken_cpu_milli);
		hash = hash_combine(hash, (uint64_t)facts.taken_host_bytes) | 1;
		facts.resources = capacity.counts.data;
		facts.taken = taken.data;
		if (hash != node->told_facts)
			pods_send(pods,
			          &(struct command){ .kind = COMMAND_NODE_FACTS, .facts = facts });
		node->told_facts = hash;
	}
	buffer_free(&capacity.counts);
	buffer_free(&taken);
	json_decref(sum);
}

static void send_guests(struct pods *pods, struct kube_node *node)
{
	for (size_t i = 0; i < node->pod_count; i++) {
		struct pod *pod = node->pods[i];
		bool guest = !pod->unit && !pod_has_ended(pod->object);
		if (guest == pod->is_guest)
			continue;
		pod->is_guest = guest;
		if (!guest) {
			pods_send(pods, &(struct command){ .kind = COMMAND_REMOVE_GUEST,
			                                   .guest_name = pod->uid });
			continue;
		}
		node->guest_ms = pods->now_ms;
		struct pod_settings settings = { .namespaces = pods->namespaces };
		struct buffer marks = { 0 }, rules = { 0 };
		struct error error;
		buffer_text(&rules, "");
		pod_marks(pod->object, &marks);
		if (!pod_rules(pod->object, &settings, &rules, &error)) {
			buffer_clear(&rules);
			buffer_text(&rules, "");
		}
		pods_send(pods, &(struct command){ .kind = COMMAND_PUT_GUEST,
		                                   .guest = { .name = pod->uid,
		                                              .node = node->name,
		                                              .marks = marks.data,
		                                              .rules = rules.data } });
		buffer_free(&marks);
		buffer_free(&rules);
	}
}

/* The first report after a start, or when the node comes (again): reservations of pods that are
 * bound there are running; of those that the core ordered and that are not bound, it orders the
 * start again. */
static void report_whole(struct pods *pods, struct kube_node *node)
{
	size_t most = node->pod_count + pods->ghost_count;
	int64_t *running = memory_zero(most + 1, sizeof(*running));
	int64_t count = 0;

	for (size_t i = 0; i < node->pod_count; i++) {
		const struct pod *pod = node->pods[i];
		if (pod->unit && pod->unit->tasks[pod->place].reservation_id > 0)
			running[count++] = pod->unit->tasks[pod->place].reservation_id;
	}
	for (size_t i = 0; i < pods->ghost_count; i++)
		if (strcmp(pods->ghosts[i].node, node->name) == 0)
			running[count++] = pods->ghosts[i].reservation_id;
	report_node(pods, node, true, running, count);
	free(running);
}

static void flush_node(struct pods *pods, struct kube_node *node)
{
	node->dirty = false;
	if (!is_there(node))
		return;
	/* An agent reports the node itself; what it is told of here is on top of that. */
	if (!pods->port.node_has_agent(pods->port.context, node->name)) {
		if (node->reported)
			report_node(pods, node, false, NULL, 0);
		else
			report_whole(pods, node);
	}
	send_facts(pods, node);
	send_guests(pods, node);
	node_uncross(pods, node);
}

void nodes_flush(struct pods *pods)
{
	for (size_t i = 0; i < pods->nodes.capacity; i++) {
		struct kube_node *node = pods->nodes.entries[i].value;
		if (node && node->dirty)
			flush_node(pods, node);
	}
}

void nodes_begin(struct pods *pods)
{
	for (size_t i = 0; i < pods->nodes.capacity; i++) {
		struct kube_node *node = pods->nodes.entries[i].value;
		if (!node)
			continue;
		if (is_there(node) && !pods->port.node_has_agent(pods->port.context, node->name))
			report_whole(pods, node);
		node->dirty = true;
	}
}
