/* crowding_test.c - tasks that fail because others took memory that they had reserved */
#include "node/test/desk.h"

/* A task of 60,000 MiB on a GPU of 80,000, of which the driver has 1,000. */
static void run_large(struct desk *desk)
{
	desk_connect(desk);
	desk_run(desk, 7, 60000);
}

static void stranger_takes(struct desk *desk, int64_t memory_mib)
{
	desk_use(desk, 0, 0, memory_mib);
}

DESK_TEST(a_failure_is_told_when_it_was_measured_whose_memory_it_was)
{
	run_large(desk);
	desk_exit(desk, 7, 3);
	assert_null(desk_change(desk, CHANGE_EXITED));
	desk_measure(desk);
	assert_int_equal(desk_change(desk, CHANGE_EXITED)->exit_code, 3);
	assert_int_equal(desk_change(desk, CHANGE_EXITED)->reason, END_ITSELF);
}

DESK_TEST(one_that_fails_while_others_have_its_memory_did_not_fail_by_itself)
{
	run_large(desk);
	stranger_takes(desk, 30000);
	desk_exit(desk, 7, 3);
	desk_measure(desk);
	const struct change *change = desk_change(desk, CHANGE_EXITED);
	assert_int_equal(change->exit_code, 3);
	assert_int_equal(change->reason, END_FOREIGN);
	assert_string_equal(change->message,
	                    "programs that nobody scheduled used 30000 MiB of GPU gpu-a, 11000 MiB "
	                    "of which were reserved");
}

DESK_TEST(foreign_memory_beside_its_reservation_is_no_excuse)
{
	run_large(desk);
	stranger_takes(desk, 19000);
	desk_exit(desk, 7, 3);
	desk_measure(desk);
	assert_int_equal(desk_change(desk, CHANGE_EXITED)->reason, END_ITSELF);
}

DESK_TEST(what_others_had_a_moment_before_counts_and_what_they_had_long_before_does_not)
{
	run_large(desk);
	stranger_takes(desk, 30000);
	desk_measure(desk);
	desk_unuse(desk, 0, true);
	desk_renew(desk, 2000);
	desk_measure(desk);
	desk_exit(desk, 7, 3);
	desk_measure(desk);
	assert_int_equal(desk_change(desk, CHANGE_EXITED)->reason, END_FOREIGN);
	desk_gone(desk, 7);
	desk_measure(desk);
	desk_run(desk, 8, 60000);
	stranger_takes(desk, 30000);
	desk_measure(desk);
	desk_unuse(desk, 0, true);
	desk_renew(desk, 6000);
	desk_renew(desk, 6000);
	desk_measure(desk);
	desk_exit(desk, 8, 3);
	desk_measure(desk);
	assert_int_equal(desk_change(desk, CHANGE_EXITED)->reason, END_ITSELF);
}

DESK_TEST(what_it_left_behind_itself_is_no_excuse)
{
	run_large(desk);
	/* Its process has ended, and the node has not heard of it. */
	desk->gpus[0].used_mib = 61000;
	desk_measure(desk);
	desk_exit(desk, 7, 3);
	desk_measure(desk);
	assert_int_equal(desk_change(desk, CHANGE_EXITED)->reason, END_ITSELF);
}

DESK_TEST(memory_that_no_process_explains_is_an_excuse_once_it_stays)
{
	run_large(desk);
	desk->gpus[0].used_mib = 31000;
	for (int second = 0; second < 5; second++) {
		desk_measure(desk);
		desk_renew(desk, 1000);
	}
	desk_measure(desk);
	desk_exit(desk, 7, 3);
	desk_measure(desk);
	assert_int_equal(desk_change(desk, CHANGE_EXITED)->reason, END_FOREIGN);
}

DESK_TEST(one_that_succeeds_or_was_stopped_is_told_at_once)
{
	run_large(desk);
	stranger_takes(desk, 30000);
	desk_exit(desk, 7, 0);
	assert_int_equal(desk_change(desk, CHANGE_EXITED)->reason, END_ITSELF);
	desk_unuse(desk, 0, true);
	desk_gone(desk, 7);
	desk_measure(desk);
	desk_run(desk, 8, 60000);
	desk_stop(desk, 8, 1000);
	desk_exit(desk, 8, 143);
	assert_int_equal(desk_change(desk, CHANGE_EXITED)->reason, END_ORDERED);
}

DESK_TEST(where_nothing_can_be_measured_the_end_is_told_all_the_same)
{
	run_large(desk);
	desk_exit(desk, 7, 3);
	desk_renew(desk, 4999);
	assert_null(desk_change(desk, CHANGE_EXITED));
	desk_renew(desk, 1);
	assert_int_equal(desk_change(desk, CHANGE_EXITED)->exit_code, 3);
}

DESK_TEST(memory_that_is_not_back_yet_waits_for_the_end_to_be_told)
{
	run_large(desk);
	stranger_takes(desk, 30000);
	desk_exit(desk, 7, 3);
	desk_gone(desk, 7);
	desk_measure(desk);
	assert_int_equal(desk_change(desk, CHANGE_EXITED)->reason, END_FOREIGN);
	assert_non_null(desk_change(desk, CHANGE_RELEASED));
}

/* Two tasks share a GPU of 80,000 MiB; what the guard of the first counts is in guards[0]. */
static void run_two(struct desk *desk)
{
	desk_connect(desk);
	desk_run(desk, 7, 40000);
	desk_run(desk, 8, 30000);
	desk->guards[0] = (struct guard_reading){ .reservation_id = 7, .failed_part = -1 };
	desk->guard_count = 1;
	desk_measure(desk);
}

/* Allocations of the first fail, now. */
static void fail_allocations(struct desk *desk, int64_t count, int64_t mib)
{
	desk->guards[0].failures += count;
	desk->guards[0].failed_mib = mib;
	desk->guards[0].failed_ms = desk->now_ms;
	desk->guards[0].failed_part = 0;
}

static const struct change *told(struct desk *desk, enum change_kind kind, int64_t reservation_id)
{
	const struct change *change = desk_change(desk, kind);

	return change && change->reservation_id == reservation_id ? change : NULL;
}

DESK_TEST(both_are_told_whose_allocations_failed_because_of_whom)
{
	run_two(desk);
	desk_use(desk, 0, 8, 39000);
	fail_allocations(desk, 3, 2048);
	desk_measure(desk);
	const struct change *change = told(desk, CHANGE_CROWDED, 7);
	assert_non_null(change);
	assert_string_equal(change->message,
	                    "task 0 of job-8 used 9000 MiB of GPU gpu-a beyond its reservation, "
	                    "and 3 allocations within the limit of this task failed, the last of "
	                    "2048 MiB");
	assert_int_equal(desk_count(desk, OUTPUT_WARN, 7), 1);
	assert_int_equal(desk_count(desk, OUTPUT_WARN, 8), 2); /* once for being over */
}

DESK_TEST(the_one_who_was_over_is_told_what_failed)
{
	run_two(desk);
	desk_use(desk, 0, 8, 30400); /* tolerated, as long as nobody suffers */
	desk_measure(desk);
	assert_null(desk_change(desk, CHANGE_OVER));
	fail_allocations(desk, 1, 2048);
	desk_measure(desk);
	const struct change *change = told(desk, CHANGE_OVER, 8);
	assert_non_null(change);
	assert_string_equal(
	    change->message,
	    "it used 400 MiB of GPU gpu-a beyond its reservation, and 1 "
	    "allocations of task 0 of job-7, which were within their limit, failed");
}

DESK_TEST(who_is_over_may_be_measured_a_moment_later_or_have_been_a_moment_before)
{
	run_two(desk);
	fail_allocations(desk, 1, 2048);
	desk_measure(desk);
	assert_null(desk_change(desk, CHANGE_CROWDED));
	desk_use(desk, 0, 8, 39000);
	desk_renew(desk, 500);
	desk_measure(desk);
	assert_non_null(told(desk, CHANGE_CROWDED, 7));
	desk_unuse(desk, 8, true);
	desk_renew(desk, 500);
	desk_measure(desk);
	desk_renew(desk, 60000);
	fail_allocations(desk, 1, 2048);
	desk_measure(desk);
	assert_null(desk_change(desk, CHANGE_CROWDED));
}

DESK_TEST(failures_that_nobody_explains_are_told_to_nobody)
{
	run_two(desk);
	desk_use(desk, 0, 8, 30000);
	fail_allocations(desk, 5, 2048);
	for (int i = 0; i < 5; i++) {
		desk_measure(desk);
		assert_null(desk_change(desk, CHANGE_CROWDED));
		desk_renew(desk, 1000);
	}
	desk_use(desk, 0, 8, 9000);
	desk_measure(desk);
	assert_null(desk_change(desk, CHANGE_CROWDED));
}

DESK_TEST(failed_allocations_are_told_once_a_minute)
{
	run_two(desk);
	desk_use(desk, 0, 8, 39000);
	int times = 0;
	for (int second = 0; second < 90; second++) {
		fail_allocations(desk, 1, 2048);
		desk_measure(desk);
		times += desk_change(desk, CHANGE_CROWDED) != NULL;
		desk_renew(desk, 1000);
	}
	assert_int_equal(times, 2);
}

DESK_TEST(memory_of_strangers_explains_failures_too)
{
	run_two(desk);
	stranger_takes(desk, 20000);
	fail_allocations(desk, 2, 2048);
	desk_measure(desk);
	const struct change *change = told(desk, CHANGE_CROWDED, 7);
	assert_non_null(change);
	assert_string_equal(change->message,
	                    "programs that nobody scheduled used 20000 MiB of GPU gpu-a, 11000 MiB "
	                    "of which were reserved, and 2 allocations within the limit of this "
	                    "task failed, the last of 2048 MiB");
}

DESK_TEST(one_that_ends_because_of_it_did_not_fail_by_itself)
{
	run_two(desk);
	desk_use(desk, 0, 8, 39000);
	fail_allocations(desk, 1, 2048);
	desk_event(
	    desk, INPUT_EXITED,
	    (struct work_event){
		.reservation_id = 7, .exit_code = 3, .guarded = true, .guard = desk->guards[0] });
	desk_measure(desk);
	const struct change *change = told(desk, CHANGE_EXITED, 7);
	assert_non_null(change);
	assert_int_equal(change->reason, END_FOREIGN);
	assert_string_equal(change->message,
	                    "task 0 of job-8 used 9000 MiB of GPU gpu-a beyond its reservation");
}

DESK_TEST(one_that_imported_memory_of_another_process_is_not_suspended)
{
	run_two(desk);
	desk->guards[0].imports = 1;
	desk_measure(desk);
	desk_order(desk, &(struct node_order){ .kind = ORDER_SUSPEND,
	                                       .reservation_id = 7,
	                                       .host_bytes = INT64_C(1) << 40 });
	const struct change *change = told(desk, CHANGE_SUSPENDED, 7);
	assert_non_null(change);
	assert_string_equal(change->message,
	                    "it has imported GPU memory of another process, and would be lost");
	assert_int_equal(desk_count(desk, OUTPUT_SUSPEND, 7), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_failure_is_told_when_it_was_measured_whose_memory_it_was),
		cmocka_unit_test(
		    one_that_fails_while_others_have_its_memory_did_not_fail_by_itself),
		cmocka_unit_test(foreign_memory_beside_its_reservation_is_no_excuse),
		cmocka_unit_test(
		    what_others_had_a_moment_before_counts_and_what_they_had_long_before_does_not),
		cmocka_unit_test(what_it_left_behind_itself_is_no_excuse),
		cmocka_unit_test(memory_that_no_process_explains_is_an_excuse_once_it_stays),
		cmocka_unit_test(one_that_succeeds_or_was_stopped_is_told_at_once),
		cmocka_unit_test(where_nothing_can_be_measured_the_end_is_told_all_the_same),
		cmocka_unit_test(memory_that_is_not_back_yet_waits_for_the_end_to_be_told),
		cmocka_unit_test(both_are_told_whose_allocations_failed_because_of_whom),
		cmocka_unit_test(the_one_who_was_over_is_told_what_failed),
		cmocka_unit_test(
		    who_is_over_may_be_measured_a_moment_later_or_have_been_a_moment_before),
		cmocka_unit_test(failures_that_nobody_explains_are_told_to_nobody),
		cmocka_unit_test(failed_allocations_are_told_once_a_minute),
		cmocka_unit_test(memory_of_strangers_explains_failures_too),
		cmocka_unit_test(one_that_ends_because_of_it_did_not_fail_by_itself),
		cmocka_unit_test(one_that_imported_memory_of_another_process_is_not_suspended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
