/* loop.h - a thread that waits for many connections at once */
#ifndef WIRE_LOOP_H
#define WIRE_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/net/limits.h"
#include "wire/net/timer.h"

struct loop;

/* Something to be done in a loop's thread; a member of what it is about. `next`
 * is the loop's while it is posted. */
struct post {
	struct post *next;
	void (*run)(struct post *post);
};

/* A loop with no listeners. The limits are copied. */
struct loop *loop_new(const struct limits *limits);
/* Everything must have ended (loop_run has returned), or never begun. */
void loop_free(struct loop *loop);

/* Serves, in the calling thread, until loop_stop has been followed to its end. */
void loop_run(struct loop *loop);

/* From any thread: has `post` run in the loop's thread, soon, in the order in which
 * one thread posts. What one posts while the loop is busy costs no system call. A
 * post must not be posted again before it runs; when it runs it is the caller's again.
 * After loop_run has returned nothing runs any more, and before loop_free nobody posts. */
void loop_post(struct loop *loop, struct post *post);

/* In the loop's thread (loop_post gets you there): finishes what is in flight, refuses
 * new requests with 503 or GOAWAY, closes WebSockets with 1001, and after `grace_ms`
 * cuts off what is left. Again with a shorter time hurries. */
void loop_stop(struct loop *loop, int64_t grace_ms);
bool loop_is_stopping(const struct loop *loop);

/* The loop's clock: monotonic, taken once for each round of events. */
int64_t loop_now_ms(const struct loop *loop);
/* One-shot timers, in the loop's thread only. */
void loop_timer_set(struct loop *loop, struct timer *timer, int64_t delay_ms);
void loop_timer_clear(struct loop *loop, struct timer *timer);

const struct limits *loop_limits(const struct loop *loop);

/* For metrics; read in the loop's thread. */
struct loop_counters {
	uint64_t connections, connections_total, connections_refused;
	uint64_t exchanges, exchanges_total; /* in flight; ever */
	uint64_t websockets;
	uint64_t bytes_in, bytes_out;
	uint64_t buffered_bytes;        /* of requests */
	uint64_t held_bytes;            /* of answers that were not read yet */
	uint64_t answers_dropped;       /* because too much was held */
	uint64_t connections_shed;      /* because of that, or for those who sign in */
	uint64_t descriptors_exhausted; /* connections that no descriptor was left for */
	uint64_t timeouts, protocol_errors;
};
struct loop_counters loop_counters(const struct loop *loop);

#endif
