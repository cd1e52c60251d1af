/* changes.h - which nodes changed since one last looked */
#ifndef CORE_CLUSTER_CHANGES_H
#define CORE_CLUSTER_CHANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Changes of nodes have numbers, those below `count`. The last CHANGES_KEPT are
 * known: one by one, by the slots of their nodes, and a block of them at a time
 * as a set of slots, so that who has long not looked need not go through all. */
#define CHANGES_KEPT 4096
#define CHANGES_BLOCK 64
struct changes {
	uint64_t count;
	int32_t slots[CHANGES_KEPT]; /* of change n at [n % CHANGES_KEPT] */
	uint64_t *sets;              /* of block b at [b % (KEPT / BLOCK) * words] */
	size_t words;                /* of a set */
	uint64_t *last;              /* by slot: the number of its last change */
};

/* Begins with this many nodes, none of which anyone knows. Numbers go on. */
void changes_begin(struct changes *changes, size_t nodes);
void changes_free(struct changes *changes);

void changes_note(struct changes *changes, size_t slot);
/* Whether all changes from number `seen` on are still known. */
static inline bool changes_known(const struct changes *changes, uint64_t seen)
{
	return changes->count - seen <= CHANGES_KEPT;
}
/* Adds the slots of all changes from number `seen` on, which must be known, to a
 * set of `words` words. */
void changes_since(const struct changes *changes, uint64_t seen, uint64_t *set);

#endif
