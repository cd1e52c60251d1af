/* walk_machine.c - nodes as they really are, agents on them, and what must never happen */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/test/walk.h"

static void follow(struct walk *walk, int at, const struct outputs *outputs);

void machine_apply(struct walk *walk, int at, struct input input)
{
	struct walk_node *node = &walk->nodes[at];
	struct outputs outputs = { 0 };

	if (!node->agent || node->hangs)
		return;
	input.now_ms = walk->now_ms;
	node_apply(node->agent, &input, &outputs);
	node_check(node->agent);
	follow(walk, at, &outputs);
	outputs_free(&outputs);
}

static void erase(struct walk_node *node, int64_t key)
{
	for (size_t i = 0; i < node->row_count; i++) {
		if (node->rows[i].key != key)
			continue;
		free(node->rows[i].data);
		node->rows[i] = node->rows[--node->row_count];
		return;
	}
}

static void write(struct walk_node *node, const struct output *output)
{
	erase(node, output->key);
	array_reserve(node->rows, node->row_capacity, node->row_count + 1);
	struct walk_row *row = &node->rows[node->row_count++];
	*row = (struct walk_row){ output->key, memory_alloc(output->size), output->size };
	memcpy(row->data, output->data, output->size);
}

/* A result is forgotten only when the scheduler has stored it. */
static void forget(struct walk *walk, int at, int64_t reservation_id)
{
	struct run *run = run_of(walk, at, reservation_id);

	erase(&walk->nodes[at], reservation_id);
	if (!run)
		return;
	run->traced = false;
	if (run->exited && !run->told && !run->slot && !run->lease_lost &&
	    keeper_find(&walk->server.keeper, RECORD_RESERVATION, reservation_id, 0))
		panic("the result of reservation %lld is lost", (long long)reservation_id);
}

/* A release is told only when nothing of it is left. */
static void check_message(struct walk *walk, int at, const struct output *output)
{
	struct arena arena = { 0 };
	struct error error = { 0 };
	struct message *message = message_decode(&arena, output->data, output->size, &error);

	if (!message)
		panic("an agent sends what cannot be read: %s", error.text);
	if (message->kind == MESSAGE_CHANGE && message->change.kind == CHANGE_RELEASED) {
		struct run *run = run_of(walk, at, message->change.reservation_id);
		if (run && (run->alive || run->holds_memory))
			panic("reservation %lld, which uses %lld and %lld MiB, is released early",
			      (long long)run->reservation_id, (long long)run->used_mib[0],
			      (long long)run->used_mib[1]);
		walk->releases++;
	}
	arena_free(&arena);
}

static void crash(struct walk *walk, int at)
{
	struct walk_node *node = &walk->nodes[at];

	if (!node->agent)
		return;
	node_delete(node->agent);
	node->agent = NULL;
	node->life++;
	walk->crashes++;
	int64_t wait_ms = chance(&walk->random, 80) ? between(&walk->random, 1, 3000)
	                                            : between(&walk->random, 3000, 120000);
	walk_later(walk, wait_ms, (struct walk_event){ .kind = WALK_AGENT_UP, .node = at });
}

static void do_output(struct walk *walk, int at, const struct output *output)
{
	struct walk_node *node = &walk->nodes[at];
	struct walk_event event = { .node = at, .life = node->life };

	if (walk->verbose && output->kind != OUTPUT_SEND && output->kind != OUTPUT_MEASURE &&
	    output->kind != OUTPUT_LEASE)
		fprintf(stderr, "%lld on node-%d: output %d of %lld\n", (long long)walk->now_ms, at,
		        output->kind, (long long)output->key);
	switch ((enum output_kind)output->kind) {
	case OUTPUT_WRITE:
		write(node, output);
		break;
	case OUTPUT_ERASE:
		forget(walk, at, output->key);
		break;
	case OUTPUT_SEND:
		check_message(walk, at, output);
		walk_send(walk, WALK_TO_SERVER, at, output->data, output->size);
		break;
	case OUTPUT_START:
		run_start(walk, at, output->order);
		break;
	case OUTPUT_NOTICE:
		run_tell(walk, at, output->key, false);
		break;
	case OUTPUT_KILL:
		run_tell(walk, at, output->key, true);
		break;
	case OUTPUT_MEASURE:
		node->asked = output->key;
		event.kind = WALK_MEASURE;
		event.id = output->key;
		if (!walk_fails(walk, 10))
			walk_later(walk, between(&walk->random, 1, 20), event);
		break;
	case OUTPUT_LEASE:
		node->lease_until_ms = output->until_ms;
		break;
	case OUTPUT_DISCONNECT:
		event.kind = WALK_CONNECT;
		walk_later(walk, between(&walk->random, 1, 2000), event);
		break;
	default:
		break;
	}
}

/* An agent can be killed between any two things that it does. The outputs are its
 * own, so they are gone with it. */
static void follow(struct walk *walk, int at, const struct outputs *outputs)
{
	int64_t life = walk->nodes[at].life;

	for (size_t i = 0; i < outputs->count; i++) {
		if (walk_fails(walk, 2))
			crash(walk, at);
		if (walk->nodes[at].life != life)
			return;
		do_output(walk, at, &outputs->at[i]);
	}
}

static int64_t read_processes(const struct walk *walk, int at, struct process_reading *to)
{
	const struct walk_node *node = &walk->nodes[at];
	int64_t count = 0;

	for (int g = 0; g < node->gpu_count; g++) {
		if (node->stranger_mib[g] > 0)
			to[count++] = (struct process_reading){
				.uuid = node->uuid[g], .pid = 1, .memory_mib = node->stranger_mib[g]
			};
		for (size_t i = 0; i < walk->run_count; i++) {
			const struct run *run = walk->runs[i];
			if (run->node == at && run->alive && run->used_mib[g] > 0)
				to[count++] = (struct process_reading){
					.uuid = node->uuid[g],
					.pid = 100 + run->reservation_id,
					.memory_mib = run->used_mib[g],
					.reservation_id = run->reservation_id,
				};
		}
	}
	return count;
}

static void measure(struct walk *walk, int at, int64_t number)
{
	struct walk_node *node = &walk->nodes[at];
	struct gpu_reading gpus[WALK_GPUS];
	struct process_reading *processes =
	    memory_alloc((walk->run_count + 2) * WALK_GPUS * sizeof(*processes));

	for (int g = 0; g < node->gpu_count; g++)
		gpus[g] = (struct gpu_reading){ .uuid = node->uuid[g],
			                        .model = "H100",
			                        .place = g,
			                        .capacity_mib = WALK_CAPACITY_MIB,
			                        .overhead_mib = WALK_OVERHEAD_MIB,
			                        .used_mib = run_in_use_mib(walk, at, g),
			                        .temperature_c = 40,
			                        .utilisation = 500,
			                        .healthy = true };
	struct input input = { .kind = INPUT_MEASURED };
	input.measured = (struct measured){ .number = number,
		                            .gpus = gpus,
		                            .gpu_count = node->gpu_count,
		                            .processes = processes,
		                            .process_count = read_processes(walk, at, processes) };
	machine_apply(walk, at, input);
	free(processes);
}

static int64_t find_runs(const struct walk *walk, int at, struct found *found)
{
	int64_t count = 0;

	for (size_t i = 0; i < walk->run_count; i++) {
		const struct run *run = walk->runs[i];
		if (run->node == at && (run->alive || (run->exited && run->traced)))
			found[count++] = (struct found){ .reservation_id = run->reservation_id,
				                         .alive = run->alive,
				                         .exited = run->exited,
				                         .exit_code = run->exit_code,
				                         .model = run->slot ? "model" : "" };
	}
	return count;
}

static void come_up(struct walk *walk, int at)
{
	struct walk_node *node = &walk->nodes[at];
	struct node_policy policy = node_policy_default();
	struct node_identity identity = { .name = node->name,
		                          .boot = node->boot,
		                          .cpu_milli = 8000,
		                          .host_bytes = INT64_C(1) << 34 };
	struct error error = { 0 };

	if (node->agent || !node->powered)
		return;
	policy.release_tolerance_mib = 0;
	policy.release_settle_ms = 200000; /* longer than any memory takes here */
	node->agent = node_new(&identity, &policy);
	for (size_t i = 0; i < node->row_count; i++)
		if (!node_load(node->agent, node->rows[i].key, node->rows[i].data,
		               node->rows[i].size, &error))
			panic("an agent does not load what it wrote: %s", error.text);
	struct found *found = memory_alloc((walk->run_count + 1) * sizeof(*found));
	struct walk_event event = { .node = at, .life = node->life };
	event.kind = WALK_CONNECT;
	walk_later(walk, between(&walk->random, 1, 500), event);
	event.kind = WALK_AGENT_TICK;
	walk_later(walk, 100, event);
	struct input input = { .kind = INPUT_RESTART };
	input.restart.found = found;
	input.restart.found_count = find_runs(walk, at, found);
	input.restart.lease_until_ms = node->lease_until_ms;
	node->hangs = false;
	machine_apply(walk, at, input);
	free(found);
}

/* All that ran is gone, and so is its memory; what ended before can still be told. */
static void lose_power(struct walk *walk, int at)
{
	struct walk_node *node = &walk->nodes[at];

	for (size_t i = 0; i < walk->run_count; i++) {
		struct run *run = walk->runs[i];
		if (run->node != at)
			continue;
		run->traced = run->traced && run->exited;
		run->told = run->told || !run->exited;
		run->alive = run->holds_memory = false;
	}
	if (node->agent)
		node_delete(node->agent);
	node->agent = NULL;
	node->life++;
	node->lease_until_ms = 0;
	snprintf(node->boot, sizeof(node->boot), "boot-%lld", (long long)++node->boots);
	walk_later(walk, between(&walk->random, 1000, 200000),
	           (struct walk_event){ .kind = WALK_AGENT_UP, .node = at });
}

/* It learns what happened meanwhile, as a process that was stopped does. */
static void wake(struct walk *walk, int at)
{
	struct walk_node *node = &walk->nodes[at];

	if (!node->hangs)
		return;
	node->hangs = false;
	for (size_t i = 0; i < walk->run_count; i++) {
		const struct run *run = walk->runs[i];
		struct input input = { .event = { .reservation_id = run->reservation_id,
			                          .exit_code = run->exit_code } };
		if (run->node != at || !run->traced)
			continue;
		input.kind = INPUT_STARTED;
		input.event.pid = 100 + run->reservation_id;
		machine_apply(walk, at, input);
		input.kind = INPUT_EXITED;
		if (run->exited)
			machine_apply(walk, at, input);
		input.kind = INPUT_GONE;
		if (!run->alive)
			machine_apply(walk, at, input);
	}
}

void machine_fault(struct walk *walk, int at)
{
	struct walk_node *node = &walk->nodes[at];
	int gpu = (int)between(&walk->random, 0, node->gpu_count - 1);

	switch (between(&walk->random, 0, 9)) {
	case 0:
	case 1:
	case 2:
		crash(walk, at);
		break;
	case 3:
		lose_power(walk, at);
		break;
	case 4:
		node->hangs = node->agent != NULL;
		walk_later(walk, between(&walk->random, 100, 100000),
		           (struct walk_event){ .kind = WALK_AGENT_TICK, .node = at, .life = -1 });
		break;
	case 5:
	case 6:
		node->stranger_mib[gpu] = between(&walk->random, 0, 6000);
		break;
	default:
		node->stranger_mib[gpu] = 0;
		break;
	}
}

void machine_mend(struct walk *walk, int at)
{
	struct walk_node *node = &walk->nodes[at];

	for (int g = 0; g < node->gpu_count; g++)
		node->stranger_mib[g] = 0;
	wake(walk, at);
	come_up(walk, at);
}

/* Inputs that come late, or never, are the agent's to cope with: those about runs
 * it finds by itself after a restart. */
void machine_event(struct walk *walk, const struct walk_event *event)
{
	struct walk_node *node = &walk->nodes[event->node];
	struct arena arena = { 0 };
	struct error error = { 0 };
	bool same_life = event->life == node->life;

	switch (event->kind) {
	case WALK_TO_AGENT: {
		struct input input = { .kind = INPUT_MESSAGE };
		input.message = message_decode(&arena, event->data, event->size, &error);
		if (!input.message)
			panic("a scheduler's message is not read: %s", error.text);
		machine_apply(walk, event->node, input);
		arena_free(&arena);
		break;
	}
	case WALK_MEASURE:
		if (same_life)
			measure(walk, event->node, event->id);
		break;
	case WALK_CONNECT:
		if (same_life && node->hangs)
			walk_later(walk, 1000, *event);
		else if (same_life)
			machine_apply(walk, event->node, (struct input){ .kind = INPUT_CONNECTED });
		break;
	case WALK_AGENT_TICK:
		if (event->life < 0) {
			wake(walk, event->node);
		} else if (same_life) {
			walk_later(walk, 100, *event);
			machine_apply(walk, event->node, (struct input){ .kind = INPUT_TIME });
		}
		break;
	case WALK_AGENT_UP:
		come_up(walk, event->node);
		break;
	default:
		run_event(walk, event);
		break;
	}
}

void machine_init(struct walk *walk, int at)
{
	struct walk_node *node = &walk->nodes[at];

	snprintf(node->boot, sizeof(node->boot), "boot-0");
	node->gpu_count = at == 0 ? WALK_GPUS : (int)between(&walk->random, 1, WALK_GPUS);
	for (int g = 0; g < node->gpu_count; g++) {
		snprintf(node->uuid[g], sizeof(node->uuid[g]), "gpu-%d-%d", at, g);
		node->standing_mib[g] = chance(&walk->random, 30) ? 300 : 0;
	}
	node->powered = true;
	walk_later(walk, 1, (struct walk_event){ .kind = WALK_AGENT_UP, .node = at });
}

void machine_free(struct walk_node *node)
{
	if (node->agent)
		node_delete(node->agent);
	while (node->row_count > 0)
		erase(node, node->rows[0].key);
	free(node->rows);
}
