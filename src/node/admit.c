/* admit.c - whether an order fits, by the node's own measurement: the last line of defense */
#include <string.h>

#include "node/local.h"

/* What all others on a GPU count for, and how many they are. */
struct others {
	int64_t memory_mib, count;
	const struct work *whole; /* one that has the GPU to itself */
};

static struct others others_on(const struct local_node *node, const struct gpu_view *gpu,
                               int64_t but)
{
	struct others others = { 0 };

	for (size_t i = 0; i < node->work_count; i++) {
		const struct work *work = node->works[i];
		const struct use *use = measure_use(node, work, gpu);
		int64_t part = work_counts(work) ? work_part(work, gpu) : -1;
		if (work->kept.reservation_id == but)
			continue;
		int64_t measured_mib = use ? use->owned_mib + use->charged_mib : 0;
		int64_t reserved_mib = part >= 0 ? work->order.parts[part].memory_mib : 0;
		if (part < 0 && measured_mib == 0)
			continue;
		others.memory_mib += max64(reserved_mib, measured_mib);
		others.count++;
		if (part >= 0 && work->order.parts[part].whole)
			others.whole = work;
	}
	return others;
}

int64_t admit_excess_mib(const struct local_node *node, const struct gpu_view *gpu)
{
	return gpu->reading.overhead_mib + gpu->foreign_mib + others_on(node, gpu, 0).memory_mib -
	       gpu->reading.capacity_mib;
}

static bool admit_check_gpu(const struct gpu_view *gpu, const char *uuid, struct error *error)
{
	if (!gpu || !gpu->present)
		return error_set(error, ERROR_NOT_FOUND, "GPU %s is not there", uuid);
	if (!gpu->reading.healthy)
		return error_set(error, ERROR_CONFLICT, "GPU %s is not healthy", uuid);
	if (gpu->reading.mig_mode)
		return error_set(error, ERROR_CONFLICT,
		                 "GPU %s is in MIG mode: only its instances can be used", uuid);
	return true;
}

static bool check_part(const struct local_node *node, int64_t reservation_id,
                       const struct order_part *part, struct error *error)
{
	const struct gpu_view *gpu = measure_gpu(node, part->uuid);

	if (!admit_check_gpu(gpu, part->uuid, error))
		return false;
	struct others others = others_on(node, gpu, reservation_id);
	int64_t sum_mib =
	    gpu->reading.overhead_mib + gpu->foreign_mib + others.memory_mib + part->memory_mib;
	if (sum_mib > gpu->reading.capacity_mib)
		return error_set(error, ERROR_NO_ROOM,
		                 "GPU %s has no room: overhead %lld + foreign %lld + %lld others "
		                 "%lld + asked %lld = %lld MiB, capacity %lld MiB",
		                 part->uuid, (long long)gpu->reading.overhead_mib,
		                 (long long)gpu->foreign_mib, (long long)others.count,
		                 (long long)others.memory_mib, (long long)part->memory_mib,
		                 (long long)sum_mib, (long long)gpu->reading.capacity_mib);
	if (others.whole || (part->whole && others.count > 0))
		return error_set(error, ERROR_NO_ROOM,
		                 "GPU %s has %lld others on it, and %s it to itself", part->uuid,
		                 (long long)others.count,
		                 others.whole ? "one of them has" : "the newcomer wants");
	return true;
}

bool admit_check(const struct local_node *node, const struct node_order *order, struct error *error)
{
	INVARIANT(order->kind == ORDER_START || order->kind == ORDER_LOAD);
	for (int64_t i = 0; i < order->part_count; i++)
		if (!check_part(node, order->reservation_id, &order->parts[i], error))
			return false;
	if (order->kind == ORDER_START && order->lease_loss == LEASE_STOP &&
	    node->lease_until_ms <= node->now_ms)
		return error_set(error, ERROR_CONFLICT,
		                 "the node has no lease, and the task is to stop without one");
	return true;
}

static void admit_decide(struct local_node *node, struct work *work)
{
	struct error error = { 0 };

	INVARIANT(work->kept.phase == WORK_WAITING);
	if (admit_check(node, &work->order, &error))
		work_begin(node, work);
	else
		work_refuse(node, work, error.text);
}

static struct work *first_waiting(const struct local_node *node)
{
	struct work *first = NULL;

	for (size_t i = 0; i < node->work_count; i++) {
		struct work *work = node->works[i];
		if (work->kept.phase == WORK_WAITING &&
		    (work->order.part_count == 0 || node->measure.number >= work->asked) &&
		    (!first || work->order_number < first->order_number))
			first = work;
	}
	return first;
}

void admit_waiting(struct local_node *node)
{
	struct work *work;

	while (node->measure.any && (work = first_waiting(node)))
		admit_decide(node, work);
}
