/* session_orders.c - orders of the core, as messages to a node */
#include "node/session_local.h"

static const char *text(const char *text)
{
	return text ? text : "";
}

static void fill_parts(struct node_order *order, struct rows parts, struct order_part *to,
                       const struct session_lookup *lookup)
{
	INVARIANT(parts.count <= PARTS_MAX);
	for (int64_t i = 0; i < parts.count; i++) {
		const int64_t *row = parts.at + i * PART_WIDTH;
		to[i] = (struct order_part){
			.uuid = text(lookup->gpu_uuid(lookup->context, row[PART_GPU])),
			.memory_mib = row[PART_MIB],
			.share = row[PART_SHARE],
			.whole = row[PART_WHOLE] != 0,
		};
	}
	order->parts = to;
	order->part_count = parts.count;
}

static struct node_order task_order(const struct task_order *from,
                                    const struct session_lookup *lookup)
{
	return (struct node_order){
		.kind = ORDER_START,
		.reservation_id = from->reservation_id,
		.grace_ms = from->grace_ms,
		.cpu_milli = from->cpu_milli,
		.host_bytes = from->host_bytes,
		.payload = text(lookup->task_payload(lookup->context, from->job_id, from->task)),
		.job_id = from->job_id,
		.task = from->task,
		.tasks = from->tasks,
		.max_runtime_ms = from->max_runtime_ms,
		.lease_loss = from->lease_loss,
	};
}

static struct node_order load_order(const struct load_order *from, int64_t grace_ms,
                                    const struct session_lookup *lookup)
{
	return (struct node_order){
		.kind = ORDER_LOAD,
		.reservation_id = from->reservation_id,
		.grace_ms = grace_ms,
		.cpu_milli = from->cpu_milli,
		.host_bytes = from->host_bytes,
		.payload = text(lookup->model_payload(lookup->context, from->model_id)),
		.model_id = from->model_id,
		.model = text(lookup->model_name(lookup->context, from->model_id)),
		.runtime = from->runtime,
		.utilisation = from->utilisation,
		.tensor_parallel = from->tensor_parallel,
		.context = from->context,
		.parallel = from->parallel,
		.kv_cache = from->kv_cache,
		.command = from->command,
		.load_timeout_ms = from->load_timeout_ms,
	};
}

void session_order(struct session *session, int64_t now_ms, const struct effect *effect,
                   const struct session_lookup *lookup, struct session_outputs *outputs)
{
	struct order_part parts[PARTS_MAX];
	struct node_order order = { .kind = ORDER_STOP };

	if (!session->synced)
		return;
	switch (effect->kind) {
	case EFFECT_START:
		order = task_order(&effect->order, lookup);
		fill_parts(&order, effect->order.parts, parts, lookup);
		break;
	case EFFECT_LOAD:
		order = load_order(&effect->load, session->policy.grace_ms, lookup);
		fill_parts(&order, effect->load.parts, parts, lookup);
		break;
	case EFFECT_STOP:
		order.reservation_id = effect->order.reservation_id;
		order.grace_ms = effect->order.grace_ms;
		break;
	default:
		panic("effect %d is not an order", (int)effect->kind);
	}
	session_send_order(session, now_ms, &order, outputs);
}
