/* clock.h - the clocks of the system, in whole units
 *
 * core and node have no clock: they are told the time. scripts/check-includes refuses this
 * header there. Everything is inline, because the guard's library links nothing of ours. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t clock_ns(clockid_t clock)
{
	struct timespec now = { 0 };

	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Since 1970, in UTC. Goes back when someone sets the clock. */
static inline int64_t clock_unix_us(void) { return clock_ns(CLOCK_REALTIME) / 1000; }
static inline int64_t clock_unix_ms(void) { return clock_ns(CLOCK_REALTIME) / 1000000; }

/* Never goes back, and stands still while the machine sleeps. */
static inline int64_t clock_steady_us(void) { return clock_ns(CLOCK_MONOTONIC) / 1000; }
static inline int64_t clock_steady_ms(void) { return clock_ns(CLOCK_MONOTONIC) / 1000000; }

/* Since the machine started: never goes back, and counts the time that it slept. */
static inline int64_t clock_boot_us(void) { return clock_ns(CLOCK_BOOTTIME) / 1000; }
static inline int64_t clock_boot_ms(void) { return clock_ns(CLOCK_BOOTTIME) / 1000000; }

/* Seconds with their fraction, for measuring. */
static inline double clock_s(clockid_t clock) { return (double)clock_ns(clock) / 1e9; }

/* `wait_us` from now, for functions that wait until an absolute time. A negative wait is now;
 * one of more than a year is a year, so that 'never' does not overflow. */
static inline struct timespec clock_after_us(clockid_t clock, int64_t wait_us)
{
	const int64_t year_us = INT64_C(365) * 86400 * 1000000;
	int64_t bounded_us = wait_us < 0 ? 0 : wait_us < year_us ? wait_us : year_us;
	int64_t at_ns = clock_ns(clock) + bounded_us * 1000;

	return (struct timespec){ .tv_sec = at_ns / 1000000000, .tv_nsec = at_ns % 1000000000 };
}

#endif
