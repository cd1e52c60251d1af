/* node.c - the entrance: inputs in, outputs out */
#include "node/node.h"

#include <stdlib.h>
#include <string.h>

#include "node/local.h"

struct node_policy node_policy_default(void)
{
	return (struct node_policy){
		.beat_ms = 1000,
		.silence_ms = 10000,
		.resend_ms = 3000,
		.measure_timeout_ms = 10000,
		.kill_repeat_ms = 1000,
		.late_repeat_ms = 10000,
		.absent_ms = 60000,
		.release_settle_ms = 60000,
		.release_tolerance_mib = 32,
		.overuse = OVERUSE_GUARDED,
		.overuse_tolerance_mib = 512,
		.overuse_stop_ms = 1000,
		.idle_ms = 600000,
		.unhealthy_checks = 5,
	};
}

struct local_node *node_new(const struct node_identity *identity, const struct node_policy *policy)
{
	struct local_node *node = NEW(struct local_node);

	INVARIANT(identity->name && *identity->name && identity->boot);
	node->identity = *identity;
	node->identity.name = memory_text(identity->name);
	node->identity.boot = memory_text(identity->boot);
	node->identity.zone = memory_text(identity->zone ? identity->zone : "");
	node->identity.rack = memory_text(identity->rack ? identity->rack : "");
	node->identity.labels = memory_text(identity->labels ? identity->labels : "");
	node->policy = *policy;
	node->kept.boot = node->identity.boot;
	return node;
}

void node_delete(struct local_node *node)
{
	while (node->work_count > 0)
		work_remove(node, node->works[node->work_count - 1]);
	free(node->works);
	link_free(&node->link);
	measure_free(&node->measure);
	free((char *)node->identity.name);
	free((char *)node->identity.boot);
	free((char *)node->identity.zone);
	free((char *)node->identity.rack);
	free((char *)node->identity.labels);
	free(node);
}

static bool load_node(struct local_node *node, const void *data, size_t size, struct error *error)
{
	struct arena arena = { 0 };
	struct kept_node kept;
	bool read = kept_node_decode(&arena, data, size, &kept, error);

	if (read) {
		node->was_other_boot = strcmp(kept.boot, node->identity.boot) != 0;
		node->kept.term = kept.term;
		node->kept.connection = kept.connection;
	}
	arena_free(&arena);
	return read;
}

static bool load_work(struct local_node *node, int64_t key, const void *data, size_t size,
                      struct error *error)
{
	struct arena arena = { 0 };
	struct kept_work kept;
	struct node_order order;

	if (!kept_work_decode(&arena, data, size, &kept, &order, error)) {
		arena_free(&arena);
		return false;
	}
	if (kept.reservation_id != key || work_find(node, key)) {
		arena_free(&arena);
		return error_set(error, ERROR_CORRUPT, "reservation %lld is kept under key %lld",
		                 (long long)kept.reservation_id, (long long)key);
	}
	struct work *work = work_add(node, &order);
	struct kept_work *copy = fields_copy(&work->arena, &kept_work_type, &kept);
	work->kept = *copy;
	arena_free(&arena);
	return true;
}

bool node_load(struct local_node *node, int64_t key, const void *data, size_t size,
               struct error *error)
{
	INVARIANT(!node->restarted);
	return key == 0 ? load_node(node, data, size, error)
	                : load_work(node, key, data, size, error);
}

struct output *node_output(struct local_node *node, enum output_kind kind, int64_t key)
{
	struct outputs *outputs = node->outputs;

	array_reserve(outputs->at, outputs->capacity, outputs->count + 1);
	struct output *output = &outputs->at[outputs->count++];
	*output = (struct output){ .kind = (int32_t)kind, .key = key };
	return output;
}

void node_write(struct local_node *node)
{
	struct buffer buffer = { 0 };
	struct output *output = node_output(node, OUTPUT_WRITE, 0);

	kept_node_encode(&buffer, &node->kept);
	output->data = arena_copy(&node->outputs->arena, buffer.data, buffer.size);
	output->size = buffer.size;
	buffer_free(&buffer);
}

int64_t node_ask_measure(struct local_node *node)
{
	if (!node->asked_now)
		node_output(node, OUTPUT_MEASURE, ++node->measure.asked);
	node->asked_now = true;
	node->watched_ms = node->now_ms;
	return node->measure.asked;
}

int64_t node_later(const struct local_node *node, int64_t wait_ms)
{
	return min64(node->now_ms + wait_ms, INT64_MAX / 2);
}

/* When to measure for the sake of works that share GPUs, and of those that exceed their part and
 * are about to be stopped. */
static int64_t watch_due_ms(const struct local_node *node)
{
	const struct node_policy *policy = &node->policy;
	int64_t due_ms = INT64_MAX;

	for (size_t i = 0; policy->watch_ms > 0 && i < node->work_count; i++) {
		const struct work *work = node->works[i];
		bool shared = false;
		for (int64_t part = 0; part < work->order.part_count; part++)
			shared = shared || !work->order.parts[part].whole;
		if (!work_is_up(work) || !shared)
			continue;
		due_ms = min64(due_ms, node->watched_ms + policy->watch_ms);
		if (work->over_ms > 0 && node->watched_ms < work->over_ms + policy->overuse_stop_ms)
			due_ms = min64(due_ms, work->over_ms + policy->overuse_stop_ms);
	}
	return due_ms;
}

static void time_passes(struct local_node *node)
{
	enforce_lease(node);
	for (size_t i = node->work_count; i-- > 0;)
		work_time(node, node->works[i]);
	if (node->next_beat_ms <= node->now_ms || watch_due_ms(node) <= node->now_ms)
		node_ask_measure(node);
	link_time(node);
}

static void node_measured(struct local_node *node, const struct measured *input)
{
	if (input->number < node->measure.number || input->number > node->measure.asked)
		return; /* overtaken by a later one, or of another life */

	measure_take(node, input);
	account_measured(node, input);
	crowding_measured(node);
	enforce_measured(node);
	suspend_measured(node);
	admit_waiting(node);
	node->link.measured_since_beat = true;
	if (node->link.snapshot_wanted && input->number >= node->link.snapshot_asked)
		link_measured(node);
}

static void node_dispatch(struct local_node *node, const struct input *input)
{
	switch ((enum input_kind)input->kind) {
	case INPUT_CONNECTED:
		link_connected(node);
		break;
	case INPUT_DISCONNECTED:
		link_disconnected(node);
		break;
	case INPUT_MESSAGE:
		link_message(node, input->message);
		break;
	case INPUT_MEASURED:
		node_measured(node, &input->measured);
		break;
	case INPUT_PACE:
		node->policy.beat_ms = input->pace.beat_ms;
		node->policy.figures_ms = input->pace.figures_ms;
		node->next_beat_ms =
		    min64(node->next_beat_ms, node_later(node, max64(node->policy.beat_ms, 1)));
		break;
	case INPUT_TIME:
		break;
	default:
		work_event(node, (enum input_kind)input->kind, &input->event);
		break;
	}
}

void node_apply(struct local_node *node, const struct input *input, struct outputs *outputs)
{
	INVARIANT(input->kind >= 0 && input->kind < INPUT_KINDS);
	INVARIANT(node->restarted == (input->kind != INPUT_RESTART));
	node->outputs = outputs;
	node->asked_now = false;
	node->now_ms = max64(node->now_ms, min64(input->now_ms, TIME_MS_MAX));
	if (input->kind == INPUT_RESTART) {
		node->restarted = true;
		restart_apply(node, input->restart.found, input->restart.found_count,
		              input->restart.lease_until_ms);
	} else {
		/* What is due is done before anything else: a message must not revive
		 * what should have ended. */
		time_passes(node);
		node_dispatch(node, input);
	}
	link_acknowledge(node);
	node->outputs = NULL;
}

int64_t node_wake_ms(const struct local_node *node)
{
	int64_t wake_ms = min64(watch_due_ms(node), min64(node->next_beat_ms, link_wake_ms(node)));

	for (size_t i = 0; i < node->work_count; i++)
		wake_ms = min64(wake_ms, work_wake_ms(node, node->works[i]));
	return max64(wake_ms, node->now_ms);
}

size_t node_work_count(const struct local_node *node)
{
	return node->work_count;
}

struct work_view node_work(const struct local_node *node, size_t at)
{
	INVARIANT(at < node->work_count);
	return (struct work_view){ &node->works[at]->kept, &node->works[at]->order };
}

void outputs_clear(struct outputs *outputs)
{
	outputs->count = 0;
	arena_reset(&outputs->arena);
}

void outputs_free(struct outputs *outputs)
{
	free(outputs->at);
	arena_free(&outputs->arena);
	*outputs = (struct outputs){ 0 };
}
