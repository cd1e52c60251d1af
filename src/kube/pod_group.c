/* pod_group.c - which group a pod starts with, whose it is, and how it ranks */
#include "kube/pod_group.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/number.h"
#include "json/member.h"

enum { RESOURCE_NATIVE, RESOURCE_KAI, RESOURCE_SIGS, RESOURCE_VOLCANO };
const char *const pod_group_resources[] = {
	"/apis/scheduling.k8s.io/v1alpha2/podgroups",
	"/apis/scheduling.run.ai/v2alpha2/podgroups",
	"/apis/scheduling.x-k8s.io/v1alpha1/podgroups",
	"/apis/scheduling.volcano.sh/v1beta1/podgroups",
	NULL,
};
#define GROUP_LEAST_MAX 4096

static const json_t *map_of(const json_t *pod, const char *name)
{
	return json_object_get(json_object_get(pod, "metadata"), name);
}

static bool take_group(struct pod_group *group, const char *kind, const char *name, int resource)
{
	if (!*name)
		return false;
	snprintf(group->name, sizeof(group->name), "%s/%.300s", kind, name);
	group->resource = resource < 0 ? NULL : pod_group_resources[resource];
	return true;
}

static int64_t number_in(const json_t *map, const char *name)
{
	return min64(max64(strtoll(member_text(map, name), NULL, 10), 0), GROUP_LEAST_MAX);
}

/* Leader and workers of one replica start together. */
static bool take_leader_worker_set(const json_t *pod, struct pod_group *group)
{
	const json_t *labels = map_of(pod, "labels");
	char name[256];

	if (!*member_text(labels, "leaderworkerset.sigs.k8s.io/group-index"))
		return false;
	group->least = number_in(map_of(pod, "annotations"), "leaderworkerset.sigs.k8s.io/size");
	snprintf(name, sizeof(name), "%.180s-%.60s",
	         member_text(labels, "leaderworkerset.sigs.k8s.io/name"),
	         member_text(labels, "leaderworkerset.sigs.k8s.io/group-index"));
	return group->least > 0 && take_group(group, "leaderworkerset", name, -1);
}

void pod_group_read(const json_t *pod, struct pod_group *group)
{
	const json_t *spec = json_object_get(pod, "spec");
	const json_t *labels = map_of(pod, "labels"), *annotations = map_of(pod, "annotations");
	const json_t *native = json_object_get(spec, "schedulingGroup");

	*group = (struct pod_group){ 0 };
	if (take_group(group, "native", member_text(native, "podGroupName"), RESOURCE_NATIVE) ||
	    take_group(group, "kai", member_text(annotations, "pod-group-name"), RESOURCE_KAI))
		return;
	if (take_group(group, "sigs", member_text(labels, "scheduling.x-k8s.io/pod-group"),
	               RESOURCE_SIGS) ||
	    take_group(group, "volcano", member_text(annotations, "scheduling.k8s.io/group-name"),
	               RESOURCE_VOLCANO) ||
	    take_leader_worker_set(pod, group))
		return;
	group->least = number_in(annotations, "gpu-scheduler.io/group-size");
	if (group->least > 0)
		take_group(group, "own", member_text(annotations, "gpu-scheduler.io/group"), -1);
}

int64_t pod_group_minimum(const json_t *object)
{
	const json_t *spec = json_object_get(object, "spec");
	const json_t *gang = json_object_get(json_object_get(spec, "schedulingPolicy"), "gang");
	int64_t least = member_integer(gang, "minCount");

	if (least == 0)
		least = member_integer(spec, "minMember");
	return min64(max64(least, 1), GROUP_LEAST_MAX);
}

struct pod_group_rank pod_group_rank(const char *resource, const json_t *object)
{
	const json_t *spec = json_object_get(object, "spec");
	const char *preemptibility = member_text(spec, "preemptibility");

	if (resource != pod_group_resources[RESOURCE_KAI])
		return (struct pod_group_rank){ "", "", -1 };
	return (struct pod_group_rank){
		.queue = member_text(spec, "queue"),
		.priority_class = member_text(spec, "priorityClassName"),
		.preemptible = *preemptibility ? strcmp(preemptibility, "preemptible") == 0 : -1
	};
}

const char *pod_controller(const json_t *pod)
{
	const json_t *owners = map_of(pod, "ownerReferences"), *owner;
	size_t i;

	json_array_foreach(owners, i,
	                   owner) if (member_flag(owner, "controller")) return member_text(owner,
	                                                                                   "uid");
	return "";
}

const char *pod_tenant(const json_t *pod, bool *queue)
{
	const json_t *labels = map_of(pod, "labels");
	const char *own = member_text(labels, "gpu-scheduler.io/tenant");

	*queue = !*own;
	return *own ? own : pod_queue_label(pod);
}

const char *pod_queue_label(const json_t *object)
{
	const json_t *labels = map_of(object, "labels");
	const char *kai = member_text(labels, "kai.scheduler/queue");

	return *kai ? kai : member_text(labels, "runai/queue");
}

int64_t pod_priority_of_name(const char *name)
{
	static const struct {
		const char *name;
		int64_t priority;
	} known[] = {
		{ "train", 50 }, { "build-preemptible", 75 }, { "build", 100 }, { "inference", 125 }
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (strcmp(known[i].name, name) == 0)
			return known[i].priority;
	return 0;
}

int64_t pod_priority(const json_t *pod)
{
	const json_t *spec = json_object_get(pod, "spec");
	const char *label = member_text(map_of(pod, "labels"), "priorityClassName");
	int64_t priority = member_integer(spec, "priority");

	if (priority == 0 && *label)
		priority = pod_priority_of_name(label);
	return min64(max64(priority, INT32_MIN), INT32_MAX);
}

bool pod_is_preemptible(const json_t *pod)
{
	const json_t *labels = map_of(pod, "labels");
	const char *says = member_text(labels, "gpu-scheduler.io/preemptible");
	const char *kai = member_text(labels, "kai.scheduler/preemptibility");

	if (*says)
		return strcmp(says, "true") == 0;
	if (*kai)
		return strcmp(kai, "preemptible") == 0;
	return pod_priority(pod) < POD_PREEMPTIBLE_BELOW;
}

static uint64_t add_text(uint64_t hash, const char *text)
{
	return hash_combine(hash, hash_bytes(text, strlen(text)));
}

static uint64_t add_member(uint64_t hash, const json_t *object, const char *name)
{
	char *text = json_dumps(json_object_get(object, name),
	                        JSON_SORT_KEYS | JSON_COMPACT | JSON_ENCODE_ANY);

	hash = add_text(hash, text ? text : "");
	free(text);
	return hash;
}

void pod_node_class(const json_t *pod, bool parts, struct buffer *name)
{
	const json_t *spec = json_object_get(pod, "spec");
	uint64_t hash = hash_combine(1, parts);

	hash = add_member(hash, spec, "nodeSelector");
	hash = add_member(hash, json_object_get(spec, "affinity"), "nodeAffinity");
	hash = add_member(hash, spec, "tolerations");
	/* A pod that is bound names its node, but did not ask for it. */
	buffer_print(name, "pods-%016" PRIx64, hash);
}
