/* property_bills.h - the runs that a core writes, as someone who bills by them */
#ifndef CORE_TEST_PROPERTY_BILLS_H
#define CORE_TEST_PROPERTY_BILLS_H

#include "core/test/property_keeper.h"

/* What one tenant's runs that are over add up to. */
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
/* Whether what each tenant without children has been metered for is what its runs
 * add up to, those included that go on. Panics if not. */
void bills_check(const struct bills *bills, const struct keeper *keeper, const struct sched *sched);
void bills_free(struct bills *bills);

#endif
