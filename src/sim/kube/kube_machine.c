/* kube_machine.c - nodes as they really are, and their kubelets */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kube/pod_gpus.h"
#include "sim/kube/kube_world.h"

enum { SILENT_MS = 40000, SYNC_MS = 1000 };

static json_t *node_object(struct kube *kube, struct kube_machine *machine, bool ready)
{
	char count[8];

	snprintf(count, sizeof(count), "%d", machine->gpu_count);
	if (!*machine->uid)
		api_new_uid(kube, machine->uid, sizeof(machine->uid));
	json_t *node = json_pack(
	    "{s:{s:s, s:s, s:{s:s}, s:{}}, s:{}, s:{s:{s:s, s:s, s:s, s:s}, s:[{s:s, s:s}]}}",
	    "metadata", "name", machine->name, "uid", machine->uid, "labels",
	    "kubernetes.io/hostname", machine->name, "annotations", "spec", "status", "allocatable",
	    "cpu", "16", "memory", "64Gi", "pods", "20", "nvidia.com/gpu", count, "conditions",
	    "type", "Ready", "status", ready ? "True" : "False");
	if (!machine->shared)
		return node;
	json_t *gpus = json_array();
	for (int i = 0; i < machine->gpu_count; i++) {
		char uuid[40];
		snprintf(uuid, sizeof(uuid), "GPU-%s-%d", machine->name, i);
		json_array_append_new(gpus,
		                      json_pack("{s:s, s:s, s:I}", "uuid", uuid, "model", "H100",
		                                "memory_mib", (json_int_t)machine->memory_mib));
	}
	char *text = json_dumps(gpus, JSON_COMPACT);
	json_object_set_new(json_object_get(json_object_get(node, "metadata"), "annotations"),
	                    NODE_GPUS_ANNOTATION, json_string(text));
	free(text);
	json_decref(gpus);
	return node;
}

static void put_node(struct kube *kube, struct kube_machine *machine, bool ready)
{
	const json_t *known = api_get(kube, KUBE_NODES_RESOURCE, machine->name);
	const json_t *conditions = json_object_get(json_object_get(known, "status"), "conditions");
	const char *status = member_text(json_array_get(conditions, 0), "status");

	if (known && strcmp(status, ready ? "True" : "False") == 0)
		return;
	kube_note(kube, "node %s is %s", machine->name, ready ? "ready" : "not ready");
	api_put(kube, KUBE_NODES_RESOURCE, node_object(kube, machine, ready));
}

void machines_init(struct kube *kube)
{
	uint64_t *random = &kube->random;

	kube->machine_count = (int)kube_between(random, 1, KUBE_NODES);
	for (int i = 0; i < kube->machine_count; i++) {
		struct kube_machine *machine = &kube->machines[i];
		snprintf(machine->name, sizeof(machine->name), "node-%d", i);
		machine->gpu_count = (int)kube_between(random, 1, KUBE_GPUS);
		machine->memory_mib = kube_chance(random, 50) ? 10000 : 81559;
		machine->shared = kube_chance(random, 60);
		machine->heard_ms = kube->now_ms;
		put_node(kube, machine, true);
		kube->result->gpus += machine->gpu_count;
		kube_later(kube, kube_between(random, 1, SYNC_MS),
		           (struct kube_event){ .kind = HAPPEN_KUBELET, .at = i });
	}
	kube->result->nodes = kube->machine_count;
}

static void drop_run(struct kube_machine *machine, int at)
{
	free(machine->runs[at]);
	machine->runs[at] = machine->runs[--machine->run_count];
}

void machines_free(struct kube *kube)
{
	for (int i = 0; i < kube->machine_count; i++)
		while (kube->machines[i].run_count > 0)
			drop_run(&kube->machines[i], 0);
}

static struct kube_run *find_run(const struct kube_machine *machine, const char *uid)
{
	for (int i = 0; i < machine->run_count; i++)
		if (strcmp(machine->runs[i]->uid, uid) == 0)
			return machine->runs[i];
	return NULL;
}

static void set_phase(struct kube *kube, const json_t *pod, const char *phase, int64_t code)
{
	json_t *copy = json_deep_copy(pod);
	json_t *status = json_object_get(copy, "status");
	bool ended = strcmp(phase, "Running") != 0;

	json_object_set_new(status, "phase", json_string(phase));
	json_object_set_new(status, "containerStatuses",
	                    ended ? json_pack("[{s:{s:{s:I}}}]", "state", "terminated", "exitCode",
	                                      (json_int_t)code)
	                          : json_pack("[{s:{s:{}}}]", "state", "running"));
	api_put(kube, KUBE_PODS, copy);
}

static void read_gpus(struct kube_run *run, const json_t *annotations)
{
	const char *gpus = member_text(annotations, "gpu-scheduler.io/gpus");
	const char *limits = member_text(annotations, "gpu-scheduler.io/limits");

	while (*gpus && run->gpu_count < KUBE_GPUS) {
		size_t size = strcspn(gpus, ",");
		snprintf(run->gpus[run->gpu_count], sizeof(run->gpus[0]), "%.*s", (int)size, gpus);
		run->mib[run->gpu_count++] = strtoll(limits, NULL, 10);
		gpus += size + (gpus[size] == ',');
		limits += strcspn(limits, ",");
		limits += *limits == ',';
	}
}

static void start_pod(struct kube *kube, struct kube_machine *machine, const json_t *pod)
{
	const json_t *metadata = json_object_get(pod, "metadata");
	const json_t *annotations = json_object_get(metadata, "annotations");
	struct kube_run *run = NEW(struct kube_run);

	if (machine->run_count == (int)(sizeof(machine->runs) / sizeof(machine->runs[0])))
		panic("a node has more pods than it can");
	snprintf(run->uid, sizeof(run->uid), "%s", member_text(metadata, "uid"));
	snprintf(run->name, sizeof(run->name), "%s", member_text(metadata, "name"));
	snprintf(run->job, sizeof(run->job), "%s",
	         member_text(annotations, "gpu-scheduler.io/job"));
	read_gpus(run, annotations);
	run->whole = strtoll(member_text(annotations, "sim/whole"), NULL, 10);
	run->ends_ms = kube->now_ms + strtoll(member_text(annotations, "sim/takes-ms"), NULL, 10);
	machine->runs[machine->run_count++] = run;
	kube->result->ends++;
	set_phase(kube, pod, "Running", 0);
}

static bool is_over(const json_t *pod)
{
	const char *phase = member_text(json_object_get(pod, "status"), "phase");

	return strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0;
}

/* One pod that is bound to the node, as the API server has it. */
static void sync_pod(struct kube *kube, struct kube_machine *machine, const char *key,
                     const json_t *pod)
{
	const json_t *metadata = json_object_get(pod, "metadata");
	struct kube_run *run = find_run(machine, member_text(metadata, "uid"));
	bool leaves = member_has(metadata, "deletionTimestamp");

	if (leaves && (!run || run->ended)) {
		char *copy = memory_text(key);
		kube->result->releases++;
		api_delete(kube, KUBE_PODS, copy);
		free(copy);
	} else if (leaves && !run->kill_ms) {
		run->kill_ms = kube->now_ms + kube_between(&kube->random, 100, 10000);
	} else if (!leaves && run && run->ended && !is_over(pod)) {
		bool killed = run->kill_ms > 0;
		set_phase(kube, pod, killed ? "Failed" : "Succeeded", killed ? 137 : 0);
	} else if (!leaves && !run && !is_over(pod)) {
		start_pod(kube, machine, pod);
	}
}

static void end_runs(struct kube *kube, struct kube_machine *machine)
{
	for (int i = 0; i < machine->run_count; i++) {
		struct kube_run *run = machine->runs[i];
		int64_t end_ms = run->kill_ms ? run->kill_ms : run->ends_ms;
		run->ended = run->ended || end_ms <= kube->now_ms;
	}
}

/* What the API server does not have here any more is killed, and forgotten. */
static void end_orphans(struct kube *kube, struct kube_machine *machine)
{
	for (int i = 0; i < machine->run_count;) {
		struct kube_run *run = machine->runs[i];
		char key[96];
		snprintf(key, sizeof(key), "default/%s", run->name);
		const json_t *pod = api_get(kube, KUBE_PODS, key);
		bool here =
		    pod &&
		    strcmp(member_text(json_object_get(pod, "metadata"), "uid"), run->uid) == 0 &&
		    strcmp(member_text(json_object_get(pod, "spec"), "nodeName"), machine->name) ==
			0;
		if (!here && run->ended) {
			drop_run(machine, i);
			continue;
		}
		if (!here && !run->kill_ms)
			run->kill_ms = kube->now_ms + kube_between(&kube->random, 100, 10000);
		i++;
	}
}

void machine_kubelet(struct kube *kube, int at)
{
	struct kube_machine *machine = &kube->machines[at];
	const char *key;
	json_t *pod;

	kube_later(kube, kube_between(&kube->random, SYNC_MS / 2, SYNC_MS * 2),
	           (struct kube_event){ .kind = HAPPEN_KUBELET, .at = at });
	if ((machine->off || machine->hangs) && kube->now_ms >= machine->back_ms) {
		kube_note(kube, "node %s is back", machine->name);
		if (!api_get(kube, KUBE_NODES_RESOURCE, machine->name))
			machine->uid[0] = '\0';
		machine->off = machine->hangs = machine->removed = false;
	}
	if (machine->off)
		return;
	end_runs(kube, machine);
	if (machine->hangs || api_is_down(kube))
		return;
	machine->heard_ms = kube->now_ms;
	put_node(kube, machine, true);
	json_t *pods = json_copy(kube->api.objects[KUBE_PODS]);
	json_object_foreach(pods, key, pod)
	{
		if (strcmp(member_text(json_object_get(pod, "spec"), "nodeName"), machine->name) ==
		    0)
			sync_pod(kube, machine, key, pod);
	}
	json_decref(pods);
	end_orphans(kube, machine);
}

/* All that ran there is gone, at once. */
void machine_power(struct kube *kube, int at)
{
	struct kube_machine *machine = &kube->machines[at];
	uint64_t *dice = &kube->dice[KUBE_NODE];

	if (machine->off)
		return;
	kube_note(kube, "node %s loses power", machine->name);
	while (machine->run_count > 0)
		drop_run(machine, 0);
	machine->off = true;
	machine->back_ms = kube->now_ms + kube_between(dice, 5000, 300000);
	machine->removed = kube_chance(dice, 40);
}

void machine_hangs(struct kube *kube, int at)
{
	struct kube_machine *machine = &kube->machines[at];

	if (machine->off || machine->hangs)
		return;
	kube_note(kube, "the kubelet of %s hangs", machine->name);
	machine->hangs = true;
	machine->back_ms = kube->now_ms + kube_between(&kube->dice[KUBE_HANG], 1000, 120000);
}

void machines_mend(struct kube *kube)
{
	for (int i = 0; i < kube->machine_count; i++)
		kube->machines[i].back_ms = min64(kube->machines[i].back_ms, kube->now_ms);
}

static void remove_pods_of(struct kube *kube, const struct kube_machine *machine)
{
	json_t *pods = json_copy(kube->api.objects[KUBE_PODS]), *pod;
	const char *key;

	json_object_foreach(pods, key, pod)
	{
		if (strcmp(member_text(json_object_get(pod, "spec"), "nodeName"), machine->name) ==
		    0)
			api_delete_pod(kube, key, true);
	}
	json_decref(pods);
}

/* The controllers of nodes and of pods without a node. */
void machine_watch_over(struct kube *kube)
{
	for (int i = 0; i < kube->machine_count && !api_is_down(kube); i++) {
		struct kube_machine *machine = &kube->machines[i];
		bool there = api_get(kube, KUBE_NODES_RESOURCE, machine->name) != NULL;
		if (there && machine->removed && kube->now_ms - machine->heard_ms > SILENT_MS) {
			kube_note(kube, "node %s is removed", machine->name);
			api_delete(kube, KUBE_NODES_RESOURCE, machine->name);
			there = false;
		}
		if (!there && machine->off)
			remove_pods_of(kube, machine);
		if (there && kube->now_ms - machine->heard_ms > SILENT_MS)
			put_node(kube, machine, false);
	}
}
