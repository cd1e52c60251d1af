/* place_pack.c - policy: fill what is already in use */
#include "core/place/place.h"

/* Least left over: of the GPU for a part of one, of the node for whole ones. */
int64_t place_pack(struct placement *placement, const struct search *search, struct choice *choice)
{
	const struct node *node = choice->node;
	int64_t left = 0;

	INVARIANT(choice->node != NULL);
	(void)placement;
	if (choice->part_count == 0)
		return host_free_now(&node->cpu, node_cpu_milli(node));
	if (search->shape->request.gpu_kind != GPU_WHOLE)
		for (int i = 0; i < choice->part_count; i++)
			left += gpu_free_later(choice->parts[i].gpu) - choice->parts[i].mib;
	for (int i = 0; i < node->gpu_count && search->shape->request.gpu_kind == GPU_WHOLE; i++)
		left += gpu_empty_later(node->gpus[i]);
	return left;
}
