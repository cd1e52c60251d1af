/* property_liar.h - a node that reports on what other nodes have */
#ifndef CORE_TEST_PROPERTY_LIAR_H
#define CORE_TEST_PROPERTY_LIAR_H

#include "core/test/property_generator.h"
#include "core/test/property_run.h"

/* A node that the core knows claims something about another's reservation, slot or GPU.
 * Panics unless the core refuses it, or, where it is part of a report that is true
 * otherwise, decides exactly what it would have decided without the lies. */
void liar_speaks(struct run *run, struct generator *generator);

#endif
