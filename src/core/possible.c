/* possible.c - whether an empty cluster could take a slot of a model */
#include <inttypes.h>

#include "core/applicant.h"
#include "core/forecast.h"
#include "core/state.h"

/* The best that was found on the way to a refusal. */
struct figures {
	int64_t nodes, largest_mib, largest_node_mib;
	struct bound bound; /* if only that refuses */
};

static void add_gpus(const struct sched *sched, const struct model *model,
                     const struct node_copy *copy, struct figures *figures)
{
	int64_t sum = 0;

	for (int i = 0; i < copy->node.gpu_count; i++) {
		const struct gpu *gpu = &copy->gpus[i];
		if (!filter_allows(model->filter, gpu) || !gpu_is_open(gpu, &sched->config))
			continue;
		sum += gpu_usable_mib(gpu);
		figures->largest_mib = max64(figures->largest_mib, gpu_usable_mib(gpu));
	}
	figures->nodes++;
	figures->largest_node_mib = max64(figures->largest_node_mib, sum);
}

/* On its largest GPUs, of which a slot counts for the smallest share. */
static bool node_takes(struct sched *sched, struct model *model, const struct node *node,
                       struct figures *figures)
{
	struct search search = applicant_slot(model);
	struct node_copy copy;
	struct choice choice;

	search.view = VIEW_LATER;
	search.even = search.ignore_promises = true;
	node_copy_empty(&copy, node);
	add_gpus(sched, model, &copy, figures);
	for (int i = 0; i < model->shape_count; i++) {
		search.shape = &model->shapes[i];
		if (!place_on_node(sched, &search, &copy.node, &choice))
			continue;
		struct amounts amounts = choice_amounts(&search, &choice);
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

bool model_possible(struct sched *sched, struct model *model, struct error *error)
{
	struct figures figures = { 0 };

	INVARIANT(model->shape_count > 0);
	sched_prepare(sched);
	if (sched->cluster.gpu_by_id.count == 0) /* nodes are still to come */
		return true;
	filter_refresh(model->filter, &sched->cluster, sched->cluster_version);
	for (size_t i = 0; i < sched->cluster.node_count; i++)
		if (bitset_has(&model->filter->nodes, i) &&
		    node_takes(sched, model, sched->cluster.by_slot[i], &figures))
			return true;
	return refuse(model, &figures, error);
}
