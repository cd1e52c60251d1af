/* pods_claim.c - ResourceClaims of pods: allocated as the core decided, before the binding */
#include <stdlib.h>
#include <string.h>

#include "pods/pods_local.h"

static const json_t *find_claim(const void *context, const char *resource, const char *namespace,
                                const char *name)
{
	const struct pods *pods = context;
	char *key = text_print("%s %s/%s", resource, namespace, name);
	const json_t *object = text_map_get(&pods->groups, key);

	free(key);
	return object;
}

bool claims_ask(const struct pods *pods, const json_t *pod, struct pod_gpus *gpus,
                struct error *error)
{
	struct pod_gpus claimed;

	if (!pod_has_claims(pod))
		return true;
	if (!pod_claims_read(pod, find_claim, pods, &claimed, error))
		return false;
	if (gpus->kind != POD_GPU_NONE && claimed.kind != POD_GPU_NONE)
		return error_set(error, ERROR_INVALID,
		                 "the pod asks for GPUs by claims and otherwise: use one of them");
	if (claimed.kind != POD_GPU_NONE)
		*gpus = claimed;
	return true;
}

bool claims_are_there(const struct pods *pods, const json_t *pod)
{
	const char *namespace = member_text(json_object_get(pod, "metadata"), "namespace");
	struct pod_claim_names names;

	if (!pod_has_claims(pod) || !pods->claims_synced)
		return true;
	if (!pod_claim_names(pod, &names))
		return false;
	for (int i = 0; i < names.count; i++)
		if (!find_claim(pods, POD_CLAIMS, namespace, names.at[i]))
			return false;
	return true;
}

static const json_t *devices_of(const struct pods *pods, const char *node)
{
	return json_object_get(json_object_get(text_map_get(&pods->slices, node), "spec"),
	                       "devices");
}

bool claims_suit_node(const struct pods *pods, const json_t *pod, const char *node)
{
	return !pod_has_claims(pod) || json_array_size(devices_of(pods, node)) > 0;
}

void claims_slice(struct pods *pods, enum reflector_event event, const json_t *object)
{
	const json_t *spec = json_object_get(object, "spec");
	const char *node = member_text(spec, "nodeName");

	if (event == REFLECTOR_SYNCED || strcmp(member_text(spec, "driver"), POD_CLAIM_DRIVER) != 0)
		return;
	bool had = json_array_size(devices_of(pods, node)) > 0;
	json_decref(text_map_remove(&pods->slices, node));
	if (event == REFLECTOR_PUT && *node)
		text_map_put(&pods->slices, node, json_incref((json_t *)object));
	/* Pods with claims may go there now, or no more. */
	pods->classes_dirty |= had != (json_array_size(devices_of(pods, node)) > 0);
}

/* The device with that UUID in the slice of a node; "": there is none. */
static const char *slice_device_of(const json_t *devices, const char *uuid, size_t size)
{
	const json_t *device;
	size_t i;

	json_array_foreach(devices, i, device)
	{
		const char *its = member_text(
		    json_object_get(json_object_get(device, "attributes"), "uuid"), "string");
		if (strlen(its) == size && memcmp(its, uuid, size) == 0)
			return member_text(device, "name");
	}
	return "";
}

/* What the core decided for the pod, in the order of its claims' requests. */
struct delivery {
	struct claim_result results[POD_CLAIMS_MAX];
	int count;
};

static bool delivery_read(const struct pods *pods, const struct pod *pod, struct delivery *delivery,
                          struct error *error)
{
	const struct unit_task *task = &pod->unit->tasks[pod->place];
	const json_t *devices = devices_of(pods, task->node);
	const char *uuid = task->uuids ? task->uuids : "", *limit = task->limits;
	struct pod_gpus gpus;

	delivery->count = 0;
	if (!pod_claims_read(pod->object, find_claim, pods, &gpus, error))
		return false;
	while (*uuid && delivery->count < POD_CLAIMS_MAX) {
		size_t size = strcspn(uuid, ",");
		const char *device = slice_device_of(devices, uuid, size);
		if (!*device)
			return error_set(error, ERROR_CONFLICT,
			                 "node %.120s does not offer GPU %.*s for claims",
			                 task->node, (int)min64((int64_t)size, 120), uuid);
		delivery->results[delivery->count++] = (struct claim_result){
			.pool = task->node,
			.device = device,
			.memory_mib = gpus.kind == POD_GPU_WHOLE ? 0 : strtoll(limit, NULL, 10)
		};
		uuid += size + (uuid[size] == ',');
		limit += strcspn(limit, ",");
		limit += *limit == ',';
	}
	return gpus.count == delivery->count ||
	       error_set(error, ERROR_CONFLICT,
	                 "its ResourceClaims ask for %lld GPUs, and it was given %d",
	                 (long long)gpus.count, delivery->count);
}

static char *claim_path(const struct pod *pod, const char *name, const char *under)
{
	return text_print("/apis/resource.k8s.io/v1/namespaces/%s/resourceclaims/%s%s",
	                  pod->namespace, name, under);
}

static void write_claim(struct pods *pods, struct pod *pod, enum claim_step step, const char *name,
                        json_t *patch)
{
	const char *under = step == CLAIM_STEP_PROTECT ? "" : "/status";
	struct write *write =
	    write_new(WRITE_CLAIM, pod->uid, "PATCH", claim_path(pod, name, under),
	              json_dumps(patch, JSON_COMPACT));

	write->content_type = "application/merge-patch+json";
	write->look_path = claim_path(pod, name, "");
	pod->claim_step = step;
	json_decref(patch);
	writer_put(&pods->writer, write);
}

/* The claim as our own last write left it: the watch may not have shown that yet. */
static const json_t *newest_claim(const struct pods *pods, const struct pod *pod, const char *name)
{
	const json_t *metadata = json_object_get(pod->claim, "metadata");

	return pod->claim && strcmp(member_text(metadata, "name"), name) == 0
	           ? pod->claim
	           : find_claim(pods, POD_CLAIMS, pod->namespace, name);
}

/* Goes through the pod's claims until one needs a write. True: none does any more. False with a
 * reason: one cannot be what it should; or without: a write is on its way. */
static bool claims_advance(struct pods *pods, struct pod *pod, struct error *error)
{
	bool allocates = pod->claim_goal == CLAIM_GOAL_ALLOCATED;
	struct delivery delivery = { .count = 0 };
	struct pod_claim_names names;
	int64_t used = 0;

	if (allocates && !delivery_read(pods, pod, &delivery, error))
		return false;
	if (!pod_claim_names(pod->object, &names))
		names.count = 0;
	for (int i = 0; i < names.count; i++) {
		const json_t *claim = newest_claim(pods, pod, names.at[i]);
		json_t *patch;
		if (!claim && !allocates)
			continue;
		enum claim_step step = claim_next_step(
		    claim, pod->object, allocates ? pod->unit->tasks[pod->place].node : NULL,
		    delivery.results + used, delivery.count - used, &patch, error);
		if (step == CLAIM_STEP_REFUSED)
			return false;
		if (allocates && step == CLAIM_STEP_RELEASE && claim == pod->claim &&
		    pod->claim_step == CLAIM_STEP_ALLOCATE) {
			json_decref(patch);
			return error_set(error, ERROR_UNAVAILABLE,
			                 "the API server did not keep the allocation of "
			                 "ResourceClaim %.120s: shared devices need its feature "
			                 "gate DRAConsumableCapacity",
			                 names.at[i]);
		}
		if (step != CLAIM_STEP_NONE) {
			write_claim(pods, pod, step, names.at[i], patch);
			return false;
		}
		used += pod_claim_devices(claim);
	}
	return true;
}

static void set_claim(struct pod *pod, const json_t *claim)
{
	json_decref(pod->claim);
	pod->claim = json_incref((json_t *)claim);
}

void claims_release(struct pods *pods, struct pod *pod)
{
	struct error error = { 0 };

	if (!pod_has_claims(pod->object) || pod->gone)
		return;
	pod->claim_goal = CLAIM_GOAL_RELEASED;
	writer_drop(&pods->writer, pod->uid, WRITE_CLAIM);
	if (!writer_has(&pods->writer, pod->uid, WRITE_CLAIM) && claims_advance(pods, pod, &error))
		claims_forget(pod);
}

void claims_forget(struct pod *pod)
{
	pod->claim_goal = CLAIM_GOAL_NONE;
	pod->claim_step = CLAIM_STEP_NONE;
	set_claim(pod, NULL);
}

/* Binds it when all are allocated. */
static void claims_go_on(struct pods *pods, struct pod *pod)
{
	struct error error = { 0 };
	bool allocates = pod->claim_goal == CLAIM_GOAL_ALLOCATED;

	if (claims_advance(pods, pod, &error)) {
		claims_forget(pod);
		if (allocates)
			order_bind(pods, pod);
		return;
	}
	if (error.text[0] && allocates)
		order_not_bound(pods, pod, error.text);
	else if (error.text[0])
		claims_forget(pod);
}

void claims_deliver(struct pods *pods, struct pod *pod)
{
	pod->binding = BINDING_SENT;
	pod->claim_goal = CLAIM_GOAL_ALLOCATED;
	pod->claim_step = CLAIM_STEP_NONE;
	writer_drop(&pods->writer, pod->uid, WRITE_CLAIM);
	if (!writer_has(&pods->writer, pod->uid, WRITE_CLAIM))
		claims_go_on(pods, pod);
}

void claims_answer(struct pods *pods, struct pod *pod, enum outcome outcome, const json_t *object,
                   const char *reason)
{
	struct unit_task *task = pod->unit ? &pod->unit->tasks[pod->place] : NULL;
	bool allocates = pod->claim_goal == CLAIM_GOAL_ALLOCATED;

	if (!task || pod->gone || pod->claim_goal == CLAIM_GOAL_NONE)
		return;
	set_claim(pod, object);
	if (outcome == OUTCOME_LOOK)
		pod->claim_step = CLAIM_STEP_NONE; /* somebody else may have written it */
	if (allocates && task->stopping) {
		order_give_back(pods, pod);
	} else if (outcome == OUTCOME_WRITTEN || outcome == OUTCOME_LOOK) {
		claims_go_on(pods, pod);
	} else if (allocates) {
		char *text = text_print("its ResourceClaim could not be allocated: %.160s",
		                        outcome == OUTCOME_GONE ? "it was deleted" : reason);
		order_not_bound(pods, pod, text);
		free(text);
	} else {
		claims_forget(pod);
	}
}
