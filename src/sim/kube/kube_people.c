/* kube_people.c - people and their workloads, the controllers of those, another scheduler */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/kube/kube_world.h"

/* What the cluster could run at once of tasks that ask for that. */
static int64_t room_for(const struct kube *kube, int64_t gpus, int64_t mib)
{
	int64_t room = 0;

	for (int i = 0; i < kube->machine_count; i++) {
		const struct kube_machine *machine = &kube->machines[i];
		if (gpus > 0)
			room += machine->gpu_count / gpus;
		else if (machine->shared)
			room += machine->gpu_count * (machine->memory_mib / mib);
	}
	return room;
}

static void make_workload(struct kube *kube)
{
	static const int64_t sizes[] = { 2000, 3000, 5000, 9000 };
	struct kube_workload *work = &kube->workloads[kube->workload_count];
	uint64_t *random = &kube->random;
	int64_t kind = kube_between(random, 0, 9), room = 4;

	*work = (struct kube_workload){ .cpu_milli = kube_between(random, 1, 20) * 100,
		                        .takes_ms = kube_between(random, 1, 120) * 1000 };
	if (kind >= 2 && kind <= 5)
		work->gpus = kube_between(random, 1, KUBE_GPUS);
	else if (kind >= 6)
		work->mib = sizes[random_below(random, sizeof(sizes) / sizeof(sizes[0]))];
	if (kind == 9)
		work->fraction = 500;
	if (kind >= 2)
		room = room_for(kube, work->gpus, work->fraction ? INT64_C(50000) : work->mib);
	if (work->fraction)
		for (int i = 0; i < kube->machine_count; i++)
			room += kube->machines[i].shared ? kube->machines[i].gpu_count : 0;
	if (room == 0)
		return;
	work->gang = kube_chance(random, 50);
	work->members = (int)kube_between(random, 1, min64(room, KUBE_MEMBERS));
	work->same_names = kube_chance(random, 50);
	snprintf(work->name, sizeof(work->name), "w%d", kube->workload_count);
	api_new_uid(kube, work->uid, sizeof(work->uid));
	kube_note(kube, "workload %s: %d pods%s, %lld GPUs, %lld MiB", work->name, work->members,
	          work->gang ? " together" : "", (long long)work->gpus, (long long)work->mib);
	kube->workload_count++;
	kube->result->jobs++;
}

static json_t *requests_of_work(const struct kube_workload *work)
{
	char cpu[16], gpus[8];

	snprintf(cpu, sizeof(cpu), "%lldm", (long long)work->cpu_milli);
	json_t *requests = json_pack("{s:s, s:s}", "cpu", cpu, "memory", "64Mi");
	snprintf(gpus, sizeof(gpus), "%lld", (long long)work->gpus);
	if (work->gpus > 0)
		json_object_set_new(requests, "nvidia.com/gpu", json_string(gpus));
	return requests;
}

static json_t *annotations_of(const struct kube_workload *work)
{
	char text[32];
	json_t *annotations = json_object();

	snprintf(text, sizeof(text), "%lld", (long long)work->takes_ms);
	json_object_set_new(annotations, "sim/takes-ms", json_string(text));
	snprintf(text, sizeof(text), "%lld", (long long)work->gpus);
	json_object_set_new(annotations, "sim/whole", json_string(text));
	snprintf(text, sizeof(text), "%lld", (long long)work->mib);
	if (work->fraction)
		json_object_set_new(annotations, "gpu-fraction", json_string("0.5"));
	else if (work->mib)
		json_object_set_new(annotations, "gpu-memory", json_string(text));
	if (work->gang && work->members > 1) {
		snprintf(text, sizeof(text), "%d", work->members);
		json_object_set_new(annotations, "gpu-scheduler.io/group", json_string(work->name));
		json_object_set_new(annotations, "gpu-scheduler.io/group-size", json_string(text));
	}
	return annotations;
}

static void make_pod(struct kube *kube, struct kube_workload *work, int at)
{
	char name[64], uid[24];

	if (work->same_names)
		snprintf(name, sizeof(name), "%s-%d", work->name, at);
	else
		snprintf(name, sizeof(name), "%s-%d-%d", work->name, at, work->made[at]);
	work->made[at]++;
	api_put(kube, KUBE_PODS,
	        json_pack("{s:{s:s, s:s, s:s, s:{s:s}, s:o, s:[{s:s, s:s, s:s, s:s, s:b}]}, "
	                  "s:{s:s, s:[{s:s, s:{s:o}}]}, s:{s:s}}",
	                  "metadata", "name", name, "namespace", "default", "uid",
	                  api_new_uid(kube, uid, sizeof(uid)), "labels", "workload", work->name,
	                  "annotations", annotations_of(work), "ownerReferences", "apiVersion",
	                  "apps/v1", "kind", "ReplicaSet", "name", work->name, "uid", work->uid,
	                  "controller", 1, "spec", "schedulerName", "gpu-scheduler", "containers",
	                  "name", "main", "resources", "requests", requests_of_work(work), "status",
	                  "phase", "Pending"));
}

/* The member that a pod's name says: w3-2 or w3-2-7. */
static int member_of(const struct kube_workload *work, const char *name)
{
	return (int)strtol(name + strlen(work->name) + 1, NULL, 10);
}

static bool is_finished(const struct kube_workload *work)
{
	for (int i = 0; i < work->members; i++)
		if (!work->done[i])
			return false;
	return true;
}

static void control(struct kube *kube, struct kube_workload *work)
{
	json_t *pods = json_copy(kube->api.objects[KUBE_PODS]), *pod;
	bool there[KUBE_MEMBERS] = { false };
	const char *key;

	json_object_foreach(pods, key, pod)
	{
		const json_t *metadata = json_object_get(pod, "metadata");
		const char *phase = member_text(json_object_get(pod, "status"), "phase");
		if (strcmp(member_text(json_object_get(metadata, "labels"), "workload"),
		           work->name) != 0)
			continue;
		int at = member_of(work, member_text(metadata, "name"));
		there[at] = true;
		if (strcmp(phase, "Succeeded") == 0)
			work->done[at] = true;
		/* Those that are done may count for their group. */
		if (strcmp(phase, "Failed") == 0 || work->removed || is_finished(work))
			api_delete_pod(kube, key, false);
	}
	json_decref(pods);
	for (int i = 0; i < work->members && !work->removed; i++) {
		/* What somebody deleted is not known to have been done, until all is. */
		work->done[i] &= there[i] || is_finished(work);
		if (!there[i] && !work->done[i])
			make_pod(kube, work, i);
	}
}

/* Pods of others have no controller. */
static void tidy_others(struct kube *kube)
{
	json_t *pods = json_copy(kube->api.objects[KUBE_PODS]), *pod;
	const char *key;

	json_object_foreach(pods, key, pod)
	{
		const char *phase = member_text(json_object_get(pod, "status"), "phase");
		if (strncmp(key, "default/other-", strlen("default/other-")) == 0 &&
		    (strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0))
			api_delete_pod(kube, key, false);
	}
	json_decref(pods);
}

void people_controllers(struct kube *kube)
{
	kube_later(kube, kube_between(&kube->random, 500, 3000),
	           (struct kube_event){ .kind = HAPPEN_CONTROLLERS });
	if (api_is_down(kube))
		return;
	for (int i = 0; i < kube->workload_count; i++)
		control(kube, &kube->workloads[i]);
	tidy_others(kube);
}

void people_init(struct kube *kube)
{
	kube->workload_max = (int)kube_between(&kube->random, 3, KUBE_WORKLOADS);
}

/* The key of any pod; NULL: there is none. */
static const char *any_pod(const struct kube *kube, uint64_t *dice)
{
	json_t *pods = kube->api.objects[KUBE_PODS];
	size_t count = json_object_size(pods), at = count ? random_below(dice, count) : 0;
	void *entry = json_object_iter(pods);

	for (size_t i = 0; entry && i < at; i++)
		entry = json_object_iter_next(pods, entry);
	return entry ? json_object_iter_key(entry) : NULL;
}

static void delete_any(struct kube *kube, enum kube_class class)
{
	char key[128];
	const char *any = any_pod(kube, &kube->dice[class]);

	if (!any)
		return;
	snprintf(key, sizeof(key), "%s", any);
	api_delete_pod(kube, key, class == KUBE_FORCE);
}

static void wish_for_job(struct kube *kube)
{
	static const enum command_kind kinds[] = { COMMAND_REQUEUE, COMMAND_REQUEUE,
		                                   COMMAND_CANCEL };
	uint64_t *dice = &kube->dice[KUBE_IMPATIENCE];
	struct rank_cursor cursor =
	    ranktree_seek(&kube->store.kept[RECORD_JOB_STATE], INT64_MIN, INT64_MIN);
	const struct rank_entry *entry;
	int64_t chosen = 0, count = 0;

	while ((entry = rank_cursor_next(&cursor))) {
		const struct job_state_record *state = entry->value;
		if (!job_state_is_final((enum job_state)state->state) &&
		    random_below(dice, (uint64_t)++count) == 0)
			chosen = state->id;
	}
	if (!chosen)
		return;
	struct command command = { .kind = kinds[random_below(dice, 3)], .id = chosen };
	kube_note(kube, "somebody wants %s of job %lld", command_kind_name(command.kind),
	          (long long)chosen);
	leader_command(kube, command);
}

/* CPU alone: what two schedulers give of a GPU at the same moment nobody can prevent. */
static void other_scheduler(struct kube *kube)
{
	uint64_t *dice = &kube->dice[KUBE_OTHER];
	const struct kube_machine *machine =
	    &kube->machines[random_below(dice, (uint64_t)kube->machine_count)];
	char name[32], uid[24];

	if (machine->run_count > 20)
		return;
	snprintf(name, sizeof(name), "other-%lld", (long long)++kube->others);
	api_put(kube, KUBE_PODS,
	        json_pack("{s:{s:s, s:s, s:s, s:{s:s, s:s}}, s:{s:s, s:s, "
	                  "s:[{s:s, s:{s:{s:s, s:s}}}]}, s:{s:s}}",
	                  "metadata", "name", name, "namespace", "default", "uid",
	                  api_new_uid(kube, uid, sizeof(uid)), "annotations", "sim/whole", "0",
	                  "sim/takes-ms", "20000", "spec", "schedulerName", "default-scheduler",
	                  "nodeName", machine->name, "containers", "name", "main", "resources",
	                  "requests", "cpu", "500m", "memory", "1Gi", "status", "phase",
	                  "Pending"));
}

void people_want(struct kube *kube)
{
	uint64_t *dice = &kube->dice[KUBE_IMPATIENCE];

	kube_later(kube, kube_between(&kube->random, 1000, 15000),
	           (struct kube_event){ .kind = HAPPEN_PEOPLE });
	if (!kube->faults || api_is_down(kube))
		return;
	if (kube->workload_count < kube->workload_max)
		make_workload(kube);
	if (kube_fails(kube, KUBE_FORCE, 60))
		delete_any(kube, KUBE_FORCE);
	if (kube_fails(kube, KUBE_OTHER, 150))
		other_scheduler(kube);
	if (kube_fails(kube, KUBE_IMPATIENCE, 100))
		delete_any(kube, KUBE_IMPATIENCE);
	if (kube_fails(kube, KUBE_IMPATIENCE, 100))
		wish_for_job(kube);
	if (kube_fails(kube, KUBE_IMPATIENCE, 20) && kube->workload_count > 0)
		kube->workloads[random_below(dice, (uint64_t)kube->workload_count)].removed = true;
}

static void say_undone(const struct kube *kube, const struct kube_workload *work,
                       struct buffer *missing)
{
	const char *key;
	json_t *pod;

	buffer_print(missing, "workload %s has not done its work:", work->name);
	json_object_foreach(kube->api.objects[KUBE_PODS], key, pod)
	{
		const json_t *metadata = json_object_get(pod, "metadata");
		if (strcmp(member_text(json_object_get(metadata, "labels"), "workload"),
		           work->name) == 0)
			buffer_print(missing, " %s %s %s%s", key,
			             member_text(json_object_get(pod, "status"), "phase"),
			             member_text(json_object_get(pod, "spec"), "nodeName"),
			             member_has(metadata, "deletionTimestamp") ? " leaving" : "");
	}
}

bool people_have_all(const struct kube *kube, struct buffer *missing)
{
	for (int i = 0; i < kube->workload_count; i++) {
		const struct kube_workload *work = &kube->workloads[i];
		if (work->removed || is_finished(work))
			continue;
		if (missing)
			say_undone(kube, work, missing);
		return false;
	}
	return true;
}
