/* property_bills.h - the runs that a core writes, as someone who bills by them */
#ifndef CORE_TEST_PROPERTY_BILLS_H
#define CORE_TEST_PROPERTY_BILLS_H

#include "core/test/property_keeper.h"

/* The sum of one tenant's finished runs. */
struct bill {
	int64_t tenant_id, gpu_ms;
	bool is_parent; /* was one: its meter counts what others used, too */
};

struct bills {
	struct map by_tenant;
	int64_t last_run_id;
	int64_t runs;
};

/* Adds the runs among the effects, which are numbered one by one. */
void bills_add(struct bills *bills, const struct effects *effects);
/* Panics unless the meters of each tenant without children equal the sum of its runs, current
 * ones included. */
void bills_check(const struct bills *bills, const struct keeper *keeper, const struct sched *sched);
void bills_free(struct bills *bills);

#endif
