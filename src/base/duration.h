/* duration.h - durations, as people write and read them */
#ifndef BASE_DURATION_H
#define BASE_DURATION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/text.h"

/* Units of milliseconds. */
#define SECOND_MS INT64_C(1000)
#define MINUTE_MS (60 * SECOND_MS)
#define HOUR_MS (60 * MINUTE_MS)
#define DAY_MS (24 * HOUR_MS)

/* Reads 90s, 1h30m, 1.5h, 2d, 1w, 250ms; a bare number is seconds; or as Slurm writes it, 2:00:00
 * and 1-12:00:00. Fractions of a millisecond are rounded up. False: it is none of these, or it is
 * longer than `most_ms`, which is at most 36,500 days. */
bool duration_read(struct text text, int64_t most_ms, int64_t *duration_ms);

/* Appends its two largest units: 2h30m, 3d4h, 12s. Less than a second is 0s. */
void duration_print(struct buffer *to, int64_t duration_ms);
/* Appends hours, minutes and seconds from the largest that it has: 26h3m0s, 3m0s, 12s. */
void duration_print_hours(struct buffer *to, int64_t duration_ms);

/* Durations are counted in buckets that can be added up: a millisecond wide up to 8 ms, then four
 * to each power of two, so that one is told to within a quarter of it. Gateways and schedulers of
 * different versions use them, so they never change. */
enum { DURATION_BUCKETS = 80 };

/* The last has all that are longer than about 30 minutes. */
int duration_bucket(int64_t ms);
int64_t duration_longest_ms(int bucket);
/* What `percent` of all counted do not exceed; -1: nothing was counted. */
int64_t duration_percentile_ms(const int64_t counts[DURATION_BUCKETS], int percent);

#endif
