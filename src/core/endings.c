/* endings.c - running jobs in the order in which they are expected to end */
#include "core/endings.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/number.h"

#define LATE_MIN_MS 1000 /* that a late job is given at the least */

int64_t ending_late(int64_t end_ms, int64_t now_ms)
{
	return now_ms + max64(now_ms - end_ms, LATE_MIN_MS);
}

static int by_id(const void *a, const void *b)
{
	const struct ending *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static bool is_sooner(const struct ending *a, const struct ending *b)
{
	return a->end_ms != b->end_ms ? a->end_ms < b->end_ms : a->id < b->id;
}

/* Turns the late ones around, which brings them into order but for those that
 * are expected to end together. */
static void order_late(struct ending *late, size_t count)
{
	for (size_t i = 0; i < count / 2; i++) {
		struct ending ending = late[i];
		late[i] = late[count - 1 - i];
		late[count - 1 - i] = ending;
	}
	for (size_t from = 0, to; from < count; from = to) {
		for (to = from + 1; to < count && late[to].end_ms == late[from].end_ms; to++)
			;
		if (to - from > 1)
			qsort(late + from, to - from, sizeof(*late), by_id);
	}
}

/* The first `late_count` of the list and the others are each in order: so is all
 * of it afterwards. */
static void merge(struct ending *list, size_t late_count, size_t count)
{
	struct ending *late = memory_alloc(late_count * sizeof(*late));
	size_t next = 0, other = late_count;

	for (size_t i = 0; i < late_count; i++)
		late[i] = list[i];
	for (size_t to = 0; next < late_count; to++) {
		bool from_late = other == count || is_sooner(&late[next], &list[other]);
		list[to] = from_late ? late[next++] : list[other++];
	}
	free(late);
}

void endings_list(struct ending *list, size_t count, const struct ranktree *ends, int64_t now_ms)
{
	struct rank_cursor cursor = ranktree_seek(ends, INT64_MIN, INT64_MIN);
	size_t late_count = 0;

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
	order_late(list, late_count);
	merge(list, late_count, count);
}
