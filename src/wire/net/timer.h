/* timer.h - deadlines: cheap to move into the future, which most of them are */
#ifndef WIRE_NET_TIMER_H
#define WIRE_NET_TIMER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/heap.h"

/* Set while `due_ms` is not 0. It stands in the heap at `queued_ms`, never later
 * than `due_ms`: moving a deadline back is one assignment, and the heap learns of
 * it when the old time comes. Zero-initialised but for `fire` is not set; `place`
 * must then be -1 (TIMER). */
struct timer {
	int64_t due_ms, queued_ms;
	void (*fire)(struct timer *timer);
	int32_t place;
};

#define TIMER(function) ((struct timer){ .fire = (function), .place = -1 })

struct timers {
	struct heap heap;
};

struct timers timers_new(void);
/* The timer fires once when `due_ms` is reached, unless it is set again or cleared. */
void timers_set(struct timers *timers, struct timer *timer, int64_t due_ms);
/* After this the timer's memory may go. */
void timers_clear(struct timers *timers, struct timer *timer);
/* Fires what is due. */
void timers_run(struct timers *timers, int64_t now_ms);
/* When timers_run has something to do next; INT64_MAX: never. */
int64_t timers_next_ms(const struct timers *timers);
void timers_free(struct timers *timers);

#endif
