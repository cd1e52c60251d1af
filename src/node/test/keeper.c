/* keeper.c - the store of the core's own property test, for walks with a real core */
#include "core/test/property_keeper.c"
