/* times.h - times and durations in requests and answers */
#ifndef API_TEXT_TIMES_H
#define API_TEXT_TIMES_H

#include <stdint.h>

#include "base/calendar.h" // IWYU pragma: export
#include "base/duration.h" // IWYU pragma: export
#include "wire/text/json_writer.h"

/* The longest duration that a request may ask for. */
#define DURATION_MAX_MS (10000 * DAY_MS)

/* "1h2m3s", or null for a negative one. */
void json_put_duration(struct json_writer *json, const char *key, int64_t duration_ms);
/* The time, or null for 0. */
void json_put_moment(struct json_writer *json, const char *key, int64_t unix_ms);

#endif
