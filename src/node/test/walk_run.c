/* walk_run.c - what really runs on nodes, and what must never happen to it */
#include <string.h>

#include "node/test/walk.h"

struct run *run_of(const struct walk *walk, int at, int64_t reservation_id)
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

int64_t run_in_use_mib(const struct walk *walk, int at, int gpu)
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
	int64_t sum = WALK_OVERHEAD_MIB + node->standing_mib[gpu] + node->stranger_mib[gpu];

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
		if (sum > WALK_CAPACITY_MIB)
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

void run_start(struct walk *walk, int at, const struct node_order *order)
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
	machine_apply(walk, run->node,
	              (struct input){ .kind = INPUT_EXITED,
	                              .event = { .reservation_id = run->reservation_id,
	                                         .exit_code = run->exit_code } });
}

void run_tell(struct walk *walk, int at, int64_t reservation_id, bool kill)
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

/* The keeper of tasks that stop without a lease does not need the agent. */
void run_guard(struct walk *walk)
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

void run_event(struct walk *walk, const struct walk_event *event)
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
			machine_apply(walk, event->node, input);
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
			machine_apply(walk, event->node, input);
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
		machine_apply(walk, event->node, input);
		break;
	}
	default:
		run->holds_memory = false;
		break;
	}
}
