/* inbox.h - asks on their way to a thread that takes them all at once */
#ifndef SERVER_INBOX_H
#define SERVER_INBOX_H

#include <pthread.h>
#include <stdatomic.h>

#include "api/engine/engine_request.h"

/* Any thread puts, one thread takes. Putting into one that is not empty costs one
 * exchange; only the first wakes the taker, and one that can wait does not wake a
 * taker that dozes. */
struct inbox {
	_Atomic(struct engine_request *) last; /* the newest; each leads to the one before */
	atomic_size_t count;                   /* that were put and not taken */
	pthread_mutex_t mutex;
	pthread_cond_t filled;
	atomic_bool is_dozing;
	bool is_woken;  /* whoever waits is to look up, once */
	bool is_closed; /* nobody waits any more */
};

void inbox_init(struct inbox *inbox);
void inbox_destroy(struct inbox *inbox);

void inbox_put(struct inbox *inbox, struct engine_request *request);
/* Like inbox_put(), for one that can wait until the taker's pause ends. */
void inbox_put_lazily(struct inbox *inbox, struct engine_request *request);
/* Waits so long, or until one is put that cannot wait. Not at all where some are there. */
void inbox_doze(struct inbox *inbox, int64_t wait_us);
/* All that are there, oldest first, linked by `next`; waits up to `wait_us` for one
 * (negative: for as long as it takes, or until it is closed). NULL: none came. */
struct engine_request *inbox_take(struct inbox *inbox, int64_t wait_us);
/* Wakes the taker once, though nothing was put. */
void inbox_wake(struct inbox *inbox);
/* Wakes the taker for good. */
void inbox_close(struct inbox *inbox);
bool inbox_is_closed(struct inbox *inbox);

#endif
