/* pod_claims.c - ResourceClaims of a pod: what they ask for, and the writes that allocate them */
#include "kube/pod_claims.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/number.h"
#include "kube/quantity.h"
#include "json/member.h"

#define FINALIZER "resource.kubernetes.io/delete-protection"
#define CAPACITY "memory"
#define MIB (INT64_C(1) << 20)
enum { DEVICES_MAX = 16 };

static const json_t *claim_metadata(const json_t *object)
{
	return json_object_get(object, "metadata");
}

static const json_t *claim_spec(const json_t *object)
{
	return json_object_get(object, "spec");
}

static const json_t *claim_status(const json_t *object)
{
	return json_object_get(object, "status");
}

static const char *claim_object_name(const json_t *object)
{
	return member_text(claim_metadata(object), "name");
}

bool pod_has_claims(const json_t *pod)
{
	return json_array_size(json_object_get(claim_spec(pod), "resourceClaims")) > 0;
}

/* The name of the claim that was made of the template; NULL: none yet; "": none is needed. */
static const char *made_claim(const json_t *pod, const char *entry)
{
	const json_t *status;
	size_t i;

	json_array_foreach(json_object_get(claim_status(pod), "resourceClaimStatuses"), i, status)
	{
		if (strcmp(member_text(status, "name"), entry) == 0)
			return member_text(status, "resourceClaimName");
	}
	return NULL;
}

bool pod_claim_names(const json_t *pod, struct pod_claim_names *names)
{
	const json_t *entry;
	size_t i;

	names->count = 0;
	json_array_foreach(json_object_get(claim_spec(pod), "resourceClaims"), i, entry)
	{
		const char *name = member_text(entry, "resourceClaimName");
		if (!*name)
			name = made_claim(pod, member_text(entry, "name"));
		if (!name)
			return false;
		if (*name && names->count < POD_CLAIMS_MAX)
			names->at[names->count++] = name;
	}
	return true;
}

/* True for device.driver == "gpu.gpu-scheduler.io", however it is spaced and quoted. */
static bool selects_our_driver(const char *expression)
{
	static const char wanted[] = "device.driver==\"" POD_CLAIM_DRIVER "\"";
	const char *at = wanted;

	for (; *expression; expression++) {
		if (strchr(" \t\n", *expression))
			continue;
		char c = *expression == '\'' ? '"' : *expression;
		if (c != *at++)
			return false;
	}
	return !*at;
}

static bool class_is_ours(const char *class, pod_claim_finder *find, const void *context,
                          struct error *error)
{
	const json_t *object = find(context, POD_CLAIM_CLASSES, "", class), *selector;
	const json_t *selectors = json_object_get(claim_spec(object), "selectors");
	size_t i;

	if (!object)
		return error_set(error, ERROR_NOT_FOUND,
		                 "its DeviceClass %.120s does not exist, or may not be read",
		                 class);
	json_array_foreach(selectors, i, selector)
	{
		const char *expression =
		    member_text(json_object_get(selector, "cel"), "expression");
		if (!selects_our_driver(expression))
			return error_set(
			    error, ERROR_INVALID,
			    "DeviceClass %.80s has a selector that this scheduler does not "
			    "evaluate: it gives out devices by device.driver == "
			    "\"" POD_CLAIM_DRIVER "\" alone",
			    class);
	}
	return json_array_size(selectors) > 0 ||
	       error_set(error, ERROR_INVALID,
	                 "DeviceClass %.80s selects devices of all drivers: this scheduler gives "
	                 "out those of " POD_CLAIM_DRIVER,
	                 class);
}

/* What is not evaluated here, and would be half honored. */
static bool request_is_plain(const json_t *exactly, const char *request, struct error *error)
{
	static const char *const parts[] = { "selectors", "adminAccess", "tolerations", NULL };
	const char *mode = member_text(exactly, "allocationMode");

	if (!json_is_object(exactly))
		return error_set(error, ERROR_INVALID,
		                 "request %.60s of its ResourceClaim has alternatives "
		                 "(firstAvailable), which this scheduler does not evaluate",
		                 request);
	for (size_t i = 0; parts[i]; i++)
		if (member_has(exactly, parts[i]))
			return error_set(error, ERROR_INVALID,
			                 "request %.60s of its ResourceClaim has %s, which this "
			                 "scheduler does not evaluate",
			                 request, parts[i]);
	return !*mode || strcmp(mode, "ExactCount") == 0 ||
	       error_set(error, ERROR_INVALID,
	                 "request %.60s of its ResourceClaim has allocationMode %.20s: only "
	                 "ExactCount is possible",
	                 request, mode);
}

static int64_t count_of(const json_t *exactly)
{
	return member_has(exactly, "count") ? member_integer(exactly, "count") : 1;
}

/* 0: the request is for whole devices. */
static bool request_memory(const json_t *exactly, const char *request, int64_t *memory_mib,
                           struct error *error)
{
	const json_t *asked = json_object_get(json_object_get(exactly, "capacity"), "requests");
	const char *text = member_text(asked, CAPACITY);
	int64_t bytes = 0;

	*memory_mib = 0;
	if (json_object_size(asked) == 0)
		return true;
	if (!*text || json_object_size(asked) > 1)
		return error_set(error, ERROR_INVALID,
		                 "request %.60s of its ResourceClaim asks for a capacity that "
		                 "devices of " POD_CLAIM_DRIVER " do not have: they have memory",
		                 request);
	if (!quantity_units(text, &bytes) || bytes <= 0)
		return error_set(error, ERROR_INVALID,
		                 "request %.60s of its ResourceClaim asks for memory '%.40s'",
		                 request, text);
	*memory_mib = bytes / MIB + (bytes % MIB > 0);
	return true;
}

static bool add_request(const json_t *request, pod_claim_finder *find, const void *context,
                        struct pod_gpus *gpus, struct error *error)
{
	const json_t *exactly = json_object_get(request, "exactly");
	const char *name = member_text(request, "name");
	int64_t memory_mib, count = count_of(exactly);

	if (!request_is_plain(exactly, name, error) ||
	    !class_is_ours(member_text(exactly, "deviceClassName"), find, context, error) ||
	    !request_memory(exactly, name, &memory_mib, error))
		return false;
	enum pod_gpu_kind kind = memory_mib > 0 ? POD_GPU_MEMORY : POD_GPU_WHOLE;
	if (gpus->kind != POD_GPU_NONE && (gpus->kind != kind || gpus->memory_mib != memory_mib))
		return error_set(error, ERROR_INVALID,
		                 "its ResourceClaims ask for different amounts of memory: those of "
		                 "one pod must ask for the same of each GPU");
	if (count < 1 || gpus->count + count > DEVICES_MAX)
		return error_set(error, ERROR_INVALID,
		                 "its ResourceClaims ask for more than %d GPUs", DEVICES_MAX);
	gpus->kind = kind;
	gpus->memory_mib = memory_mib;
	gpus->count += count;
	return true;
}

static bool is_reserved_for(const json_t *claim, const json_t *pod)
{
	const char *uid = member_text(claim_metadata(pod), "uid");
	const json_t *reserved;
	size_t i;

	json_array_foreach(json_object_get(claim_status(claim), "reservedFor"), i, reserved)
	{
		if (strcmp(member_text(reserved, "uid"), uid) == 0)
			return true;
	}
	return false;
}

/* A claim is one pod's: two that share one would share its memory too. */
static bool is_others(const json_t *claim, const json_t *pod, struct error *error)
{
	size_t count = json_array_size(json_object_get(claim_status(claim), "reservedFor"));

	return count > (size_t)is_reserved_for(claim, pod) &&
	       !error_set(error, ERROR_CONFLICT,
	                  "its ResourceClaim %.120s is reserved for another pod: this scheduler "
	                  "does not share claims",
	                  claim_object_name(claim));
}

static bool add_claim(const json_t *claim, const json_t *pod, pod_claim_finder *find,
                      const void *context, struct pod_gpus *gpus, struct error *error)
{
	static const char *const parts[] = { "constraints", "config", NULL };
	const json_t *devices = json_object_get(claim_spec(claim), "devices"), *request;
	const json_t *requests = json_object_get(devices, "requests");
	size_t i;

	for (i = 0; parts[i]; i++)
		if (json_array_size(json_object_get(devices, parts[i])) > 0)
			return error_set(error, ERROR_INVALID,
			                 "its ResourceClaim %.120s has %s, which this scheduler "
			                 "does not evaluate",
			                 claim_object_name(claim), parts[i]);
	if (json_array_size(requests) == 0)
		return error_set(error, ERROR_INVALID,
		                 "its ResourceClaim %.120s asks for no device",
		                 claim_object_name(claim));
	json_array_foreach(requests, i, request)
	{
		if (!add_request(request, find, context, gpus, error))
			return false;
	}
	return !is_others(claim, pod, error);
}

bool pod_claims_read(const json_t *pod, pod_claim_finder *find, const void *context,
                     struct pod_gpus *gpus, struct error *error)
{
	const char *namespace = member_text(claim_metadata(pod), "namespace");
	struct pod_claim_names names;

	*gpus = (struct pod_gpus){ 0 };
	if (json_array_size(json_object_get(claim_spec(pod), "resourceClaims")) > POD_CLAIMS_MAX)
		return error_set(error, ERROR_INVALID, "the pod has more than %d ResourceClaims",
		                 POD_CLAIMS_MAX);
	if (!pod_claim_names(pod, &names))
		return error_set(error, ERROR_NOT_FOUND,
		                 "a ResourceClaim was not made of its template yet");
	for (int i = 0; i < names.count; i++) {
		const json_t *claim = find(context, POD_CLAIMS, namespace, names.at[i]);
		if (!claim)
			return error_set(error, ERROR_NOT_FOUND,
			                 "its ResourceClaim %.120s does not exist, or may not be "
			                 "read",
			                 names.at[i]);
		if (!add_claim(claim, pod, find, context, gpus, error))
			return false;
	}
	return true;
}

int64_t pod_claim_devices(const json_t *claim)
{
	const json_t *request;
	int64_t count = 0;
	size_t i;

	json_array_foreach(
	    json_object_get(json_object_get(claim_spec(claim), "devices"), "requests"), i, request)
	{
		count +=
		    min64(max64(count_of(json_object_get(request, "exactly")), 0), DEVICES_MAX);
	}
	return min64(count, DEVICES_MAX);
}

/* Equal each time, so that an allocation that was written twice is one. */
static void share_id(const char *claim_uid, int64_t at, char text[37])
{
	uint64_t a = hash_combine(hash_text(claim_uid), (uint64_t)at);
	uint64_t b = hash_combine(a, 1);

	snprintf(text, 37, "%08" PRIx32 "-%04x-4%03x-8%03x-%012" PRIx64, (uint32_t)(a >> 32),
	         (unsigned)(a >> 16 & 0xffff), (unsigned)(a & 0xfff), (unsigned)(b >> 52),
	         b & UINT64_C(0xffffffffffff));
}

static json_t *result_of(const json_t *claim, const char *request, int64_t at,
                         const struct claim_result *result)
{
	json_t *one = json_pack("{s:s, s:s, s:s, s:s}", "request", request, "driver",
	                        POD_CLAIM_DRIVER, "pool", result->pool, "device", result->device);
	char share[37], amount[32];

	if (result->memory_mib == 0)
		return one;
	share_id(member_text(claim_metadata(claim), "uid"), at, share);
	snprintf(amount, sizeof(amount), "%lldMi", (long long)result->memory_mib);
	json_object_set_new(one, "shareID", json_string(share));
	json_object_set_new(one, "consumedCapacity", json_pack("{s:s}", CAPACITY, amount));
	return one;
}

static json_t *results_of(const json_t *claim, const struct claim_result *results)
{
	json_t *array = json_array();
	const json_t *request;
	int64_t at = 0;
	size_t i;

	json_array_foreach(
	    json_object_get(json_object_get(claim_spec(claim), "devices"), "requests"), i, request)
	{
		int64_t count = count_of(json_object_get(request, "exactly"));
		for (int64_t n = 0; n < count && at < DEVICES_MAX; n++, at++)
			json_array_append_new(array, result_of(claim, member_text(request, "name"),
			                                       at, &results[at]));
	}
	return array;
}

static int64_t consumed_mib(const json_t *result)
{
	int64_t bytes = 0;

	return quantity_units(member_text(json_object_get(result, "consumedCapacity"), CAPACITY),
	                      &bytes)
	           ? bytes / MIB
	           : 0;
}

static bool is_same_result(const json_t *a, const json_t *b)
{
	static const char *const texts[] = { "request", "driver", "pool", "device", "shareID" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (strcmp(member_text(a, texts[i]), member_text(b, texts[i])) != 0)
			return false;
	return consumed_mib(a) == consumed_mib(b);
}

static bool is_same(const json_t *allocation, const json_t *wanted)
{
	const json_t *there = json_object_get(json_object_get(allocation, "devices"), "results");
	const json_t *result;
	size_t i;

	if (json_array_size(there) != json_array_size(wanted))
		return false;
	json_array_foreach(wanted, i, result)
	{
		if (!is_same_result(json_array_get(there, i), result))
			return false;
	}
	return true;
}

static bool is_protected(const json_t *claim)
{
	const json_t *finalizer;
	size_t i;

	json_array_foreach(json_object_get(claim_metadata(claim), "finalizers"), i, finalizer)
	{
		if (strcmp(json_string_value(finalizer) ? json_string_value(finalizer) : "",
		           FINALIZER) == 0)
			return true;
	}
	return false;
}

/* A patch that holds for this version of the object alone. */
static json_t *patch_of(const json_t *claim)
{
	const json_t *metadata = claim_metadata(claim);

	return json_pack("{s:{s:s, s:s}}", "metadata", "uid", member_text(metadata, "uid"),
	                 "resourceVersion", member_text(metadata, "resourceVersion"));
}

static json_t *release_patch(const json_t *claim)
{
	json_t *patch = patch_of(claim);

	json_object_set_new(patch, "status", json_pack("{s:n, s:n}", "allocation", "reservedFor"));
	return patch;
}

static json_t *protect_patch(const json_t *claim)
{
	json_t *patch = patch_of(claim);
	json_t *finalizers = json_deep_copy(json_object_get(claim_metadata(claim), "finalizers"));

	if (!finalizers)
		finalizers = json_array();
	json_array_append_new(finalizers, json_string(FINALIZER));
	json_object_set_new(json_object_get(patch, "metadata"), "finalizers", finalizers);
	return patch;
}

/* `results` NULL: the allocation that is there stays, and is reserved for the pod. */
static json_t *allocate_patch(const json_t *claim, const json_t *pod, const char *node,
                              json_t *results)
{
	json_t *patch = patch_of(claim);
	json_t *status =
	    json_pack("{s:[{s:s, s:s, s:s}]}", "reservedFor", "resource", "pods", "name",
	              claim_object_name(pod), "uid", member_text(claim_metadata(pod), "uid"));

	if (results)
		json_object_set_new(status, "allocation",
		                    json_pack("{s:{s:O}, s:{s:[{s:[{s:s, s:s, s:[s]}]}]}}",
		                              "devices", "results", results, "nodeSelector",
		                              "nodeSelectorTerms", "matchFields", "key",
		                              "metadata.name", "operator", "In", "values", node));
	json_object_set_new(patch, "status", status);
	return patch;
}

enum claim_step claim_next_step(const json_t *claim, const json_t *pod, const char *node,
                                const struct claim_result *results, int64_t result_count,
                                json_t **patch, struct error *error)
{
	const json_t *allocation = json_object_get(claim_status(claim), "allocation");
	bool allocated = json_is_object(allocation);

	*patch = NULL;
	if (!node) {
		if (!is_reserved_for(claim, pod) || is_others(claim, pod, error))
			return CLAIM_STEP_NONE;
		*patch = release_patch(claim);
		return CLAIM_STEP_RELEASE;
	}
	if (member_has(claim_metadata(claim), "deletionTimestamp")) {
		error_set(error, ERROR_CONFLICT, "its ResourceClaim %.120s is being deleted",
		          claim_object_name(claim));
		return CLAIM_STEP_REFUSED;
	}
	if (is_others(claim, pod, error))
		return CLAIM_STEP_REFUSED;
	if (pod_claim_devices(claim) > result_count) {
		error_set(error, ERROR_CONFLICT,
		          "its ResourceClaim %.120s asks for more than it did when it was placed",
		          claim_object_name(claim));
		return CLAIM_STEP_REFUSED;
	}
	json_t *wanted = results_of(claim, results);
	bool same = allocated && is_same(allocation, wanted);
	enum claim_step step = CLAIM_STEP_ALLOCATE;
	if (same && is_reserved_for(claim, pod)) {
		step = CLAIM_STEP_NONE;
	} else if (same) {
		*patch = allocate_patch(claim, pod, node, NULL);
	} else if (allocated) {
		/* What was allocated can be removed, and not changed. */
		*patch = release_patch(claim);
		step = CLAIM_STEP_RELEASE;
	} else if (!is_protected(claim)) {
		*patch = protect_patch(claim);
		step = CLAIM_STEP_PROTECT;
	} else {
		*patch = allocate_patch(claim, pod, node, wanted);
	}
	json_decref(wanted);
	return step;
}
