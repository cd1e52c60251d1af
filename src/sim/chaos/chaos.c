/* chaos.c - events in the order of their time, a network that loses, and faults */
#include "sim/chaos/chaos.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "sim/chaos/chaos_world.h"

/* Everyone is served so long after the last fault. The core's clock may stand still
 * for as long as the wall clock had been ahead. */
#define QUIET_MS (INT64_C(3) * 3600 * 1000)

const char *const chaos_class_names[CHAOS_CLASSES] = {
	[CHAOS_LOSS] = "loss",
	[CHAOS_REPEAT] = "repeat",
	[CHAOS_DELAY] = "delay",
	[CHAOS_CRASH] = "crash",
	[CHAOS_HANG] = "hang",
	[CHAOS_POWER] = "power",
	[CHAOS_GIVE_UP] = "give-up",
	[CHAOS_DRAIN] = "drain",
	[CHAOS_STRANGER] = "stranger",
	[CHAOS_LATE] = "late",
	[CHAOS_MEASURE] = "measure",
	[CHAOS_OVERUSE] = "overuse",
	[CHAOS_HARDWARE] = "hardware",
	[CHAOS_CLOCK] = "clock",
	[CHAOS_KILL] = "kill",
	[CHAOS_SECOND] = "second",
	[CHAOS_IMPATIENCE] = "impatience",
	[CHAOS_LIE] = "lie",
	[CHAOS_SUSPEND] = "suspend",
};

static bool chaos_goes_before(const struct chaos_event *a, const struct chaos_event *b)
{
	return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->number < b->number;
}

static void push(struct chaos *chaos, struct chaos_event *event)
{
	array_reserve(chaos->events, chaos->event_capacity, chaos->event_count + 1);
	size_t at = chaos->event_count++;
	for (; at > 0 && chaos_goes_before(event, chaos->events[(at - 1) / 2]); at = (at - 1) / 2)
		chaos->events[at] = chaos->events[(at - 1) / 2];
	chaos->events[at] = event;
}

static struct chaos_event *pop(struct chaos *chaos)
{
	struct chaos_event *first = chaos->events[0], *last = chaos->events[--chaos->event_count];
	size_t at = 0, child;

	while ((child = 2 * at + 1) < chaos->event_count) {
		if (child + 1 < chaos->event_count &&
		    chaos_goes_before(chaos->events[child + 1], chaos->events[child]))
			child++;
		if (!chaos_goes_before(chaos->events[child], last))
			break;
		chaos->events[at] = chaos->events[child];
		at = child;
	}
	if (chaos->event_count > 0)
		chaos->events[at] = last;
	return first;
}

void chaos_later(struct chaos *chaos, int64_t wait_ms, struct chaos_event event)
{
	struct chaos_event *copy = memory_alloc(sizeof(*copy));

	*copy = event;
	copy->at_ms = chaos->now_ms + wait_ms;
	copy->number = ++chaos->last_event;
	push(chaos, copy);
}

bool chaos_fails(struct chaos *chaos, enum chaos_class class, int in_thousand)
{
	return chaos->faults && chaos->rate[class] > 0 &&
	       (int)random_below(&chaos->dice[class], 100000) < in_thousand * chaos->rate[class];
}

void chaos_note(struct chaos *chaos, const char *format, ...)
{
	struct chaos_result *result = chaos->result;
	char *line = result->last[result->last_count++ % CHAOS_LAST];
	va_list arguments;

	int size = snprintf(line, CHAOS_LINE, "%lld ms: ", (long long)chaos->now_ms);
	va_start(arguments, format);
	vsnprintf(line + size, CHAOS_LINE - (size_t)size, format, arguments);
	va_end(arguments);
	if (chaos->verbose)
		fprintf(stderr, "%s\n", line);
}

void chaos_broken(struct chaos *chaos, const char *invariant, const char *format, ...)
{
	struct chaos_result *result = chaos->result;
	va_list arguments;

	if (chaos_is_broken(chaos))
		return;
	snprintf(result->invariant, sizeof(result->invariant), "%s", invariant);
	va_start(arguments, format);
	vsnprintf(result->message, sizeof(result->message), format, arguments);
	va_end(arguments);
}

static void note_message(struct chaos *chaos, enum chaos_event_kind to, int node, const void *data,
                         size_t size, int copies)
{
	struct arena arena = { 0 };
	struct buffer text = { 0 };
	struct error error = { 0 };
	const struct message *message = message_decode(&arena, data, size, &error);
	const char *way = to == HAPPEN_TO_AGENT ? "to" : "from";
	const char *fate = copies == 0 ? " (lost)" : copies > 1 ? " (twice)" : "";

	if (message && chaos->verbose && message->kind != MESSAGE_BEAT &&
	    message->kind != MESSAGE_RENEW) {
		message_print(&text, message);
		fprintf(stderr, "%s\n", text.data);
	}
	if (message && message->kind == MESSAGE_ORDER)
		chaos_note(chaos, "%s node-%d: order %d of %lld, term %lld%s", way, node,
		           message->order.kind, (long long)message->order.reservation_id,
		           (long long)message->term, fate);
	else if (message && message->kind == MESSAGE_CHANGE)
		chaos_note(chaos, "%s node-%d: %s %lld%s", way, node,
		           change_kind_name(message->change.kind),
		           (long long)message->change.reservation_id, fate);
	else if (message && message->kind != MESSAGE_BEAT && message->kind != MESSAGE_RENEW &&
	         message->kind != MESSAGE_ACK)
		chaos_note(chaos, "%s node-%d: %s, connection %lld, term %lld%s", way, node,
		           message_kind_name(message->kind), (long long)message->connection,
		           (long long)message->term, fate);
	buffer_free(&text);
	arena_free(&arena);
}

/* Messages are lost, repeated, and late, so that others overtake them. */
void chaos_send(struct chaos *chaos, enum chaos_event_kind to, int node, int server,
                const void *data, size_t size)
{
	int copies = 1;

	if (chaos_fails(chaos, CHAOS_LOSS, 60))
		copies = 0;
	else if (chaos_fails(chaos, CHAOS_REPEAT, 60))
		copies = 2;
	chaos->result->lost += copies == 0;
	note_message(chaos, to, node, data, size, copies);
	for (int i = 0; i < copies; i++) {
		struct chaos_event event = {
			.kind = to, .node = node, .server = server, .size = size
		};
		event.data = memory_alloc(size);
		memcpy(event.data, data, size);
		int64_t *last_ms = &chaos->nodes[node].arrives_ms[to == HAPPEN_TO_AGENT];
		*last_ms = max64(*last_ms, chaos->now_ms + between(&chaos->random, 1, 5));
		int64_t wait_ms = *last_ms - chaos->now_ms;
		if (chaos_fails(chaos, CHAOS_DELAY, 100))
			wait_ms = between(&chaos->dice[CHAOS_DELAY], 1, 8000);
		chaos_later(chaos, wait_ms, event);
	}
}

static void jump(struct chaos *chaos)
{
	chaos->wall_ms = between(&chaos->dice[CHAOS_CLOCK], -600, 600) * 1000;
	chaos_note(chaos, "the wall clock is off by %lld ms", (long long)chaos->wall_ms);
}

static void chaos_drain(struct chaos *chaos, int at)
{
	struct command command = { .kind = COMMAND_NODE_DRAIN };

	command.drain.name = chaos->nodes[at].name;
	command.drain.draining = chance(&chaos->dice[CHAOS_DRAIN], 40);
	server_decide(chaos, 0, &command);
}

static void fault(struct chaos *chaos)
{
	int at = (int)between(&chaos->random, 0, chaos->node_count - 1);

	if (!chaos->faults)
		return;
	if (chaos_fails(chaos, CHAOS_KILL, 80))
		server_crash(chaos, 0);
	if (chaos_fails(chaos, CHAOS_SECOND, 80))
		server_take_over(chaos);
	if (chaos_fails(chaos, CHAOS_CRASH, 200))
		machine_crash(chaos, at);
	if (chaos_fails(chaos, CHAOS_POWER, 60))
		machine_lose_power(chaos, at);
	if (chaos_fails(chaos, CHAOS_HANG, 80))
		machine_hang(chaos, at);
	if (chaos_fails(chaos, CHAOS_GIVE_UP, 100))
		server_give_up(chaos, at);
	if (chaos_fails(chaos, CHAOS_DRAIN, 100))
		chaos_drain(chaos, at);
	if (chaos_fails(chaos, CHAOS_CLOCK, 60))
		jump(chaos);
	if (chaos_fails(chaos, CHAOS_LIE, 200))
		liar_speak(chaos);
	measure_fault(chaos, at);
	chaos_later(chaos, between(&chaos->random, 100, 15000),
	            (struct chaos_event){ .kind = HAPPEN_FAULT });
}

static void chaos_dispatch(struct chaos *chaos, const struct chaos_event *event)
{
	switch (event->kind) {
	case HAPPEN_TO_SERVER:
	case HAPPEN_SERVER_TICK:
	case HAPPEN_SERVER_UP:
	case HAPPEN_SERVER_COMMIT:
	case HAPPEN_SERVER_TELL:
	case HAPPEN_SERVER_STOPS:
		server_event(chaos, event);
		break;
	case HAPPEN_CLIENT:
		client_event(chaos);
		break;
	case HAPPEN_REQUEST:
		request_event(chaos, event);
		break;
	case HAPPEN_FAULT:
		fault(chaos);
		break;
	default:
		machine_event(chaos, event);
		break;
	}
}

static void chaos_step(struct chaos *chaos)
{
	int64_t due_ms;

	while ((due_ms = run_guard_ms(chaos)) <= chaos->events[0]->at_ms) {
		chaos->now_ms = max64(chaos->now_ms, due_ms);
		run_guard(chaos);
	}
	struct chaos_event *event = pop(chaos);
	chaos->now_ms = max64(chaos->now_ms, event->at_ms);
	chaos->result->now_ms = chaos->now_ms;
	chaos->result->step = ++chaos->steps;
	chaos->result->digest = hash_combine(
	    chaos->result->digest,
	    hash_combine((uint64_t)chaos->now_ms,
	                 (uint64_t)event->kind * 1000 + (uint64_t)event->node +
	                     (uint64_t)event->id * 100000 + (uint64_t)event->size * 7));
	chaos_dispatch(chaos, event);
	free(event->data);
	free(event);
	check_after_step(chaos);
}

/* In a third of the runs a class is left out: with fewer kinds of faults some things
 * happen that would not otherwise. */
static void draw_rates(struct chaos *chaos, const struct chaos_options *options)
{
	static const int rates[] = { 0, 0, 25, 100, 100, 250 };

	for (int i = 0; i < CHAOS_CLASSES; i++) {
		chaos->dice[i] = options->seed * 1000003 + (uint64_t)i * 7919 + 1;
		random_next(&chaos->dice[i]);
		int rate = ONE_OF(&chaos->dice[i], rates);
		chaos->rate[i] = options->without & (1U << i) ? 0 : rate;
	}
}

static void chaos_begin(struct chaos *chaos, const struct chaos_options *options)
{
	chaos->random = options->seed;
	chaos->now_ms = 1000000000;
	chaos->verbose = options->verbose;
	draw_rates(chaos, options);
	cluster_policies(chaos);
	cluster_init(chaos);
	server_init(chaos);
	chaos->faults = true;
	chaos_later(chaos, 1, (struct chaos_event){ .kind = HAPPEN_CLIENT });
	chaos_later(chaos, 5000, (struct chaos_event){ .kind = HAPPEN_FAULT });
}

static void chaos_end(struct chaos *chaos)
{
	for (size_t i = 0; i < chaos->event_count; i++) {
		free(chaos->events[i]->data);
		free(chaos->events[i]);
	}
	free(chaos->events);
	for (int i = 0; i < chaos->node_count; i++)
		machine_free(&chaos->nodes[i]);
	for (size_t i = 0; i < chaos->run_count; i++)
		free(chaos->runs[i]);
	free(chaos->runs);
	server_free(chaos);
	client_free(chaos);
	world_free(&chaos->store);
	map_free(&chaos->stopped);
}

static void mend(struct chaos *chaos)
{
	chaos_note(chaos, "nothing fails any more");
	chaos->faults = false;
	chaos->wall_ms = 0;
	chaos->quiet_ms = chaos->now_ms;
	run_mend(chaos);
	for (int i = 0; i < chaos->node_count; i++)
		machine_mend(chaos, i);
}

static void quiet(struct chaos *chaos)
{
	struct buffer missing = { 0 };
	int64_t end_ms = chaos->now_ms + QUIET_MS;

	mend(chaos);
	while (!chaos_is_broken(chaos) && chaos->now_ms < end_ms &&
	       (chaos->steps % 16 > 0 || !check_done(chaos, NULL)))
		chaos_step(chaos);
	if (!chaos_is_broken(chaos) && !check_done(chaos, &missing))
		chaos_broken(chaos, "served", "three hours after the last fault, %s", missing.data);
	buffer_free(&missing);
}

void chaos_run(const struct chaos_options *options, struct chaos_result *result)
{
	struct chaos *chaos = NEW(struct chaos);

	*result = (struct chaos_result){ 0 };
	chaos->result = result;
	chaos_begin(chaos, options);
	while (!chaos_is_broken(chaos) && chaos->steps < options->steps)
		chaos_step(chaos);
	if (!chaos_is_broken(chaos))
		quiet(chaos);
	chaos_end(chaos);
	free(chaos);
}
