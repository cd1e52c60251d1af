/* endings_test.c - who is expected to end first */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/number.h"
#include "core/queue/endings.h"

#define NOW_MS 1000000

static void a_late_job_may_go_on_for_as_long_again(void **state)
{
	(void)state;
	assert_int_equal(ending_late(NOW_MS - 5000, NOW_MS), NOW_MS + 5000);
	assert_int_equal(ending_late(NOW_MS - 1, NOW_MS), NOW_MS + 1000);
	assert_int_equal(ending_late(NOW_MS, NOW_MS), NOW_MS + 1000);
}

static void late_jobs_come_among_the_others(void **state)
{
	(void)state;
	struct ranktree ends = { 0 };
	struct ending list[10];
	ranktree_insert(&ends, NOW_MS - 7000, 1, &ends);
	ranktree_insert(&ends, NOW_MS - 10, 3, &ends);
	ranktree_insert(&ends, NOW_MS - 5, 2, &ends);
	ranktree_insert(&ends, NOW_MS + 1000, 4, &ends);
	ranktree_insert(&ends, NOW_MS + 6000, 5, &ends);
	endings_list(list, 5, &ends, NOW_MS);
	const int64_t order[] = { 2, 3, 4, 5, 1 };
	for (int i = 0; i < 5; i++)
		assert_int_equal(list[i].id, order[i]);
	assert_int_equal(list[0].end_ms, NOW_MS + 1000);
	assert_int_equal(list[4].end_ms, NOW_MS + 7000);
	ranktree_free(&ends);
}

static int sooner(const void *a, const void *b)
{
	const struct ending *x = a, *y = b;
	if (x->end_ms != y->end_ms)
		return x->end_ms < y->end_ms ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

/* The first `count` of the tree, as they are expected, sorted one by one. */
static void list_plainly(struct ending *list, size_t count, const struct ranktree *ends)
{
	for (size_t i = 0; i < count; i++) {
		const struct rank_entry *entry = ranktree_select(ends, i);
		bool late = entry->major <= NOW_MS;
		list[i] = (struct ending){
			.end_ms = late ? ending_late(entry->major, NOW_MS) : entry->major,
			.id = entry->minor,
		};
	}
	qsort(list, count, sizeof(*list), sooner);
}

static void the_list_is_as_if_it_had_been_sorted(void **state)
{
	(void)state;
	enum { COUNT = 600 };
	static struct ending list[2 * COUNT], plain[COUNT];
	uint64_t seed = 1;
	for (int round = 0; round < 200; round++) {
		struct ranktree ends = { 0 };
		uint64_t spread = 1 + random_below(&seed, 8000);
		size_t jobs = 1 + random_below(&seed, COUNT), count = 1 + random_below(&seed, jobs);
		for (size_t i = 0; i < jobs; i++) {
			int64_t id = (int64_t)(i << (round % 50));
			int64_t end_ms = NOW_MS + (int64_t)(random_below(&seed, spread)) - 4000;
			ranktree_insert(&ends, end_ms, id, &ends);
		}
		endings_list(list, count, &ends, NOW_MS);
		list_plainly(plain, count, &ends);
		for (size_t i = 0; i < count; i++) {
			assert_int_equal(list[i].id, plain[i].id);
			assert_int_equal(list[i].end_ms, plain[i].end_ms);
		}
		ranktree_free(&ends);
	}
}

static void nobody_ends_where_nobody_runs(void **state)
{
	(void)state;
	struct ranktree ends = { 0 };
	endings_list(NULL, 0, &ends, NOW_MS);
	ranktree_free(&ends);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_late_job_may_go_on_for_as_long_again),
		cmocka_unit_test(late_jobs_come_among_the_others),
		cmocka_unit_test(the_list_is_as_if_it_had_been_sorted),
		cmocka_unit_test(nobody_ends_where_nobody_runs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
