/* claim.c - what a ResourceClaim of Kubernetes gives a pod, read and kept */
#include "kubelet/claim.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "kube/quantity.h"
#include "json/json_reader.h"
#include "json/member.h"

#define MIB (INT64_C(1) << 20)
#define CLAIM_MIB_MAX (INT64_C(1) << 33)
enum { UID_MAX = 63 };

static bool has_only(const char *text, const char *others, bool upper)
{
	for (; *text; text++) {
		char c = *text;
		bool good = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
		            (upper && c >= 'A' && c <= 'Z') || strchr(others, c) != NULL;
		if (!good)
			return false;
	}
	return true;
}

bool claim_uid_is_valid(const char *uid)
{
	size_t size = strlen(uid);

	return size >= 1 && size <= UID_MAX && has_only(uid, "-", true);
}

bool claim_name_is_valid(const char *name)
{
	size_t size = strlen(name);

	return size >= 1 && size <= CLAIM_TEXT_MAX && name[0] != '.' && has_only(name, "-.", false);
}

static struct claim *claim_fail(struct claim *claim, struct error *error, enum error_code code,
                                const char *what)
{
	error_set(error, code, "ResourceClaim %s: %s", claim->name ? claim->name : "", what);
	claim_free(claim);
	return NULL;
}

/* A text that is short enough to be kept; "" otherwise. */
static const char *claim_text(struct claim *claim, const json_t *object, const char *name)
{
	const char *text = member_text(object, name);

	return arena_string(&claim->arena, strlen(text) <= CLAIM_TEXT_MAX ? text : "");
}

static bool read_names(struct claim *claim, const json_t *metadata)
{
	claim->uid = claim_text(claim, metadata, "uid");
	claim->namespace = claim_text(claim, metadata, "namespace");
	claim->name = claim_text(claim, metadata, "name");
	return claim_uid_is_valid(claim->uid) && claim_name_is_valid(claim->name) &&
	       claim_name_is_valid(claim->namespace);
}

/* Reservations for what is not a pod, such as a group of pods, name none. */
static bool read_pods(struct claim *claim, const json_t *consumers)
{
	size_t at;
	json_t *consumer;

	json_array_foreach(consumers, at, consumer)
	{
		const char *uid = member_text(consumer, "uid");
		if (strcmp(member_text(consumer, "resource"), "pods") != 0 ||
		    !claim_uid_is_valid(uid))
			continue;
		if (claim->pod_count == CLAIM_PODS_MAX)
			return false;
		claim->pods[claim->pod_count++] = arena_string(&claim->arena, uid);
	}
	return true;
}

static bool read_consumed(const json_t *result, int64_t *memory_mib)
{
	const json_t *consumed = json_object_get(result, "consumedCapacity");
	const char *text = member_text(consumed, CLAIM_CAPACITY);
	int64_t bytes = 0;

	*memory_mib = 0;
	if (!*text)
		return json_object_size(consumed) == 0;
	if (!quantity_units(text, &bytes) || bytes <= 0)
		return false;
	*memory_mib = min64(bytes / MIB + (bytes % MIB > 0), CLAIM_MIB_MAX);
	return true;
}

static bool read_device(struct claim *claim, const json_t *result)
{
	struct claim_device *device = &claim->devices[claim->device_count];

	device->request = claim_text(claim, result, "request");
	device->pool = claim_text(claim, result, "pool");
	device->device = claim_text(claim, result, "device");
	device->share = claim_text(claim, result, "shareID");
	device->uuid = "";
	claim->device_count++;
	return *device->request && *device->device &&
	       (!*device->share || claim_uid_is_valid(device->share)) &&
	       read_consumed(result, &device->memory_mib);
}

static const char *read_devices(struct claim *claim, const json_t *results, const char *pool)
{
	size_t at;
	json_t *result;

	json_array_foreach(results, at, result)
	{
		if (strcmp(member_text(result, "driver"), CLAIM_DRIVER) != 0 ||
		    strcmp(member_text(result, "pool"), pool) != 0)
			continue;
		if (claim->device_count == CLAIM_DEVICES_MAX)
			return "it allocates too many devices";
		if (!read_device(claim, result))
			return "a result of its allocation cannot be read";
	}
	return claim->device_count > 0 ? NULL : "it allocates no GPU of this node";
}

struct claim *claim_read(struct text json, const char *pool, struct error *error)
{
	struct claim *claim = NEW(struct claim);
	json_t *object = json_read(json, NULL, error);
	const json_t *status = json_object_get(object, "status");
	const json_t *allocation = json_object_get(status, "allocation");
	const char *wrong = NULL;

	if (!object) {
		claim_free(claim);
		return NULL;
	}
	if (strcmp(member_text(object, "kind"), "ResourceClaim") != 0 ||
	    !read_names(claim, json_object_get(object, "metadata")))
		wrong = "the object is not a ResourceClaim";
	else if (!json_is_object(allocation))
		wrong = "it is not allocated";
	else if (!read_pods(claim, json_object_get(status, "reservedFor")))
		wrong = "it is reserved for too many pods";
	else if (json_array_size(json_object_get(status, "reservedFor")) == 0)
		wrong = "it is reserved for no pod";
	else
		wrong = read_devices(
		    claim, json_object_get(json_object_get(allocation, "devices"), "results"),
		    pool);
	claim = wrong ? claim_fail(claim, error, ERROR_INVALID, wrong) : claim;
	json_decref(object);
	return claim;
}

static json_t *device_json(const struct claim_device *device)
{
	json_t *json = json_object();

	json_object_set_new(json, "request", json_string(device->request));
	json_object_set_new(json, "pool", json_string(device->pool));
	json_object_set_new(json, "device", json_string(device->device));
	json_object_set_new(json, "share", json_string(device->share));
	json_object_set_new(json, "uuid", json_string(device->uuid));
	json_object_set_new(json, "memory_mib", json_integer(device->memory_mib));
	json_object_set_new(json, "unexplained_mib", json_integer(device->unexplained_mib));
	return json;
}

void claim_write(const struct claim *claim, struct buffer *json)
{
	json_t *object = json_object(), *pods = json_array(), *devices = json_array();

	for (int64_t i = 0; i < claim->pod_count; i++)
		json_array_append_new(pods, json_string(claim->pods[i]));
	for (int64_t i = 0; i < claim->device_count; i++)
		json_array_append_new(devices, device_json(&claim->devices[i]));
	json_object_set_new(object, "version", json_integer(1));
	json_object_set_new(object, "uid", json_string(claim->uid));
	json_object_set_new(object, "namespace", json_string(claim->namespace));
	json_object_set_new(object, "name", json_string(claim->name));
	json_object_set_new(object, "pods", pods);
	json_object_set_new(object, "devices", devices);
	char *text = json_dumps(object, JSON_COMPACT | JSON_SORT_KEYS);
	buffer_print(json, "%s\n", text);
	free(text);
	json_decref(object);
}

static bool load_device(struct claim *claim, const json_t *kept)
{
	struct claim_device *device = &claim->devices[claim->device_count++];

	device->request = claim_text(claim, kept, "request");
	device->pool = claim_text(claim, kept, "pool");
	device->device = claim_text(claim, kept, "device");
	device->share = claim_text(claim, kept, "share");
	device->uuid = claim_text(claim, kept, "uuid");
	device->memory_mib = member_integer(kept, "memory_mib");
	device->unexplained_mib = member_integer(kept, "unexplained_mib");
	return *device->request && *device->device && *device->uuid && device->memory_mib >= 0 &&
	       device->memory_mib <= CLAIM_MIB_MAX && device->unexplained_mib >= 0 &&
	       device->unexplained_mib <= CLAIM_MIB_MAX;
}

static bool load_lists(struct claim *claim, const json_t *object)
{
	const json_t *pods = json_object_get(object, "pods");
	const json_t *devices = json_object_get(object, "devices");

	if (json_array_size(pods) > CLAIM_PODS_MAX || json_array_size(devices) == 0 ||
	    json_array_size(devices) > CLAIM_DEVICES_MAX)
		return false;
	for (size_t i = 0; i < json_array_size(pods); i++) {
		const char *uid = json_string_value(json_array_get(pods, i));
		if (!uid || !claim_uid_is_valid(uid))
			return false;
		claim->pods[claim->pod_count++] = arena_string(&claim->arena, uid);
	}
	for (size_t i = 0; i < json_array_size(devices); i++)
		if (!load_device(claim, json_array_get(devices, i)))
			return false;
	return true;
}

struct claim *claim_load(struct text json, struct error *error)
{
	struct claim *claim = NEW(struct claim);
	json_t *object = json_read(json, NULL, error);
	bool good = object && member_integer(object, "version") == 1 && read_names(claim, object) &&
	            load_lists(claim, object);

	if (object && !good)
		error_set(error, ERROR_CORRUPT, "what was kept of a claim cannot be read");
	json_decref(object);
	if (good)
		return claim;
	claim_free(claim);
	return NULL;
}

static struct claim_device copy_device(struct arena *arena, const struct claim_device *device)
{
	struct claim_device copy = *device;

	copy.request = arena_string(arena, device->request);
	copy.pool = arena_string(arena, device->pool);
	copy.device = arena_string(arena, device->device);
	copy.share = arena_string(arena, device->share);
	copy.uuid = arena_string(arena, device->uuid);
	return copy;
}

struct claim *claim_copy(const struct claim *claim)
{
	struct claim *copy = NEW(struct claim);

	copy->uid = arena_string(&copy->arena, claim->uid);
	copy->namespace = arena_string(&copy->arena, claim->namespace);
	copy->name = arena_string(&copy->arena, claim->name);
	copy->pod_count = claim->pod_count;
	copy->device_count = claim->device_count;
	for (int64_t i = 0; i < claim->pod_count; i++)
		copy->pods[i] = arena_string(&copy->arena, claim->pods[i]);
	for (int64_t i = 0; i < claim->device_count; i++)
		copy->devices[i] = copy_device(&copy->arena, &claim->devices[i]);
	return copy;
}

void claim_free(struct claim *claim)
{
	if (!claim)
		return;
	arena_free(&claim->arena);
	free(claim);
}
