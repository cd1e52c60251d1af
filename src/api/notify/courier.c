/* courier.c - threads that deliver notifications, again and again until they arrive */
#define _GNU_SOURCE /* pthread_tryjoin_np */
#include "api/notify/courier.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/number.h"

enum { THREADS = 3, OVERTIME_MS = 300, JOIN_LOOK_MS = 5 };

/* Someone with parcels that wait; gone with the last of them. The first one is being tried
 * while `busy`. */
struct receiver {
	char *key;
	struct parcel *first, *last;
	int64_t next_ms;
	bool busy;
	struct receiver *next;
};

/* A finished parcel, on its way to the loop's thread. */
struct outcome {
	struct parcel *parcel;
	struct error error;
	struct outcome *next;
};

struct courier {
	struct courier_settings settings;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	pthread_t threads[THREADS];
	struct text_map by_key;
	struct receiver *receivers;
	int64_t waiting;
	bool ended;
	bool abandoned; /* nobody waits for the threads any more: they touch nothing but this */
	fetch_end_ms end_ms; /* 0 until it ends */
	struct outcome *outcomes, **outcomes_end;
	bool is_posted;
	struct post post;
	struct courier *next_abandoned;
};

/* Those that a thread may still use. They stay reachable: they are no leak. */
static struct courier *abandoned_couriers;

void parcel_free(struct parcel *parcel)
{
	free(parcel->webhook);
	free(parcel->secret);
	free(parcel->email);
	free(parcel->subject);
	free(parcel->event);
	free(parcel->body);
	free(parcel);
}

static const char *courier_key_of(const struct parcel *parcel)
{
	return parcel->webhook ? parcel->webhook : parcel->email;
}

static void remove_receiver(struct courier *courier, struct receiver *receiver)
{
	struct receiver **at = &courier->receivers;

	while (*at != receiver)
		at = &(*at)->next;
	*at = receiver->next;
	text_map_remove(&courier->by_key, receiver->key);
	free(receiver->key);
	free(receiver);
}

/* In the loop's thread. */
static void courier_tell(struct post *post)
{
	struct courier *courier =
	    (struct courier *)(void *)((char *)post - offsetof(struct courier, post));

	pthread_mutex_lock(&courier->lock);
	struct outcome *list = courier->outcomes;
	courier->outcomes = NULL;
	courier->outcomes_end = &courier->outcomes;
	courier->is_posted = false;
	pthread_mutex_unlock(&courier->lock);
	while (list) {
		struct outcome *outcome = list;
		list = outcome->next;
		courier->settings.over(courier->settings.context, outcome->parcel,
		                       outcome->error.code != ERROR_NONE ? &outcome->error : NULL);
		free(outcome);
	}
}

static void courier_finish(struct courier *courier, struct receiver *receiver,
                           const struct error *error)
{
	struct outcome *outcome = NEW(struct outcome);

	outcome->parcel = receiver->first;
	outcome->error = *error;
	receiver->first = receiver->first->next;
	receiver->next_ms = 0;
	courier->waiting--;
	if (!receiver->first)
		remove_receiver(courier, receiver);
	*courier->outcomes_end = outcome;
	courier->outcomes_end = &outcome->next;
	if (!courier->is_posted)
		loop_post(courier->settings.loop, &courier->post);
	courier->is_posted = true;
}

static int64_t pause_ms(const struct courier *courier, int64_t tries)
{
	int64_t pause = courier->settings.retry_ms;

	while (--tries > 0 && pause < courier->settings.retry_ms_max)
		pause *= 2;
	return min64(pause, courier->settings.retry_ms_max);
}

/* Tries the first parcel of a receiver; called with the lock, which it lets go meanwhile. */
static void try_first(struct courier *courier, struct receiver *receiver)
{
	struct parcel *parcel = receiver->first;
	struct error error = { 0 };

	receiver->busy = true;
	pthread_mutex_unlock(&courier->lock);
	bool ok = courier->settings.deliver(courier->settings.context, parcel, &error);
	pthread_mutex_lock(&courier->lock);
	if (courier->abandoned)
		return;
	receiver->busy = false;
	parcel->tries++;
	if (ok)
		error_clear(&error);
	if (ok || error.code == ERROR_NOT_FOUND || error.code == ERROR_FORBIDDEN ||
	    error.code == ERROR_INVALID || parcel->tries >= courier->settings.tries_max)
		courier_finish(courier, receiver, &error);
	else
		receiver->next_ms = clock_steady_ms() + pause_ms(courier, parcel->tries);
}

/* One that can be tried now; otherwise when the next can. */
static struct receiver *pick(const struct courier *courier, int64_t *wake_ms)
{
	int64_t now = clock_steady_ms();

	*wake_ms = INT64_MAX;
	for (struct receiver *at = courier->receivers; at; at = at->next) {
		if (at->busy)
			continue;
		if (at->next_ms <= now)
			return at;
		*wake_ms = min64(*wake_ms, at->next_ms);
	}
	return NULL;
}

static void *courier_work(void *context)
{
	struct courier *courier = context;
	sigset_t all;

	/* Signals are for others; a receiver that has gone is an error, not SIGPIPE. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	pthread_mutex_lock(&courier->lock);
	while (!courier->ended) {
		int64_t wake_ms;
		struct receiver *receiver = pick(courier, &wake_ms);
		if (receiver) {
			try_first(courier, receiver);
		} else if (wake_ms == INT64_MAX) {
			pthread_cond_wait(&courier->wake, &courier->lock);
		} else {
			struct timespec until = { .tv_sec = (time_t)(wake_ms / 1000),
				                  .tv_nsec = wake_ms % 1000 * 1000000 };
			pthread_cond_timedwait(&courier->wake, &courier->lock, &until);
		}
	}
	pthread_mutex_unlock(&courier->lock);
	return NULL;
}

struct courier *courier_start(const struct courier_settings *settings)
{
	struct courier *courier = NEW(struct courier);
	pthread_condattr_t attributes;

	courier->settings = *settings;
	courier->outcomes_end = &courier->outcomes;
	courier->post.run = courier_tell;
	pthread_mutex_init(&courier->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&courier->wake, &attributes);
	pthread_condattr_destroy(&attributes);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&courier->threads[i], NULL, courier_work, courier) != 0)
			panic("no thread can be started for notifications");
	return courier;
}

void courier_put(struct courier *courier, struct parcel *parcel)
{
	pthread_mutex_lock(&courier->lock);
	struct receiver *receiver = text_map_get(&courier->by_key, courier_key_of(parcel));
	if (!receiver) {
		receiver = NEW(struct receiver);
		receiver->key = memory_text(courier_key_of(parcel));
		receiver->next = courier->receivers;
		courier->receivers = receiver;
		text_map_put(&courier->by_key, receiver->key, receiver);
	}
	parcel->next = NULL;
	parcel->end_ms = &courier->end_ms;
	if (receiver->first)
		receiver->last->next = parcel;
	else
		receiver->first = parcel;
	receiver->last = parcel;
	courier->waiting++;
	pthread_cond_signal(&courier->wake);
	pthread_mutex_unlock(&courier->lock);
}

int64_t courier_waiting(struct courier *courier)
{
	pthread_mutex_lock(&courier->lock);
	int64_t waiting = courier->waiting;
	pthread_mutex_unlock(&courier->lock);
	return waiting;
}

/* By the steady clock: that of the day may jump. */
static bool join_one(pthread_t thread, int64_t until_ms)
{
	while (pthread_tryjoin_np(thread, NULL) != 0) {
		if (clock_steady_ms() >= until_ms) {
			pthread_detach(thread);
			return false;
		}
		poll(NULL, 0, JOIN_LOOK_MS);
	}
	return true;
}

/* True if all threads have ended in time; those that have not are on their own. */
static bool courier_join(struct courier *courier)
{
	int64_t until_ms = atomic_load(&courier->end_ms) + OVERTIME_MS;
	bool all = true;

	for (int i = 0; i < THREADS; i++)
		all = join_one(courier->threads[i], until_ms) && all;
	return all;
}

bool courier_stop(struct courier *courier)
{
	pthread_mutex_lock(&courier->lock);
	courier->ended = true;
	atomic_store(&courier->end_ms, clock_steady_ms() + COURIER_GRACE_MS);
	pthread_cond_broadcast(&courier->wake);
	pthread_mutex_unlock(&courier->lock);
	if (!courier_join(courier)) {
		pthread_mutex_lock(&courier->lock);
		courier->abandoned = true;
		pthread_mutex_unlock(&courier->lock);
		courier->next_abandoned = abandoned_couriers;
		abandoned_couriers = courier;
		return false;
	}
	for (struct receiver *at = courier->receivers, *next; at; at = next) {
		next = at->next;
		while (at->first) {
			struct parcel *parcel = at->first;
			at->first = parcel->next;
			parcel_free(parcel);
		}
		free(at->key);
		free(at);
	}
	while (courier->outcomes) {
		struct outcome *outcome = courier->outcomes;
		courier->outcomes = outcome->next;
		parcel_free(outcome->parcel);
		free(outcome);
	}
	text_map_free(&courier->by_key);
	pthread_mutex_destroy(&courier->lock);
	pthread_cond_destroy(&courier->wake);
	free(courier);
	return true;
}
