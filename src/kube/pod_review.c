/* pod_review.c - what an API server asks before it takes a pod, and the answers */
#include "kube/pod_review.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json/member.h"

#define MARKER "gpu-scheduler.io/gpu"
#define MARKER_PATH "gpu-scheduler.io~1gpu"

bool pod_review_read(struct text body, struct pod_review *asked, struct error *error)
{
	json_error_t reason;

	*asked = (struct pod_review){ .uid = "" };
	json_t *document = json_loadb(body.data, body.size, JSON_REJECT_DUPLICATES, &reason);
	json_t *request = json_object_get(document, "request");
	json_t *object = json_object_get(request, "object");
	json_t *metadata = json_object_get(object, "metadata");
	const json_t *resource = json_object_get(request, "resource");
	const char *uid = member_text(request, "uid");
	const char *kind = member_text(document, "kind");
	if (!document)
		return error_set(error, ERROR_INVALID, "the body is not JSON: %.100s", reason.text);
	if (strcmp(kind, "AdmissionReview") != 0 || !*uid ||
	    strcmp(member_text(document, "apiVersion"), "admission.k8s.io/v1") != 0) {
		json_decref(document);
		return error_set(error, ERROR_INVALID,
		                 "the body is not an AdmissionReview of admission.k8s.io/v1 with "
		                 "a request");
	}
	asked->document = document;
	asked->uid = uid;
	asked->creates = strcmp(member_text(request, "operation"), "CREATE") == 0 &&
	                 strcmp(member_text(resource, "resource"), "pods") == 0 &&
	                 !*member_text(resource, "group") &&
	                 !*member_text(request, "subResource") && json_is_object(metadata);
	if (!asked->creates)
		return true;
	/* A pod that is created need not say where. */
	json_object_set_new(metadata, "namespace", json_string(member_text(request, "namespace")));
	asked->pod = object;
	return true;
}

void pod_review_answer(const char *uid, const char *refusal, const char *patch,
                       struct buffer *answer)
{
	json_t *response = json_pack("{s:s, s:b}", "uid", uid, "allowed", refusal == NULL);

	if (refusal)
		json_object_set_new(response, "status",
		                    json_pack("{s:i, s:s}", "code", 403, "message", refusal));
	if (patch) {
		json_object_set_new(response, "patchType", json_string("JSONPatch"));
		json_object_set_new(response, "patch", json_string(patch));
	}
	json_t *review = json_pack("{s:s, s:s, s:o}", "apiVersion", "admission.k8s.io/v1", "kind",
	                           "AdmissionReview", "response", response);
	char *text = json_dumps(review, JSON_COMPACT);
	buffer_text(answer, text ? text : "{}");
	free(text);
	json_decref(review);
}

static bool has_variable(const json_t *container, const char *name)
{
	const json_t *variable;
	size_t i;

	json_array_foreach(json_object_get(container, "env"), i, variable)
	{
		if (strcmp(member_text(variable, "name"), name) == 0)
			return true;
	}
	return false;
}

static void add_step(json_t *patch, size_t container, const char *under, json_t *value)
{
	char path[128];

	snprintf(path, sizeof(path), "/spec/containers/%zu/%s", container, under);
	json_array_append_new(
	    patch, json_pack("{s:s, s:s, s:o}", "op", "add", "path", path, "value", value));
}

static void add_variables(json_t *patch, const json_t *container, size_t at)
{
	static const struct {
		const char *name, *annotation;
	} variables[] = {
		{ "NVIDIA_VISIBLE_DEVICES", "gpu-scheduler.io/gpus" },
		{ "CUDA_VISIBLE_DEVICES", "gpu-scheduler.io/gpus" },
		{ "GPU_SCHEDULER_LIMITS_MIB", "gpu-scheduler.io/limits" },
	};

	if (!json_is_array(json_object_get(container, "env")))
		add_step(patch, at, "env", json_array());
	for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++) {
		char path[64];
		if (has_variable(container, variables[i].name))
			continue;
		snprintf(path, sizeof(path), "metadata.annotations['%s']", variables[i].annotation);
		add_step(patch, at, "env/-",
		         json_pack("{s:s, s:{s:{s:s}}}", "name", variables[i].name, "valueFrom",
		                   "fieldRef", "fieldPath", path));
	}
}

static void add_marker(json_t *patch, const json_t *container, size_t at)
{
	const json_t *resources = json_object_get(container, "resources");

	if (!json_is_object(resources))
		add_step(patch, at, "resources", json_object());
	/* What is in the limits is in the requests too, by default or as it is there. */
	for (int i = 0; i < 2; i++) {
		const char *name = i == 0 ? "limits" : "requests";
		char path[64];
		const json_t *amounts = json_object_get(resources, name);
		if (member_has(amounts, MARKER))
			continue;
		snprintf(path, sizeof(path), "resources/%s%s", name,
		         json_is_object(amounts) ? "/" MARKER_PATH : "");
		add_step(patch, at, path,
		         json_is_object(amounts) ? json_string("1")
		                                 : json_pack("{s:s}", MARKER, "1"));
	}
}

json_t *pod_review_patch(const json_t *pod)
{
	const json_t *annotations =
	    json_object_get(json_object_get(pod, "metadata"), "annotations");
	const json_t *containers = json_object_get(json_object_get(pod, "spec"), "containers");
	const json_t *container;
	const char *only = member_text(annotations, "gpu-fraction-container-name");
	size_t i;

	if (!*member_text(annotations, "gpu-fraction") && !*member_text(annotations, "gpu-memory"))
		return NULL;
	json_t *patch = json_array();
	json_array_foreach(containers, i, container)
	{
		if (*only && strcmp(only, member_text(container, "name")) != 0)
			continue;
		add_variables(patch, container, i);
		add_marker(patch, container, i);
	}
	if (json_array_size(patch) > 0)
		return patch;
	json_decref(patch);
	return NULL;
}
