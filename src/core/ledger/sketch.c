/* sketch.c - what would be free on a node if some of what is on it went */
#include "core/ledger/sketch.h"

#include "base/memory.h"

void sketch_begin(struct node *node)
{
	node->mark_cpu = node->mark_host = 0;
	for (int i = 0; i < node->gpu_count; i++) {
		struct gpu *gpu = node->gpus[i];
		gpu->mark_mib = 0;
		gpu->mark_owners = gpu->mark_whole = 0;
		gpu->mark_compute = (struct compute_sum){ 0 };
	}
}

static void sketch_change(const struct reservation *reservation, int sign)
{
	struct node *node = reservation->node;

	node->mark_cpu += sign * (reservation->away ? 0 : reservation->cpu_milli);
	node->mark_host += sign * (reservation->host_bytes + reservation->copy_bytes);
	for (int i = 0; i < reservation->part_count; i++) {
		const struct part *part = &reservation->parts[i];
		struct gpu *gpu = part->gpu;
		gpu->mark_mib += sign * reservation_held_mib(reservation, part);
		gpu->mark_owners += sign;
		gpu->mark_whole += sign * part->whole;
		compute_sum_add(&gpu->mark_compute, part, sign);
		INVARIANT(gpu->mark_owners >= 0);
	}
}

void sketch_go(const struct reservation *reservation)
{
	INVARIANT(reservation->phase == PHASE_GRANTED || reservation->phase == PHASE_LIVE ||
	          (reservation->phase == PHASE_SUSPENDED && reservation->residue_mib > 0));
	sketch_change(reservation, 1);
}

void sketch_stay(const struct reservation *reservation)
{
	sketch_change(reservation, -1);
}
