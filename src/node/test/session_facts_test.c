/* session_facts_test.c - what a node says becomes commands of the core, where it is news */
#include "node/test/side.h"

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
	change(side, (struct change){ .kind = CHANGE_READY,
	                              .reservation_id = 8,
	                              .slot = true,
	                              .address = "http://here:80" });
	assert_string_equal(command(side, COMMAND_SLOT_READY)->slot.address, "http://here:80");
	change(side,
	       (struct change){
		   .kind = CHANGE_EXITED, .reservation_id = 8, .slot = true, .message = "why" });
	assert_false(command(side, COMMAND_SLOT_EXITED)->slot.released);
	change(side, (struct change){ .kind = CHANGE_RELEASED, .reservation_id = 8, .slot = true });
	assert_non_null(command(side, COMMAND_MEMORY_RELEASED));
}

SIDE_TEST(what_a_task_used_and_when_it_ended_comes_with_its_end)
{
	connect_node(side);
	change(side, (struct change){ .kind = CHANGE_EXITED,
	                              .reservation_id = 7,
	                              .ago_ms = 500,
	                              .use = { .peak_mib = 10, .refusals = 2 } });
	const struct command *exited = command(side, COMMAND_TASK_EXITED);
	assert_int_equal(exited->task.ago_ms, 500);
	assert_int_equal(exited->task.use.peak_mib, 10);
	assert_int_equal(exited->task.use.refusals, 2);
}

SIDE_TEST(what_there_is_to_say_about_a_task_becomes_a_notice)
{
	connect_node(side);
	change(side, (struct change){
			 .kind = CHANGE_UNGUARDED, .reservation_id = 7, .message = "static" });
	const struct command *notice = command(side, COMMAND_TASK_NOTICE);
	assert_int_equal(notice->task.notice, NOTICE_UNGUARDED);
	assert_string_equal(notice->task.message, "static");
	change(side, (struct change){ .kind = CHANGE_IDLE, .reservation_id = 7 });
	assert_int_equal(command(side, COMMAND_TASK_NOTICE)->task.notice, NOTICE_IDLE);
	change(side, (struct change){ .kind = CHANGE_CROWDED, .reservation_id = 7 });
	assert_int_equal(command(side, COMMAND_TASK_NOTICE)->task.notice, NOTICE_CROWDED);
	change(side, (struct change){ .kind = CHANGE_OVER, .reservation_id = 8, .slot = true });
	assert_int_equal(commands(side), 0);
}

SIDE_TEST(an_agent_of_the_protocol_before_is_welcome)
{
	side->connection = 1;
	struct message message = head(side, MESSAGE_HELLO);
	message.hello = (struct hello){ "node-1", NODE_PROTOCOL_LEAST, 77 };
	say(side, message);
	assert_non_null(sent(side, MESSAGE_WELCOME));
	message.connection = 2;
	message.hello.protocol = NODE_PROTOCOL + 1;
	say(side, message);
	assert_non_null(sent(side, MESSAGE_REFUSE));
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

/* Hot from 5 degrees below the slowdown temperature on; side->devices has one GPU. */
SIDE_TEST(without_a_threshold_heat_is_told_by_the_slowdown_temperature)
{
	static const int64_t slowdowns_c[] = { 90 };

	side->policy.hot_c = side->policy.cool_c = 0;
	session_delete(side->session);
	side->session = session_new("node-1", true, 5, side->now_ms, &side->policy);
	side->slowdowns_c = (struct rows){ slowdowns_c, 1 };
	connect_node(side);
	beat(side, 0, 84, true, NULL);
	assert_int_equal(commands(side), 0);
	beat(side, 0, 85, true, NULL);
	assert_int_equal(commands(side), 1);
	beat(side, 0, 81, true, NULL);
	assert_int_equal(commands(side), 0);
	beat(side, 0, 80, true, NULL);
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

SIDE_TEST(whatever_a_node_says_names_the_node)
{
	struct gpu_sample sample = { .uuid = "gpu-b", .healthy = true };

	connect_node(side);
	for (int32_t kind = 0; kind < CHANGE_KINDS; kind++) {
		for (int slot = 0; slot < 2; slot++) {
			change(side, (struct change){ .kind = kind,
			                              .reservation_id = 7,
			                              .slot = slot == 1,
			                              .address = "http://here:80",
			                              .samples = &sample,
			                              .sample_count = 1 });
			for (size_t i = 0; i < side->outputs.count; i++) {
				const struct command *made = side->outputs.at[i].command;
				if (!made)
					continue;
				bool of_gpu = made->kind == COMMAND_GPU_REPORT;
				bool of_slot = made->kind == COMMAND_SLOT_LOADING ||
				               made->kind == COMMAND_SLOT_READY ||
				               made->kind == COMMAND_SLOT_EXITED;
				assert_string_equal(of_gpu    ? made->gpu.node
				                    : of_slot ? made->slot.node
				                              : made->task.node,
				                    "node-1");
			}
		}
	}
	beat(side, 5000, 40, true, NULL);
	assert_string_equal(command(side, COMMAND_GPU_REPORT)->gpu.node, "node-1");
}

static const char *reason(const struct side *side)
{
	for (size_t i = 0; i < side->outputs.count; i++)
		if (side->outputs.at[i].kind == SESSION_MISREPORT)
			return side->outputs.at[i].reason;
	return NULL;
}

static void be_strict(struct side *side)
{
	static const struct address_rules rules = { NULL, 0, NULL };

	session_delete(side->session);
	side->policy.addresses = &rules;
	side->session = session_new("node-1", true, 5, side->now_ms, &side->policy);
	session_set_peer(side->session, "10.0.0.7");
}

SIDE_TEST(a_slot_is_reached_at_its_own_node_whatever_that_announces)
{
	struct change ready = { .kind = CHANGE_READY,
		                .reservation_id = 8,
		                .slot = true,
		                .address = "http://node-1:80" };

	be_strict(side);
	connect_node(side);
	change(side, ready);
	assert_string_equal(command(side, COMMAND_SLOT_READY)->slot.address, "http://node-1:80");
	assert_null(reason(side));
	ready.address = "http://evil.example:666";
	change(side, ready);
	assert_string_equal(command(side, COMMAND_SLOT_READY)->slot.address, "http://10.0.0.7:666");
	assert_non_null(strstr(reason(side), "http://10.0.0.7:666 is used instead"));
	ready.address = "http://node-1:80@evil.example:666";
	change(side, ready);
	assert_int_equal(commands(side), 0);
	assert_non_null(strstr(reason(side), "is not http://HOST:PORT"));
}

SIDE_TEST(a_snapshot_with_the_host_of_another_is_corrected)
{
	const struct slot_report slots[] = { { 8, "m", "http://evil.example:666", true },
		                             { 9, "m", "file:///etc/passwd", true },
		                             { 10, "m", "", false } };

	be_strict(side);
	hello(side, 1);
	struct message message = head(side, MESSAGE_SNAPSHOT);
	message.number = ++side->changes;
	message.snapshot = (struct node_report_command){ .name = "node-1",
		                                         .boot = "boot-1",
		                                         .labels = "address=evil\ndisk=ssd",
		                                         .devices = side->devices,
		                                         .device_count = 1,
		                                         .slots = slots,
		                                         .slot_count = 3,
		                                         .snapshot = true };
	say(side, message);
	const struct node_report_command *report = &command(side, COMMAND_NODE_REPORT)->report;
	assert_string_equal(report->labels, "address=10.0.0.7\ndisk=ssd");
	assert_int_equal(report->slot_count, 3);
	assert_true(report->slots[0].ready);
	assert_string_equal(report->slots[0].address, "http://10.0.0.7:666");
	assert_false(report->slots[1].ready);
	assert_string_equal(report->slots[1].address, "");
	assert_false(report->slots[2].ready);
	assert_non_null(reason(side));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_happens_to_tasks_and_slots_becomes_their_commands),
		cmocka_unit_test(what_a_task_used_and_when_it_ended_comes_with_its_end),
		cmocka_unit_test(what_there_is_to_say_about_a_task_becomes_a_notice),
		cmocka_unit_test(an_agent_of_the_protocol_before_is_welcome),
		cmocka_unit_test(a_refusal_first_tells_the_core_what_was_measured),
		cmocka_unit_test(a_thousand_beats_that_say_nothing_new_are_no_commands),
		cmocka_unit_test(
		    foreign_memory_is_told_when_it_moved_by_more_than_a_step_or_is_gone),
		cmocka_unit_test(temperature_is_told_only_when_it_crosses_from_cool_to_hot_or_back),
		cmocka_unit_test(without_a_threshold_heat_is_told_by_the_slowdown_temperature),
		cmocka_unit_test(health_is_told_when_it_changes),
		cmocka_unit_test(use_is_told_only_when_it_is_more_than_reserved_or_was),
		cmocka_unit_test(use_that_was_told_and_is_no_more_is_told),
		cmocka_unit_test(a_beat_that_was_overtaken_is_ignored),
		cmocka_unit_test(whatever_a_node_says_names_the_node),
		cmocka_unit_test(a_slot_is_reached_at_its_own_node_whatever_that_announces),
		cmocka_unit_test(a_snapshot_with_the_host_of_another_is_corrected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
