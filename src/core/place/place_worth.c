/* place_worth.c - policy: leave behind what will be used in the end */
#include "core/place/place.h"

#include "core/state.h"

/* The end counts for so much more than the next task. Without any regard for the
 * next one, large tasks would be turned away early for the sake of small ones that
 * fill GPUs better in the end. */
#define NEXT_TASK 8

/* What a node wastes, but for the free GPUs themselves, of which a choice takes the
 * same wherever it goes. */
static inline int64_t combine(int64_t fragmentation, const struct worth_sum *sum, int64_t cpu_milli)
{
	return fragmentation / NEXT_TASK - worth_sum_with(sum, cpu_milli);
}

static int64_t waste_of(struct sched *sched, const struct node *node, int64_t cpu_milli,
                        const int32_t *free_milli)
{
	struct mix *mix = &sched->mix;
	const struct worth *worth = mix_worth(mix);
	struct worth_sum sum = { 0 };

	for (int i = 0; i < node->gpu_count; i++)
		worth_sum_add(&sum, worth, free_milli[i],
		              premium_of(&sched->premium, node->gpus[i]->model), 1);
	return combine(weights_fragmentation(&mix->demand, cpu_milli, free_milli, node->gpu_count),
	               &sum, cpu_milli);
}

/* How much of what the node's free GPUs are worth is lost, with regard for the
 * next tasks too. */
int64_t place_worth(struct sched *sched, const struct search *search, struct choice *choice)
{
	const struct node *node = choice->node;
	int32_t milli[GPUS_PER_NODE_MAX];
	int64_t cpu = host_free_now(&node->cpu, node->r.cpu_milli);

	INVARIANT(node->gpu_count <= GPUS_PER_NODE_MAX && choice->part_count <= PARTS_MAX);
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

bool worth_sees(struct sched *sched, const struct shape *shape)
{
	mix_worth(&sched->mix); /* brings `demand` up to date */
	return sched->mix.demand.split_count == 0 && shape_is_plain(shape);
}

/* A node as a task would leave it: seen with the CPU that is left. */
struct leaving {
	const struct worth *worth;
	const uint8_t *level;
	struct mix_row row;
	int64_t fit, cpu_milli;
	int32_t premium;
};

/* Makes what is in the view by a mix and by a premium that by these. */
static void look_with(const struct mix *mix, int32_t premium, struct node_view *view)
{
	const struct mix_row row = mix_row(&mix->demand, view->cpu_now_milli);
	struct worth_sum sum = { 0 };

	for (int i = 0; i < view->kind_count; i++) {
		struct view_kind *kind = &view->kinds[i];
		kind->level = mix->demand.level[kind->free_milli];
		worth_sum_add(&sum, &mix->worth, kind->free_milli, premium, kind->times);
	}
	view->before = combine(
	    mix_row_fragmentation(&row, view->free_milli, view->whole, view_fit(view, &row)), &sum,
	    view->cpu_now_milli);
	view->value = sum.value;
	view->need_milli = sum.cpu_milli;
	view->need_variance = sum.cpu_variance;
	view->mix = mix->version;
	view->premium = premium;
}

/* What the loss is if of `count` GPUs that have `milli` free `left` is left. */
static int64_t loss(const struct node_view *view, const struct leaving *leaving, int32_t milli,
                    int32_t left, int count)
{
	const struct worth *worth = leaving->worth;
	const int32_t *single = leaving->row.single;
	struct worth_sum sum = { view->value, view->need_milli, view->need_variance };
	int64_t fit = leaving->fit + count * ((int64_t)left * single[leaving->level[left]] -
	                                      (int64_t)milli * single[leaving->level[milli]]);

	worth_sum_add(&sum, worth, milli, leaving->premium, -count);
	worth_sum_add(&sum, worth, left, leaving->premium, count);
	return combine(mix_row_fragmentation(&leaving->row,
	                                     view->free_milli - count * (milli - left),
	                                     view->whole - (milli == WHOLE_GPU ? count : 0), fit),
	               &sum, leaving->cpu_milli) -
	       view->before;
}

/* The lowest score over the GPUs that have room for the fraction. */
static int64_t score_fraction(const struct node_view *view, const struct leaving *leaving,
                              int32_t fraction)
{
	int64_t best = TOURNAMENT_NONE;

	for (int i = 0; i < view->kind_count; i++) {
		int32_t milli = view->kinds[i].free_milli;
		if (view->kinds[i].takes_milli >= fraction)
			best = min64(best, loss(view, leaving, milli,
			                        milli > fraction ? milli - fraction : 0, 1));
	}
	return best;
}

int64_t worth_score(struct sched *sched, const struct shape *shape, struct node_view *view)
{
	const struct mix *mix = &sched->mix;
	const struct request *request = &shape->request;
	int64_t cpu_after = view->cpu_now_milli - request->cpu_milli;
	int32_t premium = premium_of(&sched->premium, view->model);

	INVARIANT(view->plain && view->uniform && mix->worth_version == mix->version);
	if (!view_takes(view, request))
		return TOURNAMENT_NONE;
	if (view->mix != mix->version || view->premium != premium)
		look_with(mix, premium, view);
	struct leaving leaving = {
		.worth = &mix->worth,
		.level = mix->demand.level,
		.row = mix_row(&mix->demand, cpu_after),
		.cpu_milli = cpu_after,
		.premium = premium,
	};
	leaving.fit = view_fit(view, &leaving.row);
	if (request->gpu_kind == GPU_FRACTION)
		return score_fraction(view, &leaving, request->fraction);
	return loss(view, &leaving, WHOLE_GPU, 0,
	            request->gpu_kind == GPU_WHOLE ? request->gpu_count : 0);
}
