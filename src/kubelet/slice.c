/* slice.c - the ResourceSlice of a node: its GPUs as devices */
#include "kubelet/slice.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "kube/quantity.h"
#include "json/member.h"

#define MIB (INT64_C(1) << 20)
enum { LABEL_MAX = 63, ATTRIBUTE_MAX = 64 };

char *slice_device(const char *uuid)
{
	struct buffer name = { 0 };

	buffer_text(&name, *uuid ? "" : "gpu");
	for (; *uuid && name.size < LABEL_MAX; uuid++) {
		char c = *uuid >= 'A' && *uuid <= 'Z' ? (char)(*uuid - 'A' + 'a') : *uuid;
		bool good = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
		/* A label neither begins nor ends with '-'. */
		if (!good && (name.size == 0 || !uuid[1] || name.size == LABEL_MAX - 1))
			c = 'x';
		else if (!good)
			c = '-';
		buffer_bytes(&name, &c, 1);
	}
	buffer_bytes(&name, "", 1);
	return name.data;
}

static void set_text(json_t *attributes, const char *name, const char *value)
{
	char text[ATTRIBUTE_MAX + 1] = "";

	strncpy(text, value ? value : "", ATTRIBUTE_MAX);
	json_t *string = json_string(text);
	if (!string || !text[0]) {
		json_decref(string);
		return;
	}
	json_t *attribute = json_object();
	json_object_set_new(attribute, "string", string);
	json_object_set_new(attributes, name, attribute);
}

static json_t *attributes_of(const struct slice_gpu *gpu)
{
	json_t *attributes = json_object(), *index = json_object();

	json_object_set_new(index, "int", json_integer(gpu->index));
	json_object_set_new(attributes, "index", index);
	set_text(attributes, "uuid", gpu->uuid);
	set_text(attributes, "model", gpu->model);
	set_text(attributes, "type", strncmp(gpu->uuid, "MIG-", 4) == 0 ? "mig" : "gpu");
	return attributes;
}

static json_t *capacity_of(const struct slice_gpu *gpu)
{
	json_t *capacity = json_object(), *memory = json_object();
	struct buffer value = { 0 };

	buffer_print(&value, "%lldMi", (long long)max64(gpu->memory_mib, 0));
	json_object_set_new(memory, "value", json_string(value.data));
	json_object_set_new(capacity, CLAIM_CAPACITY, memory);
	buffer_free(&value);
	return capacity;
}

static void add_taint(json_t *taints, const char *key)
{
	json_t *taint = json_object();

	json_object_set_new(taint, "key", json_string(key));
	json_object_set_new(taint, "effect", json_string("NoSchedule"));
	json_array_append_new(taints, taint);
}

static json_t *device_of(const struct slice_gpu *gpu)
{
	json_t *device = json_object(), *taints = json_array();
	char *name = slice_device(gpu->uuid);

	if (!gpu->is_healthy)
		add_taint(taints, "gpu-scheduler.io/unhealthy");
	if (gpu->is_hot)
		add_taint(taints, "gpu-scheduler.io/hot");
	json_object_set_new(device, "name", json_string(name));
	json_object_set_new(device, "attributes", attributes_of(gpu));
	json_object_set_new(device, "capacity", capacity_of(gpu));
	json_object_set_new(device, "allowMultipleAllocations", json_true());
	if (json_array_size(taints) > 0)
		json_object_set(device, "taints", taints);
	json_decref(taints);
	free(name);
	return device;
}

static json_t *metadata_of(const char *node, const char *node_uid)
{
	json_t *metadata = json_object(), *owners = json_array(), *owner = json_object();
	struct buffer name = { 0 };

	buffer_print(&name, "%s-" CLAIM_DRIVER, node);
	json_object_set_new(metadata, "name", json_string(name.data));
	json_object_set_new(owner, "apiVersion", json_string("v1"));
	json_object_set_new(owner, "kind", json_string("Node"));
	json_object_set_new(owner, "name", json_string(node));
	json_object_set_new(owner, "uid", json_string(node_uid));
	json_array_append_new(owners, owner);
	if (*node_uid)
		json_object_set(metadata, "ownerReferences", owners);
	json_decref(owners);
	buffer_free(&name);
	return metadata;
}

json_t *slice_make(const char *node, const char *node_uid, const struct slice_gpu *gpus,
                   int64_t gpu_count)
{
	json_t *slice = json_object(), *spec = json_object(), *pool = json_object(),
	       *devices = json_array();

	for (int64_t i = 0; i < gpu_count; i++)
		json_array_append_new(devices, device_of(&gpus[i]));
	json_object_set_new(pool, "name", json_string(node));
	json_object_set_new(pool, "generation", json_integer(1));
	json_object_set_new(pool, "resourceSliceCount", json_integer(1));
	json_object_set_new(spec, "driver", json_string(CLAIM_DRIVER));
	json_object_set_new(spec, "nodeName", json_string(node));
	json_object_set_new(spec, "pool", pool);
	json_object_set_new(spec, "devices", devices);
	json_object_set_new(slice, "apiVersion", json_string("resource.k8s.io/v1"));
	json_object_set_new(slice, "kind", json_string("ResourceSlice"));
	json_object_set_new(slice, "metadata", metadata_of(node, node_uid));
	json_object_set_new(slice, "spec", spec);
	return slice;
}

static int64_t memory_of(const json_t *device)
{
	const json_t *capacity = json_object_get(device, "capacity");
	int64_t bytes = 0;

	if (!quantity_units(member_text(json_object_get(capacity, CLAIM_CAPACITY), "value"),
	                    &bytes))
		return -1;
	return bytes / MIB;
}

/* Everything but the capacity is what it was, or what the server left out because a feature of it
 * is off. */
static bool is_same_device(const json_t *wanted, const json_t *there, int64_t step_mib)
{
	const json_t *taints = json_object_get(wanted, "taints"),
		     *old_taints = json_object_get(there, "taints");
	int64_t moved_mib = memory_of(wanted) - memory_of(there);

	if (!json_equal(json_object_get(wanted, "name"), json_object_get(there, "name")) ||
	    !json_equal(json_object_get(wanted, "attributes"),
	                json_object_get(there, "attributes")) ||
	    json_array_size(taints) != json_array_size(old_taints))
		return false;
	for (size_t i = 0; i < json_array_size(taints); i++)
		if (strcmp(member_text(json_array_get(taints, i), "key"),
		           member_text(json_array_get(old_taints, i), "key")) != 0)
			return false;
	return memory_of(there) >= 0 && moved_mib < step_mib && moved_mib > -step_mib;
}

static bool is_same(const json_t *wanted, const json_t *there, int64_t step_mib)
{
	const json_t *a = json_object_get(wanted, "spec"), *b = json_object_get(there, "spec");
	const json_t *devices = json_object_get(a, "devices"),
		     *old_devices = json_object_get(b, "devices");

	if (json_array_size(devices) != json_array_size(old_devices) ||
	    !json_equal(json_object_get(a, "driver"), json_object_get(b, "driver")) ||
	    !json_equal(json_object_get(a, "nodeName"), json_object_get(b, "nodeName")))
		return false;
	for (size_t i = 0; i < json_array_size(devices); i++)
		if (!is_same_device(json_array_get(devices, i), json_array_get(old_devices, i),
		                    step_mib))
			return false;
	return true;
}

json_t *slice_update(const json_t *wanted, const json_t *there, int64_t step_mib)
{
	json_t *slice;

	if (there && is_same(wanted, there, step_mib))
		return NULL;
	slice = json_deep_copy(wanted);
	if (!there)
		return slice;
	json_t *pool = json_object_get(json_object_get(slice, "spec"), "pool");
	int64_t generation =
	    member_integer(json_object_get(json_object_get(there, "spec"), "pool"), "generation");
	json_object_set_new(pool, "generation",
	                    json_integer(max64(0, min64(generation, INT64_MAX - 1)) + 1));
	json_object_set_new(
	    json_object_get(slice, "metadata"), "resourceVersion",
	    json_string(member_text(json_object_get(there, "metadata"), "resourceVersion")));
	return slice;
}
