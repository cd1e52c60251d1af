/* cdi.c - the file that a container runtime reads for a claim */
#include "kubelet/cdi.h"

#include <stdlib.h>
#include <string.h>

#include "json/member.h"

char *cdi_file(const char *uid)
{
	struct buffer name = { 0 };

	INVARIANT(claim_uid_is_valid(uid));
	buffer_print(&name, "gpu-scheduler.io-gpu_%s.json", uid);
	return name.data;
}

char *cdi_device(const char *uid)
{
	struct buffer name = { 0 };

	INVARIANT(claim_uid_is_valid(uid));
	buffer_print(&name, CDI_KIND "=%s", uid);
	return name.data;
}

/* True if an earlier device of the claim is on the same GPU. */
static bool is_repeated(const struct claim *claim, int64_t at)
{
	for (int64_t i = 0; i < at; i++)
		if (strcmp(claim->devices[i].uuid, claim->devices[at].uuid) == 0)
			return true;
	return false;
}

static void add_variable(json_t *environment, const char *name, const struct buffer *value)
{
	struct buffer variable = { 0 };

	buffer_print(&variable, "%s=%s", name, value->size > 0 ? value->data : "");
	json_array_append_new(environment, json_string(variable.data));
	buffer_free(&variable);
}

static json_t *environment_json(const struct claim *claim, const struct cdi_node *node)
{
	struct buffer uuids = { 0 }, memory = { 0 };
	json_t *environment = json_array();

	for (int64_t i = 0; i < claim->device_count; i++) {
		const struct claim_device *device = &claim->devices[i];
		int64_t memory_mib = 0;
		if (is_repeated(claim, i))
			continue;
		for (int64_t other = i; other < claim->device_count; other++)
			if (strcmp(claim->devices[other].uuid, device->uuid) == 0)
				memory_mib += claim->devices[other].memory_mib;
		const char *comma = uuids.size > 0 ? "," : "";
		buffer_print(&uuids, "%s%s", comma, device->uuid);
		buffer_print(&memory, "%s%s=%lld", comma, device->uuid, (long long)memory_mib);
	}
	add_variable(environment, "NVIDIA_VISIBLE_DEVICES", &uuids);
	add_variable(environment, "CUDA_VISIBLE_DEVICES", &uuids);
	add_variable(environment, "GPU_SCHEDULER_MEMORY_MIB", &memory);
	for (int64_t i = 0; i < node->environment_count; i++)
		json_array_append_new(environment, json_string(node->environment[i]));
	buffer_free(&uuids);
	buffer_free(&memory);
	return environment;
}

static json_t *mount_json(const struct cdi_mount *mount)
{
	json_t *json = json_object(), *options = json_array();

	json_array_append_new(options, json_string(mount->read_only ? "ro" : "rw"));
	json_array_append_new(options, json_string("nosuid"));
	json_array_append_new(options, json_string("nodev"));
	json_array_append_new(options, json_string("bind"));
	json_object_set_new(json, "hostPath", json_string(mount->from));
	json_object_set_new(json, "containerPath", json_string(mount->to));
	json_object_set_new(json, "options", options);
	return json;
}

static json_t *edits_json(const struct claim *claim, const struct cdi_node *node)
{
	json_t *edits = json_object(), *devices = json_array(), *mounts = json_array();

	for (int64_t i = 0; i < node->device_count; i++) {
		json_t *device = json_object();
		json_object_set_new(device, "path", json_string(node->devices[i]));
		json_array_append_new(devices, device);
	}
	for (int64_t i = 0; i < node->mount_count; i++)
		json_array_append_new(mounts, mount_json(&node->mounts[i]));
	json_object_set_new(edits, "env", environment_json(claim, node));
	json_object_set_new(edits, "deviceNodes", devices);
	json_object_set_new(edits, "mounts", mounts);
	return edits;
}

void cdi_write(const struct claim *claim, const struct cdi_node *node, struct buffer *json)
{
	json_t *spec = json_object(), *devices = json_array(), *device = json_object();

	json_object_set_new(device, "name", json_string(claim->uid));
	json_object_set_new(device, "containerEdits", edits_json(claim, node));
	json_array_append_new(devices, device);
	json_object_set_new(spec, "cdiVersion", json_string("0.6.0"));
	json_object_set_new(spec, "kind", json_string(CDI_KIND));
	json_object_set_new(spec, "devices", devices);
	char *text = json_dumps(spec, JSON_INDENT(2) | JSON_SORT_KEYS);
	buffer_print(json, "%s\n", text);
	free(text);
	json_decref(spec);
}
