/* survive_test.c - the scheduler gone, the agent restarted, leases lost */
#include "node/test/desk.h"

static void run_and_use(struct desk *desk)
{
	desk_connect(desk);
	desk_run(desk, 7, 10000);
	desk_use(desk, 0, 7, 8000);
	desk_measure(desk);
}

DESK_TEST(an_agent_speaks_the_older_protocol_of_a_scheduler_that_refused_its_own)
{
	desk_apply(desk, (struct input){ .kind = INPUT_CONNECTED });
	assert_int_equal(desk_message(desk, MESSAGE_HELLO)->hello.protocol, NODE_PROTOCOL);
	struct message refusal = desk_head(desk, MESSAGE_REFUSE);
	refusal.refusal.message = "the agent speaks protocol 3 and the scheduler 1 to 2";
	desk_receive(desk, refusal);
	desk->gpus[0].slowdown_c = 90;
	desk_apply(desk, (struct input){ .kind = INPUT_CONNECTED });
	assert_int_equal(desk_message(desk, MESSAGE_HELLO)->hello.protocol, 2);
	desk_welcome(desk, 30000);
	desk_measure(desk);
	assert_int_equal(desk_message(desk, MESSAGE_SNAPSHOT)->snapshot.slowdowns_c.count, 0);
	/* The next may be a scheduler that was brought up to date. */
	desk_apply(desk, (struct input){ .kind = INPUT_DISCONNECTED });
	desk_apply(desk, (struct input){ .kind = INPUT_CONNECTED });
	assert_int_equal(desk_message(desk, MESSAGE_HELLO)->hello.protocol, NODE_PROTOCOL);
	desk_welcome(desk, 30000);
	desk_measure(desk);
	assert_int_equal(desk_message(desk, MESSAGE_SNAPSHOT)->snapshot.slowdowns_c.count, 2);
	assert_int_equal(desk_message(desk, MESSAGE_SNAPSHOT)->snapshot.slowdowns_c.at[0], 90);
}

static struct found found_alive(int64_t reservation_id)
{
	return (struct found){ .reservation_id = reservation_id,
		               .alive = true,
		               .pid = 100 + reservation_id,
		               .pid_start = 7,
		               .model = "" };
}

static void end_while_alone(struct desk *desk)
{
	run_and_use(desk);
	desk_apply(desk, (struct input){ .kind = INPUT_DISCONNECTED });
	desk_time(desk, 3600000);
	assert_int_equal(desk_phase(desk, 7), WORK_RUNNING);
	desk_exit(desk, 7, 4);
	desk_unuse(desk, 7, true);
	desk_gone(desk, 7);
	desk_measure(desk);
	assert_int_equal(desk_place(desk, OUTPUT_SEND), -1);
}

DESK_TEST(tasks_run_on_and_results_are_kept_while_the_scheduler_is_gone)
{
	end_while_alone(desk);
	assert_int_equal(desk_phase(desk, 7), WORK_BACK);
	desk_connect(desk);
	assert_true(snapshot_runs(desk_message(desk, MESSAGE_SNAPSHOT), 7));
	assert_int_equal(desk_change(desk, CHANGE_EXITED)->exit_code, 4);
	assert_non_null(desk_change(desk, CHANGE_RELEASED));
	desk_acknowledge(desk, desk->changes);
	assert_null(desk_row(desk, 7));
}

DESK_TEST(a_result_survives_a_restart_of_the_agent)
{
	end_while_alone(desk);
	desk_restart_with(desk, NULL, 0);
	desk_connect(desk);
	assert_int_equal(desk_change(desk, CHANGE_EXITED)->exit_code, 4);
	assert_non_null(desk_change(desk, CHANGE_RELEASED));
}

DESK_TEST(a_result_survives_a_new_boot)
{
	end_while_alone(desk);
	desk->identity.boot = "boot-2";
	desk->now_ms = 10;
	desk_restart_with(desk, NULL, 0);
	desk_connect(desk);
	assert_int_equal(desk_change(desk, CHANGE_EXITED)->exit_code, 4);
}

DESK_TEST(results_are_told_on_each_connection_until_they_are_acknowledged)
{
	end_while_alone(desk);
	desk_connect(desk);
	desk_connect(desk);
	assert_non_null(desk_change(desk, CHANGE_EXITED));
}

DESK_TEST(changes_are_sent_again_until_they_are_acknowledged)
{
	run_and_use(desk);
	desk_acknowledge(desk, desk->changes);
	desk_exit(desk, 7, 0);
	desk_renew(desk, desk->policy.resend_ms - 1);
	assert_null(desk_change(desk, CHANGE_EXITED));
	desk_renew(desk, 1);
	assert_non_null(desk_change(desk, CHANGE_EXITED));
	desk_acknowledge(desk, desk->changes);
	desk_renew(desk, desk->policy.resend_ms);
	assert_null(desk_change(desk, CHANGE_EXITED));
}

DESK_TEST(the_snapshot_waits_for_a_measurement_and_comes_first)
{
	desk_apply(desk, (struct input){ .kind = INPUT_CONNECTED });
	desk_welcome(desk, 30000);
	assert_null(desk_message(desk, MESSAGE_SNAPSHOT));
	desk_measure(desk);
	assert_int_equal(desk_message(desk, MESSAGE_SNAPSHOT)->number, 1);
	assert_int_equal(desk_message(desk, MESSAGE_SNAPSHOT)->snapshot.device_count, 2);
}

DESK_TEST(a_silent_scheduler_is_given_up)
{
	desk_connect(desk);
	desk_time(desk, desk->policy.silence_ms - 1);
	assert_int_equal(desk_place(desk, OUTPUT_DISCONNECT), -1);
	desk_time(desk, 1);
	assert_true(desk_place(desk, OUTPUT_DISCONNECT) >= 0);
}

DESK_TEST(a_connection_has_a_higher_number_than_all_before_even_after_a_restart)
{
	desk_connect(desk);
	int64_t before = desk->connection;
	desk_restart_with(desk, NULL, 0);
	desk_apply(desk, (struct input){ .kind = INPUT_CONNECTED });
	assert_true(desk_place(desk, OUTPUT_WRITE) < desk_place(desk, OUTPUT_SEND));
	assert_true(desk->connection > before);
}

DESK_TEST(an_agent_that_lost_its_disk_learns_which_number_to_exceed)
{
	desk_apply(desk, (struct input){ .kind = INPUT_CONNECTED });
	struct message message = desk_head(desk, MESSAGE_REFUSE);
	message.refusal.connection = 41;
	message.refusal.message = "older";
	desk_receive(desk, message);
	assert_true(desk_place(desk, OUTPUT_DISCONNECT) >= 0);
	desk_apply(desk, (struct input){ .kind = INPUT_CONNECTED });
	assert_int_equal(desk->connection, 42);
}

DESK_TEST(an_order_that_was_not_decided_on_one_connection_is_dropped_with_it)
{
	struct order_part part;
	struct node_order order = start_order(7, &part, 100);

	desk_connect(desk);
	desk_order(desk, &order);
	desk_connect(desk);
	assert_int_equal(desk_phase(desk, 7), -1);
	assert_false(snapshot_runs(desk_message(desk, MESSAGE_SNAPSHOT), 7));
}

DESK_TEST(a_running_task_is_adopted_after_a_restart)
{
	struct found found = found_alive(7);

	run_and_use(desk);
	desk_restart_with(desk, &found, 1);
	assert_int_equal(desk_place(desk, OUTPUT_KILL), -1);
	desk_connect(desk);
	assert_true(snapshot_runs(desk_message(desk, MESSAGE_SNAPSHOT), 7));
	assert_int_equal(desk_phase(desk, 7), WORK_RUNNING);
	desk_start(desk, 7, 10000);
	assert_int_equal(desk_place(desk, OUTPUT_START), -1);
}

DESK_TEST(a_task_that_was_begun_and_not_seen_to_run_is_adopted_too)
{
	struct found found = found_alive(7);

	desk_connect(desk);
	desk_start(desk, 7, 10000);
	desk_restart_with(desk, &found, 1);
	assert_int_equal(desk_phase(desk, 7), WORK_RUNNING);
}

DESK_TEST(another_process_of_the_same_number_is_not_adopted)
{
	struct found found = found_alive(7);

	run_and_use(desk);
	found.pid_start = 8;
	desk_restart_with(desk, &found, 1);
	assert_int_equal(desk_work(desk, 7)->reason, END_LOST);
}

DESK_TEST(an_end_that_was_noted_while_the_agent_was_down_is_told)
{
	struct found found = { .reservation_id = 7, .exited = true, .exit_code = 9, .model = "" };

	run_and_use(desk);
	desk_unuse(desk, 7, true);
	desk_restart_with(desk, &found, 1);
	desk_connect(desk);
	assert_int_equal(desk_change(desk, CHANGE_EXITED)->exit_code, 9);
}

DESK_TEST(what_is_gone_without_a_trace_counts_until_its_memory_is_back_and_is_then_left_out)
{
	run_and_use(desk);
	desk_unuse(desk, 7, false);
	desk_restart_with(desk, NULL, 0);
	desk_connect(desk);
	assert_true(snapshot_runs(desk_message(desk, MESSAGE_SNAPSHOT), 7));
	assert_null(desk_change(desk, CHANGE_EXITED));
	desk->gpus[0].used_mib = 0;
	desk_measure(desk);
	assert_null(desk_row(desk, 7));
	desk_measure(desk);
	assert_false(snapshot_runs(desk_message(desk, MESSAGE_SNAPSHOT), 7));
}

DESK_TEST(after_a_new_boot_nothing_of_the_old_one_runs)
{
	run_and_use(desk);
	desk_unuse(desk, 7, true);
	desk->identity.boot = "boot-2";
	desk->now_ms = 10;
	desk_restart_with(desk, NULL, 0);
	desk_connect(desk);
	assert_false(snapshot_runs(desk_message(desk, MESSAGE_SNAPSHOT), 7));
	assert_string_equal(desk_message(desk, MESSAGE_SNAPSHOT)->snapshot.boot, "boot-2");
}

DESK_TEST(what_is_found_without_a_record_is_told_and_can_be_stopped)
{
	struct found found = found_alive(99);

	desk_use(desk, 0, 99, 500);
	desk_restart_with(desk, &found, 1);
	desk_connect(desk);
	assert_true(snapshot_runs(desk_message(desk, MESSAGE_SNAPSHOT), 99));
	desk_stop(desk, 99, 1000);
	assert_int_equal(desk_count(desk, OUTPUT_NOTICE, 99), 1);
	desk_unuse(desk, 99, true);
	desk_gone(desk, 99);
	desk_measure(desk);
	assert_int_equal(desk_change(desk, CHANGE_RELEASED)->reservation_id, 99);
}

DESK_TEST(a_stop_under_way_goes_on_after_a_restart)
{
	struct found found = found_alive(7);

	run_and_use(desk);
	desk_stop(desk, 7, 5000);
	desk_restart_with(desk, &found, 1);
	assert_int_equal(desk_count(desk, OUTPUT_NOTICE, 7), 1);
	desk_time(desk, 5000);
	assert_int_equal(desk_count(desk, OUTPUT_KILL, 7), 1);
}

static void run_with_lease(struct desk *desk, enum lease_loss loss)
{
	struct order_part part;
	struct node_order order = start_order(7, &part, 100);

	order.lease_loss = (int32_t)loss;
	desk_connect(desk);
	desk_order(desk, &order);
	desk_measure(desk);
	desk_event(desk, INPUT_STARTED, (struct work_event){ .reservation_id = 7, .pid = 107 });
}

DESK_TEST(a_task_that_stops_without_a_lease_is_stopped_when_it_is_over)
{
	run_with_lease(desk, LEASE_STOP);
	desk_time(desk, 29999);
	assert_int_equal(desk_phase(desk, 7), WORK_RUNNING);
	desk_time(desk, 1);
	assert_int_equal(desk_count(desk, OUTPUT_NOTICE, 7), 1);
	desk_time(desk, 5000);
	assert_int_equal(desk_count(desk, OUTPUT_KILL, 7), 1);
}

/* The agent hung: it learns of the end and of the lost lease together. */
static void end_while_the_agent_hangs(struct desk *desk, int64_t exit_code, int64_t exited_ms)
{
	desk->now_ms += 60000;
	desk_event(desk, INPUT_EXITED,
	           (struct work_event){
		       .reservation_id = 7, .exit_code = exit_code, .exited_ms = exited_ms });
	desk_gone(desk, 7);
	desk_measure(desk);
	desk_connect(desk);
}

DESK_TEST(a_result_from_before_the_lease_was_over_is_told)
{
	run_with_lease(desk, LEASE_STOP);
	end_while_the_agent_hangs(desk, 0, desk->now_ms + 1000);
	assert_int_equal(desk_change(desk, CHANGE_EXITED)->exit_code, 0);
	assert_int_equal(desk_change(desk, CHANGE_EXITED)->reason, END_ITSELF);
}

DESK_TEST(what_its_keeper_ended_after_the_lease_has_no_result)
{
	run_with_lease(desk, LEASE_STOP);
	end_while_the_agent_hangs(desk, 137, desk->now_ms + 40000);
	assert_null(desk_change(desk, CHANGE_EXITED));
	assert_false(snapshot_runs(desk_message(desk, MESSAGE_SNAPSHOT), 7));
}

DESK_TEST(a_task_that_stays_runs_on_without_a_lease)
{
	run_with_lease(desk, LEASE_KEEP);
	desk_time(desk, 3600000);
	assert_int_equal(desk_phase(desk, 7), WORK_RUNNING);
}

DESK_TEST(a_lease_counts_from_when_the_beat_was_sent_not_from_when_the_answer_came)
{
	run_with_lease(desk, LEASE_STOP);
	desk_time(desk, 9000);
	struct message late = desk_head(desk, MESSAGE_RENEW);
	late.renewal = (struct renewal){ desk->now_ms - 8000, 30000 };
	desk_receive(desk, late);
	assert_int_equal(desk->lease_until_ms, desk->now_ms + 22000);
	desk_time(desk, 22000);
	assert_int_equal(desk_count(desk, OUTPUT_NOTICE, 7), 1);
}

DESK_TEST(a_renewal_that_comes_after_the_end_of_a_lease_revives_nothing)
{
	run_with_lease(desk, LEASE_STOP);
	desk->now_ms += 30000;
	struct message message = desk_head(desk, MESSAGE_RENEW);
	message.renewal = (struct renewal){ desk->now_ms, 30000 };
	desk_receive(desk, message);
	assert_int_equal(desk_phase(desk, 7), WORK_STOPPING);
}

DESK_TEST(the_keeper_of_tasks_is_told_how_long_a_lease_runs_before_it_counts)
{
	desk_apply(desk, (struct input){ .kind = INPUT_CONNECTED });
	desk_welcome(desk, 30000);
	assert_true(desk_place(desk, OUTPUT_LEASE) >= 0);
	assert_int_equal(desk->lease_until_ms, desk->now_ms + 30000);
}

DESK_TEST(what_a_lost_lease_ended_is_left_out_of_the_next_snapshot_and_has_no_result)
{
	run_with_lease(desk, LEASE_STOP);
	desk_time(desk, 30000);
	desk_connect(desk);
	assert_true(snapshot_runs(desk_message(desk, MESSAGE_SNAPSHOT), 7));
	desk_exit(desk, 7, 0);
	assert_null(desk_change(desk, CHANGE_EXITED));
	desk_gone(desk, 7);
	desk_measure(desk);
	assert_null(desk_row(desk, 7));
	desk_measure(desk);
	assert_false(snapshot_runs(desk_message(desk, MESSAGE_SNAPSHOT), 7));
}

/* Their keeper kills tasks at the end of a lease even while the agent hangs. */
DESK_TEST(what_was_killed_after_its_lease_while_the_agent_was_down_has_no_result)
{
	struct order_part part;
	struct node_order order = start_order(7, &part, 10000);
	struct found found = { .reservation_id = 7, .exited = true, .exit_code = 137 };

	order.lease_loss = LEASE_STOP;
	desk_connect(desk);
	desk_order(desk, &order);
	desk_measure(desk);
	desk->now_ms += 100000;
	desk_restart_with(desk, &found, 1);
	desk_measure(desk);
	desk_connect(desk);
	assert_false(snapshot_runs(desk_message(desk, MESSAGE_SNAPSHOT), 7));
	assert_null(desk_change(desk, CHANGE_EXITED));
}

DESK_TEST(an_own_end_is_told_even_if_the_lease_is_over_when_the_agent_starts)
{
	struct order_part part;
	struct node_order order = start_order(7, &part, 10000);
	struct found found = { .reservation_id = 7, .exited = true, .exit_code = 0 };

	order.lease_loss = LEASE_STOP;
	desk_connect(desk);
	desk_order(desk, &order);
	desk_measure(desk);
	desk->now_ms += 100000;
	desk_restart_with(desk, &found, 1);
	desk_measure(desk);
	desk_connect(desk);
	assert_int_equal(desk_change(desk, CHANGE_EXITED)->reservation_id, 7);
}

DESK_TEST(after_a_restart_a_lease_that_nobody_remembers_is_over)
{
	struct found found = found_alive(7);

	run_with_lease(desk, LEASE_STOP);
	desk->lease_until_ms = 0;
	found.pid_start = 0;
	desk_restart_with(desk, &found, 1);
	assert_int_equal(desk_phase(desk, 7), WORK_STOPPING);
}

DESK_TEST(hardware_that_changed_leads_to_another_snapshot)
{
	desk_connect(desk);
	desk->gpus[0].capacity_mib = 70000;
	desk_measure(desk);
	assert_null(desk_message(desk, MESSAGE_SNAPSHOT));
	desk_measure(desk);
	assert_int_equal(desk_message(desk, MESSAGE_SNAPSHOT)->snapshot.devices[0].capacity_mib,
	                 70000);
}

DESK_TEST(names_of_one_gpu_are_told_as_devices_of_one_uuid)
{
	desk->gpus[0].replicas = 3;
	desk_connect(desk);
	assert_int_equal(desk_message(desk, MESSAGE_SNAPSHOT)->snapshot.device_count, 4);
}

DESK_TEST(what_was_written_and_cannot_be_read_is_refused)
{
	struct error error = { 0 };

	desk_connect(desk);
	desk_run(desk, 7, 100);
	struct local_node *node = node_new(&desk->identity, &desk->policy);
	const struct desk_row *row = desk_row(desk, 7);
	assert_false(node_load(node, 7, row->data, row->size - 1, &error));
	assert_int_equal(error.code, ERROR_CORRUPT);
	assert_false(node_load(node, 8, row->data, row->size, &error));
	assert_true(node_load(node, 7, row->data, row->size, &error));
	assert_false(node_load(node, 7, row->data, row->size, &error));
	node_delete(node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    an_agent_speaks_the_older_protocol_of_a_scheduler_that_refused_its_own),
		cmocka_unit_test(tasks_run_on_and_results_are_kept_while_the_scheduler_is_gone),
		cmocka_unit_test(a_result_survives_a_restart_of_the_agent),
		cmocka_unit_test(a_result_survives_a_new_boot),
		cmocka_unit_test(results_are_told_on_each_connection_until_they_are_acknowledged),
		cmocka_unit_test(changes_are_sent_again_until_they_are_acknowledged),
		cmocka_unit_test(the_snapshot_waits_for_a_measurement_and_comes_first),
		cmocka_unit_test(a_silent_scheduler_is_given_up),
		cmocka_unit_test(
		    a_connection_has_a_higher_number_than_all_before_even_after_a_restart),
		cmocka_unit_test(an_agent_that_lost_its_disk_learns_which_number_to_exceed),
		cmocka_unit_test(
		    an_order_that_was_not_decided_on_one_connection_is_dropped_with_it),
		cmocka_unit_test(a_running_task_is_adopted_after_a_restart),
		cmocka_unit_test(a_task_that_was_begun_and_not_seen_to_run_is_adopted_too),
		cmocka_unit_test(another_process_of_the_same_number_is_not_adopted),
		cmocka_unit_test(an_end_that_was_noted_while_the_agent_was_down_is_told),
		cmocka_unit_test(
		    what_is_gone_without_a_trace_counts_until_its_memory_is_back_and_is_then_left_out),
		cmocka_unit_test(after_a_new_boot_nothing_of_the_old_one_runs),
		cmocka_unit_test(what_is_found_without_a_record_is_told_and_can_be_stopped),
		cmocka_unit_test(a_stop_under_way_goes_on_after_a_restart),
		cmocka_unit_test(a_task_that_stops_without_a_lease_is_stopped_when_it_is_over),
		cmocka_unit_test(a_result_from_before_the_lease_was_over_is_told),
		cmocka_unit_test(what_its_keeper_ended_after_the_lease_has_no_result),
		cmocka_unit_test(a_task_that_stays_runs_on_without_a_lease),
		cmocka_unit_test(
		    a_lease_counts_from_when_the_beat_was_sent_not_from_when_the_answer_came),
		cmocka_unit_test(a_renewal_that_comes_after_the_end_of_a_lease_revives_nothing),
		cmocka_unit_test(
		    the_keeper_of_tasks_is_told_how_long_a_lease_runs_before_it_counts),
		cmocka_unit_test(
		    what_a_lost_lease_ended_is_left_out_of_the_next_snapshot_and_has_no_result),
		cmocka_unit_test(
		    what_was_killed_after_its_lease_while_the_agent_was_down_has_no_result),
		cmocka_unit_test(
		    an_own_end_is_told_even_if_the_lease_is_over_when_the_agent_starts),
		cmocka_unit_test(after_a_restart_a_lease_that_nobody_remembers_is_over),
		cmocka_unit_test(hardware_that_changed_leads_to_another_snapshot),
		cmocka_unit_test(names_of_one_gpu_are_told_as_devices_of_one_uuid),
		cmocka_unit_test(what_was_written_and_cannot_be_read_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
