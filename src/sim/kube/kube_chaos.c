/* kube_chaos.c - events in the order of their time, and faults */
#include "sim/kube/kube_chaos.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "sim/kube/kube_world.h"

/* All pods have done their work so long after the last fault. */
#define SERVED_MS (INT64_C(2) * 3600 * 1000)

const char *const kube_class_names[KUBE_CLASSES] = {
	[KUBE_DOWN] = "down",         [KUBE_RESTART] = "restart",
	[KUBE_ROLLBACK] = "rollback", [KUBE_WATCH] = "watch",
	[KUBE_FORGET] = "forget",     [KUBE_ANSWER] = "answer",
	[KUBE_TIMEOUT] = "timeout",   [KUBE_FORCE] = "force",
	[KUBE_NODE] = "node",         [KUBE_HANG] = "hang",
	[KUBE_KILL] = "kill",         [KUBE_SECOND] = "second",
	[KUBE_OTHER] = "other",       [KUBE_IMPATIENCE] = "impatience",
};

static bool goes_before(const struct kube_event *a, const struct kube_event *b)
{
	return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->number < b->number;
}

void kube_later(struct kube *kube, int64_t wait_ms, struct kube_event event)
{
	struct kube_event *copy = memory_alloc(sizeof(*copy));

	*copy = event;
	copy->at_ms = kube->now_ms + wait_ms;
	copy->number = ++kube->last_event;
	array_reserve(kube->events, kube->event_capacity, kube->event_count + 1);
	size_t at = kube->event_count++;
	for (; at > 0 && goes_before(copy, kube->events[(at - 1) / 2]); at = (at - 1) / 2)
		kube->events[at] = kube->events[(at - 1) / 2];
	kube->events[at] = copy;
}

static struct kube_event *take_first(struct kube *kube)
{
	struct kube_event *first = kube->events[0], *last = kube->events[--kube->event_count];
	size_t at = 0, child;

	while ((child = 2 * at + 1) < kube->event_count) {
		if (child + 1 < kube->event_count &&
		    goes_before(kube->events[child + 1], kube->events[child]))
			child++;
		if (!goes_before(kube->events[child], last))
			break;
		kube->events[at] = kube->events[child];
		at = child;
	}
	if (kube->event_count > 0)
		kube->events[at] = last;
	return first;
}

bool kube_fails(struct kube *kube, enum kube_class class, int in_thousand)
{
	return kube->faults && kube->rate[class] > 0 &&
	       (int)random_below(&kube->dice[class], 100000) < in_thousand * kube->rate[class];
}

void kube_note(struct kube *kube, const char *format, ...)
{
	struct chaos_result *result = kube->result;
	char *line = result->last[result->last_count++ % CHAOS_LAST];
	va_list arguments;

	int size = snprintf(line, CHAOS_LINE, "%lld ms: ", (long long)kube->now_ms);
	va_start(arguments, format);
	vsnprintf(line + size, CHAOS_LINE - (size_t)size, format, arguments);
	va_end(arguments);
	if (kube->verbose)
		fprintf(stderr, "%s\n", line);
}

void kube_broken(struct kube *kube, const char *invariant, const char *format, ...)
{
	struct chaos_result *result = kube->result;
	va_list arguments;

	if (result->invariant[0])
		return;
	snprintf(result->invariant, sizeof(result->invariant), "%s", invariant);
	va_start(arguments, format);
	vsnprintf(result->message, sizeof(result->message), format, arguments);
	va_end(arguments);
}

static void break_something(struct kube *kube)
{
	int at = (int)kube_between(&kube->random, 0, kube->machine_count - 1);

	if (!kube->faults)
		return;
	if (kube_fails(kube, KUBE_DOWN, 40))
		api_restart(kube, kube_between(&kube->dice[KUBE_DOWN], 5000, 240000));
	if (kube_fails(kube, KUBE_RESTART, 60))
		api_restart(kube, kube_between(&kube->dice[KUBE_RESTART], 0, 3000));
	if (kube_fails(kube, KUBE_ROLLBACK, 25))
		api_roll_back(kube);
	if (kube_fails(kube, KUBE_FORGET, 150))
		api_forget(kube);
	if (kube_fails(kube, KUBE_NODE, 60))
		machine_power(kube, at);
	if (kube_fails(kube, KUBE_HANG, 80))
		machine_hangs(kube, at);
	if (kube_fails(kube, KUBE_KILL, 80))
		leader_crash(kube, 0);
	if (kube_fails(kube, KUBE_SECOND, 80))
		leader_take_over(kube);
	for (int i = 0; i < 2; i++)
		if (kube->leaders[i] && kube_fails(kube, KUBE_WATCH, 100))
			leader_cut(kube, kube->leaders[i],
			           kube_between(&kube->dice[KUBE_WATCH], 0, 20000));
	api_snapshot(kube);
	kube_later(kube, kube_between(&kube->random, 100, 15000),
	           (struct kube_event){ .kind = HAPPEN_BREAK });
}

static void dispatch(struct kube *kube, const struct kube_event *event)
{
	switch (event->kind) {
	case HAPPEN_KUBELET:
		machine_kubelet(kube, event->at);
		break;
	case HAPPEN_CONTROLLERS:
		machine_watch_over(kube);
		people_controllers(kube);
		break;
	case HAPPEN_PEOPLE:
		people_want(kube);
		break;
	case HAPPEN_BREAK:
		break_something(kube);
		break;
	default:
		leader_event(kube, event);
		break;
	}
}

static void kube_step(struct kube *kube)
{
	struct kube_event *event = take_first(kube);

	kube->now_ms = max64(kube->now_ms, event->at_ms);
	kube->result->now_ms = kube->now_ms;
	kube->result->step = ++kube->steps;
	kube->result->digest = hash_combine(
	    kube->result->digest,
	    hash_combine((uint64_t)kube->now_ms,
	                 (uint64_t)event->kind * 1000 + (uint64_t)event->at +
	                     (uint64_t)event->call * 100000 + (uint64_t)kube->api.version * 7));
	dispatch(kube, event);
	free(event);
	kube_check(kube);
}

static void draw_kube_rates(struct kube *kube, const struct chaos_options *options)
{
	static const int rates[] = { 0, 0, 25, 100, 100, 250 };

	for (int i = 0; i < KUBE_CLASSES; i++) {
		kube->dice[i] = options->seed * 1000003 + (uint64_t)i * 7919 + 1;
		random_next(&kube->dice[i]);
		int rate = rates[random_below(&kube->dice[i], sizeof(rates) / sizeof(rates[0]))];
		kube->rate[i] = options->without & (1U << i) ? 0 : rate;
	}
}

static void kube_begin(struct kube *kube, const struct chaos_options *options)
{
	kube->random = options->seed;
	kube->now_ms = INT64_C(1700000000000);
	kube->verbose = options->verbose;
	draw_kube_rates(kube, options);
	api_init(kube);
	machines_init(kube);
	people_init(kube);
	leader_init(kube);
	kube->faults = true;
	kube_later(kube, 1, (struct kube_event){ .kind = HAPPEN_CONTROLLERS });
	kube_later(kube, 2, (struct kube_event){ .kind = HAPPEN_PEOPLE });
	kube_later(kube, 5000, (struct kube_event){ .kind = HAPPEN_BREAK });
}

static void kube_end(struct kube *kube)
{
	leader_free_all(kube);
	for (size_t i = 0; i < kube->event_count; i++) {
		request_free(kube->events[i]->request);
		free(kube->events[i]);
	}
	free(kube->events);
	machines_free(kube);
	api_free(kube);
	world_free(&kube->store);
	text_map_free(&kube->doubtful);
	text_map_free(&kube->forced);
}

static void kube_quiet(struct kube *kube)
{
	struct buffer missing = { 0 };
	int64_t end_ms = kube->now_ms + SERVED_MS;

	kube_note(kube, "nothing fails any more");
	kube->faults = false;
	kube->quiet_ms = kube->now_ms;
	kube->api.down_until_ms = min64(kube->api.down_until_ms, kube->now_ms);
	machines_mend(kube);
	while (!kube->result->invariant[0] && kube->now_ms < end_ms &&
	       (kube->steps % 32 > 0 || !kube_check_done(kube, NULL)))
		kube_step(kube);
	if (!kube->result->invariant[0] && !kube_check_done(kube, &missing))
		kube_broken(kube, "served", "hours after the last fault, %s", missing.data);
	buffer_free(&missing);
}

void kube_chaos_run(const struct chaos_options *options, struct chaos_result *result)
{
	struct kube *kube = NEW(struct kube);

	*result = (struct chaos_result){ 0 };
	kube->result = result;
	kube_begin(kube, options);
	while (!result->invariant[0] && kube->steps < options->steps)
		kube_step(kube);
	if (!result->invariant[0])
		kube_quiet(kube);
	kube_end(kube);
	free(kube);
}

int kube_chaos_main(int argc, char **argv)
{
	const struct chaos_kind kinds[2] = {
		{ "", chaos_class_names, CHAOS_CLASSES, chaos_run },
		{ " --kubernetes", kube_class_names, KUBE_CLASSES, kube_chaos_run },
	};

	return chaos_main(argc, argv, kinds);
}
