/* chaos_run.c - what really runs on nodes */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/chaos/chaos_world.h"

struct run *run_of(const struct chaos *chaos, int at, int64_t reservation_id)
{
	for (size_t i = chaos->run_count; i-- > 0;)
		if (chaos->runs[i]->reservation_id == reservation_id && chaos->runs[i]->node == at)
			return chaos->runs[i];
	return NULL;
}

int run_gpu(const struct chaos_node *node, const char *uuid)
{
	for (int i = 0; i < node->gpu_count; i++)
		if (strcmp(node->gpus[i].uuid, uuid) == 0)
			return i;
	return -1;
}

int64_t run_in_use_mib(const struct chaos *chaos, int at, int gpu)
{
	const struct chaos_gpu *there = &chaos->nodes[at].gpus[gpu];
	int64_t sum = there->standing_mib + there->stranger_mib;

	for (size_t i = 0; i < chaos->run_count; i++)
		if (chaos->runs[i]->node == at && chaos->runs[i]->holds_memory)
			sum += chaos->runs[i]->used_mib[gpu];
	return sum;
}

static struct run *new_run(struct chaos *chaos, int at, const struct node_order *order)
{
	struct run *run = NEW(struct run);

	*run = (struct run){ .number = ++chaos->last_run,
		             .boots = chaos->nodes[at].boots,
		             .reservation_id = order->reservation_id,
		             .job_id = order->job_id,
		             .task = order->task,
		             .node = at,
		             .slot = order->kind == ORDER_LOAD,
		             .alive = true,
		             .holds_memory = order->part_count > 0,
		             .traced = true,
		             .stubborn = chance(&chaos->random, 20),
		             .given_up = chaos->nodes[at].mistaken,
		             .started_ms = chaos->now_ms,
		             .max_runtime_ms = order->max_runtime_ms,
		             .lease_stop = order->lease_loss == LEASE_STOP,
		             .host_bytes = order->host_bytes,
		             .grace_ms = order->grace_ms };
	if (run->slot)
		snprintf(run->model, sizeof(run->model), "%s", order->model);
	for (int64_t i = 0; i < order->part_count; i++) {
		int gpu = run_gpu(&chaos->nodes[at], order->parts[i].uuid);
		if (gpu < 0)
			continue;
		run->reserved_mib[gpu] = order->parts[i].memory_mib;
		run->used_mib[gpu] = 1; /* until it has begun */
	}
	array_reserve(chaos->runs, chaos->run_capacity, chaos->run_count + 1);
	chaos->runs[chaos->run_count++] = run;
	return run;
}

void run_start(struct chaos *chaos, int at, const struct node_order *order)
{
	struct chaos_event event = { .node = at };
	uint64_t *random = &chaos->random;

	chaos_note(chaos, "node-%d starts %lld: job %lld task %lld model %lld", at,
	           (long long)order->reservation_id, (long long)order->job_id,
	           (long long)order->task, (long long)order->model_id);
	check_start(chaos, at, order);
	const struct run *run = new_run(chaos, at, order);
	chaos->result->starts++;
	event.id = run->number;
	event.kind = HAPPEN_RUN_BEGUN;
	chaos_later(chaos, between(random, 1, 50), event);
	event.kind = run->slot ? HAPPEN_RUN_READY : HAPPEN_RUN_ENDS;
	chaos_later(chaos,
	            chance(random, 90) ? between(random, 60, 20000) : between(random, 60, 120000),
	            event);
	event.kind = HAPPEN_RUN_CHECKPOINT;
	if (!run->slot && chance(random, 30))
		chaos_later(chaos, between(random, 60, 20000), event);
	event.kind = HAPPEN_RUN_ENDS; /* a slot dies */
	if (run->slot && chaos_fails(chaos, CHAOS_HARDWARE, 100))
		chaos_later(chaos, between(random, 60, 60000), event);
}

/* Its node ends it for these reasons by itself, and then its job fails. */
static bool may_be_ended(const struct chaos *chaos, const struct run *run)
{
	return run->over ||
	       (run->max_runtime_ms > 0 && chaos->now_ms - run->started_ms >= run->max_runtime_ms);
}

static void die(struct chaos *chaos, struct run *run)
{
	struct chaos_event event = { .kind = HAPPEN_RUN_GONE,
		                     .node = run->node,
		                     .id = run->number };

	if (!run->alive || run->exited)
		return;
	chaos_note(chaos, "%lld on node-%d ends with %lld", (long long)run->reservation_id,
	           run->node, (long long)run->exit_code);
	check_lease(chaos, run->node);
	run->exited = true;
	run->exited_ms = machine_now(chaos, run->node);
	struct chaos_job *job = client_job(chaos, run->job_id);
	if (job && may_be_ended(chaos, run))
		job->failed = true;
	chaos_later(chaos, between(&chaos->random, 0, 30), event);
	machine_apply(chaos, run->node,
	              (struct input){ .kind = INPUT_EXITED,
	                              .event = { .reservation_id = run->reservation_id,
	                                         .exit_code = run->exit_code,
	                                         .exited_ms = run->exited_ms } });
}

void run_tell(struct chaos *chaos, int at, int64_t reservation_id, bool kill)
{
	struct run *run = run_of(chaos, at, reservation_id);
	struct chaos_event event = { .kind = HAPPEN_RUN_DIES, .node = at };

	if (!run || !run->alive)
		return;
	if (!kill && run->stubborn)
		return;
	run->told = run->told || !run->exited;
	run->exit_code = run->exited ? run->exit_code : kill ? 137 : 143;
	event.id = run->number;
	chaos_later(chaos, between(&chaos->random, 1, kill ? 20 : 3000), event);
}

static int64_t guard_ms(const struct chaos *chaos, const struct run *run)
{
	const struct chaos_node *node = &chaos->nodes[run->node];

	if (!run->alive || !run->lease_stop || run->exited)
		return INT64_MAX;
	return node->lease_until_ms - node->clock_ms + run->grace_ms;
}

int64_t run_guard_ms(const struct chaos *chaos)
{
	int64_t first_ms = INT64_MAX;

	for (size_t i = 0; i < chaos->run_count; i++)
		first_ms = min64(first_ms, guard_ms(chaos, chaos->runs[i]));
	return first_ms;
}

/* The keeper of tasks that stop without a lease does not need the agent. */
void run_guard(struct chaos *chaos)
{
	for (size_t i = 0; i < chaos->run_count; i++) {
		struct run *run = chaos->runs[i];
		if (guard_ms(chaos, run) > chaos->now_ms)
			continue;
		run->told = run->lease_lost = true;
		run->exit_code = 137;
		die(chaos, run);
	}
}

/* Most use no more than they reserved. */
static void grow(struct chaos *chaos, struct run *run)
{
	for (int g = 0; g < CHAOS_GPUS; g++) {
		if (run->reserved_mib[g] <= 0)
			continue;
		run->used_mib[g] = between(&chaos->random, 1, run->reserved_mib[g]);
		if (!chaos_fails(chaos, CHAOS_OVERUSE, 20))
			continue;
		run->used_mib[g] = run->reserved_mib[g] + 300;
		run->over = true;
	}
}

static void end_itself(struct chaos *chaos, struct run *run)
{
	struct chaos_job *job = client_job(chaos, run->job_id);

	if (run->exited || run->told)
		return;
	if (run->away || run->moving) {
		run->due = true;
		return;
	}
	chaos->result->ends++;
	run->exit_code = run->slot || chance(&chaos->random, 3) ? 1 : 0;
	if (job && run->exit_code != 0)
		job->failed = true;
	if (job && run->exit_code == 0 && run->task < CHAOS_TASKS)
		job->ended |= UINT64_C(1) << run->task;
	if (job && job->single && job->keeps && !run->given_up &&
	    !map_get(&chaos->stopped, run->reservation_id))
		job->ended_itself = true;
	die(chaos, run);
}

static void gone(struct chaos *chaos, struct run *run, const struct chaos_event *event)
{
	struct chaos_event back = *event;
	uint64_t *dice = &chaos->dice[CHAOS_LATE];
	int64_t wait_ms = between(&chaos->random, 0, 300);

	back.kind = HAPPEN_RUN_BACK;
	run->alive = false;
	if (chaos_fails(chaos, CHAOS_LATE, 100))
		wait_ms = between(dice, 1, 60000);
	run->stuck = run->holds_memory && chaos_fails(chaos, CHAOS_LATE, 10);
	if (!run->stuck)
		chaos_later(chaos, wait_ms, back);
	machine_apply(chaos, event->node,
	              (struct input){ .kind = INPUT_GONE,
	                              .event = { .reservation_id = run->reservation_id } });
}

static struct run *chaos_run_find(const struct chaos *chaos, int64_t number)
{
	for (size_t i = chaos->run_count; i-- > 0;)
		if (chaos->runs[i]->number == number)
			return chaos->runs[i];
	return NULL;
}

void run_event(struct chaos *chaos, const struct chaos_event *event)
{
	struct run *run = chaos_run_find(chaos, event->id);

	if (!run || chaos->nodes[event->node].boots != run->boots)
		return;
	struct input input = { .event = { .reservation_id = run->reservation_id } };
	bool runs = run->alive && !run->exited;
	char address[48];
	switch (event->kind) {
	case HAPPEN_RUN_BEGUN:
		input.kind = INPUT_STARTED;
		input.event.pid = 100 + run->reservation_id;
		if (runs && !run->away) {
			grow(chaos, run);
			machine_apply(chaos, event->node, input);
		}
		break;
	case HAPPEN_RUN_ENDS:
		end_itself(chaos, run);
		break;
	case HAPPEN_RUN_DIES:
		die(chaos, run);
		break;
	case HAPPEN_RUN_READY:
		input.kind = INPUT_READY;
		snprintf(address, sizeof(address), "http://%s:8000", chaos->nodes[run->node].name);
		input.event.address = address;
		if (runs)
			machine_apply(chaos, event->node, input);
		break;
	case HAPPEN_RUN_CHECKPOINT:
		input.kind = INPUT_CHECKPOINT;
		if (runs && !run->away)
			machine_apply(chaos, event->node, input);
		break;
	case HAPPEN_RUN_MOVED:
		run_moved(chaos, run);
		break;
	case HAPPEN_RUN_LEFT:
		run_left(run);
		break;
	case HAPPEN_RUN_GONE:
		gone(chaos, run, event);
		break;
	default:
		run->holds_memory = false;
		break;
	}
}

void run_lose_all(struct chaos *chaos, int at)
{
	for (size_t i = 0; i < chaos->run_count; i++) {
		struct run *run = chaos->runs[i];
		struct chaos_job *job = client_job(chaos, run->job_id);
		if (run->node != at)
			continue;
		if (job && run->alive && may_be_ended(chaos, run))
			job->failed = true;
		run->traced = run->traced && run->exited;
		run->told = run->told || !run->exited;
		run->alive = run->holds_memory = run->moving = false;
		run->exited_ms = 0;
	}
}

void run_mend(struct chaos *chaos)
{
	for (size_t i = 0; i < chaos->run_count; i++) {
		if (chaos->runs[i]->stuck)
			chaos->runs[i]->holds_memory = false;
		chaos->runs[i]->stuck = false;
	}
}

void run_tidy(struct chaos *chaos)
{
	size_t kept = 0;

	for (size_t i = 0; i < chaos->run_count; i++) {
		struct run *run = chaos->runs[i];
		if (run->alive || run->holds_memory || run->traced)
			chaos->runs[kept++] = run;
		else
			free(run);
	}
	chaos->run_count = kept;
}
