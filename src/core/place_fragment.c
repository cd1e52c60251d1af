/* place_fragment.c - policy: leave behind what the tasks that arrive can use */
#include "core/place.h"

#include "core/state.h"

static int32_t free_milli(const struct gpu *gpu)
{
	int64_t usable = gpu_usable_mib(gpu);
	int64_t free_mib = min64(gpu_free_now(gpu), gpu_free_later(gpu));

	if (usable == 0 || free_mib <= 0 || !gpu_shareable_now(gpu))
		return 0;
	return (int32_t)(free_mib >= usable ? WHOLE_GPU : free_mib * WHOLE_GPU / usable);
}

/* Thousandths by which the node's free CPU and free GPU, as parts of what it
 * has, are apart: a node out of balance strands one of them. */
static int64_t imbalance(int64_t cpu_free, int64_t cpu_total, int64_t gpu_free, int64_t gpu_total)
{
	int64_t cpu = cpu_total > 0 ? cpu_free * 1000 / cpu_total : 1000;
	int64_t gpu = gpu_total > 0 ? gpu_free * 1000 / gpu_total : 0;

	return 1000 + gpu - cpu;
}

/* How much the node's expected fragmentation grows; among equals, the node that
 * keeps CPU for the GPUs it has left. */
int64_t place_fragment(struct sched *sched, const struct search *search, struct choice *choice)
{
	const struct node *node = choice->node;
	int32_t milli[GPUS_PER_NODE_MAX];
	int64_t cpu = host_free_now(&node->cpu, node->r.cpu_milli), gpu_free = 0;
	int64_t cpu_after = cpu - search->shape->request.cpu_milli;

	for (int i = 0; i < node->gpu_count; i++)
		milli[i] = free_milli(node->gpus[i]);
	int64_t before = mix_fragmentation(&sched->mix, cpu, milli, node->gpu_count);
	for (int i = 0; i < choice->part_count; i++)
		for (int j = 0; j < node->gpu_count; j++)
			if (node->gpus[j] == choice->parts[i].gpu)
				milli[j] = (int32_t)max64(milli[j] - choice->parts[i].share, 0);
	int64_t after = mix_fragmentation(&sched->mix, cpu_after, milli, node->gpu_count);
	for (int i = 0; i < node->gpu_count; i++)
		gpu_free += milli[i];
	return (after - before) * 4096 + imbalance(cpu_after, node->r.cpu_milli, gpu_free,
	                                           (int64_t)node->gpu_count * WHOLE_GPU);
}
