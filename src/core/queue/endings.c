/* endings.c - running jobs in the order in which they are expected to end */
#include "core/queue/endings.h"

#include <string.h>

#include "base/error.h"
#include "base/number.h"

#define LATE_MIN_MS 1000 /* that a late job is given at the least */

int64_t ending_late(int64_t end_ms, int64_t now_ms)
{
	INVARIANT(end_ms <= now_ms);
	return now_ms + max64(now_ms - end_ms, LATE_MIN_MS);
}

/* One step of sorting by id: by eight bits of what it is above `least`. */
static void sort_by_digit(const struct ending *from, struct ending *to, size_t count, int64_t least,
                          int shift)
{
	size_t place[257] = { 0 };

	for (size_t i = 0; i < count; i++)
		place[((from[i].id - least) >> shift & 255) + 1]++;
	for (int digit = 1; digit < 256; digit++)
		place[digit] += place[digit - 1];
	for (size_t i = 0; i < count; i++)
		to[place[(from[i].id - least) >> shift & 255]++] = from[i];
}

/* Sorts by id, in a few steps since ids of jobs that run together are near each
 * other. What `spare` points to is overwritten. */
static void sort_by_id(struct ending *list, struct ending *spare, size_t count)
{
	struct ending *from = list, *to = spare;
	int64_t least = list[0].id, most = list[0].id;

	for (size_t i = 1; i < count; i++) {
		least = min64(least, list[i].id);
		most = max64(most, list[i].id);
	}
	for (int shift = 0; shift < 64 && (most - least) >> shift > 0; shift += 8) {
		sort_by_digit(from, to, count, least, shift);
		struct ending *sorted = to;
		to = from;
		from = sorted;
	}
	if (from != list)
		memcpy(list, from, count * sizeof(*list));
}

static bool is_sooner(const struct ending *a, const struct ending *b)
{
	return a->end_ms != b->end_ms ? a->end_ms < b->end_ms : a->id < b->id;
}

/* Brings the late ones into order: last come first, but by id among those that
 * are expected to end together. Of these only the first, which are given the
 * least time, have not all been expected at the same time before. */
static void order_late(struct ending *late, struct ending *spare, size_t count)
{
	size_t put = 0;

	for (size_t from, to = count; to > 0; to = from) {
		from = to - 1;
		while (from > 0 && late[from - 1].end_ms == late[to - 1].end_ms)
			from--;
		memcpy(spare + put, late + from, (to - from) * sizeof(*late));
		if (put == 0)
			sort_by_id(spare, late + from, to - from);
		put += to - from;
	}
	memcpy(late, spare, count * sizeof(*late));
}

/* The first `late_count` of the list and the others are each in order: so is all
 * of it afterwards. */
static void merge(struct ending *list, struct ending *spare, size_t late_count, size_t count)
{
	size_t next = 0, other = late_count;

	memcpy(spare, list, late_count * sizeof(*list));
	for (size_t to = 0; next < late_count; to++) {
		bool from_late = other == count || is_sooner(&spare[next], &list[other]);
		list[to] = from_late ? spare[next++] : list[other++];
	}
}

void endings_list(struct ending *list, size_t count, const struct ranktree *ends, int64_t now_ms)
{
	struct rank_cursor cursor = ranktree_seek(ends, INT64_MIN, INT64_MIN);
	size_t late_count = 0;

	INVARIANT(count <= ends->count);
	for (size_t i = 0; i < count; i++) {
		const struct rank_entry *entry = rank_cursor_next(&cursor);
		bool late = entry->major <= now_ms;
		list[i] = (struct ending){
			.end_ms = late ? ending_late(entry->major, now_ms) : entry->major,
			.id = entry->minor,
			.job = entry->value,
		};
		late_count += late;
	}
	if (late_count == 0)
		return;
	order_late(list, list + count, late_count);
	merge(list, list + count, late_count, count);
}
