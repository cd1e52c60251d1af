/* outcome.h - what a write's answer means, and when to try again */
#ifndef KUBE_OUTCOME_H
#define KUBE_OUTCOME_H

#include <stdint.h>

enum write_kind { WRITE_BIND, WRITE_EVICT, WRITE_STATUS, WRITE_EVENT, WRITE_DELETE, WRITE_CLAIM };

enum outcome {
	OUTCOME_WRITTEN, /* it is so */
	OUTCOME_LATER,   /* nothing was done: the same again, after a pause */
	OUTCOME_LOOK,    /* it may or may not be so: the object must be read first */
	OUTCOME_CHANGED, /* the object is not what it was taken for: what the watch says counts */
	OUTCOME_GONE,    /* there is no such object any more */
	OUTCOME_REFUSED, /* for good: the same again is refused again */
};

/* By the status of the answer; 0: none came in time. A binding is so only if the server said 201:
 * without an answer it may have happened. */
enum outcome outcome_of(enum write_kind kind, int status);

/* How long to wait before try `tries` + 1, in ms: twice as long each time, from 250 ms to a
 * minute; at least what the server asked for in Retry-After (seconds; 0: nothing). */
int64_t outcome_pause_ms(int tries, int64_t retry_after_s);

#endif
