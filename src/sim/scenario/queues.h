/* queues.h - runs cases of quota, fair share, making room, gangs and fractions */
#ifndef SIM_SCENARIO_QUEUES_H
#define SIM_SCENARIO_QUEUES_H

#include "sim/scenario/scenario.h"

/* Sets the case up in a core, runs its rounds and compares what is expected
 * after them, and after each of its stable rounds. */
scenario_run queues_run;

#endif
