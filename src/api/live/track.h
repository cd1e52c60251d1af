/* track.h - a number over the last day and the last week, in a fixed amount of memory */
#ifndef API_LIVE_TRACK_H
#define API_LIVE_TRACK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/text.h"

enum track_span { TRACK_DAY, TRACK_WEEK, TRACK_SPANS };
enum {
	TRACK_DAY_STEPS = 288,  /* of five minutes */
	TRACK_WEEK_STEPS = 336, /* of half an hour */
	TRACK_STEPS_MAX = TRACK_WEEK_STEPS,
	TRACK_NONE = INT32_MIN, /* nothing was recorded in the step */
};

/* The mean of each step. Steps are counted from 1970; that of step n is at n modulo the number of
 * steps, and counts if n is in (last - steps, last]. Zero-initialized is not empty: track_clear. */
struct track {
	int64_t last[TRACK_SPANS];                    /* the newest step; -1: nothing yet */
	int64_t sum[TRACK_SPANS], count[TRACK_SPANS]; /* of the newest step */
	int32_t day[TRACK_DAY_STEPS], week[TRACK_WEEK_STEPS];
};

int64_t track_steps(enum track_span span);
int64_t track_step_ms(enum track_span span);

void track_clear(struct track *track);
/* A time before the newest step is taken as in it: time does not go back here. Values are cut to
 * what 32 bits hold. */
void track_add(struct track *track, int64_t unix_ms, int64_t value);
/* The mean of the step, or TRACK_NONE. */
int32_t track_at(const struct track *track, enum track_span span, int64_t step);

/* Appends both spans as text, for track_read. */
void track_write(const struct track *track, struct buffer *text);
/* Reads what track_write() wrote from the front of `rest`. False with a reason, and the track is
 * empty. */
bool track_read(struct track *track, struct text *rest, struct error *error);

#endif
