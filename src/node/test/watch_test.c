/* watch_test.c - pods: a kubelet starts and ends them, the node follows and confirms */
#include "node/test/desk.h"

static void watch_pod(struct desk *desk, int64_t reservation_id, int64_t memory_mib)
{
	struct order_part part;
	struct node_order order = start_order(reservation_id, &part, memory_mib);

	order.kind = ORDER_WATCH;
	order.payload = "6f1c2d3e-uid";
	desk_order(desk, &order);
}

static void watch_run(struct desk *desk, int64_t reservation_id, int64_t memory_mib)
{
	watch_pod(desk, reservation_id, memory_mib);
	desk_event(desk, INPUT_STARTED,
	           (struct work_event){ .reservation_id = reservation_id,
	                                .pid = 100 + reservation_id,
	                                .pid_start = 7 });
}

DESK_TEST(a_pod_is_followed_at_once_whether_or_not_it_fits)
{
	desk_connect(desk);
	desk->gpus[0].used_mib = desk->gpus[0].capacity_mib;
	desk_measure(desk);
	watch_pod(desk, 7, 10000);
	assert_true(desk_place(desk, OUTPUT_WRITE) < desk_place(desk, OUTPUT_START));
	assert_string_equal(desk->outputs.at[desk_place(desk, OUTPUT_START)].order->payload,
	                    "6f1c2d3e-uid");
	assert_int_equal(desk_phase(desk, 7), WORK_STARTING);
}

DESK_TEST(a_pod_runs_when_its_first_process_is_seen)
{
	desk_connect(desk);
	watch_pod(desk, 7, 10000);
	assert_null(desk_change(desk, CHANGE_STARTED));
	desk_event(desk, INPUT_STARTED, (struct work_event){ .reservation_id = 7, .pid = 107 });
	assert_non_null(desk_change(desk, CHANGE_STARTED));
}

DESK_TEST(a_pod_is_never_killed_and_its_release_is_confirmed_by_measurement)
{
	desk_connect(desk);
	watch_run(desk, 7, 10000);
	desk_use(desk, 0, 7, 9000);
	desk_measure(desk);
	desk_stop(desk, 7, 0);
	assert_int_equal(desk_count(desk, OUTPUT_KILL, 7), 0);
	assert_int_equal(desk_count(desk, OUTPUT_NOTICE, 7), 1);
	desk_renew(desk, 5000);
	assert_int_equal(desk_count(desk, OUTPUT_KILL, 7), 0);
	assert_int_equal(desk_phase(desk, 7), WORK_STOPPING);
	/* Its processes are gone, and their memory is not back. */
	desk_unuse(desk, 7, false);
	desk_gone(desk, 7);
	assert_non_null(desk_change(desk, CHANGE_EXITED));
	desk_measure(desk);
	assert_null(desk_change(desk, CHANGE_RELEASED));
	desk->gpus[0].used_mib -= 9000;
	desk_measure(desk);
	assert_non_null(desk_change(desk, CHANGE_RELEASED));
}

DESK_TEST(a_pod_that_uses_too_much_is_told_and_goes_on)
{
	desk->policy.overuse = OVERUSE_STOP;
	desk->policy.overuse_stop_ms = 0;
	desk->policy.overuse_tolerance_mib = 0;
	desk_restart_with(desk, NULL, 0);
	desk_connect(desk);
	watch_run(desk, 7, 1000);
	desk_use(desk, 0, 7, 9000);
	desk_measure(desk);
	assert_non_null(desk_change(desk, CHANGE_OVER));
	desk_renew(desk, 60000);
	desk_measure(desk);
	assert_int_equal(desk_phase(desk, 7), WORK_RUNNING);
	assert_int_equal(desk_count(desk, OUTPUT_KILL, 7), 0);
}

DESK_TEST(a_pod_is_followed_again_after_a_restart_and_after_a_boot)
{
	desk_connect(desk);
	watch_run(desk, 7, 10000);
	watch_run(desk, 8, 10000);
	desk_stop(desk, 8, 0);
	desk_restart_with(desk, NULL, 0);
	assert_int_equal(desk_phase(desk, 7), WORK_RUNNING);
	assert_int_equal(desk_phase(desk, 8), WORK_STOPPING);
	assert_int_equal(desk_count(desk, OUTPUT_NOTICE, 7), 0);
	assert_int_equal(desk_count(desk, OUTPUT_NOTICE, 8), 1);
	desk->identity.boot = "another";
	desk_restart_with(desk, NULL, 0);
	assert_int_equal(desk_phase(desk, 7), WORK_RUNNING);
	desk_connect(desk);
	assert_int_equal(desk_message(desk, MESSAGE_SNAPSHOT)->snapshot.running_count, 2);
}

DESK_TEST(a_pod_that_never_ran_is_released_when_it_is_told_to_stop)
{
	desk_connect(desk);
	watch_pod(desk, 7, 10000);
	desk_stop(desk, 7, 0);
	desk_gone(desk, 7);
	desk_measure(desk);
	assert_non_null(desk_change(desk, CHANGE_RELEASED));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pod_is_followed_at_once_whether_or_not_it_fits),
		cmocka_unit_test(a_pod_runs_when_its_first_process_is_seen),
		cmocka_unit_test(a_pod_is_never_killed_and_its_release_is_confirmed_by_measurement),
		cmocka_unit_test(a_pod_that_uses_too_much_is_told_and_goes_on),
		cmocka_unit_test(a_pod_is_followed_again_after_a_restart_and_after_a_boot),
		cmocka_unit_test(a_pod_that_never_ran_is_released_when_it_is_told_to_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
