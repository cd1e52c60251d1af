/* ranktree.c - an ordered set that knows the rank of its members: a counted B+ tree */
#include "ranktree.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "memory.h"
#include "number.h"

/* Nodes are searched in two steps: which block of eight, then where in it. */
enum {
	BLOCK = 8,
	LEAF_MAX = 32,
	LEAF_MIN = LEAF_MAX / 4,
	INNER_MAX = 96,
	INNER_MIN = INNER_MAX / 4,
	INNER_BLOCKS = INNER_MAX / BLOCK,
	HEIGHT_MAX = 8, /* LEAF_MIN * 2 * INNER_MIN^7 is more than UINT32_MAX */
	CACHE_LINE = 64,
	BLOCK_MAX = 2 << 20,
};
_Static_assert(LEAF_MAX % BLOCK == 0 && INNER_MAX % BLOCK == 0, "nodes are whole blocks");

/* What leaves and inner nodes have in common. Every node but the root is at
 * least a quarter full. */
struct rank_node {
	int count;              /* of entries in a leaf, of children in an inner node */
	struct rank_node *next; /* the one that follows at the same height, or the next spare */
};

/* Entries are in order. Those behind the last have the key KEY_LAST, so that a
 * search may look at all of them: a loop whose length does not depend on the
 * data is never mispredicted. */
struct leaf {
	_Alignas(CACHE_LINE) struct rank_node node;
	struct rank_entry entry[LEAF_MAX];
};

/* key[i] is at least every key under child[i] and less than every key under
 * child[i + 1]. The last is what the parent has for this node, in the root
 * KEY_LAST. size[i] is the number of entries under child[i]. Behind the last
 * child, keys are KEY_LAST and sizes 0. For each block, block_key is its last
 * key and block_size the sum of its sizes. The root has two children or more. */
struct inner {
	_Alignas(CACHE_LINE) struct rank_node node;
	uint128 block_key[INNER_BLOCKS];
	uint32_t block_size[INNER_BLOCKS];
	uint128 key[INNER_MAX];
	uint32_t size[INNER_MAX];
	struct rank_node *child[INNER_MAX];
};

/* The way from the root to a leaf: at each inner node, which child. */
struct path {
	int steps;
	struct inner *node[HEIGHT_MAX];
	int at[HEIGHT_MAX];
};

#define KEY_LAST (~(uint128)0)

/* One unsigned number that orders like (major, minor): comparing takes no branch. */
static inline uint128 ranktree_key_of(int64_t major, int64_t minor)
{
	const uint64_t sign = UINT64_C(1) << 63;
	return (uint128)((uint64_t)major ^ sign) << 64 | ((uint64_t)minor ^ sign);
}

static inline uint128 entry_key(const struct rank_entry *entry)
{
	return ranktree_key_of(entry->major, entry->minor);
}

static inline struct leaf *as_leaf(const struct rank_node *node)
{
	return (struct leaf *)node;
}

static inline struct inner *as_inner(const struct rank_node *node)
{
	return (struct inner *)node;
}

/* How many entries of a leaf are before `key`. */
static inline int find_entry(const struct leaf *leaf, uint128 key)
{
	int block = 0;
	for (int i = BLOCK - 1; i < LEAF_MAX - 1; i += BLOCK)
		block += entry_key(&leaf->entry[i]) < key;
	const struct rank_entry *first = &leaf->entry[block * BLOCK];
	int at = 0;
	for (int i = 0; i < BLOCK; i++)
		at += entry_key(&first[i]) < key;
	return block * BLOCK + at;
}

/* The child of an inner node under which `key` belongs. */
static inline int find_child(const struct inner *inner, uint128 key)
{
	int block = 0;
	for (int i = 0; i < INNER_BLOCKS - 1; i++)
		block += inner->block_key[i] < key;
	const uint128 *first = &inner->key[block * BLOCK];
	__builtin_prefetch(&inner->child[block * BLOCK]);
	int at = 0;
	for (int i = 0; i < BLOCK - 1; i++)
		at += first[i] < key;
	return block * BLOCK + at;
}

/* How many entries are under the children before `at`. */
static inline uint32_t size_before(const struct inner *inner, int at)
{
	/* Masks rather than a condition, so that compilers make vectors of it. */
	static const uint32_t masks[2 * INNER_BLOCKS] = { [0 ... INNER_BLOCKS - 1] = UINT32_MAX };
	int block = at / BLOCK;
	const uint32_t *mask = &masks[INNER_BLOCKS - block];
	uint32_t sum = 0;
	for (int i = 0; i < INNER_BLOCKS; i++)
		sum += inner->block_size[i] & mask[i];
	const uint32_t *size = &inner->size[block * BLOCK];
	mask = &masks[INNER_BLOCKS - at % BLOCK];
	for (int i = 0; i < BLOCK; i++)
		sum += size[i] & mask[i];
	return sum;
}

/* All lines at once: a leaf is seldom in the cache, and waiting for one line
 * after the other would be most of the cost of an operation. */
static inline void prefetch_leaf(const struct rank_node *node)
{
	for (size_t i = 0; i < sizeof(struct leaf); i += CACHE_LINE)
		__builtin_prefetch((const char *)node + i);
}

static inline struct rank_node *take_step(struct path *path, struct inner *inner, int at)
{
	path->node[path->steps] = inner;
	path->at[path->steps++] = at;
	return inner->child[at];
}

static struct rank_node *descend(const struct ranktree *tree, uint128 key, struct path *path)
{
	struct rank_node *node = tree->root;
	path->steps = 0;
	while (path->steps < tree->height)
		node = take_step(path, as_inner(node), find_child(as_inner(node), key));
	prefetch_leaf(node);
	return node;
}

/* Sizes along the path change by `change`, which wraps around: UINT32_MAX is -1. */
static inline void resize_path(const struct path *path, uint32_t change)
{
	for (int i = 0; i < path->steps; i++) {
		struct inner *inner = path->node[i];
		inner->size[path->at[i]] += change;
		inner->block_size[path->at[i] / BLOCK] += change;
	}
}

static void pad(struct rank_node *node, bool is_leaf, int from, int to)
{
	for (int i = from; i < to; i++) {
		if (is_leaf) {
			as_leaf(node)->entry[i] =
			    (struct rank_entry){ .major = INT64_MAX, .minor = INT64_MAX };
		} else {
			as_inner(node)->key[i] = KEY_LAST;
			as_inner(node)->size[i] = 0;
		}
	}
}

static void index_blocks(struct inner *inner)
{
	for (int block = 0; block < INNER_BLOCKS; block++) {
		const uint32_t *size = &inner->size[block * BLOCK];
		uint32_t sum = 0;
		for (int i = 0; i < BLOCK; i++)
			sum += size[i];
		inner->block_size[block] = sum;
		inner->block_key[block] = inner->key[block * BLOCK + BLOCK - 1];
	}
}

/* Each block is half as large as all before it together, up to a huge page: a
 * large tree is in few pages, so that finding a node seldom misses the TLB, and
 * a small one takes no more than it needs. */
struct rank_block {
	_Alignas(CACHE_LINE) struct rank_block *next;
	size_t size, all; /* of this one, and of all up to it */
};

static void add_block(struct ranktree *tree, size_t need)
{
	size_t before = tree->blocks ? tree->blocks->all : 0;
	size_t size = before / 2 < BLOCK_MAX ? before / 2 : BLOCK_MAX;
	if (size < need + sizeof(struct rank_block))
		size = need + sizeof(struct rank_block);
	struct rank_block *block = memory_pages(&size);
	*block = (struct rank_block){ .next = tree->blocks, .size = size, .all = before + size };
	tree->blocks = block;
	tree->block_left = size - sizeof(struct rank_block);
}

static struct rank_node *new_node(struct ranktree *tree, bool is_leaf)
{
	size_t size = is_leaf ? sizeof(struct leaf) : sizeof(struct inner);
	if (tree->block_left < size)
		add_block(tree, size);
	tree->block_left -= size;
	return (struct rank_node *)((char *)tree->blocks + tree->blocks->size - tree->block_left -
	                            size);
}

static struct rank_node *take_node(struct ranktree *tree, bool is_leaf)
{
	struct rank_node **spare = is_leaf ? &tree->spare_leaves : &tree->spare_inners;
	struct rank_node *node = *spare;
	if (node)
		*spare = node->next;
	else
		node = new_node(tree, is_leaf);
	*node = (struct rank_node){ 0 };
	pad(node, is_leaf, 0, is_leaf ? LEAF_MAX : INNER_MAX);
	return node;
}

static void give_node(struct ranktree *tree, struct rank_node *node, bool is_leaf)
{
	struct rank_node **spare = is_leaf ? &tree->spare_leaves : &tree->spare_inners;
	node->next = *spare;
	*spare = node;
}

static void ranktree_move(struct rank_node *to, int to_at, const struct rank_node *from,
                          int from_at, int count, bool is_leaf)
{
	size_t n = (size_t)count;
	if (is_leaf) {
		memmove(&as_leaf(to)->entry[to_at], &as_leaf(from)->entry[from_at],
		        n * sizeof(struct rank_entry));
		return;
	}
	struct inner *inner = as_inner(to);
	const struct inner *source = as_inner(from);
	memmove(&inner->key[to_at], &source->key[from_at], n * sizeof(*inner->key));
	memmove(&inner->size[to_at], &source->size[from_at], n * sizeof(*inner->size));
	memmove(&inner->child[to_at], &source->child[from_at], n * sizeof(*inner->child));
}

/* Moves elements between neighbors until `left` has `keep` of them. */
static void spread(struct rank_node *left, struct rank_node *right, int keep, bool is_leaf)
{
	int moved = left->count - keep;
	if (moved > 0) {
		ranktree_move(right, moved, right, 0, right->count, is_leaf);
		ranktree_move(right, 0, left, keep, moved, is_leaf);
		pad(left, is_leaf, keep, left->count);
	} else {
		ranktree_move(left, left->count, right, 0, -moved, is_leaf);
		ranktree_move(right, 0, right, -moved, right->count + moved, is_leaf);
		pad(right, is_leaf, right->count + moved, right->count);
	}
	left->count = keep;
	right->count += moved;
	if (!is_leaf) {
		index_blocks(as_inner(left));
		index_blocks(as_inner(right));
	}
}

/* Splits a full node to which something will be added at `at`. Keys that only
 * grow leave nodes more than half full behind them. */
static struct rank_node *split(struct ranktree *tree, struct rank_node *node, int at, bool is_leaf)
{
	struct rank_node *right = take_node(tree, is_leaf);
	int least = is_leaf ? LEAF_MIN : INNER_MIN;
	int keep = at == node->count ? at - least : node->count / 2;
	spread(node, right, keep, is_leaf);
	right->next = node->next;
	node->next = right;
	return right;
}

static uint32_t node_size(const struct rank_node *node, bool is_leaf)
{
	if (is_leaf)
		return (uint32_t)node->count;
	uint32_t sum = 0;
	for (int i = 0; i < INNER_BLOCKS; i++)
		sum += as_inner(node)->block_size[i];
	return sum;
}

static uint128 last_key(const struct rank_node *node, bool is_leaf)
{
	int last = node->count - 1;
	return is_leaf ? entry_key(&as_leaf(node)->entry[last]) : as_inner(node)->key[last];
}

/* Puts `right`, which was split off child `at`, behind it. */
static void put_right(struct inner *inner, int at, struct rank_node *right, bool is_leaf)
{
	struct rank_node *node = &inner->node;
	uint32_t size = node_size(right, is_leaf);
	ranktree_move(node, at + 1, node, at, node->count - at, false);
	node->count++;
	inner->key[at] = last_key(inner->child[at], is_leaf);
	inner->size[at] -= size;
	inner->size[at + 1] = size;
	inner->child[at + 1] = right;
	index_blocks(inner);
}

static void grow_root(struct ranktree *tree)
{
	INVARIANT(tree->height < HEIGHT_MAX);
	struct inner *root = as_inner(take_node(tree, false));
	root->node.count = 1;
	root->size[0] = (uint32_t)tree->count;
	root->child[0] = tree->root;
	tree->root = &root->node;
	tree->height++;
}

/* Gives `right`, split off the leaf at the end of the path, a place in the inner
 * nodes above, which are split in turn where they are full. Sizes on the path
 * count both halves already. */
static void add_right(struct ranktree *tree, const struct path *path, struct rank_node *right)
{
	bool is_leaf = true;
	for (int i = path->steps - 1; i >= 0; i--) {
		struct inner *inner = path->node[i];
		int at = path->at[i];
		if (inner->node.count < INNER_MAX) {
			put_right(inner, at, right, is_leaf);
			return;
		}
		struct rank_node *half = split(tree, &inner->node, at + 1, false);
		int keep = inner->node.count;
		if (at < keep)
			put_right(inner, at, right, is_leaf);
		else
			put_right(as_inner(half), at - keep, right, is_leaf);
		right = half;
		is_leaf = false;
	}
	grow_root(tree);
	put_right(as_inner(tree->root), 0, right, is_leaf);
}

static void put_entry(struct rank_node *node, int at, struct rank_entry entry)
{
	ranktree_move(node, at + 1, node, at, node->count - at, true);
	as_leaf(node)->entry[at] = entry;
	node->count++;
}

/* Like descend(), for insertion, which often appends at the end. */
static struct rank_node *descend_to_insert(const struct ranktree *tree, uint128 key,
                                           struct path *path)
{
	struct rank_node *node = tree->root;
	path->steps = 0;
	while (path->steps < tree->height) {
		struct inner *inner = as_inner(node);
		int last = node->count - 1;
		node = take_step(path, inner,
		                 inner->key[last - 1] < key ? last : find_child(inner, key));
	}
	prefetch_leaf(node);
	return node;
}

static int find_place(const struct rank_node *node, uint128 key)
{
	const struct leaf *leaf = as_leaf(node);
	if (node->count > 0 && entry_key(&leaf->entry[node->count - 1]) < key)
		return node->count;
	return find_entry(leaf, key);
}

bool ranktree_insert(struct ranktree *tree, int64_t major, int64_t minor, void *value)
{
	struct rank_entry entry = { .major = major, .minor = minor, .value = value };
	uint128 key = ranktree_key_of(major, minor);
	struct path path;

	if (!tree->root)
		tree->root = take_node(tree, true);
	struct rank_node *node = descend_to_insert(tree, key, &path);
	int at = find_place(node, key);
	if (at < node->count && entry_key(&as_leaf(node)->entry[at]) == key)
		return false;

	INVARIANT(tree->count < UINT32_MAX);
	tree->count++;
	resize_path(&path, 1);
	if (node->count < LEAF_MAX) {
		put_entry(node, at, entry);
		return true;
	}
	struct rank_node *right = split(tree, node, at, true);
	if (at <= node->count)
		put_entry(node, at, entry);
	else
		put_entry(right, at - node->count, entry);
	add_right(tree, &path, right);
	return true;
}

/* The child at `at` is too empty. It and a neighbor become one node, or two of
 * equal fill if they do not fit into one. */
static void refill(struct ranktree *tree, struct inner *inner, int at, bool is_leaf)
{
	struct rank_node *node = &inner->node;
	int i = at + 1 < node->count ? at : at - 1;
	struct rank_node *left = inner->child[i];
	struct rank_node *right = inner->child[i + 1];
	uint32_t size = inner->size[i] + inner->size[i + 1];
	int count = left->count + right->count;

	if (count <= (is_leaf ? LEAF_MAX : INNER_MAX)) {
		spread(left, right, count, is_leaf);
		left->next = right->next;
		give_node(tree, right, is_leaf);
		inner->key[i] = inner->key[i + 1];
		inner->size[i] = size;
		ranktree_move(node, i + 1, node, i + 2, node->count - i - 2, false);
		node->count--;
		pad(node, false, node->count, node->count + 1);
	} else {
		spread(left, right, count / 2, is_leaf);
		inner->key[i] = last_key(left, is_leaf);
		inner->size[i] = node_size(left, is_leaf);
		inner->size[i + 1] = size - inner->size[i];
	}
	index_blocks(inner);
}

static void remove_entry(struct ranktree *tree, const struct path *path, struct rank_node *node,
                         int at)
{
	tree->count--;
	resize_path(path, UINT32_MAX);
	node->count--;
	ranktree_move(node, at, node, at + 1, node->count - at, true);
	pad(node, true, node->count, node->count + 1);

	bool is_low = node->count < LEAF_MIN;
	for (int i = path->steps - 1; is_low && i >= 0; i--) {
		refill(tree, path->node[i], path->at[i], i == path->steps - 1);
		is_low = path->node[i]->node.count < INNER_MIN;
	}
	if (tree->height > 0 && tree->root->count == 1) {
		struct rank_node *root = tree->root;
		tree->root = as_inner(root)->child[0];
		tree->height--;
		give_node(tree, root, false);
	}
}

void *ranktree_remove(struct ranktree *tree, int64_t major, int64_t minor)
{
	uint128 key = ranktree_key_of(major, minor);
	struct path path;

	if (tree->count == 0)
		return NULL;
	struct rank_node *node = descend(tree, key, &path);
	const struct leaf *leaf = as_leaf(node);
	int at = find_entry(leaf, key);
	if (at == node->count || entry_key(&leaf->entry[at]) != key)
		return NULL;
	void *value = leaf->entry[at].value;
	remove_entry(tree, &path, node, at);
	return value;
}

bool ranktree_pop(struct ranktree *tree, struct rank_entry *entry)
{
	struct path path;

	if (tree->count == 0)
		return false;
	struct rank_node *node = tree->root;
	path.steps = 0;
	while (path.steps < tree->height)
		node = take_step(&path, as_inner(node), 0);
	if (entry)
		*entry = as_leaf(node)->entry[0];
	remove_entry(tree, &path, node, 0);
	return true;
}

const struct rank_entry *ranktree_first(const struct ranktree *tree)
{
	return ranktree_select(tree, 0);
}

const struct rank_entry *ranktree_select(const struct ranktree *tree, size_t rank)
{
	if (rank >= tree->count)
		return NULL;
	const struct rank_node *node = tree->root;
	for (int depth = 0; depth < tree->height; depth++) {
		const struct inner *inner = as_inner(node);
		int at = 0;
		for (; rank >= inner->block_size[at]; at++)
			rank -= inner->block_size[at];
		for (at *= BLOCK; rank >= inner->size[at]; at++)
			rank -= inner->size[at];
		node = inner->child[at];
	}
	return &as_leaf(node)->entry[rank];
}

size_t ranktree_rank(const struct ranktree *tree, int64_t major, int64_t minor)
{
	uint128 key = ranktree_key_of(major, minor);
	size_t rank = 0;

	if (tree->count == 0)
		return 0;
	const struct rank_node *node = tree->root;
	for (int depth = 0; depth < tree->height; depth++) {
		const struct inner *inner = as_inner(node);
		int at = find_child(inner, key);
		node = inner->child[at];
		rank += size_before(inner, at);
	}
	prefetch_leaf(node);
	return rank + (size_t)find_entry(as_leaf(node), key);
}

struct rank_cursor ranktree_seek(const struct ranktree *tree, int64_t major, int64_t minor)
{
	uint128 key = ranktree_key_of(major, minor);
	struct path path;

	if (tree->count == 0)
		return (struct rank_cursor){ 0 };
	const struct rank_node *node = descend(tree, key, &path);
	return (struct rank_cursor){ .leaf = node, .at = find_entry(as_leaf(node), key) };
}

const struct rank_entry *rank_cursor_next(struct rank_cursor *cursor)
{
	if (cursor->leaf && cursor->at == cursor->leaf->count) {
		cursor->leaf = cursor->leaf->next;
		cursor->at = 0;
	}
	return cursor->leaf ? &as_leaf(cursor->leaf)->entry[cursor->at++] : NULL;
}

void ranktree_free(struct ranktree *tree)
{
	for (struct rank_block *block = tree->blocks, *next; block; block = next) {
		next = block->next;
		free(block);
	}
	*tree = (struct ranktree){ 0 };
}

/* How far a check has come: all further keys are more than `last`, if any were
 * seen, and the next leaf is `leaf`. */
struct check {
	bool any;
	uint128 last;
	const struct rank_node *leaf;
};

static size_t check_leaf(const struct rank_node *node, struct check *check)
{
	const struct leaf *leaf = as_leaf(node);
	INVARIANT(!check->leaf || check->leaf == node);
	INVARIANT(node->count <= LEAF_MAX);
	for (int i = 0; i < LEAF_MAX; i++) {
		uint128 key = entry_key(&leaf->entry[i]);
		if (i >= node->count) {
			INVARIANT(key == KEY_LAST);
			continue;
		}
		INVARIANT(!check->any || key > check->last);
		check->any = true;
		check->last = key;
	}
	check->leaf = node->next;
	return (size_t)node->count;
}

static size_t ranktree_check_node(const struct rank_node *node, int height, uint128 key,
                                  struct check *check)
{
	if (height == 0)
		return check_leaf(node, check);
	const struct inner *inner = as_inner(node);
	size_t size = 0;
	INVARIANT(node->count <= INNER_MAX);
	INVARIANT(inner->key[node->count - 1] == key);
	for (int i = 0; i < INNER_MAX; i++) {
		INVARIANT(inner->block_size[i / BLOCK] >= inner->size[i]);
		INVARIANT(inner->block_key[i / BLOCK] >= inner->key[i]);
		if (i >= node->count) {
			INVARIANT(inner->key[i] == KEY_LAST && inner->size[i] == 0);
			continue;
		}
		const struct rank_node *child = inner->child[i];
		INVARIANT(size == size_before(inner, i));
		INVARIANT(child->count >= (height > 1 ? INNER_MIN : LEAF_MIN));
		INVARIANT(inner->size[i] ==
		          ranktree_check_node(child, height - 1, inner->key[i], check));
		INVARIANT(inner->key[i] >= check->last);
		check->last = inner->key[i];
		size += inner->size[i];
	}
	INVARIANT(size == node_size(node, false));
	return size;
}

void ranktree_check(const struct ranktree *tree)
{
	struct check check = { 0 };
	if (!tree->root) {
		INVARIANT(tree->count == 0 && tree->height == 0);
		return;
	}
	INVARIANT(tree->height == 0 || tree->root->count >= 2);
	INVARIANT(tree->count == ranktree_check_node(tree->root, tree->height, KEY_LAST, &check));
	INVARIANT(check.leaf == NULL);
}
