/* chaos_machine.c - nodes as they really are, and the agents on them */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/chaos/chaos_world.h"

static void chaos_machine_follow(struct chaos *chaos, int at, const struct outputs *outputs);

/* An agent is woken when it wants to be; a tick that is not the last one ordered is void. */
static void order_tick(struct chaos *chaos, int at)
{
	struct chaos_node *node = &chaos->nodes[at];
	int64_t wake_ms = min64(node_wake_ms(node->agent), TIME_MS_MAX) - node->clock_ms;

	wake_ms = max64(wake_ms, chaos->now_ms + 1);
	if (node->tick_ms > chaos->now_ms && node->tick_ms <= wake_ms)
		return;
	node->tick_ms = wake_ms;
	chaos_later(
	    chaos, wake_ms - chaos->now_ms,
	    (struct chaos_event){
		.kind = HAPPEN_AGENT_TICK, .node = at, .life = node->life, .id = ++node->tick });
}

void machine_apply(struct chaos *chaos, int at, struct input input)
{
	struct chaos_node *node = &chaos->nodes[at];
	struct outputs outputs = { 0 };
	int64_t life = node->life;

	if (!node->agent || node->hangs)
		return;
	input.now_ms = machine_now(chaos, at);
	node_apply(node->agent, &input, &outputs);
	node_check(node->agent);
	chaos_machine_follow(chaos, at, &outputs);
	outputs_free(&outputs);
	if (node->agent && node->life == life)
		order_tick(chaos, at);
}

static void erase(struct chaos_node *node, int64_t key)
{
	for (size_t i = 0; i < node->row_count; i++) {
		if (node->rows[i].key != key)
			continue;
		free(node->rows[i].data);
		node->rows[i] = node->rows[--node->row_count];
		return;
	}
}

static void write(struct chaos_node *node, const struct output *output)
{
	erase(node, output->key);
	array_reserve(node->rows, node->row_capacity, node->row_count + 1);
	struct chaos_row *row = &node->rows[node->row_count++];
	*row = (struct chaos_row){ output->key, memory_alloc(output->size), output->size };
	memcpy(row->data, output->data, output->size);
}

static void chaos_machine_forget(struct chaos *chaos, int at, int64_t reservation_id)
{
	struct run *run = run_of(chaos, at, reservation_id);

	erase(&chaos->nodes[at], reservation_id);
	map_remove(&chaos->nodes[at].allowed, reservation_id);
	if (!run)
		return;
	run->traced = false;
	check_forgotten(chaos, at, reservation_id);
}

static void look_at_message(struct chaos *chaos, int at, const struct output *output)
{
	struct arena arena = { 0 };
	struct error error = { 0 };
	const struct message *message = message_decode(&arena, output->data, output->size, &error);

	if (!message)
		chaos_broken(chaos, "books", "an agent sends an unreadable message: %s",
		             error.text);
	else if (message->kind == MESSAGE_HELLO)
		chaos->nodes[at].hello = message->connection;
	else if (message->kind == MESSAGE_CHANGE && message->change.kind == CHANGE_RELEASED)
		check_released(chaos, at, message->change.reservation_id);
	else if (message->kind == MESSAGE_CHANGE && message->change.kind == CHANGE_SUSPENDED &&
	         message->change.exit_code == 0)
		check_suspended(chaos, at, message->change.reservation_id);
	else if (message->kind == MESSAGE_CHANGE && message->change.kind == CHANGE_REFUSED)
		check_refused(chaos, at, &message->change);
	arena_free(&arena);
}

void machine_crash(struct chaos *chaos, int at)
{
	struct chaos_node *node = &chaos->nodes[at];

	if (!node->agent)
		return;
	chaos_note(chaos, "the agent of node-%d crashes", at);
	node_delete(node->agent);
	node->agent = NULL;
	node->life++;
	chaos->result->crashes++;
	uint64_t *dice = &chaos->dice[CHAOS_CRASH];
	int64_t wait_ms = chance(dice, 80) ? between(dice, 1, 3000) : between(dice, 3000, 120000);
	chaos_later(chaos, wait_ms, (struct chaos_event){ .kind = HAPPEN_AGENT_UP, .node = at });
}

/* Which scheduler it finds: the active one, or the one that was. */
static void find_server(struct chaos *chaos, int at)
{
	bool other = chaos->servers[1].sched && chance(&chaos->dice[CHAOS_SECOND], 40);

	chaos->nodes[at].server = other ? 1 : 0;
}

static void do_output(struct chaos *chaos, int at, const struct output *output)
{
	struct chaos_node *node = &chaos->nodes[at];
	struct chaos_event event = { .node = at, .life = node->life };

	switch ((enum output_kind)output->kind) {
	case OUTPUT_WRITE:
		write(node, output);
		break;
	case OUTPUT_ERASE:
		chaos_machine_forget(chaos, at, output->key);
		break;
	case OUTPUT_SEND:
		look_at_message(chaos, at, output);
		chaos_send(chaos, HAPPEN_TO_SERVER, at, node->server, output->data, output->size);
		break;
	case OUTPUT_START:
		run_start(chaos, at, output->order);
		break;
	case OUTPUT_NOTICE:
		run_tell(chaos, at, output->key, false);
		break;
	case OUTPUT_KILL:
		run_tell(chaos, at, output->key, true);
		break;
	case OUTPUT_MEASURE:
		event.kind = HAPPEN_MEASURE;
		event.id = output->key;
		if (!chaos_fails(chaos, CHAOS_MEASURE, 10))
			chaos_later(chaos, between(&chaos->random, 1, 20), event);
		break;
	case OUTPUT_LEASE:
		check_lease(chaos, at);
		node->lease_until_ms = output->until_ms;
		break;
	case OUTPUT_SUSPEND:
	case OUTPUT_RESUME:
		run_move(chaos, at, output->order, output->kind == OUTPUT_RESUME);
		break;
	case OUTPUT_DISCONNECT:
		event.kind = HAPPEN_CONNECT;
		chaos_later(chaos, between(&chaos->random, 1, 2000), event);
		break;
	default:
		break;
	}
}

/* An agent can be killed between any two things that it does. The outputs are its
 * own, so they are gone with it. */
static void chaos_machine_follow(struct chaos *chaos, int at, const struct outputs *outputs)
{
	int64_t life = chaos->nodes[at].life;

	for (size_t i = 0; i < outputs->count; i++) {
		if (chaos_fails(chaos, CHAOS_CRASH, 1))
			machine_crash(chaos, at);
		if (chaos->nodes[at].life != life)
			return;
		do_output(chaos, at, &outputs->at[i]);
	}
}

static int64_t find_runs(const struct chaos *chaos, int at, struct found *found)
{
	int64_t count = 0;

	for (size_t i = 0; i < chaos->run_count; i++) {
		const struct run *run = chaos->runs[i];
		if (run->node == at && (run->alive || (run->exited && run->traced)))
			found[count++] = (struct found){ .reservation_id = run->reservation_id,
				                         .alive = run->alive,
				                         .exited = run->exited,
				                         .exit_code = run->exit_code,
				                         .exited_ms = run->exited_ms,
				                         .model = run->slot ? run->model : "" };
	}
	return count;
}

static void chaos_machine_load(struct chaos *chaos, int at)
{
	struct chaos_node *node = &chaos->nodes[at];
	struct node_identity identity = { .name = node->name,
		                          .boot = node->boot,
		                          .rack = node->rack,
		                          .labels = node->labels,
		                          .cpu_milli = 16000,
		                          .host_bytes = node->host_bytes };
	struct error error = { 0 };

	node->agent = node_new(&identity, &chaos->node_policy);
	for (size_t i = 0; i < node->row_count; i++)
		if (!node_load(node->agent, node->rows[i].key, node->rows[i].data,
		               node->rows[i].size, &error))
			chaos_broken(chaos, "books", "an agent does not load what it wrote: %s",
			             error.text);
}

static void come_up(struct chaos *chaos, int at)
{
	struct chaos_node *node = &chaos->nodes[at];

	if (node->agent || node->off)
		return;
	chaos_note(chaos, "the agent of node-%d starts", at);
	chaos_machine_load(chaos, at);
	struct found *found = memory_alloc((chaos->run_count + 1) * sizeof(*found));
	struct input input = { .kind = INPUT_RESTART };
	input.restart.found = found;
	input.restart.found_count = find_runs(chaos, at, found);
	input.restart.lease_until_ms = node->lease_until_ms;
	node->hangs = false;
	node->tick_ms = 0;
	chaos_later(chaos, between(&chaos->random, 1, 500),
	            (struct chaos_event){ .kind = HAPPEN_CONNECT, .node = at, .life = node->life });
	machine_apply(chaos, at, input);
	free(found);
}

void machine_lose_power(struct chaos *chaos, int at)
{
	struct chaos_node *node = &chaos->nodes[at];
	uint64_t *dice = &chaos->dice[CHAOS_POWER];

	chaos_note(chaos, "node-%d loses its power", at);
	run_lose_all(chaos, at);
	if (node->agent)
		node_delete(node->agent);
	node->agent = NULL;
	node->life++;
	node->off = true;
	node->lease_until_ms = 0;
	node->clock_ms = between(dice, 0, 1000000) - chaos->now_ms;
	snprintf(node->boot, sizeof(node->boot), "boot-%d-%lld", at, (long long)++node->boots);
	for (int g = 0; g < node->gpu_count; g++)
		node->gpus[g].stranger_mib = 0;
	chaos_later(
	    chaos, between(dice, 1000, 300000),
	    (struct chaos_event){ .kind = HAPPEN_AGENT_UP, .node = at, .life = node->boots });
}

void machine_hang(struct chaos *chaos, int at)
{
	struct chaos_node *node = &chaos->nodes[at];

	if (!node->agent)
		return;
	chaos_note(chaos, "the agent of node-%d hangs", at);
	node->hangs = true;
	chaos_later(
	    chaos, between(&chaos->dice[CHAOS_HANG], 100, 200000),
	    (struct chaos_event){ .kind = HAPPEN_AGENT_WAKES, .node = at, .life = node->life });
}

/* It learns what happened meanwhile, as a process that was stopped does. */
static void wake(struct chaos *chaos, int at)
{
	struct chaos_node *node = &chaos->nodes[at];

	if (!node->hangs)
		return;
	chaos_note(chaos, "the agent of node-%d continues", at);
	node->hangs = false;
	for (size_t i = 0; i < chaos->run_count; i++) {
		struct run *run = chaos->runs[i];
		struct input input = { .event = { .reservation_id = run->reservation_id,
			                          .exit_code = run->exit_code,
			                          .exited_ms = run->exited_ms } };
		if (run->node != at || !run->traced)
			continue;
		input.kind = INPUT_STARTED;
		input.event.pid = 100 + run->reservation_id;
		machine_apply(chaos, at, input);
		if (run->untold && run->alive && !run->exited)
			run_tell_move(chaos, run);
		input.kind = INPUT_EXITED;
		if (run->exited)
			machine_apply(chaos, at, input);
		input.kind = INPUT_GONE;
		if (!run->alive)
			machine_apply(chaos, at, input);
	}
	machine_apply(chaos, at, (struct input){ .kind = INPUT_TIME });
}

void machine_mend(struct chaos *chaos, int at)
{
	struct chaos_node *node = &chaos->nodes[at];

	for (int g = 0; g < node->gpu_count; g++) {
		struct chaos_gpu *gpu = &node->gpus[g];
		gpu->doubtful = gpu->doubtful || gpu->standing_mib > 0;
		gpu->stranger_mib = gpu->standing_mib = 0;
		gpu->absent_until_ms = gpu->wrong_until_ms = 0;
		gpu->hot = gpu->ill = false;
	}
	wake(chaos, at);
	node->off = false;
	come_up(chaos, at);
}

/* A welcome that it lived to write down binds it; an order of an older term than
 * that is not to be followed. */
static void chaos_machine_deliver(struct chaos *chaos, int at, const struct message *message)
{
	struct chaos_node *node = &chaos->nodes[at];
	int64_t life = node->life;

	if (!node->agent || node->hangs)
		return;
	bool ours = strcmp(message->boot, node->boot) == 0 && message->connection == node->hello;
	if (message->kind == MESSAGE_ORDER && message->order.kind != ORDER_STOP &&
	    message->term >= node->seen_term)
		map_put(&node->allowed, message->order.reservation_id, node);
	struct input input = { .kind = INPUT_MESSAGE };
	input.message = message;
	machine_apply(chaos, at, input);
	if (message->kind == MESSAGE_WELCOME && ours && node->agent && node->life == life)
		node->seen_term = max64(node->seen_term, message->term);
}

static void chaos_machine_take_message(struct chaos *chaos, const struct chaos_event *event)
{
	struct arena arena = { 0 };
	struct error error = { 0 };
	const struct message *message = message_decode(&arena, event->data, event->size, &error);

	if (message)
		chaos_machine_deliver(chaos, event->node, message);
	else
		chaos_broken(chaos, "books", "a scheduler's message is not read: %s", error.text);
	arena_free(&arena);
}

static void chaos_machine_connect(struct chaos *chaos, const struct chaos_event *event)
{
	if (chaos->nodes[event->node].hangs) {
		chaos_later(chaos, 1000, *event);
		return;
	}
	find_server(chaos, event->node);
	machine_apply(chaos, event->node, (struct input){ .kind = INPUT_CONNECTED });
}

static void machine_up(struct chaos *chaos, const struct chaos_event *event)
{
	struct chaos_node *node = &chaos->nodes[event->node];

	if (node->off && event->life != node->boots)
		return; /* an agent that would have started before the power was lost */
	node->off = false;
	come_up(chaos, event->node);
}

/* Inputs that come late, or never, are the agent's to cope with: those about runs
 * it finds by itself after a restart. */
void machine_event(struct chaos *chaos, const struct chaos_event *event)
{
	struct chaos_node *node = &chaos->nodes[event->node];
	bool same_life = event->life == node->life;

	switch (event->kind) {
	case HAPPEN_TO_AGENT:
		chaos_machine_take_message(chaos, event);
		break;
	case HAPPEN_MEASURE:
		if (same_life)
			measure_machine(chaos, event->node, event->id);
		break;
	case HAPPEN_CONNECT:
		if (same_life)
			chaos_machine_connect(chaos, event);
		break;
	case HAPPEN_AGENT_TICK:
		if (same_life && event->id == node->tick) {
			node->tick_ms = 0;
			machine_apply(chaos, event->node, (struct input){ .kind = INPUT_TIME });
		}
		break;
	case HAPPEN_AGENT_WAKES:
		if (same_life)
			wake(chaos, event->node);
		break;
	case HAPPEN_AGENT_UP:
		machine_up(chaos, event);
		break;
	default:
		run_event(chaos, event);
		break;
	}
}

void machine_free(struct chaos_node *node)
{
	if (node->agent)
		node_delete(node->agent);
	for (size_t i = 0; i < node->row_count; i++)
		free(node->rows[i].data);
	free(node->rows);
	map_free(&node->allowed);
}
