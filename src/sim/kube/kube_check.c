/* kube_check.c - what must always hold, by what the API server has and what really runs */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/kube/kube_world.h"

enum { HALF_MS = 300000 };

struct taken {
	int64_t whole;
	char gpus[KUBE_GPUS][40];
	int64_t mib[KUBE_GPUS];
	bool doubtful;
};

static const json_t *annotations_in(const json_t *pod)
{
	return json_object_get(json_object_get(pod, "metadata"), "annotations");
}

static const char *uid_in(const json_t *pod)
{
	return member_text(json_object_get(pod, "metadata"), "uid");
}

static bool is_past_running(const json_t *pod)
{
	const char *phase = member_text(json_object_get(pod, "status"), "phase");

	return strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0;
}

static bool is_bound_to(const json_t *pod, const char *node)
{
	return strcmp(member_text(json_object_get(pod, "spec"), "nodeName"), node) == 0;
}

static const struct kube_run *run_of_uid(const struct kube_machine *machine, const char *uid)
{
	for (int i = 0; i < machine->run_count; i++)
		if (strcmp(machine->runs[i]->uid, uid) == 0)
			return machine->runs[i];
	return NULL;
}

static void take_gpu(struct taken *taken, const char *gpu, size_t size, int64_t mib)
{
	for (int i = 0; i < KUBE_GPUS; i++) {
		bool same =
		    strlen(taken->gpus[i]) == size && strncmp(taken->gpus[i], gpu, size) == 0;
		if (!same && taken->gpus[i][0])
			continue;
		snprintf(taken->gpus[i], sizeof(taken->gpus[i]), "%.*s", (int)size, gpu);
		taken->mib[i] += mib;
		return;
	}
}

static void take_of_pod(const struct kube *kube, struct taken *taken, const json_t *pod)
{
	const json_t *annotations = annotations_in(pod);
	const char *gpus = member_text(annotations, "gpu-scheduler.io/gpus");
	const char *limits = member_text(annotations, "gpu-scheduler.io/limits");

	taken->whole += strtoll(member_text(annotations, "sim/whole"), NULL, 10);
	taken->doubtful |= text_map_get(&kube->doubtful, uid_in(pod)) != NULL;
	while (*gpus) {
		size_t size = strcspn(gpus, ",");
		take_gpu(taken, gpus, size, strtoll(limits, NULL, 10));
		gpus += size + (gpus[size] == ',');
		limits += strcspn(limits, ",");
		limits += *limits == ',';
	}
}

/* Pods that are bound there and did not end, and whatever else still runs. */
static void take_all(const struct kube *kube, const struct kube_machine *machine,
                     struct taken *taken, json_t *seen)
{
	const char *key;
	json_t *pod;

	json_object_foreach(kube->api.objects[KUBE_PODS], key, pod)
	{
		const struct kube_run *run = run_of_uid(machine, uid_in(pod));
		if (!is_bound_to(pod, machine->name) || is_past_running(pod) || (run && run->ended))
			continue;
		take_of_pod(kube, taken, pod);
		json_object_set_new(seen, uid_in(pod), json_true());
	}
	for (int i = 0; i < machine->run_count; i++) {
		const struct kube_run *run = machine->runs[i];
		if (run->ended || json_object_get(seen, run->uid))
			continue;
		taken->doubtful |= text_map_get(&kube->doubtful, run->uid) != NULL;
		taken->whole += run->whole;
		for (int g = 0; g < run->gpu_count; g++)
			take_gpu(taken, run->gpus[g], strlen(run->gpus[g]), run->mib[g]);
	}
}

static void check_machine(struct kube *kube, const struct kube_machine *machine)
{
	struct taken taken = { 0 };
	json_t *seen = json_object();

	take_all(kube, machine, &taken, seen);
	json_decref(seen);
	if (taken.doubtful)
		return;
	if (taken.whole > machine->gpu_count)
		kube_broken(kube, "capacity", "%lld GPUs of the %d of %s are given",
		            (long long)taken.whole, machine->gpu_count, machine->name);
	for (int i = 0; i < KUBE_GPUS; i++)
		if (taken.mib[i] > machine->memory_mib)
			kube_broken(kube, "capacity", "%lld of %lld MiB of %s are given",
			            (long long)taken.mib[i], (long long)machine->memory_mib,
			            taken.gpus[i]);
}

/* One decision gives its GPUs to one pod. */
static void check_given_once(struct kube *kube, const json_t *pod, const char *job)
{
	const char *key;
	json_t *other;

	json_object_foreach(kube->api.objects[KUBE_PODS], key, other)
	{
		const char *its = member_text(annotations_in(other), "gpu-scheduler.io/job");
		bool counts = strcmp(uid_in(other), uid_in(pod)) != 0 && !is_past_running(other) &&
		              *member_text(json_object_get(other, "spec"), "nodeName") &&
		              !text_map_get(&kube->doubtful, uid_in(other));
		if (counts && strcmp(its, job) == 0)
			kube_broken(kube, "twice", "%s is given to two pods, one of them %s", job,
			            key);
	}
}

void kube_check_binding(struct kube *kube, const json_t *pod)
{
	const char *job = member_text(annotations_in(pod), "gpu-scheduler.io/job");

	if (text_map_get(&kube->doubtful, uid_in(pod)))
		return;
	check_given_once(kube, pod, job);
}

/* Once nothing fails, all of a gang runs, or nothing of it. */
static void check_gang(struct kube *kube, struct kube_workload *work)
{
	int bound = 0, done = 0;
	const char *key;
	json_t *pod;

	if (!work->gang || work->removed || kube->quiet_ms == 0)
		return;
	for (int i = 0; i < work->members; i++)
		done += work->done[i];
	json_object_foreach(kube->api.objects[KUBE_PODS], key, pod)
	{
		const char *its = member_text(
		    json_object_get(json_object_get(pod, "metadata"), "labels"), "workload");
		bound += strcmp(its, work->name) == 0 && !is_past_running(pod) &&
		         *member_text(json_object_get(pod, "spec"), "nodeName");
	}
	if (bound == 0 || bound + done >= work->members)
		work->half_ms = 0;
	else if (work->half_ms == 0)
		work->half_ms = kube->now_ms;
	else if (kube->now_ms - work->half_ms > HALF_MS)
		kube_broken(kube, "gang", "%d of %d pods of %s are bound, for minutes", bound,
		            work->members - done, work->name);
}

void kube_check(struct kube *kube)
{
	for (int i = 0; i < kube->machine_count; i++)
		check_machine(kube, &kube->machines[i]);
	for (int i = 0; i < kube->workload_count && kube->steps % 16 == 0; i++)
		check_gang(kube, &kube->workloads[i]);
	if (kube->leaders[0] && kube->steps % 256 == 0)
		sched_check(kube->leaders[0]->sched);
}

bool kube_check_done(struct kube *kube, struct buffer *missing)
{
	struct rank_cursor cursor =
	    ranktree_seek(&kube->store.kept[RECORD_JOB_STATE], INT64_MIN, INT64_MIN);
	const struct rank_entry *entry;

	if (!people_have_all(kube, missing))
		return false;
	while ((entry = rank_cursor_next(&cursor))) {
		const struct job_state_record *state = entry->value;
		if (job_state_is_final((enum job_state)state->state))
			continue;
		if (missing)
			buffer_print(missing, "job %lld, whose pods are gone, is %s%s",
			             (long long)state->id, word_of(&job_state_words, state->state),
			             state->held ? " and held" : "");
		return false;
	}
	cursor = ranktree_seek(&kube->store.kept[RECORD_RESERVATION], INT64_MIN, INT64_MIN);
	if (!(entry = rank_cursor_next(&cursor)))
		return true;
	const struct reservation_record *kept = entry->value;
	const struct node_record *node = world_find(&kube->store, RECORD_NODE, kept->node_id, 0);
	if (missing)
		buffer_print(missing, "reservation %lld of job %lld on %s is still there, phase %d",
		             (long long)kept->id, (long long)kept->job_id,
		             node ? node->name : "no node", kept->phase);
	return false;
}
