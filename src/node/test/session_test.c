/* session_test.c - the scheduler's half: connections, numbers, orders, silence */
#include "node/test/side.h"

SIDE_TEST(hello_is_welcomed_with_a_lease_that_counts_from_when_it_was_sent)
{
	hello(side, 1);
	struct message *welcome = sent(side, MESSAGE_WELCOME);
	assert_int_equal(welcome->term, 5);
	assert_int_equal(welcome->renewal.sent_ms, 77);
	assert_int_equal(welcome->renewal.lease_ms, side->policy.lease_ms);
	assert_false(session_is_synced(side->session));
}

SIDE_TEST(a_snapshot_is_a_report_and_is_acknowledged_when_it_is_stored)
{
	connect_node(side);
	assert_true(command(side, COMMAND_NODE_REPORT)->report.snapshot);
	assert_string_equal(command(side, COMMAND_NODE_REPORT)->report.boot, "boot-1");
	assert_null(sent(side, MESSAGE_ACK));
	stored(side, 1);
	assert_int_equal(sent(side, MESSAGE_ACK)->acknowledged, 1);
	assert_true(session_is_synced(side->session));
}

SIDE_TEST(a_change_comes_into_the_core_once_however_often_it_is_sent)
{
	connect_node(side);
	struct change what = { .kind = CHANGE_STARTED, .reservation_id = 7 };
	change(side, what);
	assert_int_equal(command(side, COMMAND_TASK_STARTED)->task.reservation_id, 7);
	side->changes--;
	change(side, what);
	assert_int_equal(commands(side), 0);
	assert_non_null(sent(side, MESSAGE_ACK));
}

SIDE_TEST(a_change_that_comes_too_early_is_left_until_it_is_its_turn)
{
	connect_node(side);
	side->changes++;
	change(side, (struct change){ .kind = CHANGE_STARTED, .reservation_id = 7 });
	assert_int_equal(commands(side), 0);
}

SIDE_TEST(a_change_for_people_is_acknowledged_when_those_before_it_are_stored)
{
	connect_node(side);
	change(side, (struct change){ .kind = CHANGE_LATE, .reservation_id = 7 });
	assert_int_equal(commands(side), 0);
	assert_int_equal(side->outputs.at[0].kind, SESSION_NOTE);
	assert_null(sent(side, MESSAGE_ACK));
	stored(side, 1);
	assert_int_equal(sent(side, MESSAGE_ACK)->acknowledged, 2);
}

SIDE_TEST(orders_are_numbered_and_carry_what_the_core_said)
{
	connect_node(side);
	order(side, EFFECT_START, 7);
	struct message *message = sent(side, MESSAGE_ORDER);
	assert_int_equal(message->number, 1);
	assert_int_equal(message->term, 5);
	assert_string_equal(message->boot, "boot-1");
	assert_int_equal(message->order.kind, ORDER_START);
	assert_string_equal(message->order.parts[0].uuid, "gpu-a");
	assert_int_equal(message->order.parts[0].memory_mib, 1000);
	assert_true(message->order.parts[0].whole);
	assert_int_equal(message->order.lease_loss, LEASE_STOP);
	assert_string_equal(message->order.payload, "train");
	order(side, EFFECT_LOAD, 8);
	assert_int_equal(sent(side, MESSAGE_ORDER)->number, 2);
	assert_string_equal(sent(side, MESSAGE_ORDER)->order.model, "llama");
	order(side, EFFECT_STOP, 7);
	assert_int_equal(sent(side, MESSAGE_ORDER)->order.kind, ORDER_STOP);
	assert_int_equal(sent(side, MESSAGE_ORDER)->order.grace_ms, 11);
}

/* It may have been made before the order came, however late it is taken. */
SIDE_TEST(a_snapshot_comes_with_the_orders_that_it_may_not_know_of)
{
	connect_node(side);
	order(side, EFFECT_START, 7);
	order(side, EFFECT_LOAD, 8);
	order(side, EFFECT_STOP, 7);
	struct message heard = head(side, MESSAGE_ACK);
	heard.acknowledged = 3;
	say(side, heard);
	snapshot(side);
	const struct node_report_command *report = &command(side, COMMAND_NODE_REPORT)->report;
	assert_int_equal(report->coming_count, 2);
	assert_int_equal(report->coming[0], 7);
	assert_int_equal(report->coming[1], 8);
	struct message later = head(side, MESSAGE_CHANGE);
	later.number = ++side->changes;
	later.acknowledged = 1;
	later.change = (struct change){ .kind = CHANGE_STARTED, .reservation_id = 7 };
	say(side, later);
	snapshot(side);
	report = &command(side, COMMAND_NODE_REPORT)->report;
	assert_int_equal(report->coming_count, 1);
	assert_int_equal(report->coming[0], 8);
	connect_node(side);
	assert_int_equal(command(side, COMMAND_NODE_REPORT)->report.coming_count, 0);
}

SIDE_TEST(an_order_is_sent_again_until_it_is_acknowledged)
{
	connect_node(side);
	order(side, EFFECT_START, 7);
	time_passes(side, side->policy.resend_ms - 1);
	assert_null(sent(side, MESSAGE_ORDER));
	time_passes(side, 1);
	assert_int_equal(sent(side, MESSAGE_ORDER)->number, 1);
	struct message ack = head(side, MESSAGE_ACK);
	ack.acknowledged = 1;
	say(side, ack);
	time_passes(side, side->policy.resend_ms);
	assert_null(sent(side, MESSAGE_ORDER));
}

SIDE_TEST(an_order_for_a_node_that_has_not_reported_is_dropped)
{
	hello(side, 1);
	order(side, EFFECT_START, 7);
	assert_int_equal(side->outputs.count, 0);
}

SIDE_TEST(an_acknowledgement_says_how_many_orders_were_given_before_it)
{
	connect_node(side);
	order(side, EFFECT_START, 7);
	order(side, EFFECT_STOP, 7);
	stored(side, 1);
	assert_int_equal(sent(side, MESSAGE_ACK)->issued, 2);
}

SIDE_TEST(a_new_connection_begins_with_new_numbers_and_a_new_snapshot)
{
	connect_node(side);
	order(side, EFFECT_START, 7);
	hello(side, 2);
	assert_false(session_is_synced(side->session));
	time_passes(side, side->policy.resend_ms);
	assert_null(sent(side, MESSAGE_ORDER));
	snapshot(side);
	order(side, EFFECT_START, 7);
	assert_int_equal(sent(side, MESSAGE_ORDER)->number, 1);
}

SIDE_TEST(what_was_stored_of_another_connection_is_not_acknowledged_on_this_one)
{
	connect_node(side);
	connect_node(side);
	session_outputs_clear(&side->outputs);
	session_stored(side->session, side->now_ms, 1, 1, &side->outputs);
	assert_int_equal(side->outputs.count, 0);
}

SIDE_TEST(an_older_connection_is_refused_and_told_which_number_to_exceed)
{
	hello(side, 9);
	hello(side, 4);
	assert_int_equal(sent(side, MESSAGE_REFUSE)->refusal.connection, 9);
	assert_int_equal(session_connection(side->session), 9);
}

SIDE_TEST(a_connection_that_this_scheduler_never_had_is_told_to_begin_anew)
{
	side->connection = 3;
	beat(side, 0, 40, true, NULL);
	assert_int_equal(sent(side, MESSAGE_REFUSE)->connection, 3);
	assert_int_equal(commands(side), 0);
}

SIDE_TEST(a_node_that_saw_a_newer_scheduler_is_not_welcomed)
{
	side->connection = 1;
	struct message message = head(side, MESSAGE_HELLO);
	message.hello = (struct hello){ "node-1", NODE_PROTOCOL, 0 };
	message.term = 6;
	say(side, message);
	assert_null(sent(side, MESSAGE_WELCOME));
	assert_non_null(strstr(sent(side, MESSAGE_REFUSE)->refusal.message, "term 6"));
}

SIDE_TEST(a_report_that_the_core_refuses_ends_the_connection)
{
	struct error error = { ERROR_CONFLICT, "GPU gpu-a is on another node" };

	connect_node(side);
	session_outputs_clear(&side->outputs);
	session_refused(side->session, side->now_ms, 1, &error, &side->outputs);
	assert_string_equal(sent(side, MESSAGE_REFUSE)->refusal.message, error.text);
	assert_int_equal(session_connection(side->session), 0);
}

SIDE_TEST(a_silent_node_is_unknown_and_online_again_with_its_next_beat)
{
	connect_node(side);
	time_passes(side, side->policy.silent_ms - 1);
	assert_int_equal(commands(side), 0);
	time_passes(side, 1);
	assert_int_equal(command(side, COMMAND_NODE_STATE)->node_state.state, NODE_UNKNOWN);
	assert_string_equal(command(side, COMMAND_NODE_STATE)->node_state.name, "node-1");
	beat(side, 0, 40, true, NULL);
	assert_int_equal(command(side, COMMAND_NODE_STATE)->node_state.state, NODE_ONLINE);
}

static int64_t until_lost_ms(const struct side *side)
{
	return side->policy.lease_ms + side->policy.grace_ms + side->policy.margin_ms;
}

SIDE_TEST(a_node_is_lost_when_lease_grace_and_margin_passed_since_the_last_renewal)
{
	connect_node(side);
	side->now_ms += side->policy.standing_ms;
	time_passes(side, 0);
	beat(side, 0, 40, true, NULL);
	time_passes(side, until_lost_ms(side) - 1);
	assert_int_equal(command(side, COMMAND_NODE_STATE)->node_state.state, NODE_UNKNOWN);
	time_passes(side, 1);
	assert_int_equal(command(side, COMMAND_NODE_STATE)->node_state.state, NODE_LOST);
}

SIDE_TEST(a_scheduler_that_took_over_waits_for_what_the_one_before_may_have_renewed)
{
	time_passes(side, side->policy.standing_ms + until_lost_ms(side) - 1);
	assert_int_equal(command(side, COMMAND_NODE_STATE)->node_state.state, NODE_UNKNOWN);
	time_passes(side, 1);
	assert_int_equal(command(side, COMMAND_NODE_STATE)->node_state.state, NODE_LOST);
}

SIDE_TEST(a_node_that_was_lost_comes_back_only_with_a_new_snapshot)
{
	connect_node(side);
	time_passes(side, side->policy.standing_ms + until_lost_ms(side));
	beat(side, 0, 40, true, NULL);
	assert_int_equal(commands(side), 0);
	assert_non_null(sent(side, MESSAGE_REFUSE));
	connect_node(side);
	assert_non_null(command(side, COMMAND_NODE_REPORT));
}

SIDE_TEST(a_node_that_was_declared_dead_and_lives_has_to_report_anew)
{
	connect_node(side);
	session_outputs_clear(&side->outputs);
	session_given_up(side->session, "declared dead", &side->outputs);
	assert_string_equal(sent(side, MESSAGE_REFUSE)->refusal.message, "declared dead");
	beat(side, 0, 40, true, NULL);
	assert_int_equal(commands(side), 0);
	connect_node(side);
	assert_non_null(command(side, COMMAND_NODE_REPORT));
}

SIDE_TEST(a_scheduler_that_may_not_be_the_active_one_renews_nothing)
{
	connect_node(side);
	side->now_ms += side->policy.standing_ms + 1;
	session_outputs_clear(&side->outputs);
	session_time(side->session, side->now_ms, 0, &side->outputs);
	beat(side, 0, 40, true, NULL);
	assert_int_equal(sent(side, MESSAGE_RENEW)->renewal.lease_ms, 0);
}

SIDE_TEST(it_wakes_when_the_node_would_be_silent)
{
	connect_node(side);
	assert_int_equal(session_wake_ms(side->session), side->now_ms + side->policy.silent_ms);
}

SIDE_TEST(what_is_durable_is_acknowledged_together_after_a_while)
{
	side->policy.acknowledge_ms = 50;
	session_delete(side->session);
	side->session = session_new("node-1", false, 5, side->now_ms, &side->policy);
	connect_node(side);
	stored(side, 1);
	assert_null(sent(side, MESSAGE_ACK));
	change(side, (struct change){ .kind = CHANGE_STARTED, .reservation_id = 7 });
	stored(side, 2);
	assert_null(sent(side, MESSAGE_ACK));
	assert_int_equal(session_wake_ms(side->session), side->now_ms + 50);
	side->now_ms += 50;
	session_outputs_clear(&side->outputs);
	session_time(side->session, side->now_ms, side->now_ms, &side->outputs);
	assert_int_equal(sent(side, MESSAGE_ACK)->acknowledged, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_durable_is_acknowledged_together_after_a_while),
		cmocka_unit_test(hello_is_welcomed_with_a_lease_that_counts_from_when_it_was_sent),
		cmocka_unit_test(a_snapshot_is_a_report_and_is_acknowledged_when_it_is_stored),
		cmocka_unit_test(a_change_comes_into_the_core_once_however_often_it_is_sent),
		cmocka_unit_test(a_change_that_comes_too_early_is_left_until_it_is_its_turn),
		cmocka_unit_test(
		    a_change_for_people_is_acknowledged_when_those_before_it_are_stored),
		cmocka_unit_test(orders_are_numbered_and_carry_what_the_core_said),
		cmocka_unit_test(a_snapshot_comes_with_the_orders_that_it_may_not_know_of),
		cmocka_unit_test(an_order_is_sent_again_until_it_is_acknowledged),
		cmocka_unit_test(an_order_for_a_node_that_has_not_reported_is_dropped),
		cmocka_unit_test(an_acknowledgement_says_how_many_orders_were_given_before_it),
		cmocka_unit_test(a_new_connection_begins_with_new_numbers_and_a_new_snapshot),
		cmocka_unit_test(
		    what_was_stored_of_another_connection_is_not_acknowledged_on_this_one),
		cmocka_unit_test(an_older_connection_is_refused_and_told_which_number_to_exceed),
		cmocka_unit_test(a_connection_that_this_scheduler_never_had_is_told_to_begin_anew),
		cmocka_unit_test(a_node_that_saw_a_newer_scheduler_is_not_welcomed),
		cmocka_unit_test(a_report_that_the_core_refuses_ends_the_connection),
		cmocka_unit_test(a_silent_node_is_unknown_and_online_again_with_its_next_beat),
		cmocka_unit_test(
		    a_node_is_lost_when_lease_grace_and_margin_passed_since_the_last_renewal),
		cmocka_unit_test(
		    a_scheduler_that_took_over_waits_for_what_the_one_before_may_have_renewed),
		cmocka_unit_test(a_node_that_was_lost_comes_back_only_with_a_new_snapshot),
		cmocka_unit_test(a_node_that_was_declared_dead_and_lives_has_to_report_anew),
		cmocka_unit_test(a_scheduler_that_may_not_be_the_active_one_renews_nothing),
		cmocka_unit_test(it_wakes_when_the_node_would_be_silent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
