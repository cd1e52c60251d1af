/* pod_gpus.c - the GPUs that a pod asks for, in any of the ways that are in use */
#include "kube/pod_gpus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "kube/pod.h"
#include "kube/quantity.h"
#include "json/member.h"

#define MIB_MAX (INT64_C(1) << 40)
#define AMOUNT_MOST (INT64_MAX / 4)
enum { GPUS_MAX = 16, PERCENT = 100, WHOLE = 1000 };

static const char *const resources[] = {
	"nvidia.com/gpu",        "nvidia.com/gpumem",      "nvidia.com/gpumem-percentage",
	"nvidia.com/gpucores",   "volcano.sh/vgpu-number", "volcano.sh/vgpu-memory",
	"volcano.sh/vgpu-cores", "gpu-scheduler.io/gpu",   "volcano.sh/vgpu-memory-percentage",
	"nvidia.com/priority",
};

json_t *pod_gpus_resources(void)
{
	json_t *array = json_array();

	for (size_t i = 0; i < sizeof(resources) / sizeof(*resources); i++)
		json_array_append_new(array, json_string(resources[i]));
	return array;
}

/* The amount in lines name=n; 0: not there. Bounded, so that amounts can be added up. */
static int64_t amount_in(const char *lines, const char *name)
{
	size_t size = strlen(name);
	const char *end;

	for (; lines && *lines; lines = end ? end + 1 : NULL) {
		if (strncmp(lines, name, size) == 0 && lines[size] == '=')
			return min64(strtoll(lines + size + 1, NULL, 10), AMOUNT_MOST);
		end = strchr(lines, '\n');
	}
	return 0;
}

static const char *annotation_of(const json_t *object, const char *name)
{
	return member_text(json_object_get(json_object_get(object, "metadata"), "annotations"),
	                   name);
}

/* "0.5" is 500. */
static bool read_fraction(const char *text, int64_t *fraction, struct error *error)
{
	bool right = quantity_milli(text, fraction) && *fraction >= 1 && *fraction <= WHOLE &&
	             strspn(text, "0123456789.") == strlen(text);

	return right || error_set(error, ERROR_INVALID,
	                          "the annotation gpu-fraction is '%.40s': it must be a number "
	                          "above 0 and up to 1",
	                          text);
}

static bool read_annotation_number(const char *name, const char *text, int64_t most,
                                   int64_t *number, struct error *error)
{
	char *end;

	*number = strtoll(text, &end, 10);
	return (*text >= '0' && *text <= '9' && !*end && *number >= 1 && *number <= most) ||
	       error_set(error, ERROR_INVALID, "the annotation %s is '%.40s': it must be 1 to %lld",
	                 name, text, (long long)most);
}

static bool by_annotations(const json_t *pod, struct pod_gpus *gpus, struct error *error)
{
	const char *fraction = annotation_of(pod, "gpu-fraction");
	const char *memory = annotation_of(pod, "gpu-memory");
	const char *devices = annotation_of(pod, "gpu-fraction-num-devices");

	if (gpus->kind != POD_GPU_NONE)
		return error_set(error, ERROR_INVALID,
		                 "the pod asks for a part of a GPU by annotation and for GPUs in "
		                 "its resources: use one of them");
	if (*fraction && *memory)
		return error_set(error, ERROR_INVALID,
		                 "the pod has the annotations gpu-fraction and gpu-memory: use one "
		                 "of them");
	gpus->count = 1;
	if (*devices && !read_annotation_number("gpu-fraction-num-devices", devices, GPUS_MAX,
	                                        &gpus->count, error))
		return false;
	if (*memory) {
		gpus->kind = POD_GPU_MEMORY;
		return read_annotation_number("gpu-memory", memory, MIB_MAX, &gpus->memory_mib,
		                              error);
	}
	gpus->kind = POD_GPU_FRACTION;
	if (!read_fraction(fraction, &gpus->fraction, error))
		return false;
	if (gpus->fraction == WHOLE)
		gpus->kind = POD_GPU_WHOLE;
	return true;
}

static bool by_resources(const char *counts, struct pod_gpus *gpus, struct error *error)
{
	int64_t whole = amount_in(counts, "nvidia.com/gpu");
	int64_t slices = amount_in(counts, "volcano.sh/vgpu-number");
	int64_t memory =
	    amount_in(counts, "nvidia.com/gpumem") + amount_in(counts, "volcano.sh/vgpu-memory");
	int64_t percent = amount_in(counts, "nvidia.com/gpumem-percentage") +
	                  amount_in(counts, "volcano.sh/vgpu-memory-percentage");

	gpus->limits_compute = amount_in(counts, "nvidia.com/gpucores") > 0 ||
	                       amount_in(counts, "volcano.sh/vgpu-cores") > 0;
	gpus->count = max64(whole, slices);
	if (whole > 0 && slices > 0)
		return error_set(error, ERROR_INVALID,
		                 "the pod asks for nvidia.com/gpu and volcano.sh/vgpu-number: use "
		                 "one of them");
	if (memory > 0 && percent > 0)
		return error_set(error, ERROR_INVALID,
		                 "the pod asks for GPU memory in MiB and in percent: use one of "
		                 "them");
	if (percent > PERCENT)
		return error_set(error, ERROR_INVALID,
		                 "the pod asks for %lld percent of a GPU's memory",
		                 (long long)percent);
	if (gpus->count == 0 && (memory > 0 || percent > 0))
		gpus->count = 1;
	if (gpus->count == 0)
		return true;
	gpus->kind = memory > 0                         ? POD_GPU_MEMORY
	             : percent > 0 && percent < PERCENT ? POD_GPU_FRACTION
	                                                : POD_GPU_WHOLE;
	gpus->memory_mib = min64(memory, MIB_MAX);
	gpus->fraction = percent * WHOLE / PERCENT;
	return true;
}

bool pod_gpus_read(const json_t *pod, struct pod_gpus *gpus, struct error *error)
{
	struct pod_request request;
	bool annotated = *annotation_of(pod, "gpu-fraction") || *annotation_of(pod, "gpu-memory");

	*gpus = (struct pod_gpus){ 0 };
	bool right = pod_request_read(pod, NULL, &request, error) &&
	             by_resources(request.counts.data, gpus, error) &&
	             (!annotated || by_annotations(pod, gpus, error));
	buffer_free(&request.counts);
	if (right && gpus->count > GPUS_MAX)
		return error_set(error, ERROR_INVALID,
		                 "the pod asks for %lld GPUs: one pod can have %d",
		                 (long long)gpus->count, GPUS_MAX);
	return right;
}

static int declared_gpus(const char *text, struct node_gpu *gpus)
{
	json_error_t reason;
	json_t *array = json_loads(text, 0, &reason), *item;
	int count = 0;
	size_t i;

	json_array_foreach(array, i, item)
	{
		const char *uuid = member_text(item, "uuid");
		int64_t memory = member_integer(item, "memory_mib");
		if (count == NODE_GPUS_MAX || !*uuid || strpbrk(uuid, ", \n") ||
		    strlen(uuid) >= sizeof(gpus->uuid) || memory <= 0 || memory > MIB_MAX)
			continue;
		struct node_gpu *gpu = &gpus[count++];
		*gpu = (struct node_gpu){ .memory_mib = memory };
		snprintf(gpu->uuid, sizeof(gpu->uuid), "%s", uuid);
		snprintf(gpu->model, sizeof(gpu->model), "%.63s", member_text(item, "model"));
	}
	json_decref(array);
	return count;
}

static int64_t number_of_label(const json_t *node, const char *name)
{
	const char *text =
	    member_text(json_object_get(json_object_get(node, "metadata"), "labels"), name);

	return strtoll(text, NULL, 10);
}

int node_gpus_read(const json_t *node, struct node_gpu *gpus, bool *shared)
{
	const json_t *metadata = json_object_get(node, "metadata");
	const char *declared = annotation_of(node, NODE_GPUS_ANNOTATION);
	const char *model =
	    member_text(json_object_get(metadata, "labels"), "nvidia.com/gpu.product");
	struct pod_request capacity;
	struct error error;

	*shared = *declared != '\0';
	if (*shared)
		return declared_gpus(declared, gpus);
	bool right = pod_node_capacity(node, &capacity, &error);
	int64_t count = right ? amount_in(capacity.counts.data, "nvidia.com/gpu") : 0;
	buffer_free(&capacity.counts);
	int64_t replicas = max64(number_of_label(node, "nvidia.com/gpu.replicas"), 1);
	int64_t memory = number_of_label(node, "nvidia.com/gpu.memory");
	count = min64(count / replicas, NODE_GPUS_MAX);
	for (int i = 0; i < count; i++) {
		gpus[i] = (struct node_gpu){
			.memory_mib =
			    memory > 0 && memory <= MIB_MAX ? memory : GPU_MEMORY_UNKNOWN_MIB,
		};
		snprintf(gpus[i].uuid, sizeof(gpus[i].uuid), "%.120s/%d",
		         member_text(metadata, "name"), i);
		snprintf(gpus[i].model, sizeof(gpus[i].model), "%.63s", model);
	}
	return (int)count;
}
