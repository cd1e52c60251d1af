/* timekeeper.h - the time that the core is told: steady, whatever the wall clock does */
#ifndef SERVER_TIMEKEEPER_H
#define SERVER_TIMEKEEPER_H

#include <stddef.h>
#include <stdint.h>

/* The core's time is a calendar time that advances with the machine's steady clock (time since
 * boot, sleep included). It follows the wall clock:
 * - a difference of up to `step_ms` is made up for by running 5% faster or slower;
 * - a larger one is a step. It is not followed while it may be a mistake; once it has lasted
 *   for `hold_ms` the core is to be told that its clock was wrong (COMMAND_CLOCK), and time
 *   continues from the wall clock.
 * So a clock that jumps and comes back changes nothing, and no jump becomes a duration.
 *
 * A state machine without a clock of its own. `time_us` never goes back but in
 * timekeeper_set. */
struct timekeeper {
	int64_t step_ms, hold_ms;
	int64_t time_us, steady_us; /* the core's time, when the steady clock said so */
	int64_t off_ms;             /* the wall clock less the core's time, in a step; else 0 */
	int64_t off_since_us;       /* by the steady clock */
	int64_t steps;              /* so far */
};

enum timekeeper_news {
	TIME_AS_EXPECTED,
	TIME_STEPPED, /* the wall clock jumped by `off_ms` */
	TIME_BACK,    /* it agrees with the core's time again */
	TIME_LASTED,  /* the step has lasted: the core is to move by `off_ms` */
};

struct timekeeper timekeeper_begin(int64_t step_ms, int64_t hold_ms, int64_t time_us,
                                   int64_t steady_us);
/* Both clocks were read: what time it is, in milliseconds, for the core. */
int64_t timekeeper_read(struct timekeeper *keeper, int64_t wall_us, int64_t steady_us,
                        enum timekeeper_news *news);
/* The core was told that its clock was wrong. */
void timekeeper_set(struct timekeeper *keeper, int64_t time_us, int64_t steady_us);
/* "3 days 2 h ahead of", "5.2 s behind": for sentences. */
void timekeeper_print(char *text, size_t size, int64_t off_ms);

#endif
