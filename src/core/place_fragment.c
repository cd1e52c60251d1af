/* place_fragment.c - policy: leave behind what the tasks that arrive can use */
#include "core/place.h"

#include "core/state.h"

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
static int64_t combine(int64_t growth, int64_t imbalanced)
{
	return growth * 4096 + imbalanced;
}

int64_t place_fragment(struct sched *sched, const struct search *search, struct choice *choice)
{
	const struct node *node = choice->node;
	int32_t milli[GPUS_PER_NODE_MAX];
	int64_t cpu = host_free_now(&node->cpu, node->r.cpu_milli), gpu_free = 0;
	int64_t cpu_after = cpu - search->shape->request.cpu_milli;

	for (int i = 0; i < node->gpu_count; i++)
		milli[i] = gpu_free_milli(node->gpus[i]);
	int64_t before = mix_fragmentation(&sched->mix, cpu, milli, node->gpu_count);
	for (int i = 0; i < choice->part_count; i++)
		for (int j = 0; j < node->gpu_count; j++)
			if (node->gpus[j] == choice->parts[i].gpu)
				milli[j] = (int32_t)max64(milli[j] - choice->parts[i].share, 0);
	int64_t after = mix_fragmentation(&sched->mix, cpu_after, milli, node->gpu_count);
	for (int i = 0; i < node->gpu_count; i++)
		gpu_free += milli[i];
	return combine(after - before, imbalance(cpu_after, node->r.cpu_milli, gpu_free,
	                                         (int64_t)node->gpu_count * WHOLE_GPU));
}

bool fragment_sees(const struct mix *mix, const struct shape *shape)
{
	const struct request *request = &shape->request;
	bool linked = shape->closeness == CLOSE_NVLINK && shape->closeness_required;

	if (mix->weights.split_count > 0 || *shape->filter->models)
		return false;
	switch (request->gpu_kind) {
	case GPU_NONE:
		return true;
	case GPU_WHOLE:
		return request->memory_mib == 0 && (request->gpu_count == 1 || !linked);
	case GPU_FRACTION:
		return request->gpu_count == 1;
	default:
		return false;
	}
}

/* All GPUs of the node, seen with an amount of CPU. */
static struct mix_sum sum_up(const struct mix *mix, const struct node_view *view, int64_t cpu_milli)
{
	struct mix_sum sum = mix_sum_begin(mix, cpu_milli);

	for (int i = 0; i < view->kind_count; i++)
		mix_sum_add(&sum, view->kinds[i].free_milli, view->kinds[i].times);
	return sum;
}

/* Makes the fragmentation in the view that by this mix. */
static void look_with(const struct mix *mix, struct node_view *view)
{
	if (view->mix == mix->version)
		return;
	struct mix_sum sum = sum_up(mix, view, view->cpu_now_milli);
	view->fragmentation = mix_sum_fragmentation(&sum);
	view->mix = mix->version;
}

static int64_t score_of(const struct node_view *view, const struct mix_sum *after,
                        int64_t cpu_after)
{
	return combine(mix_sum_fragmentation(after) - view->fragmentation,
	               imbalance(cpu_after, view->cpu_total_milli, after->total_milli,
	                         (int64_t)view->gpu_count * WHOLE_GPU));
}

/* The lowest score over the GPUs that have room for the fraction. */
static int64_t score_fraction(const struct node_view *view, const struct mix_sum *sum,
                              int32_t fraction, int64_t cpu_after)
{
	int64_t best = TOURNAMENT_NONE;

	for (int i = 0; i < view->kind_count; i++) {
		int32_t milli = view->kinds[i].free_milli;
		if (view->kinds[i].takes_milli < fraction)
			continue;
		struct mix_sum after = *sum;
		mix_sum_add(&after, milli, -1);
		mix_sum_add(&after, milli > fraction ? milli - fraction : 0, 1);
		best = min64(best, score_of(view, &after, cpu_after));
	}
	return best;
}

int64_t fragment_score(const struct mix *mix, const struct request *request, struct node_view *view)
{
	int64_t cpu_after = view->cpu_now_milli - request->cpu_milli;

	if (!view->open || (request->cpu_milli > 0 && view->cpu_milli < request->cpu_milli) ||
	    (request->host_bytes > 0 && view->host_bytes < request->host_bytes) ||
	    (request->gpu_kind == GPU_WHOLE && view->whole < request->gpu_count))
		return TOURNAMENT_NONE;
	look_with(mix, view);
	struct mix_sum sum = sum_up(mix, view, cpu_after);
	if (request->gpu_kind == GPU_FRACTION)
		return score_fraction(view, &sum, request->fraction, cpu_after);
	if (request->gpu_kind == GPU_WHOLE) {
		INVARIANT(view->plain);
		mix_sum_add(&sum, WHOLE_GPU, -request->gpu_count);
	}
	return score_of(view, &sum, cpu_after);
}
