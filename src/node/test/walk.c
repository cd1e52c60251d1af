/* walk.c - events in the order of their time, a network that loses, and faults */
#include "node/test/walk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool goes_before(const struct walk_event *a, const struct walk_event *b)
{
	return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->number < b->number;
}

static void push(struct walk *walk, struct walk_event *event)
{
	array_reserve(walk->events, walk->event_capacity, walk->event_count + 1);
	size_t at = walk->event_count++;
	for (; at > 0 && goes_before(event, walk->events[(at - 1) / 2]); at = (at - 1) / 2)
		walk->events[at] = walk->events[(at - 1) / 2];
	walk->events[at] = event;
}

static struct walk_event *pop(struct walk *walk)
{
	struct walk_event *first = walk->events[0], *last = walk->events[--walk->event_count];
	size_t at = 0, child;

	while ((child = 2 * at + 1) < walk->event_count) {
		if (child + 1 < walk->event_count &&
		    goes_before(walk->events[child + 1], walk->events[child]))
			child++;
		if (!goes_before(walk->events[child], last))
			break;
		walk->events[at] = walk->events[child];
		at = child;
	}
	if (walk->event_count > 0)
		walk->events[at] = last;
	return first;
}

void walk_later(struct walk *walk, int64_t wait_ms, struct walk_event event)
{
	struct walk_event *copy = memory_alloc(sizeof(*copy));

	*copy = event;
	copy->at_ms = walk->now_ms + wait_ms;
	copy->number = ++walk->last_event;
	push(walk, copy);
}

bool walk_fails(struct walk *walk, int in_thousand)
{
	return walk->faults && rarely(&walk->random, in_thousand);
}

static void show(const struct walk *walk, enum walk_event_kind to, int node, const void *data,
                 size_t size, int copies)
{
	struct arena arena = { 0 };
	struct buffer text = { 0 };
	struct error error = { 0 };
	const struct message *message = message_decode(&arena, data, size, &error);

	if (message && message->kind != MESSAGE_BEAT && message->kind != MESSAGE_RENEW) {
		message_print(&text, message);
		fprintf(stderr, "%lld %s node-%d%s: %s\n", (long long)walk->now_ms,
		        to == WALK_TO_AGENT ? "to" : "from", node, copies == 0 ? " (lost)" : "",
		        text.data);
	}
	buffer_free(&text);
	arena_free(&arena);
}

/* Messages are lost, repeated, and overtake each other. */
void walk_send(struct walk *walk, enum walk_event_kind to, int node, const void *data, size_t size)
{
	int copies = 1;

	if (walk_fails(walk, 60))
		copies = 0;
	else if (walk_fails(walk, 60))
		copies = 2;
	walk->lost_messages += copies == 0;
	if (walk->verbose)
		show(walk, to, node, data, size, copies);
	for (int i = 0; i < copies; i++) {
		struct walk_event event = { .kind = to, .node = node, .size = size };
		event.data = memory_alloc(size);
		memcpy(event.data, data, size);
		int64_t wait_ms = between(&walk->random, 1, 5);
		if (walk_fails(walk, 100))
			wait_ms = between(&walk->random, 1, 8000);
		walk_later(walk, wait_ms, event);
	}
}

static void submit(struct walk *walk)
{
	static const enum gpu_kind kinds[] = { GPU_MEMORY, GPU_MEMORY, GPU_FRACTION, GPU_WHOLE,
		                               GPU_NONE };
	struct command command = { .kind = COMMAND_SUBMIT };
	struct job_record *job = &command.submit.job;

	if (walk->jobs + 1 >= WALK_JOBS)
		return;
	*job = (struct job_record){ .tenant_id = walk->tenant_id,
		                    .name = "job",
		                    .payload = "",
		                    .gpu_models = "",
		                    .node_labels = "",
		                    .idempotency_key = "",
		                    .cpu_milli = 100,
		                    .gpu_kind = (int32_t)ONE_OF(&walk->random, kinds) };
	job->gpu_count = job->gpu_kind == GPU_NONE ? 0 : chance(&walk->random, 80) ? 1 : 2;
	if (job->gpu_kind == GPU_MEMORY)
		job->memory_mib = between(&walk->random, 1, 60) * 100;
	if (job->gpu_kind == GPU_FRACTION)
		job->fraction = (int32_t)between(&walk->random, 1, 10) * 100;
	job->lease_loss = chance(&walk->random, 40) ? LEASE_STOP : LEASE_KEEP;
	int64_t id = server_apply(walk, &command);
	INVARIANT(id < WALK_JOBS);
	walk->jobs += id > 0;
	walk->keeps[id] = job->lease_loss == LEASE_KEEP;
	walk->ended_itself[id] = false; /* an id that was never stored is given out again */
}

static void workload(struct walk *walk)
{
	if (walk->server.sched && walk->faults && server_waiting(walk) < 25)
		submit(walk);
	if (walk->server.sched && walk_fails(walk, 30)) {
		struct command command = { .kind = COMMAND_CANCEL,
			                   .id = between(&walk->random, 1, walk->jobs + 1) };
		server_apply(walk, &command);
	}
	walk_later(walk, between(&walk->random, 10, 3000),
	           (struct walk_event){ .kind = WALK_WORKLOAD });
}

static void fault(struct walk *walk)
{
	if (!walk->faults)
		return;
	if (chance(&walk->random, 15))
		server_crash(walk);
	else
		machine_fault(walk, (int)between(&walk->random, 0, WALK_NODES - 1));
	walk_later(walk, between(&walk->random, 100, 30000),
	           (struct walk_event){ .kind = WALK_FAULT });
}

static void dispatch(struct walk *walk, const struct walk_event *event)
{
	switch (event->kind) {
	case WALK_TO_SERVER:
	case WALK_SERVER_TICK:
	case WALK_SERVER_UP:
	case WALK_SERVER_COMMIT:
		server_event(walk, event);
		break;
	case WALK_WORKLOAD:
		workload(walk);
		break;
	case WALK_FAULT:
		fault(walk);
		break;
	default:
		machine_event(walk, event);
		break;
	}
}

static void step(struct walk *walk)
{
	struct walk_event *event = pop(walk);

	walk->now_ms = max64(walk->now_ms, event->at_ms);
	run_guard(walk);
	dispatch(walk, event);
	free(event->data);
	free(event);
}

void walk_init(struct walk *walk, uint64_t seed)
{
	*walk = (struct walk){ .random = seed, .now_ms = 1000000, .faults = true };
	server_init(walk);
	for (int i = 0; i < WALK_NODES; i++)
		machine_init(walk, i);
	walk_later(walk, 1, (struct walk_event){ .kind = WALK_WORKLOAD });
	walk_later(walk, 5000, (struct walk_event){ .kind = WALK_FAULT });
}

void walk_free(struct walk *walk)
{
	for (size_t i = 0; i < walk->event_count; i++) {
		free(walk->events[i]->data);
		free(walk->events[i]);
	}
	free(walk->events);
	for (int i = 0; i < WALK_NODES; i++)
		machine_free(&walk->nodes[i]);
	for (size_t i = 0; i < walk->run_count; i++)
		free(walk->runs[i]);
	free(walk->runs);
	server_free(&walk->server);
}

void walk_go(struct walk *walk, int64_t steps)
{
	for (int64_t i = 0; i < steps; i++)
		step(walk);
	walk->faults = false;
	for (int i = 0; i < WALK_NODES; i++)
		machine_mend(walk, i);
	int64_t end_ms = walk->now_ms + INT64_C(3600) * 1000;
	while (walk->now_ms < end_ms && !server_is_done(walk))
		step(walk);
	if (server_is_done(walk))
		return;
	server_print(walk);
	panic("an hour after the last fault, not everything is done");
}
