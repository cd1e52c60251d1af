/* ranktree.h - an ordered set that knows the rank of its members */
#ifndef BASE_RANKTREE_H
#define BASE_RANKTREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Entries are ordered by (major, minor), ascending, and are distinct. A B+ tree
 * with the size of each subtree in its parent: insert, remove, rank and select
 * cost O(log n) with few cache misses. Zero-initialised is empty. */
struct rank_entry {
	int64_t major, minor;
	void *value;
};
struct rank_node;
struct rank_block;
struct ranktree {
	struct rank_node *root;
	size_t count;
	int height; /* 0: the root is a leaf */
	/* Freed nodes, used again: no allocation in a steady state. */
	struct rank_node *spare_leaves, *spare_inners;
	/* Where nodes come from: blocks of memory that grow with the tree. The first has
	 * `block_left` bytes to give, at its end. */
	struct rank_block *blocks;
	size_t block_left;
};

/* False, and nothing changed, if (major, minor) is there already. At most
 * UINT32_MAX entries. */
bool ranktree_insert(struct ranktree *tree, int64_t major, int64_t minor, void *value);
/* The value removed, or NULL if (major, minor) is not there. */
void *ranktree_remove(struct ranktree *tree, int64_t major, int64_t minor);
/* Removes the first entry into `entry` (may be NULL); false if the tree is empty. */
bool ranktree_pop(struct ranktree *tree, struct rank_entry *entry);
/* The first entry, or NULL. Valid until the next change. */
const struct rank_entry *ranktree_first(const struct ranktree *tree);
/* The entry at a rank (0 is the first), or NULL. */
const struct rank_entry *ranktree_select(const struct ranktree *tree, size_t rank);
/* How many entries are before (major, minor), whether or not it is there. */
size_t ranktree_rank(const struct ranktree *tree, int64_t major, int64_t minor);

/* A cursor walks the entries in order from the first that is not before
 * (major, minor). It is invalid after any change to the tree. */
struct rank_cursor {
	const struct rank_node *leaf;
	int at;
};
struct rank_cursor ranktree_seek(const struct ranktree *tree, int64_t major, int64_t minor);
/* The entry under the cursor, which moves on; NULL at the end. */
const struct rank_entry *rank_cursor_next(struct rank_cursor *cursor);

void ranktree_free(struct ranktree *tree);
/* Panics if order, counts or fill are not what they should be. For tests. */
void ranktree_check(const struct ranktree *tree);

#endif
