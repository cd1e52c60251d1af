/* chaos_test.c - short runs of chaos in this process, so that sanitizers see all of it */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/memory.h"
#include "sim/chaos/chaos.h"

static void chaos_execute(uint64_t seed, int64_t steps, uint32_t without,
                          struct chaos_result *result)
{
	struct chaos_options options = { .seed = seed, .steps = steps, .without = without };

	chaos_run(&options, result);
	if (result->invariant[0] != 0)
		fail_msg("seed %llu, step %lld, %s: %s", (unsigned long long)seed,
		         (long long)result->step, result->invariant, result->message);
}

static void whatever_fails_nothing_that_must_hold_is_broken(void **state)
{
	struct chaos_result *result = NEW(struct chaos_result);
	int64_t starts = 0, releases = 0, crashes = 0, takeovers = 0, requests = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		chaos_execute(seed, 5000, 0, result);
		starts += result->starts;
		releases += result->releases;
		crashes += result->crashes;
		takeovers += result->takeovers;
		requests += result->requests;
	}
	assert_true(starts > 0 && releases > 0 && crashes > 0 && takeovers > 0 && requests > 0);
	free(result);
}

static void the_same_seed_does_the_same_again(void **state)
{
	struct chaos_result *first = NEW(struct chaos_result), *second = NEW(struct chaos_result);

	(void)state;
	chaos_execute(7, 4000, 0, first);
	chaos_execute(7, 4000, 0, second);
	assert_true(first->digest == second->digest);
	assert_true(first->step == second->step && first->starts == second->starts);
	chaos_execute(8, 4000, 0, second);
	assert_true(first->digest != second->digest);
	free(first);
	free(second);
}

static void a_class_of_faults_that_is_left_out_does_not_happen(void **state)
{
	struct chaos_result *result = NEW(struct chaos_result);

	(void)state;
	for (uint64_t seed = 1; seed <= 10; seed++) {
		chaos_execute(seed, 2000,
		              1U << CHAOS_LOSS | 1U << CHAOS_SECOND | 1U << CHAOS_KILL |
		                  1U << CHAOS_CRASH,
		              result);
		assert_int_equal(result->lost, 0);
		assert_int_equal(result->takeovers, 0);
		assert_int_equal(result->crashes, 0);
	}
	free(result);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whatever_fails_nothing_that_must_hold_is_broken),
		cmocka_unit_test(the_same_seed_does_the_same_again),
		cmocka_unit_test(a_class_of_faults_that_is_left_out_does_not_happen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
