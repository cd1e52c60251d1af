/* admit_test.c - the last line of defense: a start must fit into the measured memory */
#include "node/test/desk.h"

static const char *refusal(struct desk *desk)
{
	const struct change *change = desk_change(desk, CHANGE_REFUSED);

	assert_non_null(change);
	return change->message;
}

DESK_TEST(what_fits_to_the_last_mib_is_started)
{
	desk_connect(desk);
	desk_use(desk, 0, 0, 9000); /* a stranger */
	desk_start(desk, 7, 70000);
	assert_int_equal(desk_phase(desk, 7), WORK_STARTING);
}

DESK_TEST(one_mib_too_many_is_refused_with_the_figures)
{
	desk_connect(desk);
	desk_use(desk, 0, 0, 9000);
	desk_start(desk, 7, 70001);
	assert_string_equal(refusal(desk),
	                    "GPU gpu-a has no room: overhead 1000 + foreign 9000 + 0 others 0 + "
	                    "asked 70001 = 80001 MiB, capacity 80000 MiB");
	assert_null(desk_row(desk, 7));
	assert_int_equal(desk_place(desk, OUTPUT_START), -1);
}

DESK_TEST(a_refusal_tells_exactly_what_was_measured)
{
	desk_connect(desk);
	desk_run(desk, 6, 1000);
	desk_use(desk, 0, 6, 3000);
	desk_use(desk, 0, 0, 500);
	desk_start(desk, 7, 79000);
	const struct change *change = desk_change(desk, CHANGE_REFUSED);
	assert_int_equal(change->sample_count, 1);
	assert_int_equal(change->samples[0].foreign_mib, 500);
	assert_int_equal(change->measurement_count, 1);
	assert_int_equal(change->measurements[0].memory_mib, 3000);
}

DESK_TEST(others_count_with_what_they_reserved_even_if_they_use_less)
{
	desk_connect(desk);
	desk_run(desk, 6, 50000);
	desk_use(desk, 0, 6, 100);
	desk_start(desk, 7, 30000);
	assert_non_null(strstr(refusal(desk), "1 others 50000"));
}

DESK_TEST(others_count_with_what_they_use_if_that_is_more_than_they_reserved)
{
	desk_connect(desk);
	desk_run(desk, 6, 10000);
	desk_use(desk, 0, 6, 50000);
	desk_start(desk, 7, 30000);
	assert_non_null(strstr(refusal(desk), "1 others 50000"));
}

DESK_TEST(two_orders_checked_by_one_measurement_do_not_both_get_the_last_room)
{
	struct order_part a, b;
	struct node_order first = start_order(7, &a, 50000), second = start_order(8, &b, 50000);

	desk_connect(desk);
	desk_order(desk, &first);
	desk_order(desk, &second);
	desk_measure(desk);
	assert_int_equal(desk_phase(desk, 7), WORK_STARTING);
	assert_int_equal(desk_phase(desk, 8), -1);
}

DESK_TEST(each_gpu_of_an_order_is_checked_by_itself)
{
	struct order_part parts[2] = { { .uuid = "gpu-a", .memory_mib = 40000 },
		                       { .uuid = "gpu-b", .memory_mib = 40000 } };
	struct node_order order = {
		.kind = ORDER_START, .reservation_id = 7, .parts = parts, .part_count = 2
	};

	desk_connect(desk);
	desk_use(desk, 1, 0, 39001);
	desk_order(desk, &order);
	desk_measure(desk);
	assert_non_null(strstr(refusal(desk), "GPU gpu-b has no room"));
}

DESK_TEST(a_gpu_that_is_not_there_not_healthy_or_in_mig_mode_takes_nothing)
{
	desk_connect(desk);
	desk->gpus[0].healthy = false;
	desk_start(desk, 7, 100);
	assert_string_equal(refusal(desk), "GPU gpu-a is not healthy");
	desk->gpus[0].healthy = true;
	desk->gpus[0].mig_mode = true;
	desk_start(desk, 8, 100);
	assert_non_null(strstr(refusal(desk), "MIG mode"));
	desk->gpus[0] = desk->gpus[1];
	desk->gpu_count = 1;
	desk_start(desk, 9, 100);
	assert_string_equal(refusal(desk), "GPU gpu-a is not there");
}

DESK_TEST(a_gpu_given_whole_is_not_shared)
{
	struct order_part part;
	struct node_order whole = start_order(7, &part, 100);

	part.whole = true;
	desk_connect(desk);
	desk_order(desk, &whole);
	desk_measure(desk);
	assert_int_equal(desk_phase(desk, 7), WORK_STARTING);
	desk_start(desk, 8, 100);
	assert_non_null(strstr(refusal(desk), "one of them has it to itself"));
	desk_stop(desk, 7, 0);
	desk_gone(desk, 7);
	desk_measure(desk);
	desk_start(desk, 9, 100);
	whole.reservation_id = 10;
	desk_order(desk, &whole);
	desk_measure(desk);
	assert_non_null(strstr(refusal(desk), "the newcomer wants it to itself"));
}

DESK_TEST(what_ended_counts_until_its_memory_is_back)
{
	desk_connect(desk);
	desk_run(desk, 6, 50000);
	desk_use(desk, 0, 6, 40000);
	desk_measure(desk);
	desk_exit(desk, 6, 0);
	desk_unuse(desk, 6, false);
	desk_gone(desk, 6);
	desk_start(desk, 7, 30000);
	assert_non_null(strstr(refusal(desk), "1 others 50000"));
	desk->gpus[0].used_mib = 0;
	desk_start(desk, 8, 30000);
	assert_int_equal(desk_phase(desk, 8), WORK_STARTING);
}

DESK_TEST(a_task_that_stops_without_a_lease_is_not_started_without_one)
{
	struct order_part part;
	struct node_order order = start_order(7, &part, 100);

	order.lease_loss = LEASE_STOP;
	desk_apply(desk, (struct input){ .kind = INPUT_CONNECTED });
	desk_welcome(desk, 0);
	desk_measure(desk);
	desk_order(desk, &order);
	desk_measure(desk);
	assert_non_null(strstr(refusal(desk), "no lease"));
}

DESK_TEST(unexplained_memory_is_foreign_when_nothing_is_released)
{
	desk->gpus[0].used_mib = 700;
	desk_connect(desk);
	assert_int_equal(desk_message(desk, MESSAGE_SNAPSHOT)->snapshot.devices[0].foreign_mib,
	                 700);
	desk_start(desk, 7, 78301);
	assert_non_null(strstr(refusal(desk), "foreign 700"));
}

DESK_TEST(unexplained_memory_counts_against_what_is_released_first_and_then_as_foreign)
{
	desk_connect(desk);
	desk_run(desk, 6, 1000);
	desk_use(desk, 0, 6, 900);
	desk_measure(desk);
	desk_exit(desk, 6, 0);
	desk_unuse(desk, 6, false);
	desk_gone(desk, 6);
	desk->gpus[0].used_mib = 1700;
	desk_measure(desk);
	desk_renew(desk, 5000);
	const struct message *beat = desk_message(desk, MESSAGE_BEAT);
	assert_int_equal(beat->beat.samples[0].foreign_mib, 700);
	assert_int_equal(beat->beat.uses[0].memory_mib, 1000);
}

/* Managed memory: NVML gives it to no process, its guard knows of it. */
DESK_TEST(memory_that_only_its_guard_knows_of_is_a_tasks_own_and_counts_once)
{
	desk_connect(desk);
	desk_run(desk, 6, 60000);
	desk_use(desk, 0, 6, 600);
	desk->gpus[0].used_mib = 50600;
	desk->hidden[desk->hidden_count++] = (struct hidden_reading){ 6, "gpu-a", 50000 };
	desk_renew(desk, 1000);
	desk_measure(desk);
	desk_renew(desk, 5000);
	const struct message *beat = desk_message(desk, MESSAGE_BEAT);
	assert_int_equal(beat->beat.samples[0].foreign_mib, 0);
	assert_int_equal(beat->beat.uses[0].memory_mib, 50600);
	desk_start(desk, 7, 19001);
	assert_non_null(strstr(refusal(desk), "foreign 0 + 1 others 60000"));
}

/* It cannot claim what was there before it, nor more than there is. */
DESK_TEST(a_guard_explains_no_more_than_came_with_its_task)
{
	desk->gpus[0].used_mib = 700;
	desk_connect(desk);
	desk_run(desk, 6, 60000);
	desk->gpus[0].used_mib = 1000;
	desk->hidden[desk->hidden_count++] = (struct hidden_reading){ 6, "gpu-a", 50000 };
	desk_renew(desk, 1000);
	desk_measure(desk);
	desk_renew(desk, 5000);
	const struct message *beat = desk_message(desk, MESSAGE_BEAT);
	assert_int_equal(beat->beat.samples[0].foreign_mib, 700);
	assert_int_equal(beat->beat.uses[0].memory_mib, 300);
}

DESK_TEST(memory_of_a_reservation_that_nobody_has_is_foreign)
{
	desk_use(desk, 0, 99, 400);
	desk_connect(desk);
	assert_int_equal(desk_message(desk, MESSAGE_SNAPSHOT)->snapshot.devices[0].foreign_mib,
	                 400);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_fits_to_the_last_mib_is_started),
		cmocka_unit_test(one_mib_too_many_is_refused_with_the_figures),
		cmocka_unit_test(a_refusal_tells_exactly_what_was_measured),
		cmocka_unit_test(others_count_with_what_they_reserved_even_if_they_use_less),
		cmocka_unit_test(
		    others_count_with_what_they_use_if_that_is_more_than_they_reserved),
		cmocka_unit_test(
		    two_orders_checked_by_one_measurement_do_not_both_get_the_last_room),
		cmocka_unit_test(each_gpu_of_an_order_is_checked_by_itself),
		cmocka_unit_test(a_gpu_that_is_not_there_not_healthy_or_in_mig_mode_takes_nothing),
		cmocka_unit_test(a_gpu_given_whole_is_not_shared),
		cmocka_unit_test(what_ended_counts_until_its_memory_is_back),
		cmocka_unit_test(a_task_that_stops_without_a_lease_is_not_started_without_one),
		cmocka_unit_test(unexplained_memory_is_foreign_when_nothing_is_released),
		cmocka_unit_test(
		    unexplained_memory_counts_against_what_is_released_first_and_then_as_foreign),
		cmocka_unit_test(
		    memory_that_only_its_guard_knows_of_is_a_tasks_own_and_counts_once),
		cmocka_unit_test(a_guard_explains_no_more_than_came_with_its_task),
		cmocka_unit_test(memory_of_a_reservation_that_nobody_has_is_foreign),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
