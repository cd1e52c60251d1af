/* orders_test.c - orders: which are followed, and that each is followed once */
#include "node/test/desk.h"

DESK_TEST(an_order_is_written_down_before_it_is_begun_and_acknowledged)
{
	desk_connect(desk);
	desk_start(desk, 7, 10000);
	int write = desk_place(desk, OUTPUT_WRITE), start = desk_place(desk, OUTPUT_START);
	int send = desk_place(desk, OUTPUT_SEND);
	assert_true(write >= 0 && write < start && start < send);
	assert_int_equal(desk->outputs.at[start].order->parts[0].memory_mib, 10000);
	assert_string_equal(desk->outputs.at[start].order->payload, "train");
	assert_int_equal(desk_message(desk, MESSAGE_ACK)->acknowledged, 1);
	assert_non_null(desk_row(desk, 7));
}

DESK_TEST(an_order_waits_for_a_measurement_that_began_after_it)
{
	struct order_part part;
	struct node_order order = start_order(7, &part, 10000);

	desk_connect(desk);
	int64_t before = desk->asked;
	desk_order(desk, &order);
	assert_int_equal(desk->asked, before + 1);
	assert_null(desk_message(desk, MESSAGE_ACK));
	desk->asked = before;
	desk_measure(desk);
	assert_int_equal(desk_phase(desk, 7), WORK_WAITING);
	desk->asked = before + 1;
	desk_measure(desk);
	assert_int_equal(desk_phase(desk, 7), WORK_STARTING);
}

DESK_TEST(an_order_that_cannot_be_checked_in_time_is_refused)
{
	struct order_part part;
	struct node_order order = start_order(7, &part, 10000);

	desk->policy.measure_timeout_ms = 5000;
	desk_restart_with(desk, NULL, 0);
	desk_connect(desk);
	desk_order(desk, &order);
	desk_renew(desk, 4999);
	assert_null(desk_change(desk, CHANGE_REFUSED));
	desk_renew(desk, 1);
	assert_non_null(desk_change(desk, CHANGE_REFUSED));
	assert_int_equal(desk_phase(desk, 7), -1);
}

DESK_TEST(an_acknowledgement_may_wait_for_what_is_said_anyway)
{
	desk->policy.acknowledge_ms = 50;
	desk_restart_with(desk, NULL, 0);
	desk_connect(desk);
	desk_start(desk, 7, 1000);
	assert_null(desk_message(desk, MESSAGE_ACK));
	desk_event(desk, INPUT_STARTED, (struct work_event){ .reservation_id = 7, .pid = 107 });
	assert_int_equal(desk_message(desk, MESSAGE_CHANGE)->acknowledged, 1);
	desk_start(desk, 8, 1000);
	desk_time(desk, 49);
	assert_null(desk_message(desk, MESSAGE_ACK));
	assert_int_equal(node_wake_ms(desk->node), desk->now_ms + 1);
	desk_time(desk, 1);
	assert_int_equal(desk_message(desk, MESSAGE_ACK)->acknowledged, 2);
}

DESK_TEST(a_repeated_order_is_acknowledged_again_and_not_done_twice)
{
	struct order_part part;
	struct node_order order = start_order(7, &part, 10000);
	struct message again = desk_head(desk, MESSAGE_ORDER);

	desk_connect(desk);
	desk_run(desk, 7, 10000);
	again = desk_head(desk, MESSAGE_ORDER);
	again.number = 1;
	again.order = order;
	desk_receive(desk, again);
	desk_measure(desk);
	assert_int_equal(desk_count(desk, OUTPUT_START, 7), 0);
	desk_receive(desk, again);
	assert_int_equal(desk_message(desk, MESSAGE_ACK)->acknowledged, 1);
}

DESK_TEST(an_order_for_a_reservation_that_runs_is_acknowledged_and_no_more)
{
	desk_connect(desk);
	desk_run(desk, 7, 10000);
	struct order_part part;
	struct node_order order = start_order(7, &part, 10000);
	desk_order(desk, &order);
	assert_int_equal(desk_message(desk, MESSAGE_ACK)->acknowledged, 2);
	desk_measure(desk);
	assert_int_equal(desk_place(desk, OUTPUT_START), -1);
}

DESK_TEST(an_order_that_comes_too_early_is_left_until_it_is_its_turn)
{
	struct order_part part;
	struct node_order order = start_order(8, &part, 10000);
	struct message early;

	desk_connect(desk);
	early = desk_head(desk, MESSAGE_ORDER);
	early.number = 2;
	early.order = order;
	desk_receive(desk, early);
	assert_int_equal(desk_message(desk, MESSAGE_ACK)->acknowledged, 0);
	assert_int_equal(desk_phase(desk, 8), -1);
	desk_start(desk, 7, 10000);
	desk_receive(desk, early);
	desk_measure(desk);
	assert_int_equal(desk_phase(desk, 8), WORK_STARTING);
}

DESK_TEST(orders_are_acknowledged_up_to_the_first_that_is_not_decided)
{
	struct order_part part;
	struct node_order order = start_order(7, &part, 10000);

	desk_connect(desk);
	desk_order(desk, &order);
	desk_stop(desk, 99, 0);
	assert_int_equal(desk->sent[desk->sent_count - 1]->acknowledged, 0);
	desk_measure(desk);
	assert_int_equal(desk->sent[desk->sent_count - 1]->acknowledged, 2);
}

DESK_TEST(an_older_term_is_refused_and_the_connection_given_up)
{
	desk->term = 5;
	desk_connect(desk);
	desk->term = 4;
	desk_start(desk, 7, 10000);
	assert_int_equal(desk_phase(desk, 7), -1);
	desk->term = 5;
	desk_connect(desk);
	desk->term = 4;
	desk_stop(desk, 7, 0);
	assert_non_null(desk_message(desk, MESSAGE_REFUSE));
	assert_true(desk_place(desk, OUTPUT_DISCONNECT) >= 0);
}

DESK_TEST(the_highest_term_is_known_after_a_restart)
{
	desk->term = 5;
	desk_connect(desk);
	desk_restart_with(desk, NULL, 0);
	desk->term = 4;
	desk_apply(desk, (struct input){ .kind = INPUT_CONNECTED });
	desk_welcome(desk, 30000);
	assert_non_null(desk_message(desk, MESSAGE_REFUSE));
	desk->term = 6;
	desk_connect(desk);
	assert_non_null(desk_message(desk, MESSAGE_SNAPSHOT));
}

DESK_TEST(a_newer_term_on_the_same_connection_ends_the_older_one)
{
	struct order_part part;
	struct node_order order = start_order(7, &part, 10000);

	desk->term = 4;
	desk_connect(desk);
	desk_order(desk, &order);
	desk->term = 5;
	desk_welcome(desk, 30000);
	assert_int_equal(desk_place(desk, OUTPUT_WRITE), 0);
	assert_true(desk_place(desk, OUTPUT_DISCONNECT) > 0);
	desk->term = 4;
	desk_measure(desk);
	assert_int_equal(desk_phase(desk, 7), -1);
	desk_apply(desk, (struct input){ .kind = INPUT_CONNECTED });
	desk_welcome(desk, 30000);
	assert_non_null(desk_message(desk, MESSAGE_REFUSE));
}

DESK_TEST(a_new_term_is_written_down_before_anything_is_said_under_it)
{
	desk->term = 9;
	desk_apply(desk, (struct input){ .kind = INPUT_CONNECTED });
	desk_welcome(desk, 30000);
	assert_int_equal(desk_place(desk, OUTPUT_WRITE), 0);
	assert_int_equal(desk->outputs.at[0].key, 0);
}

DESK_TEST(an_order_for_another_boot_or_connection_is_not_followed)
{
	struct order_part part;
	struct node_order order = start_order(7, &part, 10000);

	desk_connect(desk);
	struct message message = desk_head(desk, MESSAGE_ORDER);
	message.number = 1;
	message.order = order;
	message.boot = "boot-0";
	desk_receive(desk, message);
	assert_int_equal(desk_phase(desk, 7), -1);
	message.boot = "boot-1";
	message.connection--;
	desk_receive(desk, message);
	assert_int_equal(desk_phase(desk, 7), -1);
	message.connection++;
	desk_receive(desk, message);
	assert_int_equal(desk_phase(desk, 7), WORK_WAITING);
}

DESK_TEST(a_task_told_to_stop_before_it_was_checked_is_refused_and_never_begun)
{
	struct order_part part;
	struct node_order order = start_order(7, &part, 10000);

	desk_connect(desk);
	desk_order(desk, &order);
	desk_stop(desk, 7, 5000);
	assert_non_null(desk_change(desk, CHANGE_REFUSED));
	desk_measure(desk);
	assert_int_equal(desk_place(desk, OUTPUT_START), -1);
}

/* The scheduler gives an order again when a snapshot does not name it yet; it may
 * have believed the refusal by the time the second one comes. */
DESK_TEST(an_order_that_was_refused_is_refused_again_however_much_room_there_is_now)
{
	desk_connect(desk);
	desk_use(desk, 0, 0, 75000);
	desk_start(desk, 7, 10000);
	assert_non_null(desk_change(desk, CHANGE_REFUSED));
	desk_unuse(desk, 0, true);
	struct order_part part;
	struct node_order order = start_order(7, &part, 10000);
	desk_order(desk, &order);
	assert_int_equal(desk_change(desk, CHANGE_REFUSED)->reservation_id, 7);
	assert_int_equal(desk_message(desk, MESSAGE_CHANGE)->acknowledged, 2);
	desk_measure(desk);
	assert_int_equal(desk_place(desk, OUTPUT_START), -1);
}

DESK_TEST(a_refusal_is_remembered_until_no_order_given_before_it_can_still_come)
{
	desk_connect(desk);
	desk_use(desk, 0, 0, 75000);
	desk_start(desk, 7, 10000);
	desk_unuse(desk, 0, true);
	desk->orders++; /* a second one is on its way */
	desk_acknowledge(desk, desk->changes);
	desk->orders--;
	desk_start(desk, 7, 10000);
	assert_int_equal(desk_place(desk, OUTPUT_START), -1);
	desk_acknowledge(desk, desk->changes);
	desk_start(desk, 7, 10000);
	assert_int_equal(desk_count(desk, OUTPUT_START, 7), 1);
}

DESK_TEST(what_a_lost_lease_ended_is_not_begun_anew_by_a_late_order)
{
	struct order_part part;
	struct node_order order = start_order(7, &part, 10000);

	order.lease_loss = LEASE_STOP;
	desk->policy.silence_ms = 1000000;
	desk_restart_with(desk, NULL, 0);
	desk_connect(desk);
	desk_order(desk, &order);
	desk_measure(desk);
	desk_time(desk, 30000);
	desk_exit(desk, 7, 143);
	desk_gone(desk, 7);
	desk_measure(desk);
	assert_int_equal(desk_phase(desk, 7), -1);
	desk_renew(desk, 1);
	desk_order(desk, &order);
	desk_measure(desk);
	assert_int_equal(desk_place(desk, OUTPUT_START), -1);
}

DESK_TEST(stopping_what_is_not_there_is_confirmed_at_once)
{
	desk_connect(desk);
	desk_stop(desk, 42, 5000);
	assert_int_equal(desk_change(desk, CHANGE_RELEASED)->reservation_id, 42);
}

DESK_TEST(a_task_without_gpus_starts_without_a_measurement)
{
	struct node_order order = { .kind = ORDER_START, .reservation_id = 7, .grace_ms = 1 };

	desk_connect(desk);
	desk_order(desk, &order);
	assert_int_equal(desk_count(desk, OUTPUT_START, 7), 1);
}

DESK_TEST(what_could_not_be_started_is_refused_and_forgotten)
{
	desk_connect(desk);
	desk_start(desk, 7, 10000);
	desk_event(desk, INPUT_NOT_STARTED,
	           (struct work_event){ .reservation_id = 7, .message = "no such user" });
	assert_string_equal(desk_change(desk, CHANGE_REFUSED)->message, "no such user");
	assert_null(desk_row(desk, 7));
}

DESK_TEST(what_a_snapshot_said_runs_and_could_not_be_started_leads_to_another_snapshot)
{
	desk_connect(desk);
	desk_start(desk, 7, 10000);
	desk_connect(desk);
	assert_true(snapshot_runs(desk_message(desk, MESSAGE_SNAPSHOT), 7));
	desk_event(desk, INPUT_NOT_STARTED, (struct work_event){ .reservation_id = 7 });
	desk_measure(desk);
	assert_false(snapshot_runs(desk_message(desk, MESSAGE_SNAPSHOT), 7));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_order_is_written_down_before_it_is_begun_and_acknowledged),
		cmocka_unit_test(an_order_waits_for_a_measurement_that_began_after_it),
		cmocka_unit_test(an_order_that_cannot_be_checked_in_time_is_refused),
		cmocka_unit_test(an_acknowledgement_may_wait_for_what_is_said_anyway),
		cmocka_unit_test(a_repeated_order_is_acknowledged_again_and_not_done_twice),
		cmocka_unit_test(an_order_for_a_reservation_that_runs_is_acknowledged_and_no_more),
		cmocka_unit_test(an_order_that_comes_too_early_is_left_until_it_is_its_turn),
		cmocka_unit_test(orders_are_acknowledged_up_to_the_first_that_is_not_decided),
		cmocka_unit_test(an_older_term_is_refused_and_the_connection_given_up),
		cmocka_unit_test(the_highest_term_is_known_after_a_restart),
		cmocka_unit_test(a_newer_term_on_the_same_connection_ends_the_older_one),
		cmocka_unit_test(a_new_term_is_written_down_before_anything_is_said_under_it),
		cmocka_unit_test(an_order_for_another_boot_or_connection_is_not_followed),
		cmocka_unit_test(
		    a_task_told_to_stop_before_it_was_checked_is_refused_and_never_begun),
		cmocka_unit_test(
		    an_order_that_was_refused_is_refused_again_however_much_room_there_is_now),
		cmocka_unit_test(
		    a_refusal_is_remembered_until_no_order_given_before_it_can_still_come),
		cmocka_unit_test(what_a_lost_lease_ended_is_not_begun_anew_by_a_late_order),
		cmocka_unit_test(stopping_what_is_not_there_is_confirmed_at_once),
		cmocka_unit_test(a_task_without_gpus_starts_without_a_measurement),
		cmocka_unit_test(what_could_not_be_started_is_refused_and_forgotten),
		cmocka_unit_test(
		    what_a_snapshot_said_runs_and_could_not_be_started_leads_to_another_snapshot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
