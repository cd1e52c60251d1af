/* walk_machine.c - nodes as they really are, agents on them, and what must never happen */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/test/walk.h"

#define CAPACITY_MIB 10000
#define OVERHEAD_MIB 500

static void follow(struct walk *walk, int at, const struct outputs *outputs);

static void apply(struct walk *walk, int at, struct input input)
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

static struct run *run_of(const struct walk *walk, int at, int64_t reservation_id)
{
	for (size_t i = walk->run_count; i-- > 0;)
		if (walk->runs[i]->reservation_id == reservation_id && walk->runs[i]->node == at)
			return walk->runs[i];
	return NULL;
}

static int gpu_of(const struct walk_node *node, const char *uuid)
{
	for (int i = 0; i < node->gpu_count; i++)
		if (strcmp(node->uuid[i], uuid) == 0)
			return i;
	panic("a node was told to use GPU %s, which it does not have", uuid);
}

static int64_t in_use_mib(const struct walk *walk, int at, int gpu)
{
	const struct walk_node *node = &walk->nodes[at];
	int64_t sum = node->standing_mib[gpu] + node->stranger_mib[gpu];

	for (size_t i = 0; i < walk->run_count; i++)
		if (walk->runs[i]->node == at && walk->runs[i]->holds_memory)
			sum += walk->runs[i]->used_mib[gpu];
	return sum;
}

/* What all that runs there uses or may use, and what is left of what ran, which
 * cannot grow; strangers included. */
static int64_t counted_mib(const struct walk *walk, int at, int gpu)
{
	const struct walk_node *node = &walk->nodes[at];
	int64_t sum = OVERHEAD_MIB + node->standing_mib[gpu] + node->stranger_mib[gpu];

	for (size_t i = 0; i < walk->run_count; i++) {
		const struct run *run = walk->runs[i];
		if (run->node == at && run->holds_memory)
			sum += max64(run->alive ? run->reserved_mib[gpu] : 0, run->used_mib[gpu]);
	}
	return sum;
}

/* Nothing starts that does not fit, and nothing runs twice. */
static void check_start(const struct walk *walk, int at, const struct node_order *order)
{
	for (int64_t i = 0; i < order->part_count; i++) {
		int gpu = gpu_of(&walk->nodes[at], order->parts[i].uuid);
		int64_t sum = counted_mib(walk, at, gpu) + order->parts[i].memory_mib;
		if (sum > CAPACITY_MIB)
			panic("reservation %lld does not fit: %lld MiB",
			      (long long)order->reservation_id, (long long)sum);
	}
	for (size_t i = 0; i < walk->run_count; i++) {
		const struct run *run = walk->runs[i];
		if (run->alive && run->reservation_id == order->reservation_id)
			panic("reservation %lld runs already", (long long)run->reservation_id);
		if (run->alive && order->kind == ORDER_START && run->job_id == order->job_id)
			panic("job %lld runs already, on node %d, and starts on %d",
			      (long long)run->job_id, run->node, at);
	}
	if (order->kind == ORDER_START && walk->ended_itself[order->job_id] &&
	    walk->keeps[order->job_id])
		panic("job %lld ended by itself and is started again", (long long)order->job_id);
}

static void start(struct walk *walk, int at, const struct node_order *order)
{
	struct run *run = NEW(struct run);

	check_start(walk, at, order);
	*run = (struct run){ .reservation_id = order->reservation_id,
		             .job_id = order->job_id,
		             .task = order->task,
		             .node = at,
		             .slot = order->kind == ORDER_LOAD,
		             .alive = true,
		             .holds_memory = order->part_count > 0,
		             .traced = true,
		             .stubborn = chance(&walk->random, 20),
		             .lease_stop = order->lease_loss == LEASE_STOP,
		             .grace_ms = order->grace_ms };
	for (int64_t i = 0; i < order->part_count; i++) {
		int gpu = gpu_of(&walk->nodes[at], order->parts[i].uuid);
		int64_t mib = order->parts[i].memory_mib;
		run->reserved_mib[gpu] = mib;
		run->used_mib[gpu] = 1; /* until it has begun */
	}
	array_reserve(walk->runs, walk->run_capacity, walk->run_count + 1);
	walk->runs[walk->run_count++] = run;
	walk->starts++;
	struct walk_event event = { .node = at,
		                    .id = order->reservation_id,
		                    .life = walk->nodes[at].boots };
	event.kind = WALK_RUN_BEGUN;
	walk_later(walk, between(&walk->random, 1, 50), event);
	event.kind = run->slot ? WALK_RUN_READY : WALK_RUN_ENDS;
	walk_later(walk, between(&walk->random, 60, 20000), event);
}

static void die(struct walk *walk, struct run *run)
{
	struct walk_event event = { .kind = WALK_RUN_GONE,
		                    .node = run->node,
		                    .id = run->reservation_id,
		                    .life = walk->nodes[run->node].boots };

	if (!run->alive || run->exited)
		return;
	run->exited = true;
	walk_later(walk, between(&walk->random, 0, 30), event);
	apply(walk, run->node,
	      (struct input){ .kind = INPUT_EXITED,
	                      .event = { .reservation_id = run->reservation_id,
	                                 .exit_code = run->exit_code } });
}

static void tell(struct walk *walk, int at, int64_t reservation_id, bool kill)
{
	struct run *run = run_of(walk, at, reservation_id);
	struct walk_event event = { .kind = WALK_RUN_DIES,
		                    .node = at,
		                    .id = reservation_id,
		                    .life = walk->nodes[at].boots };

	if (!run || !run->alive || (!kill && run->stubborn))
		return;
	if (!run->exited)
		run->told = true;
	run->exit_code = run->exited ? run->exit_code : kill ? 137 : 143;
	walk_later(walk, between(&walk->random, 1, kill ? 20 : 3000), event);
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
		start(walk, at, output->order);
		break;
	case OUTPUT_NOTICE:
		tell(walk, at, output->key, false);
		break;
	case OUTPUT_KILL:
		tell(walk, at, output->key, true);
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
			                        .capacity_mib = CAPACITY_MIB,
			                        .overhead_mib = OVERHEAD_MIB,
			                        .used_mib = in_use_mib(walk, at, g),
			                        .temperature_c = 40,
			                        .utilisation = 500,
			                        .healthy = true };
	struct input input = { .kind = INPUT_MEASURED };
	input.measured = (struct measured){ .number = number,
		                            .gpus = gpus,
		                            .gpu_count = node->gpu_count,
		                            .processes = processes,
		                            .process_count = read_processes(walk, at, processes) };
	apply(walk, at, input);
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
	apply(walk, at, input);
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
		apply(walk, at, input);
		input.kind = INPUT_EXITED;
		if (run->exited)
			apply(walk, at, input);
		input.kind = INPUT_GONE;
		if (!run->alive)
			apply(walk, at, input);
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

/* The keeper of tasks that stop without a lease does not need the agent. */
void machine_guard(struct walk *walk)
{
	for (size_t i = 0; i < walk->run_count; i++) {
		struct run *run = walk->runs[i];
		int64_t until_ms = walk->nodes[run->node].lease_until_ms;
		run->lease_lost = run->lease_lost || (run->lease_stop && until_ms <= walk->now_ms);
		if (!run->alive || !run->lease_stop || run->exited ||
		    until_ms + run->grace_ms > walk->now_ms)
			continue;
		run->told = true;
		run->exit_code = 137;
		die(walk, run);
	}
}

/* Most use no more than they reserved. */
static void grow(struct walk *walk, struct run *run)
{
	for (int g = 0; g < WALK_GPUS; g++)
		if (run->reserved_mib[g] > 0)
			run->used_mib[g] = walk_fails(walk, 20)
			                       ? run->reserved_mib[g] + 300
			                       : between(&walk->random, 1, run->reserved_mib[g]);
}

static void run_event(struct walk *walk, const struct walk_event *event)
{
	struct run *run = run_of(walk, event->node, event->id);
	struct input input = { .event = { .reservation_id = event->id } };

	if (!run || walk->nodes[event->node].boots != event->life)
		return;
	switch (event->kind) {
	case WALK_RUN_BEGUN:
		input.kind = INPUT_STARTED;
		input.event.pid = 100 + event->id;
		if (run->alive && !run->exited) {
			grow(walk, run);
			apply(walk, event->node, input);
		}
		break;
	case WALK_RUN_ENDS:
		if (!run->exited && !run->told) {
			walk->ends++;
			walk->ended_itself[run->job_id] = true;
			die(walk, run);
		}
		break;
	case WALK_RUN_DIES:
		die(walk, run);
		break;
	case WALK_RUN_READY:
		input.kind = INPUT_READY;
		input.event.address = "here";
		if (run->alive && !run->exited)
			apply(walk, event->node, input);
		break;
	case WALK_RUN_GONE: {
		struct walk_event back = *event;
		back.kind = WALK_RUN_BACK;
		run->alive = false;
		walk_later(walk,
		           walk_fails(walk, 100) ? between(&walk->random, 1, 60000)
		                                 : between(&walk->random, 0, 300),
		           back);
		input.kind = INPUT_GONE;
		apply(walk, event->node, input);
		break;
	}
	default:
		run->holds_memory = false;
		break;
	}
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
		apply(walk, event->node, input);
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
			apply(walk, event->node, (struct input){ .kind = INPUT_CONNECTED });
		break;
	case WALK_AGENT_TICK:
		if (event->life < 0) {
			wake(walk, event->node);
		} else if (same_life) {
			walk_later(walk, 100, *event);
			apply(walk, event->node, (struct input){ .kind = INPUT_TIME });
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
