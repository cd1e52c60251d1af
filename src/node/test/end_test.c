/* end_test.c - ends: notice, grace, kill, and releases that are never told early */
#include "node/test/desk.h"

static void run_and_use(struct desk *desk)
{
	desk_connect(desk);
	desk_run(desk, 7, 10000);
	desk_use(desk, 0, 7, 8000);
	desk_measure(desk);
}

DESK_TEST(a_stop_is_written_down_then_noticed_then_acknowledged)
{
	run_and_use(desk);
	desk_stop(desk, 7, 5000);
	int write = desk_place(desk, OUTPUT_WRITE), notice = desk_place(desk, OUTPUT_NOTICE);
	assert_true(write >= 0 && write < notice && notice < desk_place(desk, OUTPUT_SEND));
	assert_int_equal(desk_count(desk, OUTPUT_KILL, 7), 0);
}

DESK_TEST(what_does_not_end_in_its_grace_is_frozen_and_killed_until_it_is_gone)
{
	run_and_use(desk);
	desk_stop(desk, 7, 5000);
	desk_renew(desk, 4999);
	assert_int_equal(desk_count(desk, OUTPUT_KILL, 7), 0);
	desk_renew(desk, 1);
	assert_int_equal(desk_count(desk, OUTPUT_FREEZE, 7), 1);
	assert_int_equal(desk_count(desk, OUTPUT_KILL, 7), 1);
	desk_renew(desk, desk->policy.kill_repeat_ms);
	assert_int_equal(desk_count(desk, OUTPUT_KILL, 7), 1);
	desk_gone(desk, 7);
	desk_renew(desk, desk->policy.kill_repeat_ms);
	assert_int_equal(desk_count(desk, OUTPUT_KILL, 7), 0);
}

DESK_TEST(without_grace_it_is_killed_at_once)
{
	run_and_use(desk);
	desk_stop(desk, 7, 0);
	assert_int_equal(desk_count(desk, OUTPUT_KILL, 7), 1);
}

DESK_TEST(a_second_stop_can_only_bring_the_kill_forward)
{
	run_and_use(desk);
	desk_stop(desk, 7, 5000);
	desk_stop(desk, 7, 60000);
	assert_int_equal(desk_work(desk, 7)->kill_ms, desk->now_ms + 5000);
	desk_stop(desk, 7, 1000);
	assert_int_equal(desk_work(desk, 7)->kill_ms, desk->now_ms + 1000);
}

DESK_TEST(what_there_is_to_say_of_an_end_is_told_unless_it_was_told_to_stop)
{
	struct work_event event = { .reservation_id = 7, .exit_code = 127, .message = "a hint" };

	desk_connect(desk);
	desk_run(desk, 7, 1000);
	desk_event(desk, INPUT_EXITED, event);
	desk_measure(desk);
	assert_string_equal(desk_change(desk, CHANGE_EXITED)->message, "a hint");
	event.reservation_id = 8;
	desk_run(desk, 8, 1000);
	desk_stop(desk, 8, 1000);
	desk_event(desk, INPUT_EXITED, event);
	assert_string_not_equal(desk_change(desk, CHANGE_EXITED)->message, "a hint");
}

DESK_TEST(an_end_is_written_down_before_it_is_told)
{
	run_and_use(desk);
	desk_exit(desk, 7, 0);
	assert_true(desk_place(desk, OUTPUT_WRITE) < desk_place(desk, OUTPUT_SEND));
	const struct change *change = desk_change(desk, CHANGE_EXITED);
	assert_int_equal(change->exit_code, 0);
	assert_int_equal(change->reason, END_ITSELF);
}

DESK_TEST(whatever_a_task_leaves_running_is_killed)
{
	run_and_use(desk);
	desk_exit(desk, 7, 0);
	assert_int_equal(desk_count(desk, OUTPUT_KILL, 7), 1);
}

DESK_TEST(a_release_is_not_told_while_processes_are_left)
{
	run_and_use(desk);
	desk_exit(desk, 7, 0);
	desk_unuse(desk, 7, true);
	desk_measure(desk);
	assert_null(desk_change(desk, CHANGE_RELEASED));
	desk_gone(desk, 7);
	desk_measure(desk);
	assert_non_null(desk_change(desk, CHANGE_RELEASED));
}

DESK_TEST(a_release_is_not_told_while_memory_is_left_that_no_process_explains)
{
	run_and_use(desk);
	desk_exit(desk, 7, 0);
	desk_unuse(desk, 7, false);
	desk_gone(desk, 7);
	desk_measure(desk);
	assert_null(desk_change(desk, CHANGE_RELEASED));
	desk->now_ms += 400;
	desk->gpus[0].used_mib = 0;
	desk_measure(desk);
	assert_int_equal(desk_change(desk, CHANGE_RELEASED)->took_ms, 400);
}

DESK_TEST(a_measurement_that_began_before_the_end_does_not_confirm_a_release)
{
	run_and_use(desk);
	desk_exit(desk, 7, 0);
	int64_t before = desk->asked;
	desk_gone(desk, 7);
	int64_t after = desk->asked;
	assert_true(after > before);
	desk_unuse(desk, 7, true);
	desk->asked = before;
	desk_measure(desk);
	assert_null(desk_change(desk, CHANGE_RELEASED));
	desk->asked = after;
	desk_measure(desk);
	assert_non_null(desk_change(desk, CHANGE_RELEASED));
}

DESK_TEST(memory_that_stood_there_before_does_not_hold_up_a_release)
{
	desk->gpus[0].used_mib = 300;
	run_and_use(desk);
	desk_exit(desk, 7, 0);
	desk_unuse(desk, 7, true);
	desk_gone(desk, 7);
	desk_measure(desk);
	assert_non_null(desk_change(desk, CHANGE_RELEASED));
}

DESK_TEST(memory_that_stood_there_and_went_hides_nothing_later)
{
	desk->gpus[0].used_mib = 300;
	run_and_use(desk);
	desk->gpus[0].used_mib -= 300;
	desk_measure(desk);
	desk_exit(desk, 7, 0);
	desk_unuse(desk, 7, true);
	desk->gpus[0].used_mib = 300;
	desk_gone(desk, 7);
	desk_measure(desk);
	assert_null(desk_change(desk, CHANGE_RELEASED));
}

DESK_TEST(memory_left_by_one_of_two_holds_up_both_until_it_has_settled)
{
	desk->policy.release_settle_ms = 20000;
	desk->policy.silence_ms = 100000;
	desk_restart_with(desk, NULL, 0);
	run_and_use(desk);
	desk_run(desk, 8, 10000);
	desk_use(desk, 0, 8, 2000);
	desk_measure(desk);
	desk_exit(desk, 7, 0);
	desk->now_ms++;
	desk_exit(desk, 8, 0);
	desk_unuse(desk, 7, false);
	desk_unuse(desk, 8, true);
	desk_gone(desk, 7);
	desk_gone(desk, 8);
	desk_measure(desk);
	assert_null(desk_change(desk, CHANGE_RELEASED));
	desk->now_ms += 20000;
	desk_measure(desk);
	assert_int_equal(desk_change(desk, CHANGE_RELEASED)->reservation_id, 8);
	assert_int_equal(desk_phase(desk, 7), WORK_OVER);
}

DESK_TEST(what_is_not_back_is_told_again_and_again_with_its_processes)
{
	desk->policy.late_repeat_ms = 4000;
	desk_restart_with(desk, NULL, 0);
	run_and_use(desk);
	desk_stop(desk, 7, 5000);
	desk_renew(desk, 5000);
	desk_renew(desk, 4000);
	const struct change *late = desk_change(desk, CHANGE_LATE);
	assert_int_equal(late->took_ms, 9000);
	assert_int_equal(late->pids.count, 1);
	assert_int_equal(late->pids.at[0], 107);
	desk_renew(desk, 4000);
	assert_non_null(desk_change(desk, CHANGE_LATE));
}

DESK_TEST(a_gpu_that_fell_off_gives_its_memory_back_after_a_while)
{
	desk->policy.absent_ms = 6000;
	desk_restart_with(desk, NULL, 0);
	run_and_use(desk);
	desk_exit(desk, 7, 0);
	desk_unuse(desk, 7, true);
	desk->gpus[0] = desk->gpus[1];
	desk->gpu_count = 1;
	desk_gone(desk, 7);
	desk_measure(desk);
	assert_null(desk_change(desk, CHANGE_RELEASED));
	desk_renew(desk, 6000);
	desk_measure(desk);
	assert_non_null(desk_change(desk, CHANGE_RELEASED));
}

DESK_TEST(so_does_one_that_was_gone_when_the_agent_started)
{
	desk->policy.absent_ms = 6000;
	run_and_use(desk);
	desk_exit(desk, 7, 0);
	desk_unuse(desk, 7, true);
	desk->gpus[0] = desk->gpus[1];
	desk->gpu_count = 1;
	desk_restart_with(desk, NULL, 0);
	desk_connect(desk);
	assert_null(desk_change(desk, CHANGE_RELEASED));
	desk_renew(desk, 6000);
	desk_measure(desk);
	assert_non_null(desk_change(desk, CHANGE_RELEASED));
}

DESK_TEST(an_end_is_forgotten_only_when_its_release_is_acknowledged)
{
	run_and_use(desk);
	desk_exit(desk, 7, 0);
	int64_t exited = desk->changes;
	desk_unuse(desk, 7, true);
	desk_gone(desk, 7);
	desk_measure(desk);
	desk_acknowledge(desk, exited);
	assert_non_null(desk_row(desk, 7));
	desk_acknowledge(desk, desk->changes);
	assert_int_equal(desk_count(desk, OUTPUT_ERASE, 7), 1);
	assert_null(desk_row(desk, 7));
}

DESK_TEST(an_end_is_not_forgotten_before_all_orders_given_before_have_come)
{
	run_and_use(desk);
	desk_exit(desk, 7, 0);
	desk_unuse(desk, 7, true);
	desk_gone(desk, 7);
	desk_measure(desk);
	desk->orders++; /* a repeated start of 7 that is still on its way */
	desk_acknowledge(desk, desk->changes);
	assert_non_null(desk_row(desk, 7));
	desk->orders--;
	desk_start(desk, 7, 10000);
	assert_int_equal(desk_place(desk, OUTPUT_START), -1);
	assert_null(desk_row(desk, 7));
}

DESK_TEST(a_task_ends_when_it_ran_for_as_long_as_it_may)
{
	struct order_part part;
	struct node_order order = start_order(7, &part, 100);

	order.max_runtime_ms = 60000;
	desk_connect(desk);
	desk_order(desk, &order);
	desk_measure(desk);
	desk_event(desk, INPUT_STARTED, (struct work_event){ .reservation_id = 7 });
	for (int i = 0; i < 59; i++)
		desk_renew(desk, 1000);
	assert_int_equal(desk_phase(desk, 7), WORK_RUNNING);
	desk_renew(desk, 1000);
	assert_int_equal(desk_count(desk, OUTPUT_NOTICE, 7), 1);
	desk_exit(desk, 7, 0);
	assert_int_equal(desk_change(desk, CHANGE_EXITED)->exit_code, 124);
	assert_int_equal(desk_change(desk, CHANGE_EXITED)->reason, END_RUNTIME);
}

DESK_TEST(what_ended_before_it_was_told_to_stop_has_its_own_result)
{
	struct order_part part;
	struct node_order order = start_order(7, &part, 10000);

	order.max_runtime_ms = 5000;
	desk_connect(desk);
	desk_order(desk, &order);
	desk_measure(desk);
	int64_t exited_ms = desk->now_ms + 4000;
	desk_time(desk, 6000); /* the agent hung meanwhile */
	assert_int_equal(desk_phase(desk, 7), WORK_STOPPING);
	desk_event(desk, INPUT_EXITED,
	           (struct work_event){ .reservation_id = 7, .exited_ms = exited_ms });
	assert_int_equal(desk_change(desk, CHANGE_EXITED)->exit_code, 0);
	assert_int_equal(desk_change(desk, CHANGE_EXITED)->reason, END_ITSELF);
}

DESK_TEST(what_ended_before_it_was_told_to_stop_has_its_own_result_after_a_restart)
{
	struct order_part part;
	struct node_order order = start_order(7, &part, 10000);
	struct found found = { .reservation_id = 7,
		               .exited = true,
		               .exited_ms = desk->now_ms + 4000 };

	order.max_runtime_ms = 5000;
	desk_connect(desk);
	desk_order(desk, &order);
	desk_measure(desk);
	desk_time(desk, 6000);
	desk_restart_with(desk, &found, 1);
	desk_connect(desk);
	assert_int_equal(desk_change(desk, CHANGE_EXITED)->exit_code, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_ended_before_it_was_told_to_stop_has_its_own_result),
		cmocka_unit_test(
		    what_ended_before_it_was_told_to_stop_has_its_own_result_after_a_restart),
		cmocka_unit_test(a_stop_is_written_down_then_noticed_then_acknowledged),
		cmocka_unit_test(
		    what_does_not_end_in_its_grace_is_frozen_and_killed_until_it_is_gone),
		cmocka_unit_test(without_grace_it_is_killed_at_once),
		cmocka_unit_test(a_second_stop_can_only_bring_the_kill_forward),
		cmocka_unit_test(what_there_is_to_say_of_an_end_is_told_unless_it_was_told_to_stop),
		cmocka_unit_test(an_end_is_written_down_before_it_is_told),
		cmocka_unit_test(whatever_a_task_leaves_running_is_killed),
		cmocka_unit_test(a_release_is_not_told_while_processes_are_left),
		cmocka_unit_test(
		    a_release_is_not_told_while_memory_is_left_that_no_process_explains),
		cmocka_unit_test(
		    a_measurement_that_began_before_the_end_does_not_confirm_a_release),
		cmocka_unit_test(memory_that_stood_there_before_does_not_hold_up_a_release),
		cmocka_unit_test(memory_that_stood_there_and_went_hides_nothing_later),
		cmocka_unit_test(memory_left_by_one_of_two_holds_up_both_until_it_has_settled),
		cmocka_unit_test(what_is_not_back_is_told_again_and_again_with_its_processes),
		cmocka_unit_test(a_gpu_that_fell_off_gives_its_memory_back_after_a_while),
		cmocka_unit_test(so_does_one_that_was_gone_when_the_agent_started),
		cmocka_unit_test(an_end_is_forgotten_only_when_its_release_is_acknowledged),
		cmocka_unit_test(an_end_is_not_forgotten_before_all_orders_given_before_have_come),
		cmocka_unit_test(a_task_ends_when_it_ran_for_as_long_as_it_may),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
