/* pod_volumes.c - which nodes can mount the volumes of a pod */
#include "kube/pod_volumes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "kube/selector.h"
#include "json/member.h"

static const json_t *volume_metadata(const json_t *object)
{
	return json_object_get(object, "metadata");
}

static bool is_bound(const json_t *claim)
{
	return *member_text(json_object_get(claim, "spec"), "volumeName") &&
	       strcmp(member_text(json_object_get(claim, "status"), "phase"), "Bound") == 0;
}

/* The name of the claim of a volume of the pod, in `text`; "": it has none. */
static void claim_name(const json_t *pod, const json_t *volume, struct buffer *text)
{
	const json_t *claim = json_object_get(volume, "persistentVolumeClaim");

	buffer_clear(text);
	buffer_text(text, "");
	if (claim)
		buffer_text(text, member_text(claim, "claimName"));
	else if (json_object_get(volume, "ephemeral"))
		buffer_print(text, "%s-%s", member_text(volume_metadata(pod), "name"),
		             member_text(volume, "name"));
}

static bool add_volume(const json_t *pod, const char *claim_name, pod_volume_finder *find,
                       const void *context, json_t *volumes, struct error *error)
{
	const char *namespace = member_text(volume_metadata(pod), "namespace");
	const json_t *claim = find(context, false, namespace, claim_name);

	if (!claim)
		return error_set(error, ERROR_NOT_FOUND,
		                 "its claim %.120s does not exist, or may not be read", claim_name);
	if (!is_bound(claim))
		return error_set(error, ERROR_CONFLICT,
		                 "its claim %.120s is not bound: volumes that wait for their first "
		                 "consumer are not provisioned for this scheduler",
		                 claim_name);
	const char *name = member_text(json_object_get(claim, "spec"), "volumeName");
	json_t *volume = (json_t *)find(context, true, "", name);
	if (!volume)
		return error_set(
		    error, ERROR_NOT_FOUND,
		    "the volume %.80s of its claim %.80s does not exist, or may not be "
		    "read",
		    name, claim_name);
	json_array_append(volumes, volume);
	return true;
}

json_t *pod_volumes(const json_t *pod, pod_volume_finder *find, const void *context,
                    struct error *error)
{
	json_t *volumes = json_array();
	struct buffer name = { 0 };
	const json_t *volume;
	bool right = true;
	size_t i;

	json_array_foreach(json_object_get(json_object_get(pod, "spec"), "volumes"), i, volume)
	{
		claim_name(pod, volume, &name);
		if (right && name.size > 0)
			right = add_volume(pod, name.data, find, context, volumes, error);
	}
	buffer_free(&name);
	if (right)
		return volumes;
	json_decref(volumes);
	return NULL;
}

/* A label of a zone or region on a volume names one, or several that "__" separates. */
static bool suits_label(const char *value, const char *of_node)
{
	size_t size = strlen(of_node);

	for (const char *at = value;; at += 2) {
		const char *end = strstr(at, "__");
		size_t part = end ? (size_t)(end - at) : strlen(at);
		if (part == size && memcmp(at, of_node, size) == 0)
			return true;
		if (!end)
			return false;
		at = end;
	}
}

static bool suits_labels(const json_t *volume, const json_t *node)
{
	static const char *const keys[] = {
		"topology.kubernetes.io/zone",
		"topology.kubernetes.io/region",
		"failure-domain.beta.kubernetes.io/zone",
		"failure-domain.beta.kubernetes.io/region",
	};
	const json_t *labels = json_object_get(volume_metadata(volume), "labels");
	const json_t *of_node = json_object_get(volume_metadata(node), "labels");

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		const char *value = member_text(labels, keys[i]);
		const char *current =
		    i >= 2 && !member_has(of_node, keys[i]) ? keys[i - 2] : keys[i];
		if (*value && !suits_label(value, member_text(of_node, current)))
			return false;
	}
	return true;
}

static const json_t *required_of(const json_t *volume)
{
	return json_object_get(json_object_get(json_object_get(volume, "spec"), "nodeAffinity"),
	                       "required");
}

bool pod_volumes_suit(const json_t *volumes, const json_t *node, struct buffer *reasons)
{
	const json_t *volume;
	bool all = true;
	size_t i;

	json_array_foreach(volumes, i, volume)
	{
		const json_t *required = required_of(volume);
		if ((!required || selector_matches_node(required, node)) &&
		    suits_labels(volume, node))
			continue;
		buffer_print(reasons, "%sits volume %.80s cannot be mounted there",
		             reasons->size > 0 ? "; " : "",
		             member_text(volume_metadata(volume), "name"));
		all = false;
	}
	return all;
}

void pod_volumes_class(const json_t *volumes, struct buffer *name)
{
	uint64_t hash = 1;
	const json_t *volume;
	size_t i;

	json_array_foreach(volumes, i, volume)
	{
		char *terms = json_dumps(required_of(volume),
		                         JSON_SORT_KEYS | JSON_COMPACT | JSON_ENCODE_ANY);
		char *labels = json_dumps(json_object_get(volume_metadata(volume), "labels"),
		                          JSON_SORT_KEYS | JSON_COMPACT | JSON_ENCODE_ANY);
		hash = hash_combine(hash, hash_text(terms ? terms : ""));
		hash = hash_combine(hash, hash_text(labels ? labels : ""));
		free(terms);
		free(labels);
	}
	if (json_array_size(volumes) > 0)
		buffer_print(name, "-%016" PRIx64, hash);
}
