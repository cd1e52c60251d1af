/* place_fragment.c - policy: leave behind what the tasks that arrive can use */
#include "core/place/place.h"

#include "core/state.h"

/* Thousandths of a node's CPU that are free. */
static int64_t cpu_part(int64_t free_milli, int64_t total_milli)
{
	return total_milli > 0 ? free_milli * 1000 / total_milli : 1000;
}

/* The same of its GPUs. */
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

int64_t place_fragment(struct sched *sched, const struct search *search, struct choice *choice)
{
	const struct node *node = choice->node;
	int32_t milli[GPUS_PER_NODE_MAX];
	int64_t cpu = host_free_now(&node->cpu, node->r.cpu_milli), gpu_free = 0;
	int64_t cpu_after = cpu - search->shape->request.cpu_milli;

	INVARIANT(node->gpu_count <= GPUS_PER_NODE_MAX && choice->part_count <= PARTS_MAX);
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
	return combine(after - before, gpu_part(gpu_free, node->gpu_count),
	               cpu_part(cpu_after, node->r.cpu_milli));
}

bool fragment_sees(struct sched *sched, const struct shape *shape)
{
	return sched->mix.weights.split_count == 0 && shape_is_plain(shape);
}

/* Makes what is in the view by a mix that by this one. */
static void look_with(const struct mix *mix, struct node_view *view)
{
	const struct mix_row row = mix_row(&mix->weights, view->cpu_now_milli);

	for (int i = 0; i < view->kind_count; i++)
		view->kinds[i].level = mix->weights.level[view->kinds[i].free_milli];
	view->before =
	    mix_row_fragmentation(&row, view->free_milli, view->whole, view_fit(view, &row));
	view->mix = mix->version;
}

/* A node as a task would leave it: seen with the CPU that is left. */
struct leaving {
	struct mix_row row;
	int64_t fit, cpu_part;
};

static int64_t score_of(const struct node_view *view, const struct leaving *leaving,
                        int64_t free_milli, int64_t whole, int64_t fit)
{
	return combine(mix_row_fragmentation(&leaving->row, free_milli, whole, fit) - view->before,
	               gpu_part(free_milli, view->gpu_count), leaving->cpu_part);
}

/* The lowest score over the GPUs that have room for the fraction. */
static int64_t score_fraction(const struct mix *mix, const struct node_view *view,
                              const struct leaving *leaving, int32_t fraction)
{
	const int32_t *single = leaving->row.single;
	int64_t best = TOURNAMENT_NONE;

	for (int i = 0; i < view->kind_count; i++) {
		int32_t milli = view->kinds[i].free_milli;
		int32_t left = milli > fraction ? milli - fraction : 0;
		if (view->kinds[i].takes_milli < fraction)
			continue;
		int64_t fit = leaving->fit - (int64_t)milli * single[view->kinds[i].level] +
		              (int64_t)left * single[mix->weights.level[left]];
		best = min64(best, score_of(view, leaving, view->free_milli - milli + left,
		                            view->whole - (milli == WHOLE_GPU), fit));
	}
	return best;
}

static int64_t score_whole(const struct mix *mix, const struct node_view *view,
                           const struct leaving *leaving, int gpu_count)
{
	int32_t milli = gpu_count * WHOLE_GPU;
	int32_t weight = leaving->row.single[mix->weights.level[WHOLE_GPU]];

	return score_of(view, leaving, view->free_milli - milli, view->whole - gpu_count,
	                leaving->fit - (int64_t)milli * weight);
}

int64_t fragment_score(struct sched *sched, const struct shape *shape, struct node_view *view)
{
	const struct mix *mix = &sched->mix;
	const struct request *request = &shape->request;
	int64_t cpu_after = view->cpu_now_milli - request->cpu_milli;

	INVARIANT(view->plain && view->uniform); /* so that `whole` are the GPUs of which all is
	                                            free */
	if (!view_takes(view, request))
		return TOURNAMENT_NONE;
	if (view->mix != mix->version)
		look_with(mix, view);
	struct leaving leaving = { .row = mix_row(&mix->weights, cpu_after),
		                   .cpu_part = cpu_part(cpu_after, view->cpu_total_milli) };
	leaving.fit = view_fit(view, &leaving.row);
	if (request->gpu_kind == GPU_FRACTION)
		return score_fraction(mix, view, &leaving, request->fraction);
	return score_whole(mix, view, &leaving,
	                   request->gpu_kind == GPU_WHOLE ? request->gpu_count : 0);
}
