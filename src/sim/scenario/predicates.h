/* predicates.h - gpu-sim predicates: kube-scheduler's cases, answered by the core */
#ifndef SIM_SCENARIO_PREDICATES_H
#define SIM_SCENARIO_PREDICATES_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buffer.h"

/* Runs one case: its nodes and pods are put into a new core, its pod is decoded, classified and
 * submitted, and the core says of each node why it refuses the pod. False, and what is wrong
 * appended to `reason`, if that is not what the case expects. */
bool predicates_run(const json_t *predicate_case, struct buffer *reason);
/* True if the case holds only with features that are not the defaults. */
bool predicates_is_left_out(const json_t *predicate_case);

int predicates_main(int argc, char **argv);

#endif
