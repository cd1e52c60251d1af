/* session_test.c - the scheduler's half: what a node says becomes commands, once */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "node/session.h"

/* A session of term 5 with node-1, which says what the test wants. */
struct side {
	struct session *session;
	struct session_policy policy;
	struct session_outputs outputs;
	struct arena arena;
	int64_t now_ms, connection, changes;
	struct device devices[1];
};

static struct side *side_new(bool known)
{
	struct side *side = NEW(struct side);

	side->policy = session_policy_default();
	side->now_ms = 500000;
	side->session = session_new("node-1", known, 5, side->now_ms, &side->policy);
	side->devices[0] = (struct device){ .uuid = "gpu-a",
		                            .model = "H100",
		                            .capacity_mib = 80000,
		                            .temperature_c = 40,
		                            .healthy = true };
	return side;
}

static void side_free(struct side *side)
{
	session_delete(side->session);
	session_outputs_free(&side->outputs);
	arena_free(&side->arena);
	free(side);
}

static struct message head(const struct side *side, enum message_kind kind)
{
	return (struct message){ .kind = (int32_t)kind,
		                 .boot = "boot-1",
		                 .connection = side->connection };
}

static void say(struct side *side, struct message message)
{
	session_outputs_clear(&side->outputs);
	session_message(side->session, side->now_ms, &message, &side->outputs);
}

static void hello(struct side *side, int64_t connection)
{
	side->connection = connection;
	side->changes = 0;
	struct message message = head(side, MESSAGE_HELLO);
	message.hello = (struct hello){ "node-1", NODE_PROTOCOL, 77 };
	say(side, message);
}

static void snapshot(struct side *side)
{
	struct message message = head(side, MESSAGE_SNAPSHOT);

	message.number = ++side->changes;
	message.snapshot = (struct node_report_command){ .name = "node-1",
		                                         .boot = "boot-1",
		                                         .devices = side->devices,
		                                         .device_count = 1,
		                                         .snapshot = true };
	say(side, message);
}

static void connect_node(struct side *side)
{
	hello(side, side->connection + 1);
	snapshot(side);
}

static void change(struct side *side, struct change what)
{
	struct message message = head(side, MESSAGE_CHANGE);

	message.number = ++side->changes;
	message.change = what;
	say(side, message);
}

static void beat(struct side *side, int64_t foreign_mib, int64_t temperature_c, bool healthy,
                 const struct use_sample *use)
{
	struct message message = head(side, MESSAGE_BEAT);
	struct gpu_sample sample = { .uuid = "gpu-a",
		                     .foreign_mib = foreign_mib,
		                     .temperature_c = temperature_c,
		                     .healthy = healthy };

	message.beat = (struct beat){ .sent_ms = side->now_ms,
		                      .samples = &sample,
		                      .sample_count = 1,
		                      .uses = use,
		                      .use_count = use ? 1 : 0 };
	say(side, message);
}

static int commands(const struct side *side)
{
	int count = 0;

	for (size_t i = 0; i < side->outputs.count; i++)
		count += side->outputs.at[i].kind == SESSION_COMMAND;
	return count;
}

static const struct command *command(const struct side *side, enum command_kind kind)
{
	for (size_t i = 0; i < side->outputs.count; i++)
		if (side->outputs.at[i].kind == SESSION_COMMAND &&
		    side->outputs.at[i].command->kind == kind)
			return side->outputs.at[i].command;
	return NULL;
}

/* The last message of this kind that was sent, or NULL. */
static struct message *sent(struct side *side, enum message_kind kind)
{
	struct error error = { 0 };

	for (size_t i = side->outputs.count; i-- > 0;) {
		const struct session_output *output = &side->outputs.at[i];
		if (output->kind != SESSION_SEND)
			continue;
		struct message *message =
		    message_decode(&side->arena, output->data, output->size, &error);
		assert_non_null(message);
		if (message->kind == (int32_t)kind)
			return message;
	}
	return NULL;
}

static void stored(struct side *side, int64_t number)
{
	session_outputs_clear(&side->outputs);
	session_stored(side->session, side->now_ms, side->connection, number, &side->outputs);
}

static void time_passes(struct side *side, int64_t ms)
{
	side->now_ms += ms;
	session_outputs_clear(&side->outputs);
	session_time(side->session, side->now_ms, side->now_ms, &side->outputs);
}

static const char *a_uuid(void *context, int64_t gpu_id)
{
	(void)context;
	return gpu_id == 3 ? "gpu-a" : NULL;
}
static const char *a_payload(void *context, int64_t job_id, int64_t task)
{
	(void)context;
	(void)job_id;
	(void)task;
	return "train";
}
static const char *a_name(void *context, int64_t model_id)
{
	(void)context;
	(void)model_id;
	return "llama";
}
static const struct session_lookup lookup = { a_uuid, a_payload, a_name, a_name, NULL };

static void order(struct side *side, enum effect_kind kind, int64_t reservation_id)
{
	static const int64_t rows[PART_WIDTH] = {
		[PART_GPU] = 3, [PART_MIB] = 1000, [PART_SHARE] = 13, [PART_WHOLE] = 1
	};
	struct effect effect = { .kind = kind };

	if (kind == EFFECT_LOAD)
		effect.load = (struct load_order){ .reservation_id = reservation_id,
			                           .model_id = 2,
			                           .parts = { rows, 1 },
			                           .kv_cache = "",
			                           .command = "" };
	else
		effect.order = (struct task_order){ .reservation_id = reservation_id,
			                            .job_id = 9,
			                            .parts = { rows, 1 },
			                            .grace_ms = 11,
			                            .lease_loss = LEASE_STOP };
	session_outputs_clear(&side->outputs);
	session_order(side->session, side->now_ms, &effect, &lookup, &side->outputs);
}

#define SIDE_TEST(name)                                                                            \
	static void name##_on(struct side *side);                                                  \
	static void name(void **state)                                                             \
	{                                                                                          \
		struct side *side = side_new(true);                                                \
		(void)state;                                                                       \
		name##_on(side);                                                                   \
		side_free(side);                                                                   \
	}                                                                                          \
	static void name##_on(struct side *side)

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

SIDE_TEST(what_happens_to_tasks_and_slots_becomes_their_commands)
{
	connect_node(side);
	change(side, (struct change){ .kind = CHANGE_EXITED, .reservation_id = 7, .exit_code = 3 });
	assert_int_equal(command(side, COMMAND_TASK_EXITED)->task.exit_code, 3);
	change(side, (struct change){ .kind = CHANGE_RELEASED, .reservation_id = 7 });
	assert_non_null(command(side, COMMAND_MEMORY_RELEASED));
	change(side, (struct change){ .kind = CHANGE_CHECKPOINT, .reservation_id = 7 });
	assert_non_null(command(side, COMMAND_TASK_CHECKPOINT));
	change(side, (struct change){ .kind = CHANGE_STARTED, .reservation_id = 8, .slot = true });
	assert_non_null(command(side, COMMAND_SLOT_LOADING));
	change(side,
	       (struct change){
		   .kind = CHANGE_READY, .reservation_id = 8, .slot = true, .address = "here" });
	assert_string_equal(command(side, COMMAND_SLOT_READY)->slot.address, "here");
	change(side,
	       (struct change){
		   .kind = CHANGE_EXITED, .reservation_id = 8, .slot = true, .message = "why" });
	assert_false(command(side, COMMAND_SLOT_EXITED)->slot.released);
	change(side, (struct change){ .kind = CHANGE_RELEASED, .reservation_id = 8, .slot = true });
	assert_non_null(command(side, COMMAND_MEMORY_RELEASED));
}

SIDE_TEST(a_refusal_first_tells_the_core_what_was_measured)
{
	struct gpu_sample sample = { .uuid = "gpu-a", .foreign_mib = 5, .healthy = true };

	connect_node(side);
	change(side, (struct change){ .kind = CHANGE_REFUSED,
	                              .reservation_id = 7,
	                              .message = "no room",
	                              .samples = &sample,
	                              .sample_count = 1 });
	assert_int_equal(commands(side), 2);
	assert_int_equal(command(side, COMMAND_GPU_REPORT)->gpu.foreign_mib, 5);
	assert_string_equal(command(side, COMMAND_TASK_REFUSED)->task.message, "no room");
	change(side, (struct change){ .kind = CHANGE_REFUSED, .reservation_id = 8, .slot = true });
	assert_true(command(side, COMMAND_SLOT_EXITED)->slot.released);
}

SIDE_TEST(a_thousand_beats_that_say_nothing_new_are_no_commands)
{
	connect_node(side);
	for (int i = 0; i < 1000; i++) {
		side->now_ms += 1000;
		beat(side, 0, 40 + i % 30, true, NULL);
		assert_int_equal(commands(side), 0);
		assert_int_equal(sent(side, MESSAGE_RENEW)->renewal.sent_ms, side->now_ms);
	}
}

SIDE_TEST(foreign_memory_is_told_when_it_moved_by_more_than_a_step_or_is_gone)
{
	connect_node(side);
	beat(side, 1000, 40, true, NULL);
	assert_int_equal(command(side, COMMAND_GPU_REPORT)->gpu.foreign_mib, 1000);
	beat(side, 1000 + side->policy.foreign_step_mib, 40, true, NULL);
	assert_int_equal(commands(side), 0);
	beat(side, 1001 + side->policy.foreign_step_mib, 40, true, NULL);
	assert_int_equal(commands(side), 1);
	beat(side, 3, 40, true, NULL);
	beat(side, 0, 40, true, NULL);
	assert_int_equal(commands(side), 1);
}

SIDE_TEST(temperature_is_told_only_when_it_crosses_from_cool_to_hot_or_back)
{
	connect_node(side);
	beat(side, 0, side->policy.hot_c - 1, true, NULL);
	assert_int_equal(commands(side), 0);
	beat(side, 0, side->policy.hot_c, true, NULL);
	assert_int_equal(commands(side), 1);
	beat(side, 0, side->policy.cool_c + 1, true, NULL);
	assert_int_equal(commands(side), 0);
	beat(side, 0, side->policy.cool_c, true, NULL);
	assert_int_equal(commands(side), 1);
}

SIDE_TEST(health_is_told_when_it_changes)
{
	connect_node(side);
	beat(side, 0, 40, false, NULL);
	assert_false(command(side, COMMAND_GPU_REPORT)->gpu.healthy);
	beat(side, 0, 40, false, NULL);
	assert_int_equal(commands(side), 0);
}

SIDE_TEST(use_is_told_only_when_it_is_more_than_reserved_or_was)
{
	struct use_sample use = { 7, "gpu-a", 900, 1000 };

	connect_node(side);
	beat(side, 0, 40, true, &use);
	assert_int_equal(commands(side), 0);
	use.memory_mib = 1500;
	beat(side, 0, 40, true, &use);
	assert_int_equal(command(side, COMMAND_GPU_REPORT)->gpu.measurements[0].memory_mib, 1500);
	beat(side, 0, 40, true, &use);
	assert_int_equal(commands(side), 0);
	use.memory_mib = 900;
	beat(side, 0, 40, true, &use);
	assert_int_equal(command(side, COMMAND_GPU_REPORT)->gpu.measurements[0].memory_mib, 900);
}

SIDE_TEST(use_that_was_told_and_is_no_more_is_told)
{
	struct use_sample use = { 7, "gpu-a", 1500, 1000 };

	connect_node(side);
	beat(side, 0, 40, true, &use);
	beat(side, 0, 40, true, NULL);
	assert_int_equal(command(side, COMMAND_GPU_REPORT)->gpu.measurement_count, 0);
	beat(side, 0, 40, true, NULL);
	assert_int_equal(commands(side), 0);
}

SIDE_TEST(a_beat_that_was_overtaken_is_ignored)
{
	connect_node(side);
	beat(side, 1000, 40, true, NULL);
	side->now_ms -= 5;
	beat(side, 2000, 40, true, NULL);
	assert_int_equal(side->outputs.count, 0);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hello_is_welcomed_with_a_lease_that_counts_from_when_it_was_sent),
		cmocka_unit_test(a_snapshot_is_a_report_and_is_acknowledged_when_it_is_stored),
		cmocka_unit_test(a_change_comes_into_the_core_once_however_often_it_is_sent),
		cmocka_unit_test(a_change_that_comes_too_early_is_left_until_it_is_its_turn),
		cmocka_unit_test(
		    a_change_for_people_is_acknowledged_when_those_before_it_are_stored),
		cmocka_unit_test(what_happens_to_tasks_and_slots_becomes_their_commands),
		cmocka_unit_test(a_refusal_first_tells_the_core_what_was_measured),
		cmocka_unit_test(a_thousand_beats_that_say_nothing_new_are_no_commands),
		cmocka_unit_test(
		    foreign_memory_is_told_when_it_moved_by_more_than_a_step_or_is_gone),
		cmocka_unit_test(temperature_is_told_only_when_it_crosses_from_cool_to_hot_or_back),
		cmocka_unit_test(health_is_told_when_it_changes),
		cmocka_unit_test(use_is_told_only_when_it_is_more_than_reserved_or_was),
		cmocka_unit_test(use_that_was_told_and_is_no_more_is_told),
		cmocka_unit_test(a_beat_that_was_overtaken_is_ignored),
		cmocka_unit_test(orders_are_numbered_and_carry_what_the_core_said),
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
