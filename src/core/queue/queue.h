/* queue.h - the waiting jobs of a tenant, by priority with ageing */
#ifndef CORE_QUEUE_QUEUE_H
#define CORE_QUEUE_QUEUE_H

#include "base/ranktree.h"
#include "core/record/config_range.h"
#include "core/record/types.h"

/* A job's effective priority is its priority plus `per_minute` points for each minute that
 * it has waited, `cap` points at most. Higher goes first; among equals, the one with the
 * smaller number (the older job). Jobs that still age do so at one rate, so their order
 * changes only when one has all that waiting can add. The queue keeps those that age and
 * those that are done with it in two trees, each in an order that does not depend on time.
 * Jobs of one priority are done in the order in which they age, so the first of them is the
 * next to be done, unless a job is urgent or behind others. For those, and for all where
 * priorities are mixed, a heap of notes says when entries are done. A note names its entry by
 * its place in `ageing` and stays when the entry leaves, so leaving costs nothing; notes
 * without an entry are dropped when they come up, or when they are most of all.
 *
 * The bound: while a job of priority p ages, one of priority q > p passes it only if that
 * was queued less than (q - p) / per_minute minutes after it. When it is done with ageing,
 * it has p + cap, and goes before every q < p + cap that waited less than
 * (p + cap - q) / per_minute minutes. Jobs of one priority never pass each other.
 *
 * Where GPUs are shared in time, a job goes behind those of its priority that were
 * queued up to as much later as the GPU time that it is expected to take still, and
 * no others; until it has waited as long as that, it has its priority and no more.
 * This does not count any more when it has waited for `wait_ms` and would without
 * it be done with ageing.
 *
 * Bounds on what is asked: priorities and cap of 31 bits, times up to 2^45 ms,
 * per_minute up to AGEING_PER_MINUTE_MAX. */
struct queue_rule {
	int64_t per_minute; /* points */
	int64_t cap;        /* points that waiting adds at most */
	bool shares;        /* the age of a job counts from `behind_ms` later */
	int64_t wait_ms;    /* until it has waited that long, and by its age is done */
};

/* Part of the job. The first six are set by the owner before queue_push and
 * not changed while it is queued. */
struct queue_entry {
	int64_t priority, queued_ms, number;
	int64_t urgent_ms; /* done with ageing from then on, whatever its wait; 0: not urgent */
	int64_t behind_ms; /* by how much later its age counts: see queue_rule.shares */
	int64_t due_ms;    /* when it is done with ageing, by its age, rule or urgency; 0: never */
	bool queued, aged;
	int64_t waits; /* that it is done after, whatever it is behind; 0 is 1 */
};

/* When an entry of `ageing` at this place is done with ageing. */
struct queue_note {
	int64_t due_ms, major, minor;
};

struct queue {
	struct queue_rule rule;
	int64_t ages_ms;        /* until a job has all the points that waiting adds */
	struct ranktree ageing; /* by -(priority - age) */
	struct ranktree aged;   /* by -(priority + cap) */
	int64_t priority;       /* of all in `ageing`, unless they are mixed */
	bool mixed;
	struct queue_note *notes; /* a binary heap by `due_ms`: one, or more, for each of `ageing`
	                           * that will be done and needs one */
	size_t note_count, note_capacity;
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
	int64_t due_ms; /* no entry is done with ageing before; INT64_MAX: none ever is */
};
struct queue_heads queue_heads(const struct queue *queue);
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
