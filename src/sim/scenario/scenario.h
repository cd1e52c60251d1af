/* scenario.h - scenario files: which cases they have, and what became of each */
#ifndef SIM_SCENARIO_SCENARIO_H
#define SIM_SCENARIO_SCENARIO_H

#include <jansson.h>
#include <stdio.h>

#include "base/buffer.h"

/* What became of a case. */
enum verdict {
	VERDICT_PASSED,
	VERDICT_FAILED,     /* it came out differently */
	VERDICT_UNREADABLE, /* it could not be run: a field is missing or wrong */
};

/* Runs one case. Appends the reason if it does not pass, on one line; writes
 * what happens on the way to `trace` unless that is NULL. */
typedef enum verdict scenario_run(const json_t *scenario, FILE *trace, struct buffer *reason);

/* gpu-sim scenario: runs the cases of the files that are named, one line each,
 * and counts them. Returns the exit status: 0 if all passed, 1 if one failed,
 * 2 if something could not be read. */
int scenario_main(int argc, char **argv);

#endif
