/* models.h - runs cases of models in slots, with runners and requests */
#ifndef SIM_SCENARIO_MODELS_H
#define SIM_SCENARIO_MODELS_H

#include "sim/scenario/scenario.h"

/* Sets the case's runners up, runs its steps in order, and stops at the first
 * that comes out differently. */
scenario_run models_run_case;

#endif
