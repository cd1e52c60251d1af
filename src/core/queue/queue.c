/* queue.c - the waiting jobs of a tenant, by priority with ageing */
#include "core/queue/queue.h"

#include "base/error.h"

/* Effective priorities are in 1/60000 of a point, so that a millisecond of
 * waiting adds a whole number: `per_minute` of them. With priorities of 32
 * bits, times up to 2^45 ms and these bounds, no sum leaves 63 bits: the
 * largest, per_minute * now, is below 2^62. */
#define POINT PRIORITY_UNIT

/* What it has when it is done with ageing. */
static int64_t full(const struct queue_rule *rule, const struct queue_entry *entry)
{
	return (entry->priority + (rule->per_minute > 0 ? rule->cap : 0)) * POINT;
}

/* Where an entry is in `ageing`. At any time, an entry there has an effective
 * priority of per_minute * now - major, so majors order them for good. */
static int64_t ageing_major(const struct queue_rule *rule, const struct queue_entry *entry)
{
	int64_t from_ms = entry->queued_ms + (rule->shares ? entry->behind_ms : 0);

	return rule->per_minute * from_ms - entry->priority * POINT;
}

/* When it is done with ageing: by its age, by its rule whatever it is behind, or because it
 * is urgent. 0: never, as nothing ages. */
static int64_t due_from(const struct queue_rule *rule, const struct queue_entry *entry)
{
	int64_t due_ms = entry->urgent_ms > 0 ? entry->urgent_ms : INT64_MAX;

	if (rule->per_minute > 0) {
		int64_t behind_ms = rule->shares ? entry->behind_ms : 0;
		int64_t ages_ms = (rule->cap * POINT + rule->per_minute - 1) / rule->per_minute;
		int64_t after_ms = ages_ms + behind_ms;
		if (behind_ms > 0)
			after_ms = min64(after_ms, max64(rule->wait_ms, ages_ms));
		due_ms = min64(due_ms, max64(entry->queued_ms + after_ms, 1));
	}
	return due_ms < INT64_MAX ? due_ms : 0;
}

static bool is_due(const struct queue_rule *rule, const struct queue_entry *entry, int64_t now_ms)
{
	int64_t due_ms = due_from(rule, entry);

	return due_ms > 0 && now_ms >= due_ms;
}

int64_t queue_effective(const struct queue_rule *rule, const struct queue_entry *entry,
                        int64_t now_ms)
{
	if (is_due(rule, entry, now_ms))
		return full(rule, entry);
	int64_t lifted = rule->per_minute * now_ms - ageing_major(rule, entry);
	return min64(full(rule, entry), max64(lifted, entry->priority * POINT));
}

int64_t queue_behind(const struct queue_rule *rule, const struct queue_entry *entry, int64_t now_ms)
{
	if (!rule->shares || is_due(rule, entry, now_ms))
		return 0;
	int64_t lifted = rule->per_minute * now_ms - ageing_major(rule, entry);
	bool ages = full(rule, entry) > entry->priority * POINT;
	return ages ? max64(entry->priority * POINT - lifted, 0) : 0;
}

bool queue_before(const struct queue_rule *rule, const struct queue_entry *a,
                  const struct queue_entry *b, int64_t now_ms)
{
	int64_t of_a = queue_effective(rule, a, now_ms);
	int64_t of_b = queue_effective(rule, b, now_ms);
	if (of_a != of_b)
		return of_a > of_b;
	int64_t behind_a = queue_behind(rule, a, now_ms), behind_b = queue_behind(rule, b, now_ms);
	return behind_a != behind_b ? behind_a < behind_b : a->number < b->number;
}

static bool due_sooner(const void *a, const void *b)
{
	const struct queue_entry *one = a, *other = b;
	return one->due_ms < other->due_ms;
}

void queue_init(struct queue *queue, struct queue_rule rule)
{
	INVARIANT(rule.per_minute >= 0 && rule.per_minute <= AGEING_PER_MINUTE_MAX);
	INVARIANT(rule.cap >= 0 && rule.cap <= INT32_MAX);
	*queue = (struct queue){ .rule = rule };
	queue->due = HEAP(struct queue_entry, heap_index, due_sooner);
}

void queue_free(struct queue *queue)
{
	ranktree_free(&queue->ageing);
	ranktree_free(&queue->aged);
	heap_free(&queue->due);
}

size_t queue_count(const struct queue *queue)
{
	return queue->ageing.count + queue->aged.count;
}

static void insert(struct queue *queue, struct queue_entry *entry, bool aged)
{
	entry->aged = aged;
	entry->due_ms = due_from(&queue->rule, entry);
	if (aged)
		INVARIANT(ranktree_insert(&queue->aged, -full(&queue->rule, entry), entry->number,
		                          entry));
	else
		INVARIANT(ranktree_insert(&queue->ageing, ageing_major(&queue->rule, entry),
		                          entry->number, entry));
	if (!aged && entry->due_ms > 0)
		heap_push(&queue->due, entry);
}

static void forget_due(struct queue *queue, struct queue_entry *entry)
{
	if (entry->heap_index >= 0)
		heap_remove(&queue->due, entry);
}

static void remove_ageing(struct queue *queue, struct queue_entry *entry)
{
	forget_due(queue, entry);
	INVARIANT(ranktree_remove(&queue->ageing, ageing_major(&queue->rule, entry),
	                          entry->number) == entry);
}

void queue_move_on(struct queue *queue, int64_t now_ms)
{
	struct queue_entry *entry;
	while ((entry = heap_first(&queue->due)) && entry->due_ms <= now_ms) {
		remove_ageing(queue, entry);
		insert(queue, entry, true);
	}
}

void queue_push(struct queue *queue, struct queue_entry *entry, int64_t now_ms)
{
	INVARIANT(!entry->queued);
	queue_move_on(queue, now_ms);
	entry->queued = true;
	entry->heap_index = -1;
	insert(queue, entry,
	       queue_effective(&queue->rule, entry, now_ms) == full(&queue->rule, entry));
}

void queue_remove(struct queue *queue, struct queue_entry *entry)
{
	INVARIANT(entry->queued);
	entry->queued = false;
	if (entry->aged)
		INVARIANT(ranktree_remove(&queue->aged, -full(&queue->rule, entry),
		                          entry->number) == entry);
	else
		remove_ageing(queue, entry);
}

static struct queue_head head_of(const struct ranktree *tree)
{
	const struct rank_entry *first = ranktree_first(tree);

	return first ? (struct queue_head){ -first->major, first->minor, true }
	             : (struct queue_head){ .present = false };
}

struct queue_heads queue_heads(const struct queue *queue)
{
	const struct queue_entry *next = heap_first(&queue->due);

	return (struct queue_heads){ .ageing = head_of(&queue->ageing),
		                     .aged = head_of(&queue->aged),
		                     .due_ms = next ? next->due_ms : INT64_MAX };
}

static bool ageing_first(const struct queue *queue, int64_t now_ms)
{
	const struct rank_entry *ageing = ranktree_first(&queue->ageing);
	const struct rank_entry *aged = ranktree_first(&queue->aged);
	if (!ageing || !aged)
		return ageing;
	int64_t of_ageing = ageing->major - queue->rule.per_minute * now_ms;
	return of_ageing != aged->major ? of_ageing < aged->major : ageing->minor < aged->minor;
}

struct queue_entry *queue_first(struct queue *queue, int64_t now_ms)
{
	queue_move_on(queue, now_ms);
	const struct ranktree *tree = ageing_first(queue, now_ms) ? &queue->ageing : &queue->aged;
	const struct rank_entry *first = ranktree_first(tree);
	return first ? first->value : NULL;
}

struct queue_entry *queue_pop(struct queue *queue, int64_t now_ms)
{
	queue_move_on(queue, now_ms);
	struct rank_entry first;
	bool ageing = ageing_first(queue, now_ms);
	if (!ranktree_pop(ageing ? &queue->ageing : &queue->aged, &first))
		return NULL;
	struct queue_entry *entry = first.value;
	if (ageing)
		forget_due(queue, entry);
	entry->queued = false;
	return entry;
}

/* Where effective priorities alone do not tell the order. */
static size_t walk_to(struct queue *queue, const struct queue_entry *entry, int64_t now_ms)
{
	struct queue_cursor cursor = queue_walk(queue, now_ms);
	const struct queue_entry *next;
	size_t before = 0;

	while ((next = queue_walk_next(&cursor)) && queue_before(&queue->rule, next, entry, now_ms))
		before++;
	return before;
}

size_t queue_position(struct queue *queue, const struct queue_entry *entry, int64_t now_ms)
{
	queue_move_on(queue, now_ms);
	int64_t effective = queue_effective(&queue->rule, entry, now_ms);
	if (queue->rule.shares)
		return walk_to(queue, entry, now_ms);
	return ranktree_rank(&queue->aged, -effective, entry->number) +
	       ranktree_rank(&queue->ageing, queue->rule.per_minute * now_ms - effective,
	                     entry->number);
}

static struct queue_entry *cursor_next(struct rank_cursor *cursor)
{
	const struct rank_entry *entry = rank_cursor_next(cursor);
	return entry ? entry->value : NULL;
}

struct queue_cursor queue_walk(struct queue *queue, int64_t now_ms)
{
	queue_move_on(queue, now_ms);
	struct queue_cursor cursor = {
		.ageing = ranktree_seek(&queue->ageing, INT64_MIN, INT64_MIN),
		.aged = ranktree_seek(&queue->aged, INT64_MIN, INT64_MIN),
		.rule = &queue->rule,
		.now_ms = now_ms,
	};
	cursor.ageing_next = cursor_next(&cursor.ageing);
	cursor.aged_next = cursor_next(&cursor.aged);
	return cursor;
}

struct queue_entry *queue_walk_next(struct queue_cursor *cursor)
{
	struct queue_entry *ageing = cursor->ageing_next, *aged = cursor->aged_next;
	if (ageing && (!aged || queue_before(cursor->rule, ageing, aged, cursor->now_ms))) {
		cursor->ageing_next = cursor_next(&cursor->ageing);
		return ageing;
	}
	if (aged)
		cursor->aged_next = cursor_next(&cursor->aged);
	return aged;
}

/* Moves all entries of `tree` into `all`, by the time since when they wait. */
static void queue_collect(struct ranktree *all, struct ranktree *tree)
{
	struct rank_entry item;
	while (ranktree_pop(tree, &item)) {
		struct queue_entry *entry = item.value;
		entry->queued = false;
		INVARIANT(ranktree_insert(all, entry->queued_ms, entry->number, entry));
	}
}

void queue_rerule(struct queue *queue, struct queue_rule rule, int64_t now_ms)
{
	struct ranktree all = { 0 };
	struct rank_entry item;

	queue_collect(&all, &queue->ageing);
	queue_collect(&all, &queue->aged);
	queue_free(queue);
	queue_init(queue, rule);
	while (ranktree_pop(&all, &item))
		queue_push(queue, item.value, now_ms);
	ranktree_free(&all);
}
