/* predicates_command.c - gpu-sim predicates: runs the cases of a file */
#include <stdio.h>
#include <string.h>

#include "sim/scenario/predicates.h"
#include "json/member.h"

enum { EXIT_USAGE = 2 };

static bool run_case(const json_t *predicate_case)
{
	struct buffer reason = { 0 };
	bool passed = predicates_run(predicate_case, &reason);

	if (!passed)
		printf("FAILED %s: %s: %s\n", member_text(predicate_case, "plugin"),
		       member_text(predicate_case, "name"), reason.data ? reason.data : "");
	buffer_free(&reason);
	return passed;
}

static int run_cases(const json_t *cases)
{
	const json_t *predicate_case;
	int passed = 0, failed = 0, left_out = 0;
	size_t i;

	json_array_foreach(cases, i, predicate_case)
	{
		if (predicates_is_left_out(predicate_case)) {
			printf("left out, since it needs features that are not the defaults: %s\n",
			       member_text(predicate_case, "name"));
			left_out++;
		} else if (run_case(predicate_case)) {
			passed++;
		} else {
			failed++;
		}
	}
	if (left_out > 0)
		printf("%d left out\n", left_out);
	printf("%d passed, %d failed\n", passed, failed);
	return failed > 0;
}

int predicates_main(int argc, char **argv)
{
	json_error_t error;

	if (argc != 2 || *argv[1] == '-') {
		fprintf(stderr, "usage: gpu-sim predicates FILE\n");
		return EXIT_USAGE;
	}
	json_t *cases = json_load_file(argv[1], JSON_REJECT_DUPLICATES, &error);
	if (!json_is_array(cases)) {
		fprintf(stderr, "gpu-sim: %s: %s\n", argv[1],
		        cases ? "not an array of cases" : error.text);
		json_decref(cases);
		return EXIT_USAGE;
	}
	int status = run_cases(cases);
	json_decref(cases);
	return status;
}
