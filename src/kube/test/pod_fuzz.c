/* pod_fuzz.c - pods and nodes that strangers wrote: read without harm, whatever is in them */
#include <stdlib.h>
#include <string.h>

#include "kube/pod.h"
#include "kube/pod_claims.h"
#include "kube/pod_gpus.h"
#include "kube/pod_group.h"
#include "kube/pod_owner.h"
#include "kube/pod_volumes.h"
#include "kube/quantity.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every claim and volume is what was given. */
static const json_t *find_any(const void *context, bool volume, const char *namespace,
                              const char *name)
{
	(void)volume, (void)namespace, (void)name;
	return context;
}

static void fuzz_volumes(const json_t *pod, struct buffer *reasons)
{
	struct error error;
	json_t *volumes = pod_volumes(pod, find_any, pod, &error);

	pod_volumes_suit(volumes, pod, reasons);
	pod_volumes_class(volumes, reasons);
	json_decref(volumes);
}

static const json_t *find_claim(const void *context, const char *resource, const char *namespace,
                                const char *name)
{
	(void)resource, (void)namespace, (void)name;
	return context;
}

static void fuzz_claims(const json_t *pod)
{
	const struct claim_result results[2] = { { "node", "gpu-0", 1 }, { "node", "gpu-1", 0 } };
	struct pod_gpus gpus;
	struct error error;
	json_t *patch;

	if (pod_claims_read(pod, find_claim, pod, &gpus, &error) &&
	    (gpus.count < 0 || gpus.count > 16 || gpus.memory_mib < 0))
		abort();
	for (int i = 0; i < 2; i++) {
		claim_next_step(pod, pod, i ? "node" : NULL, results, 2, &patch, &error);
		json_decref(patch);
	}
}

/* Rules are lines without empty ones, and never hold what would end one early. */
static void check_rules(const struct buffer *rules)
{
	if (rules->size > 0 && (strstr(rules->data, "\n\n") || rules->data[0] == '\n'))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *pod = json_loadb((const char *)data, size, JSON_DISABLE_EOF_CHECK, NULL);
	struct buffer marks = { 0 }, rules = { 0 }, reasons = { 0 };
	struct pod_settings settings = { .namespaces = pod, .default_constraints = pod };
	struct pod_request request;
	struct node_gpu gpus[NODE_GPUS_MAX];
	struct pod_gpus asked;
	struct pod_group group;
	struct pod_owner owner;
	bool shared, queue, whole;
	struct error error;
	char text[64];
	int64_t amount;

	snprintf(text, sizeof(text), "%.*s", (int)(size < 63 ? size : 63), (const char *)data);
	if (quantity_units(text, &amount) && (amount < 0 || amount > INT64_C(1) << 53))
		abort();
	if (pod) {
		pod_marks(pod, &marks);
		if (pod_rules(pod, &settings, &rules, &error))
			check_rules(&rules);
		pod_judge_node(pod, pod, pod, &reasons);
		pod_request_read(pod, &settings, &request, &error);
		buffer_free(&request.counts);
		if (pod_gpus_read(pod, &asked, &error) && (asked.count < 0 || asked.count > 16))
			abort();
		node_gpus_read(pod, gpus, &shared);
		pod_group_read(pod, &group);
		pod_group_minimum(pod);
		pod_tenant(pod, &queue);
		pod_group_rank(pod_group_resources[1], pod);
		if (pod_owner_read(pod, &owner))
			pod_queue_label(pod);
		for (size_t i = 0; pod_owner_resources[i]; i++)
			if (pod_owner_gang(pod_owner_resources[i], pod, "worker", &whole) < 1)
				abort();
		pod_is_preemptible(pod);
		pod_node_class(pod, true, &marks);
		fuzz_volumes(pod, &reasons);
		fuzz_claims(pod);
		pod_node_capacity(pod, &request, &error);
		buffer_free(&request.counts);
	}
	buffer_free(&marks);
	buffer_free(&rules);
	buffer_free(&reasons);
	json_decref(pod);
	return 0;
}
