/* rate.h - how much a token or a tenant may ask for in a minute */
#ifndef GATEWAY_STATE_RATE_H
#define GATEWAY_STATE_RATE_H

#include <stdbool.h>
#include <stdint.h>

/* A bucket that fills within a minute. What was taken may exceed what was there, as tokens do that
 * are only known afterwards: then it is empty until that is made up for. `per_minute` 0: there is
 * no limit. */
struct rate {
	int64_t per_minute;
	int64_t level; /* thousandths; may be negative */
	int64_t at_ms;
};

/* Sets the limit. A new bucket is full; another limit keeps the part that was used. */
void rate_limit(struct rate *rate, int64_t per_minute, int64_t now_ms);
/* Whether so much is there. */
bool rate_has(struct rate *rate, int64_t amount, int64_t now_ms);
/* Takes it, there or not; a negative amount gives back. */
void rate_take(struct rate *rate, int64_t amount, int64_t now_ms);
/* What is left, not below 0; how long until so much is there, and until it is full. */
int64_t rate_left(struct rate *rate, int64_t now_ms);
int64_t rate_wait_ms(struct rate *rate, int64_t amount, int64_t now_ms);
int64_t rate_full_ms(struct rate *rate, int64_t now_ms);

#endif
