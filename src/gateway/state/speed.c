/* speed.c - windows of ten seconds, of which the last six are a minute */
#include "gateway/state/speed.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"

static struct speed_window *window_of(struct speed *speed, int64_t now_ms)
{
	int64_t number = now_ms / SPEED_WINDOW_MS;

	if (!speed->windows) {
		speed->windows = memory_zero(SPEED_WINDOWS, sizeof(*speed->windows));
		speed->since_ms = now_ms;
	}
	struct speed_window *window = &speed->windows[number % SPEED_WINDOWS];
	if (window->number != number)
		*window = (struct speed_window){ .number = number };
	return window;
}

void speed_first_token(struct speed *speed, int64_t now_ms, int64_t ms)
{
	struct speed_window *window = window_of(speed, now_ms);

	window->answers++;
	window->first_token[duration_bucket(ms)]++;
}

void speed_tokens(struct speed *speed, int64_t now_ms, int64_t tokens)
{
	window_of(speed, now_ms)->tokens += tokens;
}

static void add_window(Gateway__Speed *said, const struct speed_window *window)
{
	said->answers += window->answers;
	said->tokens += window->tokens;
	for (int at = 0; at < DURATION_BUCKETS; at++) {
		said->first_token[at] += window->first_token[at];
		if (said->first_token[at] > 0)
			said->n_first_token = (size_t)max64((int64_t)said->n_first_token, at + 1);
	}
}

Gateway__Speed *speed_said(const struct speed *speed, int64_t now_ms)
{
	int64_t newest = now_ms / SPEED_WINDOW_MS, oldest = newest - SPEED_WINDOWS + 1;
	bool any = false;

	for (int i = 0; speed->windows && i < SPEED_WINDOWS; i++)
		any = any || (speed->windows[i].number >= oldest &&
		              speed->windows[i].answers + speed->windows[i].tokens > 0);
	if (!any)
		return NULL;
	Gateway__Speed *said = memory_alloc(sizeof(*said));
	gateway__speed__init(said);
	said->first_token = memory_zero(DURATION_BUCKETS, sizeof(*said->first_token));
	for (int i = 0; i < SPEED_WINDOWS; i++)
		if (speed->windows[i].number >= oldest)
			add_window(said, &speed->windows[i]);
	/* What is not a minute old has not had a minute for its tokens. */
	said->over_ms = now_ms - max64(oldest * SPEED_WINDOW_MS, speed->since_ms);
	return said;
}

void speed_free(struct speed *speed)
{
	free(speed->windows);
	*speed = (struct speed){ 0 };
}
