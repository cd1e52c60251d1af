/* starts_test.c - start orders of one node: how many are under way, and whose turn it is */
#include "node/test/side.h"

/* A session with room for `most` starts, and a node that has reported. */
static void bounded(struct side *side, int64_t most)
{
	side->policy.starts_max = most;
	session_delete(side->session);
	side->session = session_new("node-1", true, 5, side->now_ms, &side->policy);
	connect_node(side);
}

static void start_for(struct side *side, int64_t tenant_id, int64_t reservation_id)
{
	struct effect effect = { .kind = EFFECT_START };

	effect.order = (struct task_order){ .reservation_id = reservation_id,
		                            .job_id = reservation_id,
		                            .tenant_id = tenant_id,
		                            .lease_loss = LEASE_KEEP };
	session_outputs_clear(&side->outputs);
	session_order(side->session, side->now_ms, &effect, &lookup, &side->outputs);
}

static void load_for(struct side *side, int64_t tenant_id, int64_t reservation_id)
{
	char command[] = "serve", kv_cache[] = "fp8";
	struct effect effect = { .kind = EFFECT_LOAD };

	effect.load = (struct load_order){ .reservation_id = reservation_id,
		                           .model_id = 2,
		                           .tenant_id = tenant_id,
		                           .kv_cache = kv_cache,
		                           .command = command };
	session_outputs_clear(&side->outputs);
	session_order(side->session, side->now_ms, &effect, &lookup, &side->outputs);
	memset(command, 'x', sizeof(command) - 1);
}

/* The reservation of the order that was sent last; 0: none was. */
static int64_t ordered(struct side *side)
{
	const struct message *message = sent(side, MESSAGE_ORDER);

	return message ? message->order.reservation_id : 0;
}

static void starts_tell(struct side *side, enum change_kind kind, int64_t reservation_id)
{
	change(side, (struct change){ .kind = (int32_t)kind, .reservation_id = reservation_id });
}

SIDE_TEST(no_more_starts_than_the_bound_are_under_way)
{
	bounded(side, 2);
	start_for(side, 1, 11);
	assert_int_equal(ordered(side), 11);
	start_for(side, 1, 12);
	assert_int_equal(ordered(side), 12);
	start_for(side, 1, 13);
	assert_int_equal(ordered(side), 0);
	starts_tell(side, CHANGE_STARTED, 12);
	assert_int_equal(ordered(side), 13);
}

SIDE_TEST(a_start_that_is_refused_or_ends_makes_room_for_the_next)
{
	bounded(side, 1);
	start_for(side, 1, 11);
	start_for(side, 1, 12);
	start_for(side, 1, 13);
	starts_tell(side, CHANGE_REFUSED, 11);
	assert_int_equal(ordered(side), 12);
	starts_tell(side, CHANGE_EXITED, 12);
	assert_int_equal(ordered(side), 13);
	starts_tell(side, CHANGE_RELEASED, 12);
	assert_int_equal(ordered(side), 0);
}

SIDE_TEST(a_flood_of_one_tenant_is_not_in_front_of_anothers_start)
{
	bounded(side, 2);
	for (int64_t i = 0; i < 1000; i++)
		start_for(side, 1, 100 + i);
	start_for(side, 2, 5000);
	assert_int_equal(ordered(side), 0);
	starts_tell(side, CHANGE_STARTED, 100);
	assert_int_equal(ordered(side), 5000);
	starts_tell(side, CHANGE_STARTED, 101);
	assert_int_equal(ordered(side), 102);
}

SIDE_TEST(tenants_take_turns_and_each_keeps_its_own_order)
{
	static const int64_t expected[] = { 21, 31, 12, 22, 32, 13 };

	bounded(side, 1);
	for (int64_t i = 1; i <= 3; i++)
		start_for(side, 1, 10 + i);
	for (int64_t i = 1; i <= 2; i++)
		start_for(side, 2, 20 + i);
	for (int64_t i = 1; i <= 2; i++)
		start_for(side, 3, 30 + i);
	int64_t last = 11;
	for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
		starts_tell(side, CHANGE_STARTED, last);
		last = ordered(side);
		assert_int_equal(last, expected[i]);
	}
}

SIDE_TEST(a_model_takes_its_turn_with_all_that_the_core_said_of_it)
{
	bounded(side, 1);
	start_for(side, 1, 11);
	start_for(side, 1, 12);
	load_for(side, 2, 21);
	assert_int_equal(ordered(side), 0);
	starts_tell(side, CHANGE_STARTED, 11);
	assert_int_equal(ordered(side), 21);
	assert_string_equal(sent(side, MESSAGE_ORDER)->order.command, "serve");
	assert_string_equal(sent(side, MESSAGE_ORDER)->order.kv_cache, "fp8");
}

SIDE_TEST(a_start_that_is_held_and_stopped_is_never_sent)
{
	bounded(side, 1);
	start_for(side, 1, 11);
	start_for(side, 1, 12);
	order(side, EFFECT_STOP, 12);
	assert_int_equal(ordered(side), 12);
	assert_int_equal(sent(side, MESSAGE_ORDER)->order.kind, ORDER_STOP);
	starts_tell(side, CHANGE_STARTED, 11);
	assert_int_equal(ordered(side), 0);
}

SIDE_TEST(a_snapshot_comes_with_the_orders_that_are_held)
{
	bounded(side, 1);
	start_for(side, 2, 14);
	start_for(side, 2, 13);
	start_for(side, 1, 12);
	snapshot(side);
	const struct node_report_command *report = &command(side, COMMAND_NODE_REPORT)->report;
	assert_int_equal(report->coming_count, 3);
	assert_int_equal(report->coming[0], 14);
	assert_int_equal(report->coming[1], 12);
	assert_int_equal(report->coming[2], 13);
}

SIDE_TEST(a_start_that_a_snapshot_leaves_out_is_not_under_way_any_more)
{
	bounded(side, 1);
	start_for(side, 1, 11);
	start_for(side, 1, 12);
	struct message message = head(side, MESSAGE_SNAPSHOT);
	message.number = ++side->changes;
	message.acknowledged = 1;
	message.snapshot = (struct node_report_command){ .name = "node-1",
		                                         .boot = "boot-1",
		                                         .devices = side->devices,
		                                         .device_count = 1,
		                                         .snapshot = true };
	say(side, message);
	assert_int_equal(ordered(side), 12);
}

SIDE_TEST(what_has_ended_is_not_started_by_an_order_that_was_held_meanwhile)
{
	bounded(side, 1);
	start_for(side, 1, 11);
	starts_tell(side, CHANGE_REFUSED, 11);
	start_for(side, 1, 12);
	start_for(side, 1, 11); /* the core has not heard of the refusal */
	stored(side, side->changes);
	starts_tell(side, CHANGE_STARTED, 12);
	assert_int_equal(ordered(side), 0);
}

SIDE_TEST(orders_that_are_held_belong_to_a_connection)
{
	bounded(side, 1);
	start_for(side, 1, 11);
	start_for(side, 1, 12);
	connect_node(side);
	assert_int_equal(ordered(side), 0);
	assert_int_equal(command(side, COMMAND_NODE_REPORT)->report.coming_count, 0);
	start_for(side, 1, 13);
	assert_int_equal(ordered(side), 13);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_more_starts_than_the_bound_are_under_way),
		cmocka_unit_test(a_start_that_is_refused_or_ends_makes_room_for_the_next),
		cmocka_unit_test(a_flood_of_one_tenant_is_not_in_front_of_anothers_start),
		cmocka_unit_test(tenants_take_turns_and_each_keeps_its_own_order),
		cmocka_unit_test(a_model_takes_its_turn_with_all_that_the_core_said_of_it),
		cmocka_unit_test(a_start_that_is_held_and_stopped_is_never_sent),
		cmocka_unit_test(a_snapshot_comes_with_the_orders_that_are_held),
		cmocka_unit_test(a_start_that_a_snapshot_leaves_out_is_not_under_way_any_more),
		cmocka_unit_test(what_has_ended_is_not_started_by_an_order_that_was_held_meanwhile),
		cmocka_unit_test(orders_that_are_held_belong_to_a_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
