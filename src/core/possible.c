/* possible.c - whether an empty cluster could take a slot of a model */
#include <inttypes.h>

#include "core/fit.h"
#include "core/state.h"

/* The largest GPUs of a node that the model may use, as many as one slot can. */
static int largest_gpus(const struct model *model, const struct node *node,
                        const struct gpu **largest)
{
	int count = 0;

	for (int i = 0; i < node->gpu_count; i++) {
		const struct gpu *gpu = node->gpus[i];
		if (!gpu->r.present || gpu->r.mig_mode || !filter_allows(model->filter, gpu))
			continue;
		int at = count < PARTS_MAX ? count++ : PARTS_MAX;
		for (; at > 0 && gpu_usable_mib(largest[at - 1]) < gpu_usable_mib(gpu); at--)
			if (at < PARTS_MAX)
				largest[at] = largest[at - 1];
		if (at < PARTS_MAX)
			largest[at] = gpu;
	}
	return count;
}

/* Whether these GPUs, empty, have room for the parts. */
static bool gpus_take(const struct model *model, const struct gpu *const *largest, int count)
{
	int64_t mib = model_part_mib(model, count), sum = 0;

	if (!model->r.uneven || count == 1)
		return gpu_usable_mib(largest[count - 1]) >= mib;
	for (int i = 0; i < count; i++)
		sum += gpu_usable_mib(largest[i]);
	return sum >= count * mib;
}

/* What a slot on these GPUs would count for with its tenant. */
static struct amounts amounts_on(const struct model *model, const struct gpu *const *largest,
                                 int count)
{
	static const struct request shared = { .gpu_kind = GPU_MEMORY, .gpu_count = 1 };
	int64_t mib = model_part_mib(model, count);
	struct amounts amounts = { .of = { [AMOUNT_CPU] = model->r.cpu_milli,
		                           [AMOUNT_HOST] = model->r.host_bytes,
		                           [AMOUNT_GPU_MEMORY] = mib * count } };

	for (int i = 0; i < count; i++)
		amounts.of[AMOUNT_GPU] += fit_part(&shared, (struct gpu *)largest[i], mib).share;
	return amounts;
}

/* The best that was found on the way to a refusal. */
struct figures {
	int64_t nodes, largest_mib, largest_node_mib;
	struct bound bound; /* if only that refuses */
};

static bool node_takes(const struct model *model, const struct node *node, struct figures *figures)
{
	const struct gpu *largest[PARTS_MAX];
	int gpus = largest_gpus(model, node, largest), counts[PARTS_MAX];
	int splits = model_splits(model, counts);
	int64_t sum = 0;

	for (int i = 0; i < gpus; i++)
		sum += gpu_usable_mib(largest[i]);
	figures->nodes++;
	figures->largest_node_mib = max64(figures->largest_node_mib, sum);
	if (gpus > 0)
		figures->largest_mib = max64(figures->largest_mib, gpu_usable_mib(largest[0]));
	if (model->r.cpu_milli > node->r.cpu_milli || model->r.host_bytes > node->r.host_bytes)
		return false;
	for (int i = 0; i < splits && counts[i] <= gpus; i++) {
		if (!gpus_take(model, largest, counts[i]))
			continue;
		struct amounts amounts = amounts_on(model, largest, counts[i]);
		if (tenant_could_ever_hold(model->tenant, &amounts, !model->r.pinned,
		                           &figures->bound))
			return true;
	}
	return false;
}

static bool refuse(const struct model *model, const struct figures *figures, struct error *error)
{
	struct buffer sentence = { 0 };

	if (figures->bound.tenant) {
		bound_print(&sentence, &figures->bound);
		error_set(error, ERROR_FORBIDDEN, "model %s can never be loaded: %s", model->r.name,
		          sentence.data);
		buffer_free(&sentence);
		return false;
	}
	if (figures->nodes == 0)
		return error_set(error, ERROR_IMPOSSIBLE,
		                 "model %s can never be loaded: no node has the labels and GPUs "
		                 "that it asks for",
		                 model->r.name);
	return error_set(
	    error, ERROR_IMPOSSIBLE,
	    "model %s can never be loaded: it takes %" PRId64 " MiB, the largest GPU has %" PRId64
	    " MiB and the largest node %" PRId64 " MiB for it in all",
	    model->r.name, model->r.memory_mib, figures->largest_mib, figures->largest_node_mib);
}

bool model_possible(struct sched *sched, const struct model *model, struct error *error)
{
	struct figures figures = { 0 };

	sched_prepare(sched);
	if (sched->cluster.gpu_by_id.count == 0) /* nodes are still to come */
		return true;
	filter_refresh(model->filter, &sched->cluster, sched->cluster_version);
	for (size_t i = 0; i < sched->cluster.node_count; i++)
		if (bitset_has(&model->filter->nodes, i) &&
		    node_takes(model, sched->cluster.by_slot[i], &figures))
			return true;
	return refuse(model, &figures, error);
}
