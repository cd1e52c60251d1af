/* queue.h - the waiting jobs of a tenant, by priority with ageing */
#ifndef CORE_QUEUE_QUEUE_H
#define CORE_QUEUE_QUEUE_H

#include "base/heap.h"
#include "base/ranktree.h"
#include "core/record/types.h"

/* A job's effective priority is its priority plus `per_minute` for each minute
 * that it has waited, but waiting lifts it no higher than `cap`: jobs at the cap
 * are equals, and those above it do not age. Higher goes first; among equals,
 * the one with the smaller number (the older job). Since all waiting jobs age at
 * one rate, their order changes only when one reaches the cap, so the queue
 * keeps those that still age and those that are done with it in two trees, each
 * with an order that does not depend on the time.
 *
 * The bound: a job of priority p is passed by a job of priority q, p < q <= cap,
 * only if that one was queued less than (q - p) / per_minute minutes after it,
 * however long both wait. So with a cap of at least the highest priority that
 * arrives without end, no job waits behind arrivals for ever; jobs above the cap
 * always go first.
 *
 * Where GPUs are shared in time, a job goes behind those of its priority that were
 * queued up to as much later as the GPU time that it is expected to take still, and
 * no others; until it has waited as long as that, it has its priority and no more.
 * This does not count any more when it has waited for `wait_ms` and would without
 * it be at the cap.
 *
 * Bounds on what is asked: priorities and cap of 32 bits, times up to 2^45 ms,
 * per_minute up to 100,000. */
struct queue_rule {
	int64_t per_minute; /* points */
	int64_t cap;        /* the priority that waiting lifts a job to, at the most */
	bool shares;        /* the age of a job counts from `behind_ms` later */
	int64_t wait_ms;    /* until it has waited that long, and by its age is at the cap */
};

/* Part of the job. The first five are set by the owner before queue_push and
 * not changed while it is queued. */
struct queue_entry {
	int64_t priority, queued_ms, number;
	int64_t urgent_ms; /* at the cap from then on, whatever its wait; 0: not urgent by itself */
	int64_t behind_ms; /* by how much later its age counts: see queue_rule.shares */
	int64_t due_ms;    /* at the cap from then on, by its urgency or its rule; 0: never */
	int32_t heap_index; /* in the heap of those that are due later; -1 */
	bool queued, aged;
};

struct queue {
	struct queue_rule rule;
	struct ranktree ageing; /* by -(priority - age): the first is also the next at the cap */
	struct ranktree aged;   /* by -(priority or cap, whichever is higher) */
	struct heap urgent;     /* those of `ageing` with `due_ms`, by that */
};

void queue_init(struct queue *queue, struct queue_rule rule);
void queue_free(struct queue *queue);
size_t queue_count(const struct queue *queue);

/* All of these first move on those that stopped ageing by `now_ms`. None costs
 * more than O(log n) amortised. Time does not go back. */
void queue_push(struct queue *queue, struct queue_entry *entry, int64_t now_ms);
/* The entry must be queued here. */
void queue_remove(struct queue *queue, struct queue_entry *entry);
/* The first entry, or NULL; pop takes it out. */
struct queue_entry *queue_first(struct queue *queue, int64_t now_ms);
struct queue_entry *queue_pop(struct queue *queue, int64_t now_ms);
/* How many entries of this queue go before an entry, of this queue or of
 * another with the same rule. */
size_t queue_position(struct queue *queue, const struct queue_entry *entry, int64_t now_ms);

/* What the first entry is at any time until an entry moves on, comes or goes: the
 * first of those that age and the first of those that do not, with their
 * effective priorities (for `ageing`, that at time 0 if it had never stopped). */
struct queue_head {
	int64_t effective, number;
	bool present;
};
struct queue_heads {
	struct queue_head ageing, aged;
	int64_t urgent_ms; /* when the next that is urgent by itself moves on; INT64_MAX: never */
};
struct queue_heads queue_heads(const struct queue *queue);
/* Whether entries have to move on by now, so that the heads are not right any more. */
bool queue_heads_are_due(const struct queue_rule *rule, const struct queue_heads *heads,
                         int64_t now_ms);
void queue_move_on(struct queue *queue, int64_t now_ms);

#define PRIORITY_UNIT 60000
/* Effective priority in 1/60000 of a point. */
int64_t queue_effective(const struct queue_rule *rule, const struct queue_entry *entry,
                        int64_t now_ms);
/* By how much its age does not count yet for what it was served, in the unit of
 * effective priorities; 0: it does count. Among equals, the smaller goes first. */
int64_t queue_behind(const struct queue_rule *rule, const struct queue_entry *entry,
                     int64_t now_ms);
/* Whether a goes before b at that time. */
bool queue_before(const struct queue_rule *rule, const struct queue_entry *a,
                  const struct queue_entry *b, int64_t now_ms);

/* Walks the entries in their order at `now_ms`; no change to the queue meanwhile. */
struct queue_cursor {
	struct rank_cursor ageing, aged;
	struct queue_entry *ageing_next, *aged_next;
	const struct queue_rule *rule;
	int64_t now_ms;
};
struct queue_cursor queue_walk(struct queue *queue, int64_t now_ms);
struct queue_entry *queue_walk_next(struct queue_cursor *cursor);

/* Changes the rule; costs O(n log n). */
void queue_rerule(struct queue *queue, struct queue_rule rule, int64_t now_ms);

#endif
