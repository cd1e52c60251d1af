/* growth.c - by how much a choice adds to what a node wastes, as a policy measures that */
#include "core/growth.h"

#include "core/state.h"

/* The end counts for so much more than the next task. Without any regard for the
 * next one, large tasks would be turned away early for the sake of small ones that
 * fill GPUs better in the end. */
#define NEXT_TASK 8

struct measure measure_of(struct mix *mix, enum policy policy)
{
	INVARIANT(policy_measures(policy));
	return policy == POLICY_WORTH ? (struct measure){ &mix->demand, mix_worth(mix) }
	                              : (struct measure){ &mix->weights, NULL };
}

/* Waste without the free GPUs themselves, of which a choice takes the same
 * wherever it goes. */
static int64_t waste(int64_t fragmentation, const struct worth_sum *worth, int64_t cpu_milli)
{
	return worth ? fragmentation / NEXT_TASK - worth_sum_with(worth, cpu_milli) : fragmentation;
}

static int64_t waste_of(struct measure measure, int64_t cpu_milli, const int32_t *free_milli,
                        int gpu_count)
{
	int64_t fragmentation =
	    weights_fragmentation(measure.weights, cpu_milli, free_milli, gpu_count);
	struct worth_sum worth = { 0 };

	for (int i = 0; i < gpu_count && measure.worth; i++)
		worth_sum_add(&worth, measure.worth, free_milli[i], 1);
	return waste(fragmentation, measure.worth ? &worth : NULL, cpu_milli);
}

int64_t growth_of_choice(struct measure measure, const struct search *search,
                         const struct choice *choice)
{
	const struct node *node = choice->node;
	int32_t milli[GPUS_PER_NODE_MAX];
	int64_t cpu = host_free_now(&node->cpu, node->r.cpu_milli);

	for (int i = 0; i < node->gpu_count; i++)
		milli[i] = gpu_free_milli(node->gpus[i]);
	int64_t before = waste_of(measure, cpu, milli, node->gpu_count);
	for (int i = 0; i < choice->part_count; i++)
		for (int j = 0; j < node->gpu_count; j++)
			if (node->gpus[j] == choice->parts[i].gpu)
				milli[j] = (int32_t)max64(milli[j] - choice->parts[i].share, 0);
	return waste_of(measure, cpu - search->shape->request.cpu_milli, milli, node->gpu_count) -
	       before;
}

bool growth_sees(struct measure measure, const struct shape *shape)
{
	const struct request *request = &shape->request;
	bool linked = shape->closeness == CLOSE_NVLINK && shape->closeness_required;

	if (measure.weights->split_count > 0 || *shape->filter->models)
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

/* All GPUs of a node, seen with an amount of CPU. */
struct growth_sum {
	struct measure measure;
	int64_t cpu_milli;
	struct mix_sum mix;
	struct worth_sum worth;
};

static void add(struct growth_sum *sum, int32_t milli, int times)
{
	mix_sum_add(&sum->mix, milli, times);
	if (sum->measure.worth)
		worth_sum_add(&sum->worth, sum->measure.worth, milli, times);
}

static struct growth_sum sum_up(struct measure measure, const struct node_view *view,
                                int64_t cpu_milli)
{
	struct growth_sum sum = {
		measure, cpu_milli, mix_sum_begin(measure.weights, cpu_milli), { 0 }
	};

	for (int i = 0; i < view->kind_count; i++)
		add(&sum, view->kinds[i].free_milli, view->kinds[i].times);
	return sum;
}

static int64_t waste_of_sum(const struct growth_sum *sum)
{
	return waste(mix_sum_fragmentation(&sum->mix), sum->measure.worth ? &sum->worth : NULL,
	             sum->cpu_milli);
}

/* Makes the waste in the view that by this version of the mix. */
static void look_with(struct measure measure, uint64_t version, struct node_view *view)
{
	if (view->mix == version)
		return;
	struct growth_sum sum = sum_up(measure, view, view->cpu_now_milli);
	view->waste = waste_of_sum(&sum);
	view->mix = version;
}

/* The lowest score over the GPUs that have room for the fraction. */
static int64_t score_fraction(const struct node_view *view, const struct growth_sum *sum,
                              int32_t fraction)
{
	int64_t best = TOURNAMENT_NONE;

	for (int i = 0; i < view->kind_count; i++) {
		int32_t milli = view->kinds[i].free_milli;
		if (view->kinds[i].takes_milli < fraction)
			continue;
		struct growth_sum after = *sum;
		add(&after, milli, -1);
		add(&after, milli > fraction ? milli - fraction : 0, 1);
		best = min64(best, waste_of_sum(&after) - view->waste);
	}
	return best;
}

int64_t growth_of_view(struct measure measure, uint64_t version, const struct request *request,
                       struct node_view *view)
{
	if (!view->open || (request->cpu_milli > 0 && view->cpu_milli < request->cpu_milli) ||
	    (request->host_bytes > 0 && view->host_bytes < request->host_bytes) ||
	    (request->gpu_kind == GPU_WHOLE && view->whole < request->gpu_count))
		return TOURNAMENT_NONE;
	look_with(measure, version, view);
	struct growth_sum sum = sum_up(measure, view, view->cpu_now_milli - request->cpu_milli);
	if (request->gpu_kind == GPU_FRACTION)
		return score_fraction(view, &sum, request->fraction);
	if (request->gpu_kind == GPU_WHOLE) {
		INVARIANT(view->plain);
		add(&sum, WHOLE_GPU, -request->gpu_count);
	}
	return waste_of_sum(&sum) - view->waste;
}
