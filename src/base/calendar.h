/* calendar.h - dates and times of day in UTC, as text and as numbers
 *
 * It has no clock, so core may use it. Times are from 1970 to the end of 9999: what is before is
 * written as the first moment, what is after as the last. */
#ifndef BASE_CALENDAR_H
#define BASE_CALENDAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/text.h"

struct calendar {
	int64_t year;
	int month, day; /* from 1 */
	int weekday;    /* 0 is Sunday */
	int hour, minute, second;
};

struct calendar calendar_of(int64_t unix_s);

enum { CALENDAR_TEXT_MAX = 40 };
/* Writes RFC 3339, 2026-01-31T12:00:00Z, with `digits` (0, 3 or 6) after a decimal point, and a
 * NUL. Returns the length. */
size_t calendar_write(int64_t unix_us, int digits, char out[CALENDAR_TEXT_MAX]);
/* Appends RFC 3339 without a fraction. */
void calendar_print(struct buffer *to, int64_t unix_ms);
/* Appends 'Sat, 31 Jan 2026 12:00:00', as mail and HTTP have it before the zone. */
void calendar_print_mail(struct buffer *to, int64_t unix_ms);

/* Reads RFC 3339, such as 2026-01-31T12:00:00Z or 2026-01-31T13:00:00.5+01:00. False: it is
 * something else, there is no such day, or it is before 1970. */
bool calendar_read(struct text text, int64_t *unix_ms);
/* Like calendar_read(), and accepts a day such as 2026-01-31, which is its first moment. */
bool calendar_read_day(struct text text, int64_t *unix_ms);

#endif
