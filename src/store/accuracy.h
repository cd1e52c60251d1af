/* accuracy.h - how well run times and starts of jobs were predicted, over a period */
#ifndef STORE_ACCURACY_H
#define STORE_ACCURACY_H

#include "store/store.h"

/* Of jobs that ended in a period, with the prediction that was made at their submission. Only
 * the last finished jobs are known, from which run times are learned. */
struct accuracy {
	int64_t tenant_id;                /* 0: of all */
	int32_t basis;                    /* of the predictions, see basis_name(); -1: of any */
	int64_t jobs;                     /* that were predicted */
	int64_t within_p90, within_twice; /* of those: took no longer, and half to twice as long */
	int64_t error; /* the median of the factors by which predictions were off, thousandths */
	/* Of jobs that started in the period: how many had a promised start, and kept it. */
	int64_t promised, kept;
};

/* The period is from `from_ms` to before `until_ms`, of these tenants; count 0: of all. */
struct accuracy_filter {
	int64_t from_ms, until_ms;
	const int64_t *tenant_ids;
	size_t tenant_count;
};

struct accuracy_report {
	struct accuracy all;
	struct accuracy *tenants, *bases; /* in order; bases have no promises */
	int64_t tenant_count, basis_count;
};

/* Reads through a store that does not lead; the report lives in the arena. */
bool accuracy_read(struct store *store, const struct accuracy_filter *filter, struct arena *arena,
                   struct accuracy_report *report, struct error *error);

#endif
