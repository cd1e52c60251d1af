/* walk_test.c - random walks: [SEEDS [FIRST [STEPS [-v]]]] for more than the usual few */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "node/test/walk.h"

static int64_t seeds = 40, first = 1, steps = 20000;
static bool verbose;

/* What must never happen ends the program; the seed is on the line before. */
static void whatever_fails_nothing_is_overfull_run_twice_lost_or_released_early(void **state)
{
	(void)state;
	for (int64_t seed = first; seed < first + seeds; seed++) {
		struct walk *walk = NEW(struct walk);
		fprintf(stderr, "seed %lld\n", (long long)seed);
		walk_init(walk, (uint64_t)seed);
		walk->verbose = verbose;
		walk_go(walk, steps);
		fprintf(stderr,
		        "%lld jobs, %lld starts, %lld ends, %lld releases, %lld crashes, "
		        "%lld messages lost\n",
		        (long long)walk->jobs, (long long)walk->starts, (long long)walk->ends,
		        (long long)walk->releases, (long long)walk->crashes,
		        (long long)walk->lost_messages);
		assert_true(walk->starts > 0 && walk->releases > 0 && walk->crashes > 0);
		walk_free(walk);
		free(walk);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    whatever_fails_nothing_is_overfull_run_twice_lost_or_released_early),
	};

	seeds = argc > 1 ? strtoll(argv[1], NULL, 10) : seeds;
	first = argc > 2 ? strtoll(argv[2], NULL, 10) : first;
	steps = argc > 3 ? strtoll(argv[3], NULL, 10) : steps;
	verbose = argc > 4;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
