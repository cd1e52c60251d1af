/* speed.h - how fast a model answered during the last minute */
#ifndef GATEWAY_STATE_SPEED_H
#define GATEWAY_STATE_SPEED_H

#include "base/duration.h"
#include "gateway.pb-c.h"

enum { SPEED_WINDOWS = 6, SPEED_WINDOW_MS = 10000 };

struct speed_window {
	int64_t number; /* of the window since the clock began */
	int64_t answers, tokens;
	int32_t first_token[DURATION_BUCKETS];
};

/* NULL windows: nothing was answered yet. */
struct speed {
	struct speed_window *windows;
	int64_t since_ms; /* of the first answer */
};

/* A stream has begun to answer after `ms`. */
void speed_first_token(struct speed *speed, int64_t now_ms, int64_t ms);
/* Tokens have come. */
void speed_tokens(struct speed *speed, int64_t now_ms, int64_t tokens);
/* What the scheduler is told; NULL: nothing was answered in the last minute. */
Gateway__Speed *speed_said(const struct speed *speed, int64_t now_ms);
void speed_free(struct speed *speed);

#endif
