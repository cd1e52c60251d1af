/* place_worth.c - policy: leave behind what will be used in the end */
#include "core/place/place.h"

#include "core/place/placement.h"

/* The end counts for so much more than the next task. Without any regard for the
 * next one, large tasks would be turned away early for the sake of small ones that
 * fill GPUs better in the end. */
#define NEXT_TASK 8
#define GIB_WEIGHED_MAX 4096 /* of one GPU: scores stay within 64 bits */

/* What a node wastes, but for the free GPUs themselves, of which a choice takes the
 * same wherever it goes. */
static inline int64_t combine(int64_t fragmentation, const struct gpu_value_sum *sum,
                              int64_t cpu_milli)
{
	return fragmentation / NEXT_TASK - gpu_value_sum_with(sum, cpu_milli);
}

static int64_t waste_of(struct placement *placement, const struct node *node, int64_t cpu_milli,
                        const int32_t *free_milli)
{
	struct workload_mix *mix = &placement->workload_mix;
	const struct gpu_value *worth = workload_mix_gpu_value(mix);
	struct gpu_value_sum sum = { 0 };

	for (int i = 0; i < node->gpu_count; i++)
		gpu_value_sum_add(&sum, worth, free_milli[i],
		                  scarcity_of(&placement->scarcity, node->gpus[i]->gpu_type), 1);
	return combine(weights_fragmentation(&mix->demand, cpu_milli, free_milli, node->gpu_count),
	               &sum, cpu_milli);
}

/* Fractions are the same part of every GPU, an amount of memory is not. Only a large GPU
 * takes a large amount, so its memory is worth more, in proportion to its size, than as
 * much on a small one: the square of the GiB of the largest GPU, or 1 for fractions. */
static int64_t weight_of(const struct shape_request *request, const struct choice *choice)
{
	int64_t gib = 1;

	if (request->gpu_kind != GPU_MEMORY && request->gpu_kind != GPU_UNEVEN)
		return 1;
	for (int i = 0; i < choice->part_count; i++)
		gib = max64(gib, gpu_usable_mib(choice->parts[i].gpu) / 1024);
	gib = min64(gib, GIB_WEIGHED_MAX);
	return gib * gib;
}

/* How much of what the node's free GPUs are worth is lost, with regard for the
 * next tasks too. */
int64_t place_worth(struct placement *placement, const struct search *search, struct choice *choice)
{
	const struct node *node = choice->node;
	int32_t milli[GPUS_PER_NODE_MAX];
	int64_t cpu = host_free_now(&node->cpu, node_cpu_milli(node));

	INVARIANT(node->gpu_count <= GPUS_PER_NODE_MAX && choice->part_count <= PARTS_MAX);
	for (int i = 0; i < node->gpu_count; i++)
		milli[i] = gpu_free_milli(node->gpus[i]);
	int64_t before = waste_of(placement, node, cpu, milli);
	for (int i = 0; i < choice->part_count; i++)
		for (int j = 0; j < node->gpu_count; j++)
			if (node->gpus[j] == choice->parts[i].gpu)
				milli[j] = (int32_t)max64(milli[j] - choice->parts[i].share, 0);
	cpu -= search->shape->request.cpu_milli;
	return (waste_of(placement, node, cpu, milli) - before) *
	       weight_of(&search->shape->request, choice);
}

bool worth_sees(struct placement *placement, const struct shape *shape)
{
	workload_mix_gpu_value(&placement->workload_mix); /* brings `demand` up to date */
	return placement->workload_mix.demand.split_count == 0 && shape_is_plain(shape);
}

/* A node as a task would leave it: seen with the CPU that is left. */
struct leaving {
	const struct gpu_value *worth;
	const uint8_t *level;
	struct workload_row row;
	int64_t fit, cpu_milli;
	int32_t scarcity;
};

/* Makes what is in the summary by a mix and by a scarcity that by these. */
static void look_with(const struct workload_mix *mix, int32_t scarcity,
                      struct node_summary *summary)
{
	const struct workload_row row = workload_row(&mix->demand, summary->cpu_now_milli);
	struct gpu_value_sum sum = { 0 };

	for (int i = 0; i < summary->kind_count; i++) {
		struct summary_kind *kind = &summary->kinds[i];
		kind->level = mix->demand.level[kind->free_milli];
		gpu_value_sum_add(&sum, &mix->gpu_value, kind->free_milli, scarcity, kind->times);
	}
	summary->before =
	    combine(workload_row_fragmentation(&row, summary->free_milli, summary->whole,
	                                       node_summary_fit(summary, &row)),
	            &sum, summary->cpu_now_milli);
	summary->value = sum.value;
	summary->need_milli = sum.cpu_milli;
	summary->need_variance = sum.cpu_variance;
	summary->mix = mix->version;
	summary->scarcity = scarcity;
}

/* What the loss is if of `count` GPUs that have `milli` free `left` is left. */
static int64_t loss(const struct node_summary *summary, const struct leaving *leaving,
                    int32_t milli, int32_t left, int count)
{
	const struct gpu_value *worth = leaving->worth;
	const int32_t *single = leaving->row.single;
	struct gpu_value_sum sum = { summary->value, summary->need_milli, summary->need_variance };
	int64_t fit = leaving->fit + count * ((int64_t)left * single[leaving->level[left]] -
	                                      (int64_t)milli * single[leaving->level[milli]]);

	gpu_value_sum_add(&sum, worth, milli, leaving->scarcity, -count);
	gpu_value_sum_add(&sum, worth, left, leaving->scarcity, count);
	return combine(workload_row_fragmentation(
			   &leaving->row, summary->free_milli - count * (milli - left),
			   summary->whole - (milli == WHOLE_GPU ? count : 0), fit),
	               &sum, leaving->cpu_milli) -
	       summary->before;
}

/* The lowest score over the GPUs that have room for the fraction. */
static int64_t score_fraction(const struct node_summary *summary, const struct leaving *leaving,
                              int32_t fraction)
{
	int64_t best = TOURNAMENT_NONE;

	for (int i = 0; i < summary->kind_count; i++) {
		int32_t milli = summary->kinds[i].free_milli;
		if (summary->kinds[i].takes_milli >= fraction)
			best = min64(best, loss(summary, leaving, milli,
			                        milli > fraction ? milli - fraction : 0, 1));
	}
	return best;
}

int64_t worth_score(struct placement *placement, const struct shape *shape,
                    struct node_summary *summary)
{
	const struct workload_mix *mix = &placement->workload_mix;
	const struct shape_request *request = &shape->request;
	int64_t cpu_after = summary->cpu_now_milli - request->cpu_milli;
	int32_t scarcity = scarcity_of(&placement->scarcity, summary->gpu_type);

	INVARIANT(summary->plain && summary->uniform && mix->gpu_value_version == mix->version);
	if (!node_summary_takes(summary, request))
		return TOURNAMENT_NONE;
	if (summary->mix != mix->version || summary->scarcity != scarcity)
		look_with(mix, scarcity, summary);
	struct leaving leaving = {
		.worth = &mix->gpu_value,
		.level = mix->demand.level,
		.row = workload_row(&mix->demand, cpu_after),
		.cpu_milli = cpu_after,
		.scarcity = scarcity,
	};
	leaving.fit = node_summary_fit(summary, &leaving.row);
	if (request->gpu_kind == GPU_FRACTION)
		return score_fraction(summary, &leaving, request->fraction);
	return loss(summary, &leaving, WHOLE_GPU, 0,
	            request->gpu_kind == GPU_WHOLE ? request->gpu_count : 0);
}
