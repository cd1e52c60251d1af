/* inbox.h - requests on their way to a thread, which takes all of them at once */
#ifndef SERVER_INBOX_H
#define SERVER_INBOX_H

#include <pthread.h>
#include <stdatomic.h>

#include "api/engine/engine_request.h"

/* Any thread puts, one thread takes. Putting a request into an inbox that is not empty costs one
 * atomic exchange. Only the first request wakes the taker, and a lazy one does not wake a taker
 * that dozes. */
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
/* Waits for `wait_us`, or until a request is put that is not lazy. Returns at once if the inbox is
 * not empty. */
void inbox_doze(struct inbox *inbox, int64_t wait_us);
/* All requests, oldest first, linked by `next`. Waits up to `wait_us` for the first (negative:
 * without limit, or until the inbox is closed). NULL: none came. */
struct engine_request *inbox_take(struct inbox *inbox, int64_t wait_us);
/* Wakes the taker once, though nothing was put. */
void inbox_wake(struct inbox *inbox);
/* Wakes the taker for good. */
void inbox_close(struct inbox *inbox);
bool inbox_is_closed(struct inbox *inbox);

#endif
