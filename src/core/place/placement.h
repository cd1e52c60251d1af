/* placement.h - what placement sees of the scheduler: the ledger, the settings, its own caches */
#ifndef CORE_PLACE_PLACEMENT_H
#define CORE_PLACE_PLACEMENT_H

#include "core/cluster/index.h"
#include "core/place/rack_capacity.h"
#include "core/place/scarcity.h"
#include "core/place/score_cache.h"
#include "core/place/workload_mix.h"

/* Where tasks, gangs and slots go is decided from this alone. The scheduler owns what
 * is pointed to; the caches and the mix of workloads belong to placement. */
struct placement {
	struct ledger *ledger;
	const struct config_record *config;
	struct cluster *cluster;
	struct index *index;
	struct shapes *shapes;
	const struct map *jobs; /* by id: whose promise it is that a GPU has */
	struct score_caches score_caches;
	struct rack_capacity rack_capacity;
	struct workload_mix workload_mix;
	struct scarcity scarcity;
};

static inline int64_t placement_now(const struct placement *placement)
{
	return placement->ledger->meta->now_ms;
}

void placement_free(struct placement *placement);
/* Panics unless what is cached equals what is computed from scratch. */
void placement_check(struct placement *placement);

#endif
