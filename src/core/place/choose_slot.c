/* choose_slot.c - which GPUs of a node a slot gets, and a task in place of slots */
#include "core/model/model.h"
#include "core/place/fit.h"
#include "core/place/placement.h"

static enum slot_policy policy_of(const struct search *search)
{
	return search->model ? (enum slot_policy)search->model->r.policy : SLOT_PACK;
}

/* Lower is what the policy likes: the least used, or the least left over. */
static int64_t score_gpu(const struct search *search, const struct gpu *gpu, int64_t free_mib)
{
	const struct shape_request *request = &search->shape->request;
	int64_t usable = max64(gpu_usable_mib(gpu), 1);

	if (request->total_mib > 0 || search->even) /* the roomiest can take the largest parts */
		return -free_mib;
	if (policy_of(search) == SLOT_PACK)
		return free_mib - fit_least_mib(request, gpu);
	return (usable - free_mib) * (INT64_C(1) << 20) / usable;
}

/* GPUs that fit, the best first. */
struct fitting {
	struct gpu *gpus[GPUS_PER_NODE_MAX];
	int64_t free_mib[GPUS_PER_NODE_MAX], scores[GPUS_PER_NODE_MAX];
	int count;
};

static void choose_slot_add(struct fitting *fitting, struct gpu *gpu, int64_t free_mib,
                            int64_t score)
{
	int at = fitting->count++;

	for (; at > 0 && fitting->scores[at - 1] > score; at--) {
		fitting->gpus[at] = fitting->gpus[at - 1];
		fitting->free_mib[at] = fitting->free_mib[at - 1];
		fitting->scores[at] = fitting->scores[at - 1];
	}
	fitting->gpus[at] = gpu;
	fitting->free_mib[at] = free_mib;
	fitting->scores[at] = score;
}

/* False if there are too few, which is often seen before all are looked at. */
static bool find_fitting(const struct placement *placement, const struct search *search,
                         const struct node *node, struct fitting *fitting)
{
	const struct shape_request *request = &search->shape->request;
	int64_t short_by;

	fitting->count = 0;
	for (int i = 0; i < node->gpu_count; i++) {
		struct gpu *gpu = node->gpus[i];
		int64_t free_mib = fit_gpu_free(search, gpu);
		if (fitting->count + node->gpu_count - i < request->gpu_count)
			return false;
		if (free_mib >= fit_least_mib(request, gpu) &&
		    place_check_gpu(placement, search, gpu, &short_by) == CHECK_OK)
			choose_slot_add(fitting, gpu, free_mib, score_gpu(search, gpu, free_mib));
	}
	return fitting->count >= request->gpu_count;
}

/* The best of those in an NVLink group (0: of all) into `chosen`, as places in
 * `fitting`; false if there are too few, or parts would not add up to the total. */
static bool choose_slot_take(const struct fitting *fitting, const struct shape_request *request,
                             int64_t group, int *chosen)
{
	int64_t sum = 0;
	int taken = 0;

	for (int i = 0; i < fitting->count && taken < request->gpu_count; i++) {
		if (group && fitting->gpus[i]->r.nvlink_group != group)
			continue;
		sum += fitting->free_mib[i];
		chosen[taken++] = i;
	}
	return taken == request->gpu_count && sum >= request->total_mib;
}

/* The group in which the best GPUs are linked; 0: in none are there enough. */
static int64_t best_group(const struct fitting *fitting, const struct search *search)
{
	const struct shape_request *request = &search->shape->request;
	int chosen[PARTS_MAX];

	for (int i = 0; i < fitting->count && request->gpu_count > 1 && !search->even; i++) {
		int64_t group = fitting->gpus[i]->r.nvlink_group;
		if (group && choose_slot_take(fitting, request, group, chosen))
			return group;
	}
	return 0;
}

/* Parts that add up to a total are as even as the GPUs allow: those with least room
 * first. */
static void divide(const struct fitting *fitting, const struct shape_request *request,
                   const int *chosen, struct choice *choice)
{
	int64_t left = request->total_mib;

	for (int i = request->gpu_count - 1; i >= 0; i--) {
		struct gpu *gpu = fitting->gpus[chosen[i]];
		int64_t mib = request->total_mib > 0
		                  ? min64((left + i) / (i + 1), fitting->free_mib[chosen[i]])
		                  : fit_mib(request, gpu);
		choice->parts[i] = fit_part(request, gpu, mib);
		choice->score += fitting->scores[chosen[i]];
		left -= mib;
	}
	choice->part_count = request->gpu_count;
}

bool choose_slot(const struct placement *placement, const struct search *search, struct node *node,
                 struct choice *choice)
{
	const struct shape_request *request = &search->shape->request;
	struct fitting fitting;
	int chosen[PARTS_MAX];

	INVARIANT(node->gpu_count <= GPUS_PER_NODE_MAX);
	INVARIANT(request->gpu_count >= 1 && request->gpu_count <= PARTS_MAX);
	INVARIANT(request->gpu_kind != GPU_UNEVEN);
	if (!find_fitting(placement, search, node, &fitting))
		return false;
	int64_t group = best_group(&fitting, search);
	if (!choose_slot_take(&fitting, request, group, chosen))
		return false;
	choice->node = node;
	choice->linked = group != 0;
	choice->score = 0;
	divide(&fitting, request, chosen, choice);
	return true;
}
