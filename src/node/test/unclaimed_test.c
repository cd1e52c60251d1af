/* unclaimed_test.c - memory that no process explains and that came while tasks were there */
#include "node/test/desk.h"

/* A task of 20,000 MiB that uses 600 on a GPU where 500 were in use before. */
static void run_small(struct desk *desk)
{
	desk->gpus[0].used_mib = 500;
	desk_connect(desk);
	desk_run(desk, 7, 20000);
	desk_use(desk, 0, 7, 600);
	desk->gpus[0].used_mib = 1100;
	desk_measure(desk);
}

static void measure_for(struct desk *desk, int seconds)
{
	for (int i = 0; i < seconds; i++) {
		desk_renew(desk, 1000);
		desk_measure(desk);
	}
}

static int64_t unexplained(struct desk *desk)
{
	desk_renew(desk, 5000);
	const struct message *beat = desk_message(desk, MESSAGE_BEAT);

	assert_non_null(beat);
	return beat->beat.unexplained_count > 0 ? beat->beat.unexplained[0].memory_mib : 0;
}

static const struct change *told_to(struct desk *desk, enum change_kind kind,
                                    int64_t reservation_id)
{
	const struct change *change = desk_change(desk, kind);

	return change && change->reservation_id == reservation_id ? change : NULL;
}

/* Measures until that is told to the task, ten times at most. */
static const struct change *wait_until_told(struct desk *desk, enum change_kind kind,
                                            int64_t reservation_id)
{
	const struct change *change = NULL;

	for (int i = 0; i < 10 && !change; i++) {
		measure_for(desk, 1);
		change = told_to(desk, kind, reservation_id);
	}
	return change;
}

DESK_TEST(what_was_there_before_a_task_and_what_it_uses_is_explained)
{
	run_small(desk);
	measure_for(desk, 10);
	assert_int_equal(unexplained(desk), 0);
}

DESK_TEST(what_comes_without_a_process_is_shown_and_told_to_those_who_are_there)
{
	run_small(desk);
	desk->gpus[0].used_mib = 6100;
	const struct change *change = wait_until_told(desk, CHANGE_UNEXPLAINED, 7);
	assert_non_null(change);
	assert_string_equal(change->message, "5000 MiB of GPU gpu-a are in use that no process "
	                                     "explains, and came while this task ran there");
	assert_int_equal(unexplained(desk), 5000);
	desk->gpus[0].used_mib = 1100;
	measure_for(desk, 1);
	assert_int_equal(unexplained(desk), 0);
}

DESK_TEST(a_short_rise_is_nothing)
{
	run_small(desk);
	for (int i = 0; i < 5; i++) {
		desk->gpus[0].used_mib = 9100;
		measure_for(desk, 1);
		desk->gpus[0].used_mib = 1100;
		measure_for(desk, 1);
		assert_null(told_to(desk, CHANGE_UNEXPLAINED, 7));
	}
	assert_int_equal(unexplained(desk), 0);
}

DESK_TEST(the_same_memory_is_told_once_and_more_is_told_again)
{
	run_small(desk);
	desk->gpus[0].used_mib = 6100;
	assert_non_null(wait_until_told(desk, CHANGE_UNEXPLAINED, 7));
	assert_null(wait_until_told(desk, CHANGE_UNEXPLAINED, 7));
	desk->gpus[0].used_mib = 12100;
	const struct change *change = wait_until_told(desk, CHANGE_UNEXPLAINED, 7);
	assert_non_null(change);
	assert_non_null(strstr(change->message, "11000 MiB"));
}

/* Its guard counts memory that no process shows, so it can have more. */
DESK_TEST(it_counts_against_a_task_that_is_alone_and_shares_memory_with_others)
{
	run_small(desk);
	desk->hidden[desk->hidden_count++] = (struct hidden_reading){ 7, "gpu-a", 1000 };
	desk->gpus[0].used_mib = 2100 + 30000;
	const struct change *change = wait_until_told(desk, CHANGE_OVER, 7);
	assert_non_null(change);
	assert_string_equal(change->message,
	                    "it uses 31600 MiB of GPU gpu-a and reserved 20000 MiB; this includes "
	                    "memory that no process explains");
}

/* A neighbor that left its guard could have put it there. */
DESK_TEST(one_that_has_neighbors_is_told_and_not_blamed)
{
	bool told = false;

	run_small(desk);
	desk_run(desk, 8, 30000);
	desk->hidden[desk->hidden_count++] = (struct hidden_reading){ 7, "gpu-a", 1000 };
	desk->gpus[0].used_mib = 2100 + 30000;
	for (int i = 0; i < 10; i++) {
		measure_for(desk, 1);
		told |= told_to(desk, CHANGE_UNEXPLAINED, 7) != NULL;
		assert_null(desk_change(desk, CHANGE_OVER));
	}
	assert_true(told);
}

DESK_TEST(of_two_that_could_have_it_neither_is_blamed)
{
	run_small(desk);
	desk_run(desk, 8, 30000);
	desk->hidden[desk->hidden_count++] = (struct hidden_reading){ 7, "gpu-a", 1000 };
	desk->hidden[desk->hidden_count++] = (struct hidden_reading){ 8, "gpu-a", 1000 };
	desk->gpus[0].used_mib = 3100 + 30000;
	for (int i = 0; i < 10; i++) {
		measure_for(desk, 1);
		assert_null(desk_change(desk, CHANGE_OVER));
	}
	assert_int_equal(unexplained(desk), 30000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_there_before_a_task_and_what_it_uses_is_explained),
		cmocka_unit_test(
		    what_comes_without_a_process_is_shown_and_told_to_those_who_are_there),
		cmocka_unit_test(a_short_rise_is_nothing),
		cmocka_unit_test(the_same_memory_is_told_once_and_more_is_told_again),
		cmocka_unit_test(
		    it_counts_against_a_task_that_is_alone_and_shares_memory_with_others),
		cmocka_unit_test(one_that_has_neighbors_is_told_and_not_blamed),
		cmocka_unit_test(of_two_that_could_have_it_neither_is_blamed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
