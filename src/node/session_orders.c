/* session_orders.c - orders of the core, as messages to a node */
#include <string.h>

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

static struct node_order watch_order(const struct task_order *from)
{
	return (struct node_order){ .kind = ORDER_WATCH,
		                    .reservation_id = from->reservation_id,
		                    .payload = from->pod,
		                    .job_id = from->job_id,
		                    .task = from->task,
		                    .tasks = from->tasks,
		                    .lease_loss = LEASE_KEEP };
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

static void send_start(struct session *session, int64_t now_ms, const struct effect *effect,
                       struct session_outputs *outputs)
{
	const struct session_lookup *lookup = &session->lookup;
	struct order_part parts[PARTS_MAX];
	struct node_order order;

	if (effect->kind == EFFECT_LOAD) {
		order = load_order(&effect->load, session->policy.grace_ms, lookup);
		fill_parts(&order, effect->load.parts, parts, lookup);
	} else {
		order = effect->order.pod ? watch_order(&effect->order)
		                          : task_order(&effect->order, lookup);
		fill_parts(&order, effect->order.parts, parts, lookup);
	}
	session_send_order(session, now_ms, &order, outputs);
}

void session_send_held(struct session *session, int64_t now_ms, struct session_outputs *outputs)
{
	const struct effect *effect;

	while ((effect = starts_next(&session->starts)))
		send_start(session, now_ms, effect, outputs);
}

/* The node confirms the release of what it never had. */
static void send_stop(struct session *session, int64_t now_ms, const struct task_order *from,
                      struct session_outputs *outputs)
{
	struct node_order order = { .kind = ORDER_STOP,
		                    .reservation_id = from->reservation_id,
		                    .grace_ms = from->grace_ms };

	starts_drop(&session->starts, from->reservation_id);
	session_send_order(session, now_ms, &order, outputs);
}

/* An agent that does not know the order leaves the task as it is. */
static void send_move(struct session *session, int64_t now_ms, const struct effect *effect,
                      struct session_outputs *outputs)
{
	bool back = effect->kind == EFFECT_RESUME;
	struct node_order order = { .kind = back ? ORDER_RESUME : ORDER_SUSPEND,
		                    .reservation_id = effect->order.reservation_id,
		                    .grace_ms = effect->order.grace_ms,
		                    .host_bytes = effect->order.copy_bytes };
	struct command command = { .kind = back ? COMMAND_TASK_RESUMED : COMMAND_TASK_SUSPENDED };

	if (session->protocol >= NODE_PROTOCOL_SUSPEND) {
		session_send_order(session, now_ms, &order, outputs);
		return;
	}
	command.task.reservation_id = effect->order.reservation_id;
	command.task.message = "its node has an older agent, which cannot do that";
	command.task.node = session->name;
	session_command(session, &command, 0, outputs);
}

static void refuse_watch(struct session *session, const struct task_order *order,
                         struct session_outputs *outputs)
{
	struct command command = { .kind = COMMAND_TASK_REFUSED };

	command.task.reservation_id = order->reservation_id;
	command.task.message = "its node has an older agent, which does not follow pods";
	command.task.node = session->name;
	session_command(session, &command, 0, outputs);
}

void session_order(struct session *session, int64_t now_ms, const struct effect *effect,
                   const struct session_lookup *lookup, struct session_outputs *outputs)
{
	if (!session->synced)
		return;
	session->lookup = *lookup;
	switch (effect->kind) {
	case EFFECT_START:
		if (effect->order.pod && session->protocol < NODE_PROTOCOL_WATCH) {
			refuse_watch(session, &effect->order, outputs);
			break;
		}
		starts_hold(&session->starts, effect);
		session_send_held(session, now_ms, outputs);
		break;
	case EFFECT_LOAD:
		starts_hold(&session->starts, effect);
		session_send_held(session, now_ms, outputs);
		break;
	case EFFECT_STOP:
		send_stop(session, now_ms, &effect->order, outputs);
		break;
	case EFFECT_SUSPEND:
	case EFFECT_RESUME:
		send_move(session, now_ms, effect, outputs);
		break;
	default:
		panic("effect %d is not an order", (int)effect->kind);
	}
}

static bool tells_end(const struct change *change)
{
	return change->kind == CHANGE_REFUSED || change->kind == CHANGE_EXITED ||
	       change->kind == CHANGE_RELEASED;
}

void session_note_start(struct session *session, const struct message *message)
{
	const struct change *change = &message->change;

	if (change->kind != CHANGE_STARTED && !tells_end(change))
		return;
	starts_done(&session->starts, change->reservation_id);
	if (!tells_end(change))
		return;
	array_reserve(session->ended, session->ended_capacity, session->ended_count + 1);
	session->ended[session->ended_count++] =
	    (struct session_ended){ message->number, change->reservation_id };
}

/* What the session has given and what a snapshot tells. */
struct snapshot_view {
	const struct session *session;
	const struct node_report_command *report;
};

static bool is_known(const void *context, int64_t reservation_id)
{
	const struct snapshot_view *view = context;
	const struct session *session = view->session;
	const struct node_report_command *report = view->report;

	for (size_t i = 0; i < session->given_count; i++)
		if (session->given[i].reservation_id == reservation_id)
			return true;
	for (int64_t i = 0; i < report->running_count; i++)
		if (report->running[i] == reservation_id)
			return true;
	for (int64_t i = 0; i < report->slot_count; i++)
		if (report->slots[i].reservation_id == reservation_id)
			return true;
	return false;
}

void session_note_snapshot(struct session *session, const struct node_report_command *report)
{
	struct snapshot_view view = { session, report };

	starts_keep(&session->starts, is_known, &view);
}

/* The core may have ordered a start again before it heard of the end. The node remembers the
 * end until it is acknowledged, and would take an order that is sent after that as a new one. */
void session_drop_ended(struct session *session)
{
	size_t done = 0;

	while (done < session->ended_count && session->ended[done].change <= session->stored)
		starts_drop(&session->starts, session->ended[done++].reservation_id);
	session->ended_count -= done;
	if (done > 0)
		memmove(session->ended, session->ended + done,
		        session->ended_count * sizeof(*session->ended));
}
