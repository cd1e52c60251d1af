/* queue.c - the waiting jobs of a tenant, by priority with ageing */
#include "core/queue/queue.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"

/* Effective priorities are in 1/60000 of a point, so that a millisecond of
 * waiting adds a whole number: `per_minute` of them. With priorities of 32
 * bits, times up to 2^45 ms and these bounds, no sum leaves 63 bits: the
 * largest, per_minute * now, is below 2^62. */
#define POINT PRIORITY_UNIT
enum {
	NOTES_SPARE = 64, /* without an entry, that a short queue keeps */
	NOTES_PER_ENTRY = 4,
	ENTRIES_AHEAD = 16, /* fetched before they are looked at: entries lie anywhere */
};

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

/* How long it takes to gain all that waiting adds. Needs a division: a queue keeps it. */
static int64_t ageing_time(const struct queue_rule *rule)
{
	return rule->per_minute > 0 ? (rule->cap * POINT + rule->per_minute - 1) / rule->per_minute
	                            : 0;
}

/* When it is done with ageing: by its age, by its rule whatever it is behind, or because it
 * is urgent. 0: never, as nothing ages. `ages_ms`: ageing_time() of the rule. */
static int64_t due_from(const struct queue_rule *rule, int64_t ages_ms,
                        const struct queue_entry *entry)
{
	int64_t due_ms = entry->urgent_ms > 0 ? entry->urgent_ms : INT64_MAX;

	if (rule->per_minute > 0) {
		int64_t behind_ms = rule->shares ? entry->behind_ms : 0;
		int64_t after_ms = ages_ms + behind_ms;
		if (behind_ms > 0)
			after_ms =
			    min64(after_ms, max64(rule->wait_ms * max64(entry->waits, 1), ages_ms));
		due_ms = min64(due_ms, max64(entry->queued_ms + after_ms, 1));
	}
	return due_ms < INT64_MAX ? due_ms : 0;
}

/* True if only its age decides when it is done: then its effective priority alone tells. */
static bool is_plain(const struct queue_rule *rule, const struct queue_entry *entry)
{
	return entry->urgent_ms <= 0 && (!rule->shares || entry->behind_ms <= 0);
}

static bool is_due(const struct queue_rule *rule, const struct queue_entry *entry, int64_t now_ms)
{
	int64_t due_ms = due_from(rule, ageing_time(rule), entry);

	return due_ms > 0 && now_ms >= due_ms;
}

int64_t queue_effective(const struct queue_rule *rule, const struct queue_entry *entry,
                        int64_t now_ms)
{
	if (!is_plain(rule, entry) && is_due(rule, entry, now_ms))
		return full(rule, entry);
	int64_t lifted = rule->per_minute * now_ms - ageing_major(rule, entry);
	return min64(full(rule, entry), max64(lifted, entry->priority * POINT));
}

int64_t queue_behind(const struct queue_rule *rule, const struct queue_entry *entry, int64_t now_ms)
{
	if (!rule->shares || entry->behind_ms <= 0 || is_due(rule, entry, now_ms))
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

static struct queue_rule rule_checked(struct queue_rule rule)
{
	INVARIANT(rule.per_minute >= 0 && rule.per_minute <= AGEING_PER_MINUTE_MAX);
	INVARIANT(rule.cap >= 0 && rule.cap <= INT32_MAX);
	return rule;
}

static void set_rule(struct queue *queue, struct queue_rule rule)
{
	queue->rule = rule_checked(rule);
	queue->ages_ms = ageing_time(&rule);
}

void queue_init(struct queue *queue, struct queue_rule rule)
{
	*queue = (struct queue){ 0 };
	set_rule(queue, rule);
}

void queue_free(struct queue *queue)
{
	ranktree_free(&queue->ageing);
	ranktree_free(&queue->aged);
	free(queue->notes);
	queue->notes = NULL;
	queue->note_count = queue->note_capacity = 0;
}

size_t queue_count(const struct queue *queue)
{
	return queue->ageing.count + queue->aged.count;
}

static void raise_note(struct queue *queue, size_t at, struct queue_note note)
{
	struct queue_note *notes = queue->notes;

	for (; at > 0 && note.due_ms < notes[(at - 1) / 2].due_ms; at = (at - 1) / 2)
		notes[at] = notes[(at - 1) / 2];
	notes[at] = note;
}

static void sink_note(struct queue *queue, size_t at, struct queue_note note)
{
	struct queue_note *notes = queue->notes;

	for (;;) {
		size_t child = 2 * at + 1;
		if (child >= queue->note_count)
			break;
		if (child + 1 < queue->note_count && notes[child + 1].due_ms < notes[child].due_ms)
			child++;
		if (notes[child].due_ms >= note.due_ms)
			break;
		notes[at] = notes[child];
		at = child;
	}
	notes[at] = note;
}

static bool needs_note(const struct queue *queue, const struct queue_entry *entry)
{
	return entry->due_ms > 0 && (queue->mixed || !is_plain(&queue->rule, entry));
}

/* Keeps one note for each entry that needs one, of as many as there is room for. */
static void renew_notes(struct queue *queue)
{
	struct rank_cursor cursor = ranktree_seek(&queue->ageing, INT64_MIN, INT64_MIN);
	struct rank_cursor ahead = cursor;
	const struct rank_entry *at, *later;

	for (int i = 0; i < ENTRIES_AHEAD; i++)
		rank_cursor_next(&ahead);
	queue->note_count = 0;
	while ((at = rank_cursor_next(&cursor))) {
		const struct queue_entry *entry = at->value;
		if ((later = rank_cursor_next(&ahead)))
			__builtin_prefetch(&((const struct queue_entry *)later->value)->due_ms);
		if (needs_note(queue, entry))
			queue->notes[queue->note_count++] =
			    (struct queue_note){ entry->due_ms, at->major, at->minor };
	}
	for (size_t i = queue->note_count / 2; i-- > 0;)
		sink_note(queue, i, queue->notes[i]);
}

static void add_note(struct queue *queue, struct queue_note note)
{
	/* Notes without an entry are most of all: dropping them costs less than adding them did. */
	if (queue->note_count > NOTES_SPARE + NOTES_PER_ENTRY * queue->ageing.count) {
		renew_notes(queue); /* the new entry is in the tree already */
		return;
	}
	array_reserve(queue->notes, queue->note_capacity, queue->note_count + 1);
	raise_note(queue, queue->note_count++, note);
}

static struct queue_note take_note(struct queue *queue)
{
	struct queue_note first = queue->notes[0];

	INVARIANT(queue->note_count > 0);
	queue->note_count--;
	if (queue->note_count > 0)
		sink_note(queue, 0, queue->notes[queue->note_count]);
	return first;
}

/* The entry is about to be in `ageing`. */
static void settle_mixed(struct queue *queue, const struct queue_entry *entry)
{
	if (queue->ageing.count == 0) {
		queue->priority = entry->priority;
		queue->mixed = false;
		queue->note_count = 0;
	} else if (!queue->mixed && entry->priority != queue->priority) {
		queue->mixed = true;
		array_reserve(queue->notes, queue->note_capacity, queue->ageing.count);
		renew_notes(queue);
	}
}

static void insert(struct queue *queue, struct queue_entry *entry, bool aged)
{
	entry->aged = aged;
	entry->due_ms = due_from(&queue->rule, queue->ages_ms, entry);
	if (aged) {
		INVARIANT(ranktree_insert(&queue->aged, -full(&queue->rule, entry), entry->number,
		                          entry));
		return;
	}
	int64_t major = ageing_major(&queue->rule, entry);
	settle_mixed(queue, entry);
	INVARIANT(ranktree_insert(&queue->ageing, major, entry->number, entry));
	if (needs_note(queue, entry))
		add_note(queue, (struct queue_note){ entry->due_ms, major, entry->number });
}

/* When the first of `ageing` is done, where it is the first to be so but for those with notes. */
static int64_t first_due(const struct queue *queue)
{
	const struct rank_entry *first = queue->mixed ? NULL : ranktree_first(&queue->ageing);
	const struct queue_entry *entry = first ? first->value : NULL;

	return entry && entry->due_ms > 0 ? entry->due_ms : INT64_MAX;
}

static int64_t noted_due(const struct queue *queue)
{
	return queue->note_count > 0 ? queue->notes[0].due_ms : INT64_MAX;
}

/* An entry that left and came again has notes of its earlier stays as well. */
void queue_move_on(struct queue *queue, int64_t now_ms)
{
	struct rank_entry first;

	while (first_due(queue) <= now_ms) {
		INVARIANT(ranktree_pop(&queue->ageing, &first));
		insert(queue, first.value, true);
	}
	while (noted_due(queue) <= now_ms) {
		struct queue_note note = take_note(queue);
		struct queue_entry *entry = ranktree_remove(&queue->ageing, note.major, note.minor);
		if (!entry)
			continue;
		bool done = entry->due_ms > 0 && entry->due_ms <= now_ms;
		if (done)
			insert(queue, entry, true);
		else /* its own note is there still */
			INVARIANT(ranktree_insert(&queue->ageing, note.major, note.minor, entry));
	}
}

void queue_push(struct queue *queue, struct queue_entry *entry, int64_t now_ms)
{
	INVARIANT(!entry->queued);
	queue_move_on(queue, now_ms);
	entry->queued = true;
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
		INVARIANT(ranktree_remove(&queue->ageing, ageing_major(&queue->rule, entry),
		                          entry->number) == entry);
}

static struct queue_head head_of(const struct ranktree *tree)
{
	const struct rank_entry *first = ranktree_first(tree);

	return first ? (struct queue_head){ -first->major, first->minor, true }
	             : (struct queue_head){ .present = false };
}

struct queue_heads queue_heads(const struct queue *queue)
{
	return (struct queue_heads){ .ageing = head_of(&queue->ageing),
		                     .aged = head_of(&queue->aged),
		                     .due_ms = min64(first_due(queue), noted_due(queue)) };
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
	queue->note_count = 0; /* notes are about the trees, which are empty now */
	set_rule(queue, rule);
	while (ranktree_pop(&all, &item))
		queue_push(queue, item.value, now_ms);
	ranktree_free(&all);
}
