/* change_log_test.c - whoever looks again sees all that changed */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/number.h"
#include "core/cluster/change_log.h"

enum { NODES = 200, WORDS = (NODES + 63) / 64 };

static void what_changed_before_one_looked_is_left_out(void **unused)
{
	(void)unused;
	struct change_log changes = { 0 };
	uint64_t set[WORDS] = { 0 };
	change_log_begin(&changes, NODES);
	change_log_note(&changes, 7);
	uint64_t seen = changes.count;
	change_log_note(&changes, 130);
	change_log_since(&changes, seen, set);
	assert_true(set[0] == 0 && set[1] == 0 && set[2] == UINT64_C(1) << 2 && set[3] == 0);
	change_log_free(&changes);
}

/* The ranks of all changes from `seen` on, one by one. */
static void change_log_collect(const uint32_t *noted, size_t count, size_t seen, uint64_t *set)
{
	for (size_t i = seen; i < count; i++)
		set[noted[i] / 64] |= UINT64_C(1) << noted[i] % 64;
}

static void all_changes_are_seen_however_long_one_did_not_look(void **unused)
{
	(void)unused;
	enum { COUNT = 3 * CHANGE_LOG_KEPT };
	static uint32_t noted[COUNT];
	struct change_log changes = { 0 };
	uint64_t random = 1;
	change_log_begin(&changes, NODES);
	uint64_t first = changes.count;
	for (size_t count = 0; count < COUNT;) {
		noted[count] = (uint32_t)random_below(&random, NODES);
		change_log_note(&changes, noted[count++]);
		size_t most = count < CHANGE_LOG_KEPT ? count : CHANGE_LOG_KEPT;
		/* Mostly a few, so that the set is not that of all nodes. */
		size_t back = random_below(&random, 1 + random_below(&random, most + 1));
		uint64_t set[WORDS] = { 0 }, right[WORDS] = { 0 };
		assert_true(change_log_known(&changes, first + count - back));
		change_log_since(&changes, first + count - back, set);
		change_log_collect(noted, count, count - back, right);
		assert_memory_equal(set, right, sizeof(set));
	}
	change_log_free(&changes);
}

static void what_is_too_long_ago_is_not_known(void **unused)
{
	(void)unused;
	struct change_log changes = { 0 };
	change_log_begin(&changes, NODES);
	uint64_t seen = changes.count;
	for (int i = 0; i < CHANGE_LOG_KEPT; i++)
		change_log_note(&changes, 0);
	assert_true(change_log_known(&changes, seen));
	change_log_note(&changes, 0);
	assert_false(change_log_known(&changes, seen));
	seen = changes.count;
	change_log_begin(&changes, NODES);
	assert_false(change_log_known(&changes, seen));
	change_log_free(&changes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_changed_before_one_looked_is_left_out),
		cmocka_unit_test(all_changes_are_seen_however_long_one_did_not_look),
		cmocka_unit_test(what_is_too_long_ago_is_not_known),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
