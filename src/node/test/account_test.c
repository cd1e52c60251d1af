/* account_test.c - what works used is counted, kept, and told when they end */
#include "node/test/desk.h"

/* Half of gpu-a, which draws 100 W. */
static void run_half(struct desk *desk)
{
	struct order_part part;
	struct node_order order = start_order(7, &part, 1000);

	part.share = WHOLE_GPU / 2;
	desk->gpus[0].power_mw = 100000;
	desk_order(desk, &order);
	desk_measure(desk);
	desk_event(desk, INPUT_STARTED,
	           (struct work_event){ .reservation_id = 7, .pid = 107, .pid_start = 7 });
}

static void measure_after(struct desk *desk, int64_t ms)
{
	desk_renew(desk, ms);
	desk_measure(desk);
}

DESK_TEST(time_and_energy_count_by_the_share_of_a_gpu)
{
	desk_connect(desk);
	run_half(desk);
	measure_after(desk, 4000);
	desk_renew(desk, 2000);
	desk_exit(desk, 7, 0);
	const struct change *change = desk_change(desk, CHANGE_EXITED);
	assert_int_equal(change->use.gpu_ms, 3000);
	assert_int_equal(change->use.energy_mj, 300000);
}

DESK_TEST(the_most_that_was_measured_on_one_gpu_is_the_peak)
{
	desk_connect(desk);
	run_half(desk);
	desk_use(desk, 0, 7, 700);
	measure_after(desk, 1000);
	desk_unuse(desk, 7, true);
	desk_use(desk, 0, 7, 300);
	measure_after(desk, 1000);
	desk_exit(desk, 7, 0);
	assert_int_equal(desk_change(desk, CHANGE_EXITED)->use.peak_mib, 700);
}

DESK_TEST(what_the_guard_says_comes_with_the_end)
{
	desk_connect(desk);
	run_half(desk);
	desk->guards[desk->guard_count++] = desk_guard(990, 2, 50);
	measure_after(desk, 1000);
	const struct guard_reading last = desk_guard(1000, 3, 60);
	desk_event(desk, INPUT_EXITED,
	           (struct work_event){ .reservation_id = 7, .guarded = true, .guard = last });
	const struct task_use *use = &desk_change(desk, CHANGE_EXITED)->use;
	assert_int_equal(use->limit_mib, 1000);
	assert_int_equal(use->guard_peak_mib, 1000);
	assert_int_equal(use->peak_mib, 1000);
	assert_int_equal(use->refusals, 3);
	assert_int_equal(use->refused_mib, 60);
	assert_false(use->unguarded);
}

DESK_TEST(a_beat_tells_what_works_have_used_so_far)
{
	desk_connect(desk);
	run_half(desk);
	desk_use(desk, 0, 7, 700);
	measure_after(desk, 1000);
	desk_time(desk, desk->policy.beat_ms);
	const struct beat *beat = &desk_message(desk, MESSAGE_BEAT)->beat;
	assert_int_equal(beat->work_count, 1);
	assert_int_equal(beat->works[0].reservation_id, 7);
	assert_int_equal(beat->works[0].use.peak_mib, 700);
	assert_int_equal(beat->works[0].use.gpu_ms, 500);
}

DESK_TEST(a_restart_forgets_no_more_than_a_minute_of_it)
{
	struct found found = { .reservation_id = 7, .alive = true, .pid = 107, .pid_start = 7 };

	desk_connect(desk);
	run_half(desk);
	desk_use(desk, 0, 7, 700);
	measure_after(desk, 1000);
	for (int i = 0; i < 60; i++)
		measure_after(desk, 1000);
	desk_unuse(desk, 7, true);
	desk_restart_with(desk, &found, 1);
	desk_connect(desk);
	measure_after(desk, 1000);
	desk_exit(desk, 7, 0);
	const struct task_use *use = &desk_change(desk, CHANGE_EXITED)->use;
	assert_int_equal(use->peak_mib, 700);
	assert_int_equal(use->gpu_ms, 31000);
	assert_int_equal(use->energy_mj, 3100000);
}

DESK_TEST(when_it_ended_is_told_also_where_nobody_listened)
{
	desk_connect(desk);
	run_half(desk);
	desk_apply(desk, (struct input){ .kind = INPUT_DISCONNECTED });
	desk_time(desk, 2000);
	int64_t exited_ms = desk->now_ms - 500;
	desk_event(desk, INPUT_EXITED,
	           (struct work_event){ .reservation_id = 7, .exited_ms = exited_ms });
	desk_time(desk, 7000);
	desk_connect(desk);
	const struct change *change = desk_change(desk, CHANGE_EXITED);
	assert_int_equal(change->ago_ms, 7500);
	assert_int_equal(change->use.gpu_ms, 750);
}

DESK_TEST(what_an_older_agent_wrote_is_read)
{
	struct arena arena = { 0 };
	struct error error = { 0 };
	struct kept_work kept;
	struct node_order order;
	bool read = false;

	desk_connect(desk);
	run_half(desk);
	const struct desk_row *row = desk_row(desk, 7);
	assert_true(kept_work_decode(&arena, row->data, row->size, &kept, &order, &error));
	size_t size = row->size - 1; /* one that could not suspend, then one that did not account */
	for (int older = 0; older < 2; older++) {
		read = false;
		for (; !read && size > 0; size--)
			read = kept_work_decode(&arena, row->data, size, &kept, &order, &error);
		assert_true(read);
		assert_int_equal(kept.accounted_ms > 0, older == 0);
	}
	assert_int_equal(kept.pid, 107);
	assert_int_equal(kept.accounted_ms, 0);
	arena_free(&arena);
}

static void run_unguarded(struct desk *desk, enum unguarded unguarded)
{
	desk->policy.unguarded = (int32_t)unguarded;
	desk_restart_with(desk, NULL, 0);
	desk_connect(desk);
	run_half(desk);
	desk_use(desk, 0, 7, 700);
	desk->processes[0].unguarded = true;
	measure_after(desk, 1000);
}

DESK_TEST(a_task_without_its_guard_is_told_once)
{
	run_unguarded(desk, UNGUARDED_REPORT);
	assert_int_equal(desk_count(desk, OUTPUT_WARN, 7), 1);
	assert_string_equal(desk_change(desk, CHANGE_UNGUARDED)->message,
	                    "process 107 of it uses GPU gpu-a and is not under the guard: nothing "
	                    "keeps it to its limit (is it linked statically, in an image without "
	                    "glibc, or without LD_PRELOAD?)");
	measure_after(desk, 1000);
	assert_null(desk_change(desk, CHANGE_UNGUARDED));
	assert_int_equal(desk_phase(desk, 7), WORK_RUNNING);
	desk_exit(desk, 7, 0);
	assert_true(desk_change(desk, CHANGE_EXITED)->use.unguarded);
}

DESK_TEST(who_has_a_limit_changed_is_told_but_not_every_second)
{
	desk_connect(desk);
	run_half(desk);
	for (int i = 0; i < 3; i++) {
		desk->guard_count = 0;
		desk->guards[desk->guard_count] = desk_guard(990, 0, 0);
		desk->guards[desk->guard_count++].changed = true;
		measure_after(desk, 1000);
		assert_int_equal(desk_count(desk, OUTPUT_WARN, 7), i == 0);
		assert_true((desk_change(desk, CHANGE_UNGUARDED) != NULL) == (i == 0));
	}
	assert_int_equal(desk_phase(desk, 7), WORK_RUNNING);
	desk_exit(desk, 7, 0);
	assert_false(desk_change(desk, CHANGE_EXITED)->use.unguarded);
}

DESK_TEST(by_policy_a_task_without_its_guard_is_stopped_after_notice)
{
	run_unguarded(desk, UNGUARDED_STOP);
	assert_int_equal(desk_count(desk, OUTPUT_NOTICE, 7), 1);
	desk_exit(desk, 7, 143);
	assert_int_equal(desk_change(desk, CHANGE_EXITED)->reason, END_UNGUARDED);
	assert_int_equal(desk_change(desk, CHANGE_EXITED)->exit_code, 137);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(time_and_energy_count_by_the_share_of_a_gpu),
		cmocka_unit_test(the_most_that_was_measured_on_one_gpu_is_the_peak),
		cmocka_unit_test(what_the_guard_says_comes_with_the_end),
		cmocka_unit_test(a_beat_tells_what_works_have_used_so_far),
		cmocka_unit_test(a_restart_forgets_no_more_than_a_minute_of_it),
		cmocka_unit_test(when_it_ended_is_told_also_where_nobody_listened),
		cmocka_unit_test(what_an_older_agent_wrote_is_read),
		cmocka_unit_test(a_task_without_its_guard_is_told_once),
		cmocka_unit_test(who_has_a_limit_changed_is_told_but_not_every_second),
		cmocka_unit_test(by_policy_a_task_without_its_guard_is_stopped_after_notice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
