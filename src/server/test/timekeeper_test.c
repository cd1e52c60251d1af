/* timekeeper_test.c - the core's time is steady, whatever the wall clock does */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/timekeeper.h"

#define SECOND INT64_C(1000000)
#define YEAR (365 * 86400 * SECOND)
#define BEGAN (1700000000 * SECOND)

/* A machine whose wall clock is off by `off_us`. */
struct machine {
	struct timekeeper keeper;
	int64_t steady_us, off_us;
	enum timekeeper_news news;
	int stepped, back, lasted;
};

static struct machine machine_new(void)
{
	return (struct machine){ .keeper = timekeeper_begin(5000, 60000, BEGAN, SECOND),
		                 .steady_us = SECOND };
}

static int64_t read_after(struct machine *machine, int64_t elapsed_us)
{
	machine->steady_us += elapsed_us;
	int64_t wall_us = BEGAN + machine->steady_us - SECOND + machine->off_us;
	int64_t time_ms =
	    timekeeper_read(&machine->keeper, wall_us, machine->steady_us, &machine->news);
	machine->stepped += machine->news == TIME_STEPPED;
	machine->back += machine->news == TIME_BACK;
	machine->lasted += machine->news == TIME_LASTED;
	return time_ms;
}

/* Reads ten times a second. The smallest and the largest step between two reads. */
static int64_t run_for(struct machine *machine, int64_t us, int64_t *least, int64_t *most)
{
	int64_t last = machine->keeper.time_us / 1000, time_ms = last;

	*least = INT64_MAX;
	*most = 0;
	for (int64_t done = 0; done < us; done += SECOND / 10) {
		time_ms = read_after(machine, SECOND / 10);
		*least = time_ms - last < *least ? time_ms - last : *least;
		*most = time_ms - last > *most ? time_ms - last : *most;
		last = time_ms;
	}
	return time_ms;
}

static void a_jump_that_comes_back_changes_nothing(void **state)
{
	static const int64_t jumps[] = { 3 * YEAR, -YEAR, 3600 * SECOND, -3600 * SECOND };
	int64_t least, most;

	(void)state;
	for (size_t i = 0; i < sizeof(jumps) / sizeof(jumps[0]); i++) {
		struct machine machine = machine_new();
		run_for(&machine, 2 * SECOND, &least, &most);
		machine.off_us = jumps[i];
		run_for(&machine, 2 * SECOND, &least, &most);
		assert_int_equal(least, 100);
		assert_int_equal(most, 100);
		assert_int_equal(machine.keeper.off_ms, jumps[i] / 1000);
		machine.off_us = 0;
		int64_t time_ms = run_for(&machine, 2 * SECOND, &least, &most);
		assert_int_equal(time_ms, BEGAN / 1000 + 6000);
		assert_int_equal(machine.stepped, 1);
		assert_int_equal(machine.back, 1);
		assert_int_equal(machine.lasted, 0);
		assert_int_equal(machine.keeper.off_ms, 0);
	}
}

static void a_step_that_lasts_is_told_to_the_core(void **state)
{
	int64_t least, most;
	struct machine machine = machine_new();

	(void)state;
	machine.off_us = -YEAR;
	run_for(&machine, 59 * SECOND, &least, &most);
	assert_int_equal(machine.lasted, 0);
	assert_int_equal(least, 100);
	run_for(&machine, 2 * SECOND, &least, &most);
	assert_true(machine.lasted > 0);
	timekeeper_set(&machine.keeper, machine.keeper.time_us - YEAR, machine.steady_us);
	machine.lasted = 0;
	int64_t time_ms = run_for(&machine, SECOND, &least, &most);
	assert_int_equal(time_ms, (BEGAN - YEAR) / 1000 + 62000);
	assert_int_equal(machine.lasted + machine.back, 0);
	assert_int_equal(least, 100);
}

static void a_clock_that_keeps_jumping_is_not_believed(void **state)
{
	struct machine machine = machine_new();
	int64_t least, most;

	(void)state;
	for (int i = 1; i <= 10; i++) {
		machine.off_us = i * 3600 * SECOND;
		run_for(&machine, 30 * SECOND, &least, &most);
	}
	assert_int_equal(machine.lasted, 0);
	assert_int_equal(machine.stepped, 10);
}

static void a_small_difference_is_made_up_for_gradually_in_both_directions(void **state)
{
	int64_t least, most;

	(void)state;
	for (int sign = -1; sign <= 1; sign += 2) {
		struct machine machine = machine_new();
		machine.off_us = sign * SECOND;
		run_for(&machine, 10 * SECOND, &least, &most);
		assert_true(least >= 95 - 1);
		assert_true(most <= 105 + 1);
		int64_t time_ms = run_for(&machine, 30 * SECOND, &least, &most);
		assert_in_range(time_ms, BEGAN / 1000 + 40000 + sign * 1000 - 1,
		                BEGAN / 1000 + 40000 + sign * 1000);
		assert_int_equal(machine.stepped, 0);
	}
}

static void reads_in_quick_succession_make_up_for_a_difference_too(void **state)
{
	struct machine machine = machine_new();
	int64_t time_ms = 0;

	(void)state;
	machine.off_us = SECOND / 100;
	for (int i = 0; i < 20000; i++)
		time_ms = read_after(&machine, 40);
	assert_in_range(time_ms, BEGAN / 1000 + 809, BEGAN / 1000 + 810);
}

static void time_asleep_counts(void **state)
{
	struct machine machine = machine_new();

	(void)state;
	read_after(&machine, SECOND);
	assert_int_equal(read_after(&machine, 8 * 3600 * SECOND),
	                 BEGAN / 1000 + 8 * 3600000 + 1000);
	assert_int_equal(machine.stepped, 0);
}

static void a_steady_clock_that_stands_still_or_goes_back_does_not_turn_time_back(void **state)
{
	struct machine machine = machine_new();
	int64_t before = read_after(&machine, SECOND);

	(void)state;
	assert_int_equal(read_after(&machine, 0), before);
	assert_true(read_after(&machine, -SECOND / 2) >= before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_jump_that_comes_back_changes_nothing),
		cmocka_unit_test(a_step_that_lasts_is_told_to_the_core),
		cmocka_unit_test(a_clock_that_keeps_jumping_is_not_believed),
		cmocka_unit_test(a_small_difference_is_made_up_for_gradually_in_both_directions),
		cmocka_unit_test(reads_in_quick_succession_make_up_for_a_difference_too),
		cmocka_unit_test(time_asleep_counts),
		cmocka_unit_test(
		    a_steady_clock_that_stands_still_or_goes_back_does_not_turn_time_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
