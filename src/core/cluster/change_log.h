/* change_log.h - which nodes changed since one last looked */
#ifndef CORE_CLUSTER_CHANGE_LOG_H
#define CORE_CLUSTER_CHANGE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Changes of nodes have numbers, those below `count`. The last CHANGE_LOG_KEPT are
 * known: one by one, by the ranks of their nodes, and a block of them at a time
 * as a set of ranks, so that who has long not looked need not go through all. */
#define CHANGE_LOG_KEPT 4096
#define CHANGE_LOG_BLOCK 64
struct change_log {
	uint64_t count;
	int32_t ranks[CHANGE_LOG_KEPT]; /* of change n at [n % CHANGE_LOG_KEPT] */
	uint64_t *sets;                 /* of block b at [b % (KEPT / BLOCK) * words] */
	size_t words;                   /* of a set */
	uint64_t *last;                 /* by rank: the number of its last change */
};

/* Starts over with this many nodes, all unknown to readers. Numbers keep growing. */
void change_log_begin(struct change_log *changes, size_t nodes);
void change_log_free(struct change_log *changes);

void change_log_note(struct change_log *changes, size_t rank);
/* Whether all changes from number `seen` on are still known. */
static inline bool change_log_known(const struct change_log *changes, uint64_t seen)
{
	return changes->count - seen <= CHANGE_LOG_KEPT;
}
/* Adds the ranks of all changes from number `seen` on, which must be known, to a
 * set of `words` words. */
void change_log_since(const struct change_log *changes, uint64_t seen, uint64_t *set);

#endif
