/* kube_chaos_test.c - short runs with an API server in this process, so that sanitizers see them */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/memory.h"
#include "sim/kube/kube_chaos.h"

static void run_seed(uint64_t seed, int64_t steps, uint32_t without, struct chaos_result *result)
{
	struct chaos_options options = { .seed = seed, .steps = steps, .without = without };

	kube_chaos_run(&options, result);
	if (result->invariant[0] != 0)
		fail_msg("seed %llu, step %lld, %s: %s", (unsigned long long)seed,
		         (long long)result->step, result->invariant, result->message);
}

static void whatever_the_api_server_does_nothing_is_given_twice(void **state)
{
	struct chaos_result *result = NEW(struct chaos_result);
	int64_t starts = 0, releases = 0, crashes = 0, takeovers = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 8; seed++) {
		run_seed(seed, 4000, 0, result);
		starts += result->starts;
		releases += result->releases;
		crashes += result->crashes;
		takeovers += result->takeovers;
	}
	assert_true(starts > 0 && releases > 0 && crashes > 0 && takeovers > 0);
	free(result);
}

static void the_same_seed_does_the_same_again(void **state)
{
	struct chaos_result *first = NEW(struct chaos_result), *second = NEW(struct chaos_result);

	(void)state;
	run_seed(7, 3000, 0, first);
	run_seed(7, 3000, 0, second);
	assert_true(first->digest == second->digest && first->starts == second->starts);
	run_seed(8, 3000, 0, second);
	assert_true(first->digest != second->digest);
	free(first);
	free(second);
}

static void without_kills_and_take_overs_there_are_none(void **state)
{
	struct chaos_result *result = NEW(struct chaos_result);

	(void)state;
	run_seed(3, 3000, 1U << KUBE_KILL | 1U << KUBE_SECOND, result);
	assert_int_equal(result->crashes, 0);
	assert_int_equal(result->takeovers, 0);
	free(result);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whatever_the_api_server_does_nothing_is_given_twice),
		cmocka_unit_test(the_same_seed_does_the_same_again),
		cmocka_unit_test(without_kills_and_take_overs_there_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
