/* rate.h - how often one client may ask: token buckets in a table that never grows */
#ifndef API_AUTH_RATE_H
#define API_AUTH_RATE_H

#include <stdbool.h>
#include <stdint.h>

/* A full table drops its fullest bucket. A client below its rate has a full bucket anyway, so no
 * client gains more than one burst by that. Times are of a clock that never goes back. */
struct rates;

/* `clients_max` is rounded up to a power of two. */
struct rates *rates_new(int64_t rate_per_s, int64_t burst, uint32_t clients_max);
void rates_free(struct rates *rates);

/* Takes one from the client's bucket. False if there is none: then `wait_ms` (may be NULL)
 * is how long until there is. A rate of 0 never refuses. */
bool rates_take(struct rates *rates, uint64_t client, int64_t now_ms, int64_t *wait_ms);
/* Whether there is one, without taking it. */
bool rates_has(struct rates *rates, uint64_t client, int64_t now_ms, int64_t *wait_ms);

#endif
