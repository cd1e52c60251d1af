/* books_test.c - the budget of a task: entries, charges, shares, totals */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/number.h"
#include "guard/budget/budget.h"
#include "guard/budget/process.h"
#include "guard/budget/share.h"

#define MIB (INT64_C(1) << 20)

/* A segment in memory with one GPU of 64 MiB, and two members: this process, and
 * somebody who lives as long as the machine. */
struct books {
	struct segment *segment;
	struct member me, other;
	int gpu;
};

static const uint8_t uuid_a[16] = { 1 };
static const uint8_t uuid_b[16] = { 2 };

static int books_begin(void **state)
{
	struct books *books = calloc(1, sizeof *books);
	books->segment = calloc(1, sizeof *books->segment);
	segment_init(books->segment);
	struct process_identity init = { .owner = process_owner(1, 0),
		                         .namespace_id = process_self().namespace_id };
	assert_true(budget_join(&books->me, books->segment, process_self()));
	assert_true(budget_join(&books->other, books->segment, init));
	books->gpu = budget_gpu(&books->me, uuid_a);
	assert_int_equal(books->gpu, 0);
	segment_set(&books->segment->gpus[0].limit_bytes, 64 * MIB);
	*state = books;
	return 0;
}

static int books_end(void **state)
{
	struct books *books = *state;
	free(books->segment);
	free(books);
	return 0;
}

static int64_t books_used(const struct books *books)
{
	return segment_get(&books->segment->gpus[books->gpu].used_bytes);
}

static void a_limit_can_be_taken_to_the_byte(void **state)
{
	struct books *books = *state;
	assert_true(budget_take(&books->me, 0, 64 * MIB - 1));
	assert_false(budget_take(&books->other, 0, 2));
	assert_true(budget_take(&books->other, 0, 1));
	assert_false(budget_take(&books->me, 0, 1));
	assert_int_equal(books_used(books), 64 * MIB);
	budget_give(&books->me, 0, 64 * MIB - 1);
	budget_give(&books->other, 0, 1);
	assert_int_equal(books_used(books), 0);
	assert_int_equal(segment_get(&books->segment->gpus[0].peak_bytes), 64 * MIB);
}

static void sums_that_no_number_holds_are_refused(void **state)
{
	struct books *books = *state;
	segment_set(&books->segment->gpus[0].limit_bytes, SEGMENT_NO_LIMIT);
	assert_true(budget_take(&books->me, 0, MIB));
	assert_false(budget_take(&books->me, 0, INT64_MAX));
	assert_int_equal(books_used(books), MIB);
}

static void measured_overhead_counts_and_may_exceed_the_limit(void **state)
{
	struct books *books = *state;
	assert_true(budget_take(&books->me, 0, 60 * MIB));
	budget_measure(&books->me, books->me.place, 0, 10 * MIB);
	assert_int_equal(books_used(books), 70 * MIB);
	assert_false(budget_take(&books->me, 0, 1));
	budget_measure(&books->me, books->me.place, 0, 2 * MIB);
	assert_int_equal(books_used(books), 62 * MIB);
	assert_true(budget_take(&books->me, 0, 2 * MIB));
}

static void a_context_is_expected_once(void **state)
{
	struct books *books = *state;
	segment_set(&books->segment->gpus[0].context_bytes, 40 * MIB);
	assert_true(budget_expect_context(&books->me, 0));
	assert_true(budget_expect_context(&books->me, 0));
	assert_int_equal(books_used(books), 40 * MIB);
	assert_false(budget_expect_context(&books->other, 0));
	assert_int_equal(books_used(books), 40 * MIB);
}

/* A process that was, and is not any more. */
static struct process_identity somebody_dead(void)
{
	pid_t child = fork();
	if (child == 0)
		_exit(0);
	struct process_identity identity = { .namespace_id = process_self().namespace_id };
	identity.owner = process_owner(child, 12345);
	waitpid(child, NULL, 0);
	return identity;
}

static void the_dead_are_taken_off_before_anybody_is_refused(void **state)
{
	struct books *books = *state;
	struct member dead;
	assert_true(budget_join(&dead, books->segment, somebody_dead()));
	assert_true(budget_take(&dead, 0, 50 * MIB));
	budget_measure(&dead, dead.place, 0, 10 * MIB);
	assert_true(budget_take(&books->me, 0, 64 * MIB));
	assert_int_equal(books_used(books), 64 * MIB);
	assert_true(atomic_load(&books->segment->processes[dead.place].owner) == 0);
}

static void a_process_in_another_namespace_is_left_alone(void **state)
{
	struct books *books = *state;
	struct process_identity identity = somebody_dead();
	identity.namespace_id = 42;
	struct member elsewhere;
	assert_true(budget_join(&elsewhere, books->segment, identity));
	assert_true(budget_take(&elsewhere, 0, 50 * MIB));
	assert_false(budget_take(&books->me, 0, 20 * MIB));
	assert_int_equal(books_used(books), 50 * MIB);
	budget_reap_place(&books->me, elsewhere.place);
	assert_true(budget_take(&books->me, 0, 20 * MIB));
}

static void an_id_that_is_used_again_is_another_process(void **state)
{
	struct books *books = *state;
	struct process_identity before = process_self();
	before.owner = process_owner(getpid(), 1);
	struct member earlier;
	assert_true(budget_join(&earlier, books->segment, before));
	assert_true(budget_take(&earlier, 0, 64 * MIB));
	assert_true(budget_take(&books->me, 0, 64 * MIB));
	assert_int_equal(books_used(books), 64 * MIB);
}

static void a_process_that_joins_again_has_called_exec_and_owns_nothing(void **state)
{
	struct books *books = *state;
	assert_true(budget_take(&books->me, 0, 30 * MIB));
	struct member again;
	assert_true(budget_join(&again, books->segment, books->me.identity));
	assert_int_equal(books_used(books), 0);
	assert_int_equal(segment_get(&books->segment->gpus[0].peak_bytes), 30 * MIB);
}

static void when_all_places_are_taken_those_of_the_dead_are_free(void **state)
{
	struct books *books = *state;
	struct process_identity init = books->other.identity;
	struct member member;
	struct process_identity dead = somebody_dead();
	assert_true(budget_join(&member, books->segment, dead));
	assert_true(budget_take(&member, 0, 10 * MIB));
	uint32_t dead_place = member.place;
	/* Other processes that live: the same one, as seen from many namespaces. */
	for (uint64_t i = 0; i < SEGMENT_PROCESSES_MAX - 4; i++) {
		init.namespace_id = 100 + i;
		assert_true(budget_join(&member, books->segment, init));
	}
	init.namespace_id = 99;
	assert_false(budget_join(&member, books->segment, init));
	/* Who can see that the dead one is dead takes its place. */
	struct process_identity parent = { .owner = process_owner(getppid(), 0),
		                           .namespace_id = dead.namespace_id };
	/* It died with the lock in its hand, which comes with the place. */
	atomic_store(&books->segment->lock, dead_place + 1);
	assert_true(budget_join(&member, books->segment, parent));
	assert_int_equal(member.place, dead_place);
	assert_int_equal(books_used(books), 0);
	assert_false(budget_join(&member, books->segment, init));
}

static void gpus_that_nobody_listed_get_what_others_get(void **state)
{
	struct books *books = *state;
	segment_set(&books->segment->others_limit_bytes, 3 * MIB);
	int gpu = budget_gpu(&books->me, uuid_b);
	assert_int_equal(gpu, 1);
	assert_int_equal(budget_gpu(&books->other, uuid_b), 1);
	assert_false(budget_take(&books->me, gpu, 4 * MIB));
	assert_true(budget_take(&books->me, gpu, 3 * MIB));
	for (uint8_t i = 2; i < SEGMENT_GPUS_MAX; i++)
		assert_int_equal(budget_gpu(&books->me, (uint8_t[16]){ 100, i }), i);
	assert_int_equal(budget_gpu(&books->me, (uint8_t[16]){ 101 }), -1);
}

static void a_share_is_borne_by_one_and_handed_on(void **state)
{
	struct books *books = *state;
	assert_true(budget_take(&books->me, 0, 8 * MIB));
	int share = share_export(&books->me, 7, 0, 8 * MIB, false);
	assert_true(share >= 0);
	assert_int_equal(share_import(&books->other, 7, 0, 8 * MIB, true), share);
	assert_int_equal(share_import(&books->other, 7, 0, 8 * MIB, true), share);
	assert_int_equal(books_used(books), 8 * MIB);
	share_drop(&books->me, share);
	assert_int_equal(books_used(books), 8 * MIB);
	assert_int_equal(
	    segment_get(&books->segment->processes[books->other.place].charged_bytes[0]), 8 * MIB);
	share_drop(&books->other, share);
	assert_int_equal(books_used(books), 0);
}

static void an_export_in_vain_changes_nothing(void **state)
{
	struct books *books = *state;
	assert_true(budget_take(&books->me, 0, 8 * MIB));
	int share = share_export(&books->me, 7, 0, 8 * MIB, false);
	share_withdraw(&books->me, share);
	assert_int_equal(books_used(books), 8 * MIB);
	/* Nothing is left of it: who comes now is charged. */
	assert_true(share_import(&books->other, 7, 0, 8 * MIB, true) >= 0);
	assert_int_equal(books_used(books), 16 * MIB);
}

static void what_cannot_be_told_apart_is_counted_apart_in_one_process(void **state)
{
	struct books *books = *state;
	int first = share_import(&books->me, 7, 0, 8 * MIB, false);
	int second = share_import(&books->me, 7, 0, 8 * MIB, false);
	assert_true(first >= 0 && second >= 0 && first != second);
	assert_int_equal(books_used(books), 16 * MIB);
	/* And each of them once, where another process has them too. */
	assert_true(share_import(&books->other, 7, 0, 8 * MIB, false) >= 0);
	assert_true(share_import(&books->other, 7, 0, 8 * MIB, false) >= 0);
	assert_int_equal(books_used(books), 16 * MIB);
	assert_int_equal(share_import(&books->other, 8, 0, 60 * MIB, false), SHARE_REFUSED);
}

/* A model of the budget, in which each process's charge is a number. */
static void random_changes_keep_the_totals(void **state)
{
	struct books *books = *state;
	const struct member *members[2] = { &books->me, &books->other };
	int64_t charged[2] = { 0, 0 };
	uint64_t random = 5;
	for (int i = 0; i < 20000; i++) {
		int who = (int)random_below(&random, 2);
		int64_t bytes = (int64_t)random_below(&random, (uint64_t)(20 * MIB));
		if (random_below(&random, 2) == 0) {
			bool fits = charged[0] + charged[1] + bytes <= 64 * MIB;
			assert_int_equal(budget_take(members[who], 0, bytes), fits);
			charged[who] += fits ? bytes : 0;
		} else {
			bytes = bytes < charged[who] ? bytes : charged[who];
			budget_give(members[who], 0, bytes);
			charged[who] -= bytes;
		}
		assert_int_equal(books_used(books), charged[0] + charged[1]);
	}
	budget_reap(&books->me);
	assert_int_equal(books_used(books), charged[0] + charged[1]);
}

static void the_start_and_end_of_a_process_are_read_whatever_its_name(void **state)
{
	(void)state;
	struct process_stat stat;
	assert_true(process_parse_stat("7 (a) b) R 1 7 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 3 0 987 "
	                               "1 2",
	                               &stat));
	assert_int_equal(stat.start_ticks, 987);
	assert_false(stat.ended);
	assert_true(
	    process_parse_stat("7 (x) Z 1 7 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 988 1", &stat));
	assert_true(stat.ended);
	/* Its first thread has ended, two others have not. */
	assert_true(
	    process_parse_stat("7 (x) Z 1 7 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 3 0 988 1", &stat));
	assert_false(stat.ended);
	assert_false(process_parse_stat("", &stat));
	assert_false(process_parse_stat("7 (x", &stat));
	assert_false(process_parse_stat("7 (x) R 1 2 3", &stat));
}

static void the_id_in_a_processes_own_namespace_is_the_last(void **state)
{
	(void)state;
	assert_int_equal(process_parse_own_pid("Name:\tx\nNSpid:\t4711\t12\t1\nNSpgid:\t9\n"), 1);
	assert_int_equal(process_parse_own_pid("NSpid:\t4711\n"), 4711);
	assert_int_equal(process_parse_own_pid("Pid:\t1\n"), 0);
	struct process_identity self;
	assert_true(process_of(getpid(), &self));
	assert_true(self.owner == process_self().owner);
	assert_true(self.namespace_id == process_self().namespace_id);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, books_begin, books_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_limit_can_be_taken_to_the_byte),
		TEST(sums_that_no_number_holds_are_refused),
		TEST(measured_overhead_counts_and_may_exceed_the_limit),
		TEST(a_context_is_expected_once),
		TEST(the_dead_are_taken_off_before_anybody_is_refused),
		TEST(a_process_in_another_namespace_is_left_alone),
		TEST(an_id_that_is_used_again_is_another_process),
		TEST(a_process_that_joins_again_has_called_exec_and_owns_nothing),
		TEST(when_all_places_are_taken_those_of_the_dead_are_free),
		TEST(gpus_that_nobody_listed_get_what_others_get),
		TEST(a_share_is_borne_by_one_and_handed_on),
		TEST(an_export_in_vain_changes_nothing),
		TEST(what_cannot_be_told_apart_is_counted_apart_in_one_process),
		TEST(random_changes_keep_the_totals),
		cmocka_unit_test(the_start_and_end_of_a_process_are_read_whatever_its_name),
		cmocka_unit_test(the_id_in_a_processes_own_namespace_is_the_last),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
