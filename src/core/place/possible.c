/* possible.c - whether an empty cluster could take a job, or a slot of a model */
#include <inttypes.h>
#include <stdlib.h>

#include "core/cluster/node_copy.h"
#include "core/model/model.h"
#include "core/place/applicant.h"
#include "core/place/placement.h"
#include "core/queue/demand.h"
#include "core/queue/job.h"

#define MIB_BYTES (INT64_C(1) << 20)

/* The most that nodes have of what is asked for, each by itself, and together. */
struct hardware {
	int64_t labelled;   /* nodes with the labels */
	int64_t allowed;    /* GPUs of an allowed model on those */
	int64_t divided;    /* of those, GPUs that give shares of compute */
	int64_t memory_mib; /* of the largest of those */
	int64_t gpus;       /* GPUs of one node that are allowed and large enough */
	int64_t cpu_milli, host_bytes;
	int64_t node_tasks;  /* tasks, or GPUs of a split job, that one node takes */
	int64_t *rack_tasks; /* by rack */
	int64_t tasks;       /* all nodes together */
};

static bool requires_link(const struct shape *shape)
{
	return shape->closeness == CLOSE_NVLINK && shape->closeness_required;
}

/* Puts tasks onto an empty node while they fit, as a job that is placed there is. */
static int64_t possible_settle(struct placement *placement, const struct search *search,
                               const struct node *node)
{
	const struct shape_request *request = &search->shape->request;
	struct node_copy copy;
	struct choice choice;
	int64_t placed = 0;

	node_copy_empty(&copy, node);
	while (placed < search->shape->tasks &&
	       place_on_node(placement, search, &copy.node, &choice)) {
		for (int i = 0; i < choice.part_count; i++) {
			choice.parts[i].gpu->books.claimed_mib += choice.parts[i].mib;
			choice.parts[i].gpu->books.claims++;
			compute_sum_add(&choice.parts[i].gpu->books.compute_claimed,
			                &choice.parts[i], 1);
		}
		copy.node.cpu.claimed += request->cpu_milli;
		copy.node.host.claimed += request->host_bytes;
		placed++;
	}
	return placed;
}

/* Uneven parts are not counted but tried, in each NVLink group where one is required. */
static int64_t count_uneven(struct placement *placement, const struct search *search,
                            const struct node *node)
{
	struct search trial = *search;
	int64_t best = 0;

	if (!requires_link(search->shape) || search->shape->tasks == 1)
		return possible_settle(placement, &trial, node);
	for (int i = 0; i < node->gpu_count; i++) {
		if (node->gpus[i]->r.nvlink_group == trial.link)
			continue;
		trial.link = node->gpus[i]->r.nvlink_group;
		if (trial.link != 0)
			best = max64(best, possible_settle(placement, &trial, node));
	}
	return best;
}

/* Tasks that the node takes if nothing else is on it. */
static int64_t count_tasks(struct placement *placement, struct search *search,
                           struct node_copy *copy, const struct node *node)
{
	struct choice choice;

	if (search->shape->request.gpu_kind == GPU_UNEVEN)
		return count_uneven(placement, search, node);
	if (requires_link(search->shape) && !place_on_node(placement, search, &copy->node, &choice))
		return 0;
	return place_count(placement, search, &copy->node);
}

static void add_gpus(struct placement *placement, const struct search *search,
                     const struct node_copy *copy, struct hardware *all)
{
	int64_t short_by, large = 0;

	for (int i = 0; i < copy->node.gpu_count; i++) {
		const struct gpu *gpu = &copy->gpus[i];
		if (!filter_allows(search->shape->filter, gpu) ||
		    !gpu_is_open(gpu, placement->config))
			continue;
		all->allowed++;
		all->divided += gpu_gives_compute(gpu);
		all->memory_mib = max64(all->memory_mib, gpu_usable_mib(gpu));
		large += place_check_gpu(placement, search, gpu, &short_by) == CHECK_OK;
	}
	all->gpus = max64(all->gpus, large);
}

static void possible_add_node(struct placement *placement, struct search *search,
                              const struct node *node, struct hardware *all)
{
	const struct shape *shape = search->shape;
	struct node_copy copy;
	int64_t short_by, tasks = 0;

	if (!node_has_labels(node, shape->filter->labels))
		return;
	node_copy_empty(&copy, node);
	all->labelled++;
	all->cpu_milli = max64(all->cpu_milli, node->r.cpu_milli);
	all->host_bytes = max64(all->host_bytes, node->r.host_bytes);
	add_gpus(placement, search, &copy, all);
	if (!bitset_has(&shape->filter->nodes, (size_t)node->rank))
		return;
	if (shape->split_gpus == 0)
		tasks = count_tasks(placement, search, &copy, node);
	else if (place_check_node(placement, search, &copy.node, &short_by) == CHECK_OK)
		for (int i = 0; i < node->gpu_count && tasks < PARTS_MAX; i++)
			tasks += place_check_gpu(placement, search, &copy.gpus[i], &short_by) ==
			         CHECK_OK;
	all->node_tasks = max64(all->node_tasks, tasks);
	all->rack_tasks[node->rack] += tasks;
	all->tasks += tasks;
}

static int64_t largest_part(const struct shape_request *request)
{
	switch (request->gpu_kind) {
	case GPU_WHOLE:
	case GPU_MEMORY:
		return request->memory_mib;
	case GPU_UNEVEN:
		return request->uneven_mib[0];
	default:
		return 0;
	}
}

/* What one task asks for against the best that there is. */
static bool check_task(const struct shape *shape, const struct hardware *all, struct error *error)
{
	const struct shape_request *request = &shape->request;
	int64_t gpus = shape->split_gpus > 0 ? 1 : request->gpu_count;

	if (all->labelled == 0)
		return error_set(error, ERROR_IMPOSSIBLE, "there is no node%s",
		                 *shape->filter->labels ? " with all the labels that are asked for"
		                                        : "");
	if ((gpus > 0 || *shape->filter->gpu_types) && all->allowed == 0)
		return error_set(
		    error, ERROR_IMPOSSIBLE, "no node%s has a GPU%s%s",
		    *shape->filter->labels ? " with the labels that are asked for" : "",
		    *shape->filter->gpu_types ? " of model " : "", shape->filter->gpu_types);
	if (request->compute > 0 && all->divided == 0)
		return error_set(error, ERROR_IMPOSSIBLE,
		                 "asks for a share of compute, which no GPU gives that it may use: "
		                 "nodes give shares if their agent runs with --compute-shares mps");
	if (gpus > 0 && largest_part(request) > all->memory_mib)
		return error_set(error, ERROR_IMPOSSIBLE,
		                 "asks for %" PRId64 " MiB of one GPU, the largest has %" PRId64
		                 " MiB",
		                 largest_part(request), all->memory_mib);
	if (gpus > all->gpus)
		return error_set(error, ERROR_IMPOSSIBLE,
		                 "asks for %" PRId64 " GPUs on one node, the best node has %" PRId64
		                 " that are large enough",
		                 gpus, all->gpus);
	if (request->cpu_milli > all->cpu_milli)
		return error_set(error, ERROR_IMPOSSIBLE,
		                 "asks for %" PRId64
		                 " thousandths of CPU cores for a task, the largest "
		                 "node has %" PRId64,
		                 request->cpu_milli, all->cpu_milli);
	if (request->host_bytes > all->host_bytes)
		return error_set(
		    error, ERROR_IMPOSSIBLE,
		    "asks for %" PRId64 " MiB of host memory for a task, the largest node "
		    "has %" PRId64 " MiB",
		    (request->host_bytes + MIB_BYTES - 1) / MIB_BYTES, all->host_bytes / MIB_BYTES);
	return all->tasks > 0 || error_set(error, ERROR_IMPOSSIBLE,
	                                   "no node has the GPUs%s, the CPU and the host memory "
	                                   "for a task together",
	                                   requires_link(shape) ? " in one NVLink group" : "");
}

/* What all tasks ask for that have to start together. */
static bool check_gang(const struct shape *shape, const struct hardware *all, int racks,
                       struct error *error)
{
	int64_t needed = shape->split_gpus > 0 ? shape->split_gpus : shape->tasks, has = all->tasks;
	const char *where = "the cluster", *what = shape->split_gpus > 0 ? "GPUs" : "tasks";
	bool required = shape->closeness_required && shape->split_gpus == 0;

	if (required && (shape->closeness == CLOSE_NODE || shape->closeness == CLOSE_NVLINK)) {
		where =
		    shape->closeness == CLOSE_NVLINK ? "the best NVLink group" : "the best node";
		has = all->node_tasks;
	} else if (required && shape->closeness == CLOSE_RACK && needed > 1) {
		where = "the best rack";
		has = 0;
		for (int i = 1; i <= racks; i++)
			has = max64(has, all->rack_tasks[i]);
	}
	return needed <= has || error_set(error, ERROR_IMPOSSIBLE,
	                                  "needs %" PRId64 " %s together, %s takes %" PRId64
	                                  " if nothing else is on it",
	                                  needed, what, where, has);
}

/* Counted resources that no node has enough of, with those that there are. */
static bool check_counts(const struct cluster *cluster, const struct demand *demand,
                         struct error *error)
{
	for (int i = 0; demand && i < demand->count_count; i++) {
		const struct counted *counted = &demand->counts[i];
		const char *known = NULL;
		int64_t most = 0;
		for (size_t n = 0; n < cluster->node_count; n++) {
			const struct node *node = cluster->by_rank[n];
			const struct node_count *count = node_count(node, counted->name);
			most = max64(most, count ? count->capacity : 0);
			known = node->count_count > 0 ? node->counts[0].name : known;
		}
		if (most >= counted->amount)
			continue;
		return error_set(error, ERROR_IMPOSSIBLE,
		                 "asks for %" PRId64 " of the resource %.60s, the best node has "
		                 "%" PRId64 "%s%.60s",
		                 counted->amount, counted->name, most,
		                 most == 0 && known ? "; a resource that nodes have is " : "",
		                 most == 0 && known ? known : "");
	}
	return true;
}

static bool hardware_takes(struct placement *placement, struct search *search, struct error *error)
{
	struct hardware all = { 0 };
	int racks = placement->cluster->rack_count;

	all.rack_tasks = memory_zero((size_t)racks + 1, sizeof(*all.rack_tasks));
	for (size_t i = 0; i < placement->cluster->node_count; i++)
		possible_add_node(placement, search, placement->cluster->by_rank[i], &all);
	bool takes =
	    check_task(search->shape, &all, error) && check_gang(search->shape, &all, racks, error);
	free(all.rack_tasks);
	return takes;
}

bool place_possible(struct placement *placement, const struct job *job, struct error *error)
{
	struct filter *filter = job->filter;

	INVARIANT(!placement->ledger->plan->open);
	if (!filter)
		filter = shapes_job_filter(placement->shapes, &job->r);
	INVARIANT(placement->index->built);
	filter_refresh(filter, placement->cluster, placement->cluster->version);
	struct shape shape = { .request = job->request,
		               .tasks = job->r.min_available,
		               .split_gpus = job->r.split_gpus,
		               .filter = filter,
		               .closeness = (enum closeness)job->r.closeness,
		               .closeness_required = job->r.closeness_required };
	struct search search = { .shape = &shape,
		                 .view = VIEW_LATER,
		                 .until_ms = INT64_MAX,
		                 .ignore_promises = true,
		                 .ignore_windows = true,
		                 .empty = true };
	if (!check_counts(placement->cluster, filter->demand, error))
		return false;
	if (hardware_takes(placement, &search, error))
		return true;
	/* Parts of several GPUs are spread where they do not fit otherwise. */
	search.even = shape.request.gpu_kind == GPU_UNEVEN && shape.tasks > 1;
	return search.even && hardware_takes(placement, &search, error);
}

/* The best that was found on the way to a refusal. */
struct figures {
	int64_t nodes, largest_mib, largest_node_mib;
	struct bound bound; /* if only that refuses */
};

static void add_model_gpus(const struct placement *placement, const struct model *model,
                           const struct node_copy *copy, struct figures *figures)
{
	int64_t sum = 0;

	for (int i = 0; i < copy->node.gpu_count; i++) {
		const struct gpu *gpu = &copy->gpus[i];
		if (!filter_allows(model->filter, gpu) || !gpu_is_open(gpu, placement->config))
			continue;
		sum += gpu_usable_mib(gpu);
		figures->largest_mib = max64(figures->largest_mib, gpu_usable_mib(gpu));
	}
	figures->nodes++;
	figures->largest_node_mib = max64(figures->largest_node_mib, sum);
}

/* On its largest GPUs, of which a slot counts for the smallest share. */
static bool node_takes(struct placement *placement, struct model *model, const struct node *node,
                       struct figures *figures)
{
	struct search search = applicant_slot(model);
	struct node_copy copy;
	struct choice choice;

	search.view = VIEW_LATER;
	search.even = search.ignore_promises = search.ignore_windows = true;
	node_copy_empty(&copy, node);
	add_model_gpus(placement, model, &copy, figures);
	for (int i = 0; i < model->shape_count; i++) {
		search.shape = &model->shapes[i];
		if (!place_on_node(placement, &search, &copy.node, &choice))
			continue;
		struct amounts amounts = choice_amounts(&search, &choice);
		if (tenant_could_ever_hold(model->tenant, &amounts, !model->r.pinned,
		                           &figures->bound))
			return true;
	}
	return false;
}

static bool possible_refuse(const struct model *model, const struct figures *figures,
                            struct error *error)
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

bool place_possible_slot(struct placement *placement, struct model *model, struct error *error)
{
	struct figures figures = { 0 };

	INVARIANT(model->shape_count > 0);
	INVARIANT(placement->index->built);
	if (placement->cluster->gpu_by_id.count == 0) /* nodes are still to come */
		return true;
	filter_refresh(model->filter, placement->cluster, placement->cluster->version);
	for (size_t i = 0; i < placement->cluster->node_count; i++)
		if (bitset_has(&model->filter->nodes, i) &&
		    node_takes(placement, model, placement->cluster->by_rank[i], &figures))
			return true;
	return possible_refuse(model, &figures, error);
}
