/* timer.c - deadlines: cheap to move into the future, which most of them are */
#include "wire/net/timer.h"

#include "base/error.h"

static bool before(const void *a, const void *b)
{
	const struct timer *one = a, *other = b;
	return one->queued_ms < other->queued_ms;
}

struct timers timers_new(void)
{
	return (struct timers){ .heap = HEAP(struct timer, place, before) };
}

void timers_set(struct timers *timers, struct timer *timer, int64_t due_ms)
{
	INVARIANT(due_ms > 0);
	timer->due_ms = due_ms;
	if (!heap_has(&timers->heap, timer)) {
		timer->queued_ms = due_ms;
		heap_push(&timers->heap, timer);
	} else if (due_ms < timer->queued_ms) {
		timer->queued_ms = due_ms;
		heap_update(&timers->heap, timer);
	}
}

void timers_clear(struct timers *timers, struct timer *timer)
{
	timer->due_ms = 0;
	if (heap_has(&timers->heap, timer))
		heap_remove(&timers->heap, timer);
}

void timers_run(struct timers *timers, int64_t now_ms)
{
	for (;;) {
		struct timer *timer = heap_first(&timers->heap);
		if (!timer || timer->queued_ms > now_ms)
			return;
		if (timer->due_ms > now_ms) {
			timer->queued_ms = timer->due_ms;
			heap_update(&timers->heap, timer);
			continue;
		}
		heap_pop(&timers->heap);
		timer->due_ms = 0;
		timer->fire(timer);
	}
}

int64_t timers_next_ms(const struct timers *timers)
{
	const struct timer *timer = heap_first(&timers->heap);
	return timer ? timer->queued_ms : INT64_MAX;
}

void timers_free(struct timers *timers)
{
	heap_free(&timers->heap);
}
