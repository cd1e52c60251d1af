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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_failure_is_told_when_it_was_measured_whose_memory_it_was),
		cmocka_unit_test(
		    one_that_fails_while_others_have_its_memory_did_not_fail_by_itself),
		cmocka_unit_test(foreign_memory_beside_its_reservation_is_no_excuse),
		cmocka_unit_test(
		    what_others_had_a_moment_before_counts_and_what_they_had_long_before_does_not),
		cmocka_unit_test(one_that_succeeds_or_was_stopped_is_told_at_once),
		cmocka_unit_test(where_nothing_can_be_measured_the_end_is_told_all_the_same),
		cmocka_unit_test(memory_that_is_not_back_yet_waits_for_the_end_to_be_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
