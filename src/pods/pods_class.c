/* pods_class.c - which nodes pods may go to: a class for all pods that ask for the same nodes */
#include <stdlib.h>
#include <string.h>

#include "pods/pods_local.h"

static const json_t *find_volume(const void *context, bool volume, const char *namespace,
                                 const char *name)
{
	const struct pods *pods = context;
	char *key = volume ? text_print("%s /%s", PODS_VOLUMES, name)
	                   : text_print("%s %s/%s", PODS_VOLUME_CLAIMS, namespace, name);
	const json_t *object = text_map_get(&pods->groups, key);

	free(key);
	return object;
}

json_t *class_volumes(const struct pods *pods, const json_t *pod, struct error *error)
{
	return pod_volumes(pod, find_volume, pods, error);
}

void class_use(struct pods *pods, const char *name, const json_t *pod, bool parts)
{
	struct use_of_class *class = text_map_get(&pods->classes, name);

	if (!class) {
		class = NEW(struct use_of_class);
		class->name = memory_text(name);
		struct error error;
		class->sample = json_incref((json_t *)pod);
		class->volumes = class_volumes(pods, pod, &error);
		class->parts = parts;
		text_map_put(&pods->classes, name, class);
	}
	class->uses++;
	/* A job of an unknown class goes nowhere, so the class is there before it. */
	if (!class->told)
		classes_flush(pods);
}

void class_unuse(struct pods *pods, const char *name)
{
	struct use_of_class *class = text_map_get(&pods->classes, name);

	if (!class || --class->uses > 0)
		return;
	text_map_remove(&pods->classes, name);
	if (class->told)
		pods_send(pods, &(struct command){ .kind = COMMAND_PUT_NODE_CLASS,
		                                   .node_class = { class->name, "" } });
	free(class->name);
	free(class->told);
	json_decref(class->sample);
	json_decref(class->volumes);
	free(class);
}

static bool node_is_ready(const json_t *node)
{
	const json_t *conditions = json_object_get(json_object_get(node, "status"), "conditions");
	const json_t *condition;
	size_t i;

	json_array_foreach(conditions, i,
	                   condition) if (strcmp(member_text(condition, "type"), "Ready") ==
	                                  0) return strcmp(member_text(condition, "status"),
	                                                   "True") == 0;
	return false;
}

static void class_judge_node(const struct pods *pods, const struct use_of_class *class,
                             const struct kube_node *node, struct buffer *lines)
{
	struct node_gpu gpus[NODE_GPUS_MAX];
	struct buffer reasons = { 0 };
	bool shared;

	buffer_text(&reasons, "");
	unsigned mask = pod_judge_node(class->sample, node->object, NULL, &reasons);
	if (!pod_volumes_suit(class->volumes, node->object, &reasons))
		mask &= ~(unsigned)NODE_ALLOWED;
	if (!node_is_ready(node->object)) {
		mask &= ~(unsigned)NODE_ALLOWED;
		buffer_print(&reasons, "%sthe node is not ready", reasons.size > 0 ? "; " : "");
	}
	if (!claims_suit_node(pods, class->sample, node->name)) {
		mask &= ~(unsigned)NODE_ALLOWED;
		buffer_print(&reasons, "%sthe node offers no GPUs for claims",
		             reasons.size > 0 ? "; " : "");
	}
	if (class->parts && !pods->port.node_has_agent(pods->port.context, node->name)) {
		node_gpus_read(node->object, gpus, &shared);
		if (!shared) {
			mask &= ~(unsigned)NODE_ALLOWED;
			buffer_print(&reasons,
			             "%sthe node has no gpu-agent, so its GPUs are given whole",
			             reasons.size > 0 ? "; " : "");
		}
	}
	for (char *at = reasons.data; *at; at++)
		if (*at == '\n' || *at == '\t')
			*at = ' ';
	buffer_print(lines, "%s%o %s\t%s", lines->size > 0 ? "\n" : "", mask, node->name,
	             reasons.data);
	buffer_free(&reasons);
}

static int by_name(const void *a, const void *b)
{
	return strcmp((*(struct kube_node *const *)a)->name, (*(struct kube_node *const *)b)->name);
}

static void tell_class(struct pods *pods, struct use_of_class *class,
                       struct kube_node *const *nodes, size_t count)
{
	struct buffer lines = { 0 };

	buffer_text(&lines, "");
	for (size_t i = 0; i < count; i++)
		class_judge_node(pods, class, nodes[i], &lines);
	if (class->told && strcmp(class->told, lines.data) == 0) {
		buffer_free(&lines);
		return;
	}
	/* Without any node a class would be forgotten, and its pods go anywhere. */
	if (lines.size == 0)
		buffer_text(&lines, "0 none\tthe cluster has no nodes");
	pods_send(pods, &(struct command){ .kind = COMMAND_PUT_NODE_CLASS,
	                                   .node_class = { class->name, lines.data } });
	free(class->told);
	class->told = lines.data;
}

void classes_flush(struct pods *pods)
{
	struct kube_node **nodes = memory_zero(pods->nodes.count + 1, sizeof(struct kube_node *));
	size_t count = 0;

	for (size_t i = 0; i < pods->nodes.capacity; i++)
		if (pods->nodes.entries[i].value)
			nodes[count++] = pods->nodes.entries[i].value;
	qsort(nodes, count, sizeof(struct kube_node *), by_name);
	for (size_t i = 0; i < pods->classes.capacity; i++) {
		struct use_of_class *class = pods->classes.entries[i].value;
		if (class && (pods->classes_dirty || !class->told))
			tell_class(pods, class, nodes, count);
	}
	pods->classes_dirty = false;
	free(nodes);
}
