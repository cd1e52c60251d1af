/* place_fragment.c - policy: leave behind what the tasks that arrive can use */
#include "core/place/place.h"

#include "core/place/placement.h"

/* Thousandths of a node's CPU that are free. */
static int64_t cpu_part(int64_t free_milli, int64_t total_milli)
{
	return total_milli > 0 ? free_milli * 1000 / total_milli : 1000;
}

/* Thousandths of a node's GPUs that are free. */
static int64_t gpu_part(int64_t free_milli, int gpu_count)
{
	return gpu_count > 0 ? (int32_t)free_milli / gpu_count : 0;
}

/* How much the node's expected fragmentation grows; among equals, the node that
 * keeps CPU for the GPUs it has left: one out of balance strands either of them. */
static int64_t combine(int64_t growth, int64_t gpu_left, int64_t cpu_left)
{
	return growth * 4096 + 1000 + gpu_left - cpu_left;
}

int64_t place_fragment(struct placement *placement, const struct search *search,
                       struct choice *choice)
{
	const struct node *node = choice->node;
	int32_t milli[GPUS_PER_NODE_MAX];
	int64_t cpu = host_free_now(&node->cpu, node_cpu_milli(node)), gpu_free = 0;
	int64_t cpu_after = cpu - search->shape->request.cpu_milli;

	INVARIANT(node->gpu_count <= GPUS_PER_NODE_MAX && choice->part_count <= PARTS_MAX);
	for (int i = 0; i < node->gpu_count; i++)
		milli[i] = gpu_free_milli(node->gpus[i]);
	int64_t before =
	    workload_mix_fragmentation(&placement->workload_mix, cpu, milli, node->gpu_count);
	for (int i = 0; i < choice->part_count; i++)
		for (int j = 0; j < node->gpu_count; j++)
			if (node->gpus[j] == choice->parts[i].gpu)
				milli[j] = (int32_t)max64(milli[j] - choice->parts[i].share, 0);
	int64_t after =
	    workload_mix_fragmentation(&placement->workload_mix, cpu_after, milli, node->gpu_count);
	for (int i = 0; i < node->gpu_count; i++)
		gpu_free += milli[i];
	return combine(after - before, gpu_part(gpu_free, node->gpu_count),
	               cpu_part(cpu_after, node_cpu_milli(node)));
}

bool fragment_sees(struct placement *placement, const struct shape *shape)
{
	return placement->workload_mix.weights.split_count == 0 && shape_is_plain(shape);
}

/* Makes what is in the summary by a mix that by this one. */
static void look_with(const struct workload_mix *mix, struct node_summary *summary)
{
	const struct workload_row row = workload_row(&mix->weights, summary->cpu_now_milli);

	for (int i = 0; i < summary->kind_count; i++)
		summary->kinds[i].level = mix->weights.level[summary->kinds[i].free_milli];
	summary->before = workload_row_fragmentation(&row, summary->free_milli, summary->whole,
	                                             node_summary_fit(summary, &row));
	summary->mix = mix->version;
}

/* A node as a task would leave it: seen with the CPU that is left. */
struct leaving {
	struct workload_row row;
	int64_t fit, cpu_part;
};

static int64_t fragment_score_of(const struct node_summary *summary, const struct leaving *leaving,
                                 int64_t free_milli, int64_t whole, int64_t fit)
{
	return combine(workload_row_fragmentation(&leaving->row, free_milli, whole, fit) -
	                   summary->before,
	               gpu_part(free_milli, summary->gpu_count), leaving->cpu_part);
}

/* The lowest score over the GPUs that have room for the fraction. */
static int64_t score_fraction(const struct workload_mix *mix, const struct node_summary *summary,
                              const struct leaving *leaving, int32_t fraction)
{
	const int32_t *single = leaving->row.single;
	int64_t best = TOURNAMENT_NONE;

	for (int i = 0; i < summary->kind_count; i++) {
		int32_t milli = summary->kinds[i].free_milli;
		int32_t left = milli > fraction ? milli - fraction : 0;
		if (summary->kinds[i].takes_milli < fraction)
			continue;
		int64_t fit = leaving->fit - (int64_t)milli * single[summary->kinds[i].level] +
		              (int64_t)left * single[mix->weights.level[left]];
		best = min64(best,
		             fragment_score_of(summary, leaving, summary->free_milli - milli + left,
		                               summary->whole - (milli == WHOLE_GPU), fit));
	}
	return best;
}

static int64_t score_whole(const struct workload_mix *mix, const struct node_summary *summary,
                           const struct leaving *leaving, int gpu_count)
{
	int32_t milli = gpu_count * WHOLE_GPU;
	int32_t weight = leaving->row.single[mix->weights.level[WHOLE_GPU]];

	return fragment_score_of(summary, leaving, summary->free_milli - milli,
	                         summary->whole - gpu_count,
	                         leaving->fit - (int64_t)milli * weight);
}

int64_t fragment_score(struct placement *placement, const struct shape *shape,
                       struct node_summary *summary)
{
	const struct workload_mix *mix = &placement->workload_mix;
	const struct shape_request *request = &shape->request;
	int64_t cpu_after = summary->cpu_now_milli - request->cpu_milli;

	INVARIANT(summary->plain && summary->uniform); /* so that `whole` are the GPUs of which all
	                                            is free */
	if (!node_summary_takes(summary, request))
		return TOURNAMENT_NONE;
	if (summary->mix != mix->version)
		look_with(mix, summary);
	struct leaving leaving = { .row = workload_row(&mix->weights, cpu_after),
		                   .cpu_part = cpu_part(cpu_after, summary->cpu_total_milli) };
	leaving.fit = node_summary_fit(summary, &leaving.row);
	if (request->gpu_kind == GPU_FRACTION)
		return score_fraction(mix, summary, &leaving, request->fraction);
	return score_whole(mix, summary, &leaving,
	                   request->gpu_kind == GPU_WHOLE ? request->gpu_count : 0);
}
