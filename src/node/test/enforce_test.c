/* enforce_test.c - work that uses too much or nothing, and slots that do not answer */
#include "node/test/desk.h"

static void run_over(struct desk *desk, enum overuse overuse)
{
	desk->policy.overuse = (int32_t)overuse;
	desk->policy.overuse_tolerance_mib = 0;
	desk_restart_with(desk, NULL, 0);
	desk_connect(desk);
	desk_run(desk, 7, 1000);
	desk_use(desk, 0, 7, 1500);
	desk_measure(desk);
}

DESK_TEST(a_task_that_uses_more_than_it_reserved_is_warned_once)
{
	run_over(desk, OVERUSE_WARN);
	assert_int_equal(desk_count(desk, OUTPUT_WARN, 7), 1);
	assert_string_equal(desk_change(desk, CHANGE_OVER)->message,
	                    "it uses 1500 MiB of GPU gpu-a and reserved 1000 MiB");
	desk_measure(desk);
	assert_int_equal(desk_count(desk, OUTPUT_WARN, 7), 0);
}

DESK_TEST(a_task_that_is_only_warned_runs_on)
{
	run_over(desk, OVERUSE_WARN);
	desk_renew(desk, 5000);
	desk_measure(desk);
	assert_int_equal(desk_phase(desk, 7), WORK_RUNNING);
}

DESK_TEST(by_policy_it_is_frozen_and_killed_when_it_lasts)
{
	run_over(desk, OVERUSE_STOP);
	desk->now_ms += 999;
	desk_measure(desk);
	assert_int_equal(desk_count(desk, OUTPUT_KILL, 7), 0);
	desk->now_ms += 1;
	desk_measure(desk);
	assert_true(desk_place(desk, OUTPUT_FREEZE) < desk_place(desk, OUTPUT_KILL));
	assert_int_equal(desk_count(desk, OUTPUT_KILL, 7), 1);
	desk_exit(desk, 7, 0);
	assert_int_equal(desk_change(desk, CHANGE_EXITED)->exit_code, 137);
	assert_int_equal(desk_change(desk, CHANGE_EXITED)->reason, END_OVER);
}

DESK_TEST(one_that_comes_down_again_is_not_stopped)
{
	run_over(desk, OVERUSE_STOP);
	desk_unuse(desk, 7, true);
	desk_use(desk, 0, 7, 900);
	desk_measure(desk);
	desk->now_ms += 1000;
	desk_unuse(desk, 7, true);
	desk_use(desk, 0, 7, 1500);
	desk_measure(desk);
	assert_int_equal(desk_phase(desk, 7), WORK_RUNNING);
	assert_int_equal(desk_count(desk, OUTPUT_WARN, 7), 1);
}

DESK_TEST(by_default_what_its_libraries_take_beyond_a_full_budget_is_tolerated)
{
	desk_connect(desk);
	desk_run(desk, 7, 1000);
	desk_use(desk, 0, 7, 1512);
	desk_measure(desk);
	assert_int_equal(desk_count(desk, OUTPUT_WARN, 7), 0);
	desk_use(desk, 0, 7, 1);
	desk_measure(desk);
	assert_int_equal(desk_count(desk, OUTPUT_WARN, 7), 1);
}

static void run_over_for_a_second(struct desk *desk, bool guarded)
{
	if (guarded)
		desk->guards[desk->guard_count++] = desk_guard(990, 2, 50);
	run_over(desk, (enum overuse)node_policy_default().overuse);
	desk->now_ms += 1000;
	desk_measure(desk);
}

DESK_TEST(by_default_one_that_has_a_guard_is_stopped)
{
	run_over_for_a_second(desk, true);
	assert_int_equal(desk_count(desk, OUTPUT_KILL, 7), 1);
}

DESK_TEST(by_default_one_without_a_guard_is_only_warned)
{
	run_over_for_a_second(desk, false);
	assert_int_equal(desk_count(desk, OUTPUT_KILL, 7), 0);
	assert_int_equal(desk_phase(desk, 7), WORK_RUNNING);
}

/* Half a second after another, and when one that exceeds its part is to be stopped. */
DESK_TEST(while_work_shares_a_gpu_it_is_measured_more_often)
{
	desk->policy.watch_ms = 500;
	desk->policy.beat_ms = 60000;
	desk->policy.overuse_stop_ms = 800;
	run_over(desk, OVERUSE_STOP);
	int64_t asked = desk->asked;
	desk->now_ms += 499;
	desk_apply(desk, (struct input){ .kind = INPUT_TIME });
	assert_int_equal(desk->asked, asked);
	assert_int_equal(node_wake_ms(desk->node), desk->now_ms + 1);
	desk->now_ms += 1;
	desk_apply(desk, (struct input){ .kind = INPUT_TIME });
	assert_int_equal(desk->asked, asked + 1);
	assert_int_equal(node_wake_ms(desk->node), desk->now_ms + 300);
	desk->now_ms += 300;
	desk_apply(desk, (struct input){ .kind = INPUT_TIME });
	desk_measure(desk);
	assert_int_equal(desk_count(desk, OUTPUT_KILL, 7), 1);
}

DESK_TEST(memory_of_a_gpu_that_was_not_given_to_it_is_overuse)
{
	desk->policy.overuse_tolerance_mib = 0;
	desk_restart_with(desk, NULL, 0);
	desk_connect(desk);
	desk_run(desk, 7, 1000);
	desk_use(desk, 1, 7, 10);
	desk_measure(desk);
	assert_int_equal(desk_count(desk, OUTPUT_WARN, 7), 1);
}

static void run_idle(struct desk *desk, int64_t idle_stop_ms)
{
	desk->policy.idle_ms = 4000;
	desk->policy.idle_stop_ms = idle_stop_ms;
	desk_restart_with(desk, NULL, 0);
	desk_connect(desk);
	desk_run(desk, 7, 1000);
	desk_measure(desk);
	desk->gpus[0].utilisation = 0;
	desk_renew(desk, 4000);
	desk_measure(desk);
}

DESK_TEST(gpus_that_are_held_and_not_used_are_told_once)
{
	run_idle(desk, 0);
	assert_int_equal(desk_change(desk, CHANGE_IDLE)->took_ms, 4000);
	assert_string_equal(desk_change(desk, CHANGE_IDLE)->message,
	                    "it holds GPUs and has not used them for 4 s");
	assert_int_equal(desk_count(desk, OUTPUT_WARN, 7), 1);
	desk_renew(desk, 4000);
	desk_measure(desk);
	assert_null(desk_change(desk, CHANGE_IDLE));
	assert_int_equal(desk_phase(desk, 7), WORK_RUNNING);
}

DESK_TEST(by_policy_idle_gpus_are_taken_back_after_notice)
{
	run_idle(desk, 3000);
	assert_string_equal(desk_change(desk, CHANGE_IDLE)->message,
	                    "it holds GPUs and has not used them for 4 s; if it stays idle, it is "
	                    "stopped in 3 s");
	desk_renew(desk, 3000);
	desk_measure(desk);
	assert_int_equal(desk_count(desk, OUTPUT_NOTICE, 7), 1);
	desk_exit(desk, 7, 0);
	assert_int_equal(desk_change(desk, CHANGE_EXITED)->reason, END_IDLE);
}

DESK_TEST(a_task_that_works_again_is_not_idle)
{
	run_idle(desk, 3000);
	desk->gpus[0].utilisation = 1;
	desk_measure(desk);
	desk->gpus[0].utilisation = 0;
	desk_renew(desk, 3000);
	desk_measure(desk);
	assert_int_equal(desk_phase(desk, 7), WORK_RUNNING);
}

DESK_TEST(a_task_that_somebody_works_in_is_not_idle)
{
	run_idle(desk, 3000);
	desk_event(desk, INPUT_SESSION, (struct work_event){ .reservation_id = 7 });
	desk_renew(desk, 3000);
	desk_measure(desk);
	assert_null(desk_change(desk, CHANGE_IDLE));
	assert_int_equal(desk_count(desk, OUTPUT_NOTICE, 7), 0);
	desk_renew(desk, 1000);
	desk_measure(desk);
	assert_non_null(desk_change(desk, CHANGE_IDLE));
}

static void enforce_load(struct desk *desk)
{
	struct order_part part = { .uuid = "gpu-a", .memory_mib = 20000 };
	struct node_order order = { .kind = ORDER_LOAD,
		                    .reservation_id = 5,
		                    .parts = &part,
		                    .part_count = 1,
		                    .grace_ms = 2000,
		                    .model = "llama",
		                    .load_timeout_ms = 8000 };

	desk_connect(desk);
	desk_order(desk, &order);
	desk_measure(desk);
	desk_event(desk, INPUT_STARTED, (struct work_event){ .reservation_id = 5, .pid = 105 });
}

static void load_ready(struct desk *desk)
{
	enforce_load(desk);
	desk_event(desk, INPUT_READY,
	           (struct work_event){ .reservation_id = 5, .address = "10.0.0.1:8000" });
}

DESK_TEST(a_slot_is_told_when_it_loads_and_when_it_is_ready)
{
	enforce_load(desk);
	assert_true(desk_change(desk, CHANGE_STARTED)->slot);
	desk_event(desk, INPUT_READY,
	           (struct work_event){ .reservation_id = 5, .address = "10.0.0.1:8000" });
	assert_string_equal(desk_change(desk, CHANGE_READY)->address, "10.0.0.1:8000");
}

DESK_TEST(a_snapshot_tells_slots_with_their_gpus_model_and_address)
{
	load_ready(desk);
	desk_connect(desk);
	const struct node_report_command *report = &desk_message(desk, MESSAGE_SNAPSHOT)->snapshot;
	assert_int_equal(report->slot_count, 1);
	assert_string_equal(report->slots[0].model, "llama");
	assert_string_equal(report->slots[0].address, "10.0.0.1:8000");
	assert_true(report->slots[0].ready);
	assert_int_equal(report->measurement_count, 1);
	assert_string_equal(report->measurements[0].uuid, "gpu-a");
}

DESK_TEST(a_slot_that_ends_is_told_as_running_only)
{
	load_ready(desk);
	desk_stop(desk, 5, 2000);
	desk_connect(desk);
	const struct message *snapshot = desk_message(desk, MESSAGE_SNAPSHOT);
	assert_int_equal(snapshot->snapshot.slot_count, 0);
	assert_true(snapshot_runs(snapshot, 5));
}

DESK_TEST(a_slot_that_takes_too_long_to_load_is_stopped)
{
	enforce_load(desk);
	desk_renew(desk, 7999);
	assert_int_equal(desk_count(desk, OUTPUT_NOTICE, 5), 0);
	desk_renew(desk, 1);
	assert_int_equal(desk_count(desk, OUTPUT_NOTICE, 5), 1);
	desk_exit(desk, 5, 143);
	assert_string_equal(desk_change(desk, CHANGE_EXITED)->message,
	                    "loading took longer than 8 s");
}

DESK_TEST(a_slot_that_fails_enough_checks_in_a_row_is_stopped)
{
	desk->policy.unhealthy_checks = 2;
	desk_restart_with(desk, NULL, 0);
	load_ready(desk);
	struct work_event sick = { .reservation_id = 5 };
	desk_event(desk, INPUT_HEALTH, sick);
	desk_event(desk, INPUT_HEALTH, (struct work_event){ .reservation_id = 5, .healthy = true });
	desk_event(desk, INPUT_HEALTH, sick);
	assert_int_equal(desk_phase(desk, 5), WORK_RUNNING);
	desk_event(desk, INPUT_HEALTH, sick);
	assert_int_equal(desk_count(desk, OUTPUT_NOTICE, 5), 1);
}

DESK_TEST(an_unload_is_confirmed_like_any_release)
{
	load_ready(desk);
	desk_use(desk, 0, 5, 15000);
	desk_measure(desk);
	desk_stop(desk, 5, 2000);
	desk_exit(desk, 5, 0);
	desk_unuse(desk, 5, false);
	desk_gone(desk, 5);
	desk_measure(desk);
	assert_null(desk_change(desk, CHANGE_RELEASED));
	desk->gpus[0].used_mib = 0;
	desk_measure(desk);
	assert_true(desk_change(desk, CHANGE_RELEASED)->slot);
}

DESK_TEST(a_beat_tells_requests_in_flight_in_slots)
{
	load_ready(desk);
	desk_event(desk, INPUT_ACTIVE, (struct work_event){ .reservation_id = 5, .active = 3 });
	desk_renew(desk, 1000);
	const struct message *beat = desk_message(desk, MESSAGE_BEAT);
	assert_int_equal(beat->beat.slot_count, 1);
	assert_int_equal(beat->beat.slots[0].active, 3);
}

DESK_TEST(a_slot_found_without_a_record_is_told_with_its_model)
{
	struct found found = { .reservation_id = 55, .alive = true, .model = "llama" };

	desk_use(desk, 1, 55, 7000);
	desk_restart_with(desk, &found, 1);
	desk_connect(desk);
	const struct node_report_command *report = &desk_message(desk, MESSAGE_SNAPSHOT)->snapshot;
	assert_string_equal(report->slots[0].model, "llama");
	assert_int_equal(report->measurements[0].memory_mib, 7000);
	assert_int_equal(report->devices[1].foreign_mib, 0);
}

DESK_TEST(a_checkpoint_is_told)
{
	desk_connect(desk);
	desk_run(desk, 7, 100);
	desk_event(desk, INPUT_CHECKPOINT, (struct work_event){ .reservation_id = 7 });
	assert_int_equal(desk_change(desk, CHANGE_CHECKPOINT)->reservation_id, 7);
}

DESK_TEST(a_beat_without_a_new_measurement_tells_none)
{
	desk_connect(desk);
	desk_renew(desk, 1000);
	assert_int_equal(desk_message(desk, MESSAGE_BEAT)->beat.sample_count, 2);
	desk_renew(desk, 1000);
	assert_int_equal(desk_message(desk, MESSAGE_BEAT)->beat.sample_count, 0);
}

DESK_TEST(it_wakes_for_what_comes_first)
{
	desk_connect(desk);
	desk_run(desk, 7, 100);
	desk_stop(desk, 7, 300);
	assert_int_equal(node_wake_ms(desk->node), desk->now_ms + 300);
	desk_renew(desk, 300);
	assert_int_equal(desk_count(desk, OUTPUT_KILL, 7), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_task_that_uses_more_than_it_reserved_is_warned_once),
		cmocka_unit_test(a_task_that_is_only_warned_runs_on),
		cmocka_unit_test(by_policy_it_is_frozen_and_killed_when_it_lasts),
		cmocka_unit_test(one_that_comes_down_again_is_not_stopped),
		cmocka_unit_test(
		    by_default_what_its_libraries_take_beyond_a_full_budget_is_tolerated),
		cmocka_unit_test(by_default_one_that_has_a_guard_is_stopped),
		cmocka_unit_test(by_default_one_without_a_guard_is_only_warned),
		cmocka_unit_test(while_work_shares_a_gpu_it_is_measured_more_often),
		cmocka_unit_test(memory_of_a_gpu_that_was_not_given_to_it_is_overuse),
		cmocka_unit_test(gpus_that_are_held_and_not_used_are_told_once),
		cmocka_unit_test(by_policy_idle_gpus_are_taken_back_after_notice),
		cmocka_unit_test(a_task_that_works_again_is_not_idle),
		cmocka_unit_test(a_task_that_somebody_works_in_is_not_idle),
		cmocka_unit_test(a_slot_is_told_when_it_loads_and_when_it_is_ready),
		cmocka_unit_test(a_snapshot_tells_slots_with_their_gpus_model_and_address),
		cmocka_unit_test(a_slot_that_ends_is_told_as_running_only),
		cmocka_unit_test(a_slot_that_takes_too_long_to_load_is_stopped),
		cmocka_unit_test(a_slot_that_fails_enough_checks_in_a_row_is_stopped),
		cmocka_unit_test(an_unload_is_confirmed_like_any_release),
		cmocka_unit_test(a_beat_tells_requests_in_flight_in_slots),
		cmocka_unit_test(a_slot_found_without_a_record_is_told_with_its_model),
		cmocka_unit_test(a_checkpoint_is_told),
		cmocka_unit_test(a_beat_without_a_new_measurement_tells_none),
		cmocka_unit_test(it_wakes_for_what_comes_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
