/* pods_queue.c - KAI's Queue objects as tenants: their tree, quotas, limits and weights */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "core/tenant/tenant.h"
#include "pods/pods_local.h"

enum {
	QUEUES_MS = 500,       /* between two looks at all queues */
	QUEUE_AGAIN_MS = 3000, /* between two attempts on one */
	KAI_PRIORITY = 100,    /* of a queue that says nothing */
	QUEUE_PRIORITY_MAX = 1000000,
	MEGABYTE = 1000000,
};
#define AMOUNT_LEAST_WEIGHT 1 /* thousandths: a weight of 0 gets next to nothing */

struct kube_queue {
	char *name;
	json_t *object;
	int64_t asked_ms; /* when the core was last asked to change its tenant */
	bool said;        /* why it has no tenant */
};

/* A number of the resource in `scale` of ours; `unset` if it is not there. */
static int64_t amount_at(const json_t *resource, const char *name, double scale, int64_t unset)
{
	const json_t *value = json_object_get(resource, name);
	double number = json_number_value(value);

	if (!json_is_number(value))
		return unset;
	if (number < 0)
		return UNLIMITED;
	return number * scale < (double)(INT64_C(1) << 53) ? (int64_t)floor(number * scale)
	                                                   : UNLIMITED;
}

/* A quota of 0 guarantees nothing. A limit that is 0, or left out, allows what is guaranteed, and
 * a resource that is not named at all is not limited. */
static void queue_amounts(const json_t *resources, const char *name, double scale, int64_t *quota,
                          int64_t *limit)
{
	const json_t *resource = json_object_get(resources, name);

	*quota = amount_at(resource, "quota", scale, 0);
	*limit = amount_at(resource, "limit", scale, 0);
	if (!resource)
		*limit = UNLIMITED;
	else if (*limit == 0)
		*limit = *quota;
	if (*quota != UNLIMITED)
		*quota = min64(*quota, *limit);
}

/* Changes what the Queue says of its tenant; the rest stays as it is. */
static void take_queue(const json_t *object, int64_t parent_id, struct tenant_record *tenant)
{
	const json_t *spec = json_object_get(object, "spec");
	const json_t *resources = json_object_get(spec, "resources");
	const json_t *gpu = json_object_get(resources, "gpu");

	tenant->parent_id = parent_id;
	queue_amounts(resources, "gpu", WHOLE_GPU, &tenant->quota_gpu, &tenant->limit_gpu);
	queue_amounts(resources, "cpu", 1, &tenant->quota_cpu, &tenant->limit_cpu);
	queue_amounts(resources, "memory", MEGABYTE, &tenant->quota_host, &tenant->limit_host);
	tenant->weight = min64(
	    max64(amount_at(gpu, "overQuotaWeight", 1000, 1000), AMOUNT_LEAST_WEIGHT), WEIGHT_MAX);
	tenant->priority =
	    member_has(spec, "priority") ? member_integer(spec, "priority") : KAI_PRIORITY;
	tenant->priority = min64(max64(tenant->priority, 0), QUEUE_PRIORITY_MAX);
}

static bool same_queue(const struct tenant_record *a, const struct tenant_record *b)
{
	return a->parent_id == b->parent_id && a->quota_gpu == b->quota_gpu &&
	       a->quota_cpu == b->quota_cpu && a->quota_host == b->quota_host &&
	       a->limit_gpu == b->limit_gpu && a->limit_cpu == b->limit_cpu &&
	       a->limit_host == b->limit_host && a->weight == b->weight &&
	       a->priority == b->priority;
}

void kube_queue_free(struct kube_queue *queue)
{
	if (!queue)
		return;
	free(queue->name);
	json_decref(queue->object);
	free(queue);
}

void pods_queue(struct pods *pods, enum reflector_event event, const json_t *object)
{
	const char *name = member_text(json_object_get(object, "metadata"), "name");

	if (event == REFLECTOR_SYNCED || !*name)
		return;
	if (event == REFLECTOR_GONE) {
		kube_queue_free(text_map_remove(&pods->queues, name));
		return;
	}
	struct kube_queue *queue = text_map_get(&pods->queues, name);
	if (!queue) {
		queue = NEW(struct kube_queue);
		queue->name = memory_text(name);
		text_map_put(&pods->queues, name, queue);
	}
	json_decref(queue->object);
	queue->object = json_incref((json_t *)object);
	queue->asked_ms = 0;
	queue->said = false;
	pods->queues_ms = 0;
}

static void kube_queue_flush(struct pods *pods, struct kube_queue *queue)
{
	const char *parent = member_text(json_object_get(queue->object, "spec"), "parentQueue");
	int64_t parent_id = *parent ? pods->port.tenant(pods->port.context, parent) : 0;
	struct arena arena = { 0 };
	struct tenant_record tenant;

	if (*parent && !parent_id) {
		if (!queue->said && !text_map_get(&pods->queues, parent))
			pods_note(pods, "queue %s: its parent queue %s does not exist", queue->name,
			          parent);
		queue->said = true;
		return;
	}
	pods->port.tenant_record(pods->port.context, queue->name, &arena, &tenant);
	struct tenant_record wanted = tenant;
	take_queue(queue->object, parent_id, &wanted);
	if (!tenant.id || !same_queue(&tenant, &wanted)) {
		queue->asked_ms = pods->now_ms;
		pods_send(pods, &(struct command){ .kind = COMMAND_PUT_TENANT, .tenant = wanted });
	}
	arena_free(&arena);
}

/* Whoever changes the tenant of a Queue by hand is overruled: the Queue says what it is. */
void kube_queues_flush(struct pods *pods)
{
	if (!pods->settings.kai_queues || pods->queues.count == 0 ||
	    pods->now_ms - pods->queues_ms < QUEUES_MS)
		return;
	pods->queues_ms = pods->now_ms;
	for (size_t i = 0; i < pods->queues.capacity; i++) {
		struct kube_queue *queue = pods->queues.entries[i].value;
		if (queue && pods->now_ms - queue->asked_ms >= QUEUE_AGAIN_MS)
			kube_queue_flush(pods, queue);
	}
}
