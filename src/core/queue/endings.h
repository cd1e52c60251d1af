/* endings.h - running jobs in the order in which they are expected to end */
#ifndef CORE_QUEUE_ENDINGS_H
#define CORE_QUEUE_ENDINGS_H

#include "base/ranktree.h"

struct job;

struct ending {
	int64_t end_ms, id;
	const struct job *job;
};

/* When a job is expected to end that should have ended by `end_ms`, which is not
 * after now: it may run for as long again as it is late. */
int64_t ending_late(int64_t end_ms, int64_t now_ms);

/* Puts the first `count` of the jobs in `ends`, a tree by (end, id) that has as
 * many, into the list, ordered by when they are expected to end as of now, then
 * by id. The list has room for twice as many: the rest of it is overwritten.
 * Those that are late are expected the later the sooner they should have
 * ended, so that they are in order backwards, and little has to be sorted. */
void endings_list(struct ending *list, size_t count, const struct ranktree *ends, int64_t now_ms);

#endif
