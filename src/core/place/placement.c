/* placement.c - what placement sees of the scheduler: the ledger, the settings, its own caches */
#include "core/place/placement.h"

void placement_free(struct placement *placement)
{
	score_caches_free(&placement->score_caches);
	rack_capacity_free(&placement->rack_capacity);
	workload_mix_free(&placement->workload_mix);
	scarcity_free(&placement->scarcity);
}

void placement_check(struct placement *placement)
{
	score_caches_check(placement);
	rack_capacity_check(placement);
	scarcity_check(placement);
}
