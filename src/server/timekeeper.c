/* timekeeper.c - the time that the core is told: steady, whatever the wall clock does */
#include "server/timekeeper.h"

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "base/number.h"

enum { SLEW = 20 }; /* a twentieth faster or slower */

struct timekeeper timekeeper_begin(int64_t step_ms, int64_t hold_ms, int64_t time_us,
                                   int64_t steady_us)
{
	INVARIANT(step_ms > 0 && hold_ms >= 0);
	return (struct timekeeper){
		.step_ms = step_ms, .hold_ms = hold_ms, .time_us = time_us, .steady_us = steady_us
	};
}

static bool timekeeper_is_within(int64_t difference_us, int64_t bound_ms)
{
	return difference_us <= bound_ms * 1000 && difference_us >= -bound_ms * 1000;
}

/* A step that changes counts as a new one, and has to last again. */
static enum timekeeper_news look_at_step(struct timekeeper *keeper, int64_t off_us)
{
	bool same = keeper->off_ms != 0 &&
	            timekeeper_is_within(off_us - keeper->off_ms * 1000, keeper->step_ms);

	if (same)
		return keeper->steady_us - keeper->off_since_us >= keeper->hold_ms * 1000
		           ? TIME_LASTED
		           : TIME_AS_EXPECTED;
	keeper->off_ms = off_us / 1000;
	keeper->off_since_us = keeper->steady_us;
	keeper->steps++;
	return TIME_STEPPED;
}

int64_t timekeeper_read(struct timekeeper *keeper, int64_t wall_us, int64_t steady_us,
                        enum timekeeper_news *news)
{
	int64_t elapsed_us = max64(steady_us - keeper->steady_us, 0);
	int64_t before_us = keeper->time_us;

	*news = TIME_AS_EXPECTED;
	keeper->time_us += elapsed_us;
	keeper->steady_us += elapsed_us;
	int64_t off_us = wall_us - keeper->time_us;
	if (!timekeeper_is_within(off_us, keeper->step_ms)) {
		*news = look_at_step(keeper, off_us);
		return keeper->time_us / 1000;
	}
	if (keeper->off_ms != 0)
		*news = TIME_BACK;
	keeper->off_ms = 0;
	int64_t most_us = elapsed_us / SLEW;
	keeper->time_us += max64(min64(off_us, most_us), -most_us);
	INVARIANT(keeper->time_us >= before_us);
	return keeper->time_us / 1000;
}

void timekeeper_set(struct timekeeper *keeper, int64_t time_us, int64_t steady_us)
{
	keeper->time_us = time_us;
	keeper->steady_us = steady_us;
	keeper->off_ms = 0;
}

void timekeeper_print(char *text, size_t size, int64_t off_ms)
{
	int64_t ms = off_ms < 0 ? -off_ms : off_ms, s = ms / 1000;
	const char *where = off_ms < 0 ? "behind" : "ahead of";
	if (s >= 86400)
		snprintf(text, size, "%lld days %lld h %s", (long long)(s / 86400),
		         (long long)(s % 86400 / 3600), where);
	else if (s >= 3600)
		snprintf(text, size, "%lld h %lld min %s", (long long)(s / 3600),
		         (long long)(s % 3600 / 60), where);
	else
		snprintf(text, size, "%lld.%lld s %s", (long long)s, (long long)(ms % 1000 / 100),
		         where);
}
