/* suspend_test.c - GPU memory that goes to host memory and comes back */
#include "node/test/desk.h"

#define GIB (INT64_C(1) << 30)

static void desk_move(struct desk *desk, enum order_kind kind, int64_t reservation_id,
                      int64_t host_bytes)
{
	struct node_order order = { .kind = (int32_t)kind,
		                    .reservation_id = reservation_id,
		                    .host_bytes = host_bytes };

	desk_order(desk, &order);
}

/* A task with 8,000 MiB of GPU memory. */
static void run_task(struct desk *desk)
{
	desk_connect(desk);
	desk_run(desk, 7, 10000);
	desk_use(desk, 0, 7, 8000);
	desk_measure(desk);
}

static void suspend_it(struct desk *desk)
{
	desk_move(desk, ORDER_SUSPEND, 7, 10 * GIB);
	desk_measure(desk);
	assert_true(desk_place(desk, OUTPUT_SUSPEND) >= 0);
	desk_unuse(desk, 7, true);
	desk_event(desk, INPUT_SUSPENDED, (struct work_event){ .reservation_id = 7 });
	desk_measure(desk);
	assert_int_equal(desk_change(desk, CHANGE_SUSPENDED)->exit_code, 0);
}

DESK_TEST(memory_leaves_after_it_was_measured_and_is_told_once_it_is_gone)
{
	run_task(desk);
	desk_move(desk, ORDER_SUSPEND, 7, 10 * GIB);
	assert_int_equal(desk_place(desk, OUTPUT_SUSPEND), -1);
	desk_measure(desk);
	assert_true(desk_place(desk, OUTPUT_SUSPEND) >= 0);
	desk->now_ms += 5000;
	desk_event(desk, INPUT_SUSPENDED, (struct work_event){ .reservation_id = 7 });
	desk_measure(desk);
	assert_null(desk_change(desk, CHANGE_SUSPENDED));
	desk_unuse(desk, 7, true);
	for (int i = 0; i < 60 && !desk_change(desk, CHANGE_SUSPENDED); i++) {
		desk_renew(desk, 1000);
		desk_measure(desk);
	}
	assert_non_null(desk_change(desk, CHANGE_SUSPENDED));
	assert_true(desk_change(desk, CHANGE_SUSPENDED)->took_ms >= 5000);
}

DESK_TEST(what_grew_beyond_its_host_memory_since_it_was_measured_is_not_suspended)
{
	run_task(desk);
	desk_move(desk, ORDER_SUSPEND, 7, 8 * GIB);
	desk_use(desk, 0, 7, 500);
	desk_measure(desk);
	assert_int_equal(desk_place(desk, OUTPUT_SUSPEND), -1);
	const struct change *change = desk_change(desk, CHANGE_SUSPENDED);
	assert_int_equal(change->exit_code, 1);
	assert_string_equal(change->message, "it uses 8500 MiB of GPU memory, and 8192 MiB of "
	                                     "host memory are reserved for that");
	assert_int_equal(desk_phase(desk, 7), WORK_RUNNING);
}

DESK_TEST(what_does_not_fit_into_its_host_memory_is_refused_at_once)
{
	run_task(desk);
	desk_move(desk, ORDER_SUSPEND, 7, 4 * GIB);
	assert_int_equal(desk_change(desk, CHANGE_SUSPENDED)->exit_code, 1);
	desk_measure(desk);
	assert_int_equal(desk_place(desk, OUTPUT_SUSPEND), -1);
}

DESK_TEST(a_resume_is_not_tried_without_its_room)
{
	run_task(desk);
	suspend_it(desk);
	desk_use(desk, 0, 0, 75000); /* a stranger */
	desk_move(desk, ORDER_RESUME, 7, 0);
	desk_measure(desk);
	assert_int_equal(desk_place(desk, OUTPUT_RESUME), -1);
	assert_non_null(strstr(desk_change(desk, CHANGE_RESUMED)->message, "has no room"));
	desk->stored = desk->changes;
	desk_unuse(desk, 0, true);
	desk_measure(desk);
	desk_move(desk, ORDER_RESUME, 7, 0);
	desk_measure(desk);
	assert_true(desk_place(desk, OUTPUT_RESUME) >= 0);
}

/* The driver gives the memory back before it lists the process again. */
DESK_TEST(memory_that_comes_back_is_its_own_before_its_process_is_listed)
{
	run_task(desk);
	suspend_it(desk);
	desk_move(desk, ORDER_RESUME, 7, 0);
	desk_measure(desk);
	assert_true(desk_place(desk, OUTPUT_RESUME) >= 0);
	desk->gpus[0].used_mib = 8000;
	for (int i = 0; i < 6; i++) {
		desk_renew(desk, 1000);
		desk_measure(desk);
		assert_null(desk_change(desk, CHANGE_UNEXPLAINED));
	}
	desk_renew(desk, 5000);
	const struct message *beat = desk_message(desk, MESSAGE_BEAT);
	assert_int_equal(beat->beat.samples[0].foreign_mib, 0);
	assert_int_equal(beat->beat.unexplained_count, 0);
	assert_int_equal(beat->beat.uses[0].memory_mib, 8000);
}

DESK_TEST(an_agent_that_restarts_while_memory_leaves_lets_it_leave_again)
{
	struct found found = {
		.reservation_id = 7, .alive = true, .pid = 107, .pid_start = 7, .model = ""
	};

	run_task(desk);
	desk_move(desk, ORDER_SUSPEND, 7, 10 * GIB);
	desk_measure(desk);
	desk_unuse(desk, 7, true);
	desk_restart_with(desk, &found, 1);
	desk_connect(desk);
	desk_measure(desk);
	desk_event(desk, INPUT_SUSPENDED, (struct work_event){ .reservation_id = 7 });
	desk_measure(desk);
	assert_int_equal(desk_change(desk, CHANGE_SUSPENDED)->exit_code, 0);
}

DESK_TEST(an_order_that_was_answered_and_is_sent_again_begins_nothing)
{
	struct node_order order = { .kind = ORDER_SUSPEND,
		                    .reservation_id = 7,
		                    .host_bytes = 10 * GIB };

	run_task(desk);
	desk_order(desk, &order);
	desk_measure(desk);
	desk_event(desk, INPUT_SUSPENDED,
	           (struct work_event){ .reservation_id = 7, .failed = true });
	assert_int_equal(desk_change(desk, CHANGE_SUSPENDED)->exit_code, 1);
	desk_order(desk, &order);
	assert_int_equal(desk_change(desk, CHANGE_SUSPENDED)->exit_code, 1);
	desk->stored = desk->changes;
	desk_order(desk, &order);
	desk_measure(desk);
	assert_true(desk_place(desk, OUTPUT_SUSPEND) >= 0);
}

DESK_TEST(memory_on_a_gpu_that_is_not_seen_is_not_told_as_gone)
{
	run_task(desk);
	desk_move(desk, ORDER_SUSPEND, 7, 10 * GIB);
	desk_measure(desk);
	desk->gpus[0].uuid = "gpu-c";
	desk->process_count = 0;
	desk_event(desk, INPUT_SUSPENDED, (struct work_event){ .reservation_id = 7 });
	desk_measure(desk);
	assert_null(desk_change(desk, CHANGE_SUSPENDED));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_leaves_after_it_was_measured_and_is_told_once_it_is_gone),
		cmocka_unit_test(
		    what_grew_beyond_its_host_memory_since_it_was_measured_is_not_suspended),
		cmocka_unit_test(what_does_not_fit_into_its_host_memory_is_refused_at_once),
		cmocka_unit_test(a_resume_is_not_tried_without_its_room),
		cmocka_unit_test(an_order_that_was_answered_and_is_sent_again_begins_nothing),
		cmocka_unit_test(memory_on_a_gpu_that_is_not_seen_is_not_told_as_gone),
		cmocka_unit_test(memory_that_comes_back_is_its_own_before_its_process_is_listed),
		cmocka_unit_test(an_agent_that_restarts_while_memory_leaves_lets_it_leave_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
