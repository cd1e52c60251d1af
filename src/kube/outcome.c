/* outcome.c - what a write's answer means, and when to try again */
#include "kube/outcome.h"

#include <stdbool.h>

#include "base/number.h"

#define FIRST_PAUSE_MS INT64_C(250)
#define LONGEST_PAUSE_MS INT64_C(60000)
#define DOUBLINGS_MAX 8

enum outcome outcome_of(enum write_kind kind, int status)
{
	bool written = kind == WRITE_BIND ? status == 201 : status >= 200 && status < 300;

	if (written)
		return OUTCOME_WRITTEN;
	switch (status) {
	case 404:
	case 410:
		return OUTCOME_GONE;
	case 409:
		/* An API server whose store did not answer in time calls that a conflict too. */
		return kind == WRITE_BIND || kind == WRITE_CLAIM ? OUTCOME_LOOK : OUTCOME_CHANGED;
	case 401: /* the token is read again */
	case 429:
		return OUTCOME_LATER;
	default:
		/* Without an answer, or with one that says nothing about the write itself. */
		return status >= 400 && status < 500 ? OUTCOME_REFUSED : OUTCOME_LOOK;
	}
}

int64_t outcome_pause_ms(int tries, int64_t retry_after_s)
{
	int64_t pause_ms = FIRST_PAUSE_MS << (tries < DOUBLINGS_MAX ? tries : DOUBLINGS_MAX);

	return max64(min64(pause_ms, LONGEST_PAUSE_MS), min64(retry_after_s, 60) * 1000);
}
