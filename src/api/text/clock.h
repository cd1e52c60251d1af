/* clock.h - what time it is */
#ifndef API_TEXT_CLOCK_H
#define API_TEXT_CLOCK_H

#include <stdint.h>

/* Milliseconds since 1970. */
int64_t clock_unix_ms(void);
/* Milliseconds of a clock that never goes back; the loop's. */
int64_t clock_steady_ms(void);

#endif
