/* times.h - times and durations as people write them */
#ifndef API_TEXT_TIMES_H
#define API_TEXT_TIMES_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/text/json_writer.h"
#include "wire/text/text.h"

/* RFC 3339, such as 2026-01-31T12:00:00Z or 2026-01-31T13:00:00.5+01:00, as milliseconds
 * since 1970; years 1970 to 9999. False: it is something else, or no such day. */
bool time_read(struct text text, int64_t *unix_ms);
/* Like time_read(), and accepts a day such as 2026-01-31, which is its first moment in UTC. */
bool time_or_day_read(struct text text, int64_t *unix_ms);

/* 90s, 1h30m, 2d, 1.5h, 250ms; a bare number is seconds. Up to 10,000 days. */
bool duration_read(struct text text, int64_t *duration_ms);

/* "1h2m3s", or null for a negative one. */
void json_put_duration(struct json_writer *json, const char *key, int64_t duration_ms);
/* The time, or null for 0. */
void json_put_moment(struct json_writer *json, const char *key, int64_t unix_ms);

#endif
