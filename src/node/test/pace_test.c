/* pace_test.c - how often a node reports, and what of it waits */
#include "node/test/desk.h"

static void set_pace(struct desk *desk, int64_t beat_ms, int64_t figures_ms)
{
	desk_apply(desk, (struct input){ .kind = INPUT_PACE, .pace = { beat_ms, figures_ms } });
}

/* The beat that is sent after so long, with a measurement before it; NULL: none is. */
static const struct beat *beat_after(struct desk *desk, int64_t ms)
{
	desk_measure(desk);
	desk_renew(desk, ms);
	const struct message *message = desk_message(desk, MESSAGE_BEAT);
	return message ? &message->beat : NULL;
}

DESK_TEST(a_node_reports_as_often_as_it_is_told)
{
	desk_connect(desk);
	set_pace(desk, 300, 0);
	assert_non_null(beat_after(desk, 300));
	assert_null(beat_after(desk, 299));
	assert_non_null(beat_after(desk, 1));
	set_pace(desk, 5000, 0);
	assert_non_null(beat_after(desk, 300));
	assert_null(beat_after(desk, 4999));
	assert_non_null(beat_after(desk, 1));
}

DESK_TEST(figures_wait_for_their_time)
{
	desk_connect(desk);
	set_pace(desk, 1000, 3000);
	assert_true(beat_after(desk, 1000)->sample_count > 0);
	desk->gpus[0].utilisation += 10;
	assert_int_equal(beat_after(desk, 1000)->sample_count, 0);
	assert_int_equal(beat_after(desk, 1000)->sample_count, 0);
	assert_true(beat_after(desk, 1000)->sample_count > 0);
}

DESK_TEST(memory_health_and_heat_do_not_wait)
{
	desk_connect(desk);
	set_pace(desk, 1000, 60000);
	assert_true(beat_after(desk, 1000)->sample_count > 0);
	desk_use(desk, 0, 0, 500);
	assert_true(beat_after(desk, 1000)->sample_count > 0);
	assert_int_equal(beat_after(desk, 1000)->sample_count, 0);
	desk->gpus[1].healthy = false;
	assert_true(beat_after(desk, 1000)->sample_count > 0);
	desk->gpus[1].temperature_c += 5;
	assert_true(beat_after(desk, 1000)->sample_count > 0);
}

DESK_TEST(a_new_connection_begins_with_figures)
{
	desk_connect(desk);
	set_pace(desk, 1000, 60000);
	assert_true(beat_after(desk, 1000)->sample_count > 0);
	desk_connect(desk);
	assert_true(beat_after(desk, 1000)->sample_count > 0);
}

DESK_TEST(a_scheduler_that_is_asked_seldom_is_not_silent)
{
	desk_connect(desk);
	set_pace(desk, 8000, 0);
	desk_time(desk, 3 * 8000 - 1);
	assert_int_equal(desk_place(desk, OUTPUT_DISCONNECT), -1);
	desk_time(desk, 1);
	assert_true(desk_place(desk, OUTPUT_DISCONNECT) >= 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_node_reports_as_often_as_it_is_told),
		cmocka_unit_test(figures_wait_for_their_time),
		cmocka_unit_test(memory_health_and_heat_do_not_wait),
		cmocka_unit_test(a_new_connection_begins_with_figures),
		cmocka_unit_test(a_scheduler_that_is_asked_seldom_is_not_silent),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
