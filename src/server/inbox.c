/* inbox.c - requests on their way to a thread, which takes all of them at once */
#include "server/inbox.h"

#include <time.h>

#include "base/clock.h"

void inbox_init(struct inbox *inbox)
{
	pthread_condattr_t monotonic;
	*inbox = (struct inbox){ .is_closed = false };
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_mutex_init(&inbox->mutex, NULL);
	pthread_cond_init(&inbox->filled, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

void inbox_destroy(struct inbox *inbox)
{
	INVARIANT(inbox->is_closed);
	pthread_cond_destroy(&inbox->filled);
	pthread_mutex_destroy(&inbox->mutex);
}

/* The flag of a taker that dozes is read after the request was put. The taker sets it before it
 * looks for requests. So one of the two sees the other. */
static void inbox_write(struct inbox *inbox, struct engine_request *request, bool lazy)
{
	struct engine_request *before = atomic_load_explicit(&inbox->last, memory_order_relaxed);
	atomic_fetch_add_explicit(&inbox->count, 1, memory_order_relaxed);
	do {
		request->next = before;
	} while (!atomic_compare_exchange_weak(&inbox->last, &before, request));
	bool dozes = atomic_load(&inbox->is_dozing);
	if (dozes ? lazy : before != NULL)
		return;
	pthread_mutex_lock(&inbox->mutex);
	inbox->is_woken = inbox->is_woken || dozes;
	pthread_cond_signal(&inbox->filled);
	pthread_mutex_unlock(&inbox->mutex);
}

void inbox_put(struct inbox *inbox, struct engine_request *request)
{
	inbox_write(inbox, request, false);
}

void inbox_put_lazily(struct inbox *inbox, struct engine_request *request)
{
	inbox_write(inbox, request, true);
}

static void wait_for_one(struct inbox *inbox, int64_t wait_us)
{
	struct timespec until = clock_after_us(CLOCK_MONOTONIC, wait_us);
	int waited = 0;
	pthread_mutex_lock(&inbox->mutex);
	while (!atomic_load(&inbox->last) && !inbox->is_closed && !inbox->is_woken && waited == 0) {
		if (wait_us < 0)
			waited = pthread_cond_wait(&inbox->filled, &inbox->mutex);
		else
			waited = pthread_cond_timedwait(&inbox->filled, &inbox->mutex, &until);
	}
	inbox->is_woken = false;
	pthread_mutex_unlock(&inbox->mutex);
}

void inbox_doze(struct inbox *inbox, int64_t wait_us)
{
	struct timespec until = clock_after_us(CLOCK_MONOTONIC, wait_us);
	int waited = 0;
	INVARIANT(wait_us >= 0 && !atomic_load(&inbox->is_dozing)); /* one thread takes */
	atomic_store(&inbox->is_dozing, true);
	pthread_mutex_lock(&inbox->mutex);
	bool empty = !atomic_load(&inbox->last);
	while (empty && !inbox->is_closed && !inbox->is_woken && waited == 0)
		waited = pthread_cond_timedwait(&inbox->filled, &inbox->mutex, &until);
	inbox->is_woken = false;
	atomic_store(&inbox->is_dozing, false);
	pthread_mutex_unlock(&inbox->mutex);
}

struct engine_request *inbox_take(struct inbox *inbox, int64_t wait_us)
{
	if (wait_us != 0 && !atomic_load(&inbox->last))
		wait_for_one(inbox, wait_us);
	struct engine_request *at =
	    atomic_exchange_explicit(&inbox->last, NULL, memory_order_acquire);
	struct engine_request *first = NULL;
	size_t count = 0;
	while (at) {
		struct engine_request *before = at->next;
		at->next = first;
		first = at;
		at = before;
		count++;
	}
	atomic_fetch_sub_explicit(&inbox->count, count, memory_order_relaxed);
	return first;
}

void inbox_wake(struct inbox *inbox)
{
	pthread_mutex_lock(&inbox->mutex);
	inbox->is_woken = true;
	pthread_cond_broadcast(&inbox->filled);
	pthread_mutex_unlock(&inbox->mutex);
}

void inbox_close(struct inbox *inbox)
{
	pthread_mutex_lock(&inbox->mutex);
	inbox->is_closed = true;
	pthread_cond_broadcast(&inbox->filled);
	pthread_mutex_unlock(&inbox->mutex);
}

bool inbox_is_closed(struct inbox *inbox)
{
	pthread_mutex_lock(&inbox->mutex);
	bool is_closed = inbox->is_closed;
	pthread_mutex_unlock(&inbox->mutex);
	return is_closed;
}
