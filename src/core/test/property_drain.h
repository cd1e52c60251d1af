/* property_drain.h - when all is well again, everything that can run runs and ends */
#ifndef CORE_TEST_PROPERTY_DRAIN_H
#define CORE_TEST_PROPERTY_DRAIN_H

#include "core/test/property_generator.h"
#include "core/test/property_run.h"

/* Puts the world right: all nodes online and healthy, no limits, nothing on hold;
 * then lets everything start and end. Panics if something is left in the ledger,
 * or if a job still waits that would fit the empty cluster. */
void drain(struct run *run, struct generator *generator);

#endif
