/* place_worth.c - policy: leave behind what will be used in the end */
#include "core/place.h"

#include "core/state.h"

/* The end counts for so much more than the next task. Without any regard for the
 * next one, large tasks would be turned away early for the sake of small ones that
 * fill GPUs better in the end. */
#define NEXT_TASK 8

/* What a node wastes, but for the free GPUs themselves, of which a choice takes the
 * same wherever it goes. */
static int64_t waste_of(struct sched *sched, const struct node *node, int64_t cpu_milli,
                        const int32_t *free_milli)
{
	struct mix *mix = &sched->mix;
	const struct worth *worth = mix_worth(mix);
	struct worth_sum sum = { 0 };

	for (int i = 0; i < node->gpu_count; i++)
		worth_sum_add(&sum, worth, free_milli[i],
		              premium_of(&sched->premium, node->gpus[i]));
	return weights_fragmentation(&mix->demand, cpu_milli, free_milli, node->gpu_count) /
	           NEXT_TASK -
	       worth_sum_with(&sum, cpu_milli);
}

/* How much of what the node's free GPUs are worth is lost, with regard for the
 * next tasks too. */
int64_t place_worth(struct sched *sched, const struct search *search, struct choice *choice)
{
	const struct node *node = choice->node;
	int32_t milli[GPUS_PER_NODE_MAX];
	int64_t cpu = host_free_now(&node->cpu, node->r.cpu_milli);

	for (int i = 0; i < node->gpu_count; i++)
		milli[i] = gpu_free_milli(node->gpus[i]);
	int64_t before = waste_of(sched, node, cpu, milli);
	for (int i = 0; i < choice->part_count; i++)
		for (int j = 0; j < node->gpu_count; j++)
			if (node->gpus[j] == choice->parts[i].gpu)
				milli[j] = (int32_t)max64(milli[j] - choice->parts[i].share, 0);
	cpu -= search->shape->request.cpu_milli;
	return waste_of(sched, node, cpu, milli) - before;
}
