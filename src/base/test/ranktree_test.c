/* ranktree_test.c - tests of the rank tree */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "../memory.h"
#include "../number.h"
#include "../ranktree.h"

/* A reference implementation as a sorted array, slow and obvious. */
struct list {
	struct rank_entry *entries;
	size_t count, capacity;
};

static bool is_before(const struct rank_entry *entry, int64_t major, int64_t minor)
{
	return entry->major < major || (entry->major == major && entry->minor < minor);
}

static size_t list_rank(const struct list *list, int64_t major, int64_t minor)
{
	size_t low = 0;
	size_t high = list->count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (is_before(&list->entries[middle], major, minor))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool list_has(const struct list *list, size_t at, int64_t major, int64_t minor)
{
	return at < list->count && list->entries[at].major == major &&
	       list->entries[at].minor == minor;
}

static bool list_insert(struct list *list, int64_t major, int64_t minor, void *value)
{
	size_t at = list_rank(list, major, minor);
	if (list_has(list, at, major, minor))
		return false;
	array_reserve(list->entries, list->capacity, list->count + 1);
	memmove(list->entries + at + 1, list->entries + at,
	        (list->count - at) * sizeof(*list->entries));
	list->entries[at] = (struct rank_entry){ .major = major, .minor = minor, .value = value };
	list->count++;
	return true;
}

static void list_remove_at(struct list *list, size_t at)
{
	list->count--;
	memmove(list->entries + at, list->entries + at + 1,
	        (list->count - at) * sizeof(*list->entries));
}

static void *list_remove(struct list *list, int64_t major, int64_t minor)
{
	size_t at = list_rank(list, major, minor);
	if (!list_has(list, at, major, minor))
		return NULL;
	void *value = list->entries[at].value;
	list_remove_at(list, at);
	return value;
}

static bool is_same(const struct rank_entry *a, const struct rank_entry *b)
{
	return a->major == b->major && a->minor == b->minor && a->value == b->value;
}

static void assert_same(const struct ranktree *tree, const struct list *list)
{
	ranktree_check(tree);
	assert_int_equal(tree->count, list->count);
	struct rank_cursor cursor = ranktree_seek(tree, INT64_MIN, INT64_MIN);
	for (size_t i = 0; i < list->count; i++) {
		const struct rank_entry *entry = rank_cursor_next(&cursor);
		assert_true(entry && is_same(entry, &list->entries[i]));
		assert_ptr_equal(ranktree_select(tree, i), entry);
	}
	assert_null(rank_cursor_next(&cursor));
	assert_null(rank_cursor_next(&cursor));
	assert_null(ranktree_select(tree, list->count));
}

static void an_empty_tree_has_nothing(void **state)
{
	(void)state;
	struct ranktree tree = { 0 };
	struct rank_cursor cursor = ranktree_seek(&tree, 0, 0);
	assert_null(rank_cursor_next(&cursor));
	assert_null(ranktree_first(&tree));
	assert_null(ranktree_select(&tree, 0));
	assert_null(ranktree_remove(&tree, 0, 0));
	assert_false(ranktree_pop(&tree, NULL));
	assert_int_equal(ranktree_rank(&tree, INT64_MAX, INT64_MAX), 0);
	ranktree_check(&tree);
	ranktree_free(&tree);
}

static void a_key_is_inserted_once(void **state)
{
	(void)state;
	struct ranktree tree = { 0 };
	int value[2];
	assert_true(ranktree_insert(&tree, 1, 2, &value[0]));
	assert_false(ranktree_insert(&tree, 1, 2, &value[1]));
	assert_true(ranktree_insert(&tree, 2, 1, &value[1]));
	assert_int_equal(tree.count, 2);
	assert_ptr_equal(ranktree_first(&tree)->value, &value[0]);
	ranktree_free(&tree);
}

static void the_extreme_keys_are_keys_like_others(void **state)
{
	(void)state;
	const int64_t edge[] = { INT64_MIN, -1, 0, 1, INT64_MAX };
	struct ranktree tree = { 0 };
	for (int i = 24; i >= 0; i--)
		assert_true(ranktree_insert(&tree, edge[i / 5], edge[i % 5], &tree));
	for (size_t i = 0; i < 25; i++) {
		const struct rank_entry *entry = ranktree_select(&tree, i);
		assert_true(entry->major == edge[i / 5] && entry->minor == edge[i % 5]);
		assert_int_equal(ranktree_rank(&tree, entry->major, entry->minor), i);
		assert_false(ranktree_insert(&tree, entry->major, entry->minor, &tree));
	}
	assert_ptr_equal(ranktree_remove(&tree, INT64_MAX, INT64_MAX), &tree);
	assert_null(ranktree_remove(&tree, INT64_MAX, INT64_MAX));
	ranktree_check(&tree);
	ranktree_free(&tree);
}

static void the_last_of_all_keys_is_found_in_a_tree_of_many_nodes(void **state)
{
	(void)state;
	struct ranktree tree = { 0 };
	for (int64_t i = 0; i < 20000; i++)
		ranktree_insert(&tree, i, 0, &tree);
	assert_null(ranktree_remove(&tree, INT64_MAX, INT64_MAX));
	assert_true(ranktree_insert(&tree, INT64_MAX, INT64_MAX, &tree));
	assert_false(ranktree_insert(&tree, INT64_MAX, INT64_MAX, &tree));
	assert_int_equal(ranktree_rank(&tree, INT64_MAX, INT64_MAX), 20000);
	ranktree_check(&tree);
	assert_ptr_equal(ranktree_remove(&tree, INT64_MAX, INT64_MAX), &tree);
	ranktree_check(&tree);
	ranktree_free(&tree);
}

static void rank_counts_entries_before_a_key_that_is_absent(void **state)
{
	(void)state;
	struct ranktree tree = { 0 };
	for (int64_t i = 0; i < 5000; i++)
		ranktree_insert(&tree, i * 2, 0, &tree);
	for (int64_t i = 0; i < 5000; i++) {
		assert_int_equal(ranktree_rank(&tree, i * 2, 0), i);
		assert_int_equal(ranktree_rank(&tree, i * 2, 1), i + 1);
		assert_int_equal(ranktree_rank(&tree, i * 2 - 1, 0), i);
	}
	ranktree_free(&tree);
}

static void a_cursor_starts_at_the_first_entry_not_before_its_key(void **state)
{
	(void)state;
	struct ranktree tree = { 0 };
	for (int64_t i = 0; i < 3000; i++)
		ranktree_insert(&tree, 5, i * 2, &tree);
	for (int64_t i = 0; i < 6000; i++) {
		struct rank_cursor cursor = ranktree_seek(&tree, 5, i);
		const struct rank_entry *entry = rank_cursor_next(&cursor);
		if (i == 5999)
			assert_null(entry);
		else
			assert_int_equal(entry->minor, (i + 1) / 2 * 2);
	}
	ranktree_free(&tree);
}

static void entries_pop_in_order(void **state)
{
	(void)state;
	enum { COUNT = 20000 };
	struct ranktree tree = { 0 };
	uint64_t seed = 1;
	while (tree.count < COUNT)
		ranktree_insert(&tree, (int64_t)random_below(&seed, 100),
		                (int64_t)random_next(&seed), &tree);
	struct rank_entry last = { .major = INT64_MIN, .minor = INT64_MIN };
	for (int i = 0; i < COUNT; i++) {
		struct rank_entry entry;
		assert_true(ranktree_pop(&tree, &entry));
		assert_true(is_before(&last, entry.major, entry.minor));
		last = entry;
		if (i % 1000 == 0)
			ranktree_check(&tree);
	}
	assert_false(ranktree_pop(&tree, NULL));
	ranktree_check(&tree);
	ranktree_free(&tree);
}

static void growing_and_shrinking_keys_make_a_sound_tree(void **state)
{
	(void)state;
	enum { COUNT = 30000 };
	struct ranktree tree = { 0 };
	for (int64_t i = 1; i <= COUNT; i++) {
		assert_true(ranktree_insert(&tree, i, 0, &tree));
		assert_true(ranktree_insert(&tree, -i, 0, &tree));
	}
	ranktree_check(&tree);
	for (int64_t i = COUNT; i >= 1; i--) {
		assert_ptr_equal(ranktree_remove(&tree, i, 0), &tree);
		if (i % 5000 == 0)
			ranktree_check(&tree);
	}
	assert_int_equal(tree.count, COUNT);
	assert_int_equal(ranktree_first(&tree)->major, -COUNT);
	ranktree_check(&tree);
	ranktree_free(&tree);
}

/* One random change to both, and one random question that both must answer alike. */
static void ranktree_step(struct ranktree *tree, struct list *list, uint64_t *seed, uint64_t range,
                          bool shrink)
{
	static int values[16];
	int64_t major = (int64_t)random_below(seed, range) - (int64_t)(range / 2);
	int64_t minor = (int64_t)random_below(seed, 50) - 25;
	uint64_t dice = random_below(seed, 10);

	if (dice < (shrink ? 3U : 6U)) {
		void *value = &values[dice];
		assert_true(ranktree_insert(tree, major, minor, value) ==
		            list_insert(list, major, minor, value));
	} else if (dice < 8 && list->count > 0) {
		/* A key that is there, as a random one seldom is. */
		struct rank_entry entry = list->entries[random_below(seed, list->count)];
		assert_ptr_equal(ranktree_remove(tree, entry.major, entry.minor), entry.value);
		list_remove(list, entry.major, entry.minor);
	} else if (dice == 8) {
		assert_ptr_equal(ranktree_remove(tree, major, minor),
		                 list_remove(list, major, minor));
	} else {
		struct rank_entry entry;
		assert_true(ranktree_pop(tree, &entry) == (list->count > 0));
		if (list->count > 0) {
			assert_true(is_same(&entry, &list->entries[0]));
			list_remove_at(list, 0);
		}
	}
	size_t rank = list_rank(list, major, minor);
	assert_int_equal(ranktree_rank(tree, major, minor), rank);
	struct rank_cursor cursor = ranktree_seek(tree, major, minor);
	const struct rank_entry *entry = rank_cursor_next(&cursor);
	assert_ptr_equal(entry, ranktree_select(tree, rank));
	assert_true((entry != NULL) == (rank < list->count));
	if (entry && list->entries)
		assert_true(is_same(entry, &list->entries[rank]));
}

/* `steps` changes, growing and shrinking in turns. */
static void ranktree_compare(uint64_t seed, uint64_t range, int steps, int turn)
{
	struct ranktree tree = { 0 };
	struct list list = { 0 };
	for (int i = 0; i < steps; i++) {
		ranktree_step(&tree, &list, &seed, range, i / turn % 2 == 1);
		if (i % 1000 == 0)
			assert_same(&tree, &list);
	}
	assert_same(&tree, &list);
	ranktree_free(&tree);
	free(list.entries);
}

static void a_tree_agrees_with_a_sorted_array_under_random_changes(void **state)
{
	(void)state;
	ranktree_compare(1, 1000000, 100000, 25000);
}

static void a_tree_agrees_with_a_sorted_array_when_keys_share_majors(void **state)
{
	(void)state;
	ranktree_compare(2, 100, 60000, 10000);
}

static void a_tree_that_is_small_and_often_empty_agrees_with_a_sorted_array(void **state)
{
	(void)state;
	ranktree_compare(3, 3, 30000, 70);
}

static void random_removals_from_a_tall_tree_keep_it_sound(void **state)
{
	(void)state;
	enum { COUNT = 200000 };
	struct ranktree tree = { 0 };
	for (uint64_t i = 0, seed = 1; i < COUNT; i++)
		ranktree_insert(&tree, (int64_t)random_next(&seed), 0, &tree);
	assert_true(tree.height >= 2);
	ranktree_check(&tree);
	for (uint64_t i = 0, seed = 1; i < COUNT; i++) {
		assert_ptr_equal(ranktree_remove(&tree, (int64_t)random_next(&seed), 0), &tree);
		if (i % (COUNT / 8) == 0)
			ranktree_check(&tree);
	}
	assert_int_equal(tree.count, 0);
	assert_int_equal(tree.height, 0);
	ranktree_check(&tree);
	ranktree_free(&tree);
}

static size_t length(const struct rank_node *spare)
{
	/* A spare node begins with its count and then the link to the next. */
	struct link {
		int count;
		const struct link *next;
	};
	size_t n = 0;
	for (const struct link *link = (const void *)spare; link; link = link->next)
		n++;
	return n;
}

static void freed_nodes_are_used_again(void **state)
{
	(void)state;
	struct ranktree tree = { 0 };
	for (int64_t i = 0; i < 10000; i++)
		ranktree_insert(&tree, i, 0, &tree);
	while (ranktree_pop(&tree, NULL))
		;
	size_t leaves = length(tree.spare_leaves);
	size_t inners = length(tree.spare_inners);
	assert_true(leaves > 0 && inners > 0);
	for (int64_t i = 0; i < 10000; i++)
		ranktree_insert(&tree, i, 0, &tree);
	while (ranktree_pop(&tree, NULL))
		;
	assert_int_equal(length(tree.spare_leaves), leaves);
	assert_int_equal(length(tree.spare_inners), inners);
	ranktree_free(&tree);
	assert_null(tree.spare_leaves);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_tree_has_nothing),
		cmocka_unit_test(a_key_is_inserted_once),
		cmocka_unit_test(the_extreme_keys_are_keys_like_others),
		cmocka_unit_test(the_last_of_all_keys_is_found_in_a_tree_of_many_nodes),
		cmocka_unit_test(rank_counts_entries_before_a_key_that_is_absent),
		cmocka_unit_test(a_cursor_starts_at_the_first_entry_not_before_its_key),
		cmocka_unit_test(entries_pop_in_order),
		cmocka_unit_test(growing_and_shrinking_keys_make_a_sound_tree),
		cmocka_unit_test(a_tree_agrees_with_a_sorted_array_under_random_changes),
		cmocka_unit_test(a_tree_agrees_with_a_sorted_array_when_keys_share_majors),
		cmocka_unit_test(a_tree_that_is_small_and_often_empty_agrees_with_a_sorted_array),
		cmocka_unit_test(random_removals_from_a_tall_tree_keep_it_sound),
		cmocka_unit_test(freed_nodes_are_used_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
