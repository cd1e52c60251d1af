/* fit.c - the checks that decide whether a GPU and a node take a task */
#include "core/place/fit.h"

#include "core/model/model.h"
#include "core/place/placement.h"
#include "core/place/rules.h"
#include "core/place/window_rules.h"
#include "core/queue/job.h"
#include "core/tenant/fairshare.h"

int64_t fit_mib(const struct shape_request *request, const struct gpu *gpu)
{
	switch (request->gpu_kind) {
	case GPU_WHOLE:
		return gpu_usable_mib(gpu) - gpu->r.foreign_mib;
	case GPU_FRACTION:
		return request->fraction * gpu_usable_mib(gpu) / WHOLE_GPU;
	case GPU_MEMORY:
		return request->total_mib > 0 ? 1 : request->memory_mib;
	case GPU_UNEVEN: /* the smallest; the others are looked at in turn */
		return request->uneven_mib[request->gpu_count - 1];
	default:
		return 0;
	}
}

int64_t fit_least_mib(const struct shape_request *request, const struct gpu *gpu)
{
	return max64(request->gpu_kind == GPU_WHOLE ? request->memory_mib : fit_mib(request, gpu),
	             1);
}

/* Thousandths of this GPU that so much memory stands for, rounded up. */
static int64_t share_of(const struct shape_request *request, const struct gpu *gpu, int64_t mib)
{
	if (request->gpu_kind == GPU_WHOLE)
		return WHOLE_GPU;
	if (request->gpu_kind == GPU_FRACTION)
		return request->fraction;
	int64_t usable = gpu_usable_mib(gpu);
	return usable ? min64((mib * WHOLE_GPU + usable - 1) / usable, WHOLE_GPU) : WHOLE_GPU;
}

struct part fit_part(const struct shape_request *request, struct gpu *gpu, int64_t mib)
{
	INVARIANT(mib >= 0 && request->gpu_count > 0);
	return (struct part){
		.gpu = gpu,
		.mib = mib,
		.share = share_of(request, gpu, mib),
		.whole = request->gpu_kind == GPU_WHOLE,
		.compute = request->compute,
		.sharer = request->sharer,
	};
}

int64_t fit_gpu_free(const struct search *search, const struct gpu *gpu)
{
	int64_t later = gpu_free_later(gpu);

	if (search->view == VIEW_CLEARED)
		return later + gpu->mark_mib;
	return search->view == VIEW_NOW ? min64(gpu_free_now(gpu), later) : later;
}

static bool is_empty(const struct search *search, const struct gpu *gpu)
{
	const struct gpu_books *books = &gpu->books;

	if (search->view == VIEW_CLEARED)
		return books->claims == 0 &&
		       books->owners - books->releasing_owners <= gpu->mark_owners;
	return search->view == VIEW_NOW ? gpu_empty_now(gpu) : gpu_empty_later(gpu);
}

static bool is_divisible(const struct search *search, const struct gpu *gpu)
{
	const struct gpu_books *books = &gpu->books;

	if (search->view == VIEW_CLEARED)
		return books->whole_claims == 0 &&
		       books->whole_owners - books->whole_releasing <= gpu->mark_whole;
	return search->view == VIEW_NOW ? gpu_divisible_now(gpu) : gpu_divisible_later(gpu);
}

static bool view_takes(const struct placement *placement, const struct compute_view *view,
                       const struct part *part, int32_t *left)
{
	*left = compute_left(view) < *left ? compute_left(view) : *left;
	return compute_matches(view, part, placement->config->sharing_mixed);
}

/* Whether its compute may be shared with those that are on it, in the search's view; what is left
 * of it then, in thousandths. */
static bool compute_view_takes(const struct placement *placement, const struct search *search,
                               const struct gpu *gpu, int32_t *left)
{
	const struct shape_request *request = &search->shape->request;

	*left = WHOLE_GPU;
	if (request->compute == 0 && gpu_takes_turns(gpu))
		return true;
	const struct part part = { .compute = request->compute, .sharer = request->sharer };
	struct compute_view now = compute_now(gpu);
	struct compute_view later =
	    search->view == VIEW_CLEARED ? compute_cleared(gpu) : compute_later(gpu);
	return view_takes(placement, &later, &part, left) &&
	       (search->view != VIEW_NOW || view_takes(placement, &now, &part, left));
}

int64_t fit_compute_room(const struct placement *placement, const struct search *search,
                         const struct gpu *gpu)
{
	int32_t compute = search->shape->request.compute, left;

	if (!compute_view_takes(placement, search, gpu, &left))
		return 0;
	return compute > 0 ? left / compute : TASKS_MAX;
}

static enum check check_compute(const struct placement *placement, const struct search *search,
                                const struct gpu *gpu, int64_t *short_by)
{
	int32_t compute = search->shape->request.compute, left;

	if (!compute_view_takes(placement, search, gpu, &left))
		return CHECK_SHARING;
	if (left >= compute)
		return CHECK_OK;
	*short_by = compute - left;
	return CHECK_COMPUTE;
}

static enum check closed_check(const struct placement *placement, const struct gpu *gpu)
{
	if (!gpu->r.present || !gpu->r.healthy || gpu->r.mig_mode || gpu->r.capacity_mib == 0)
		return CHECK_HEALTH;
	if (gpu->r.hot && placement->config->enable_thermal)
		return CHECK_HOT;
	return gpu_is_over(gpu) ? CHECK_OVER : CHECK_NODE;
}

static enum check check_whole(const struct placement *placement, const struct search *search,
                              const struct gpu *gpu, int64_t *short_by)
{
	const struct shape_request *request = &search->shape->request;

	if (gpu_usable_mib(gpu) < request->memory_mib) {
		*short_by = request->memory_mib - gpu_usable_mib(gpu);
		return CHECK_SIZE;
	}
	bool empty = is_empty(search, gpu);
	if (!empty && gpu->books.owners == 0)
		return CHECK_CLAIM;
	if (!empty || gpu->r.foreign_mib > placement->config->foreign_tolerance_mib)
		return CHECK_OCCUPIED;
	if (gpu_usable_mib(gpu) - gpu->r.foreign_mib < max64(request->memory_mib, 1))
		return CHECK_MEMORY;
	return CHECK_OK;
}

static enum check check_shared(const struct placement *placement, const struct search *search,
                               const struct gpu *gpu, int64_t *short_by)
{
	int64_t need = fit_mib(&search->shape->request, gpu);

	if (gpu_usable_mib(gpu) < need) {
		*short_by = need - gpu_usable_mib(gpu);
		return CHECK_SIZE;
	}
	if (search->shape->request.compute > 0 && !gpu_gives_compute(gpu))
		return CHECK_NO_SHARES;
	if (!is_divisible(search, gpu))
		return gpu->books.whole_owners > 0 ? CHECK_WHOLE : CHECK_CLAIM;
	if (search->view == VIEW_NOW && gpu_free_now(gpu) < need) {
		*short_by = need - gpu_free_now(gpu);
		return CHECK_MEMORY;
	}
	int64_t free_mib = fit_gpu_free(search, gpu);
	if (free_mib < need) {
		*short_by = need - free_mib;
		return search->view == VIEW_NOW ? CHECK_CLAIM : CHECK_MEMORY;
	}
	return check_compute(placement, search, gpu, short_by);
}

/* Whether a promise to that job does not keep this one off: it is its own, it is served
 * after it, or its tenant is within its fair share and the other is not. */
static bool promise_yields(const struct placement *placement, int64_t promised_to,
                           const struct job *job)
{
	const struct job *other = map_get(placement->jobs, promised_to);

	if (other == job)
		return true;
	if (!other || !other->class || !job->class)
		return false;
	if (other->tenant == job->tenant)
		return queue_before(&job->class->queue.rule, &job->entry, &other->entry,
		                    placement_now(placement));
	int64_t smallest_mib = cluster_totals(placement->cluster)->smallest_mib;
	struct amounts asked = job_amounts_on(job, job->class->shape->tasks, smallest_mib);
	struct amounts promised = job_amounts_on(other, other->class->shape->tasks, smallest_mib);
	return fairshare_within(job->tenant, NULL, &asked) &&
	       !fairshare_within(other->tenant, NULL, &promised);
}

static bool is_promised(const struct placement *placement, const struct search *search,
                        const struct gpu *gpu)
{
	return gpu->promised_ms < search->until_ms && !search->ignore_promises &&
	       !(search->job && promise_yields(placement, gpu->promised_to, search->job));
}

static bool is_closed_by_window(const struct placement *placement, const struct search *search,
                                uint64_t windows)
{
	return windows != 0 && !search->ignore_windows &&
	       windows_keep_off(placement, search, windows);
}

/* Kept for another model: only slots stay away. */
static bool is_kept(const struct search *search, const struct gpu *gpu)
{
	return gpu->kept_for != 0 && search->model && search->model->r.id != gpu->kept_for;
}

bool fit_may_use(const struct placement *placement, const struct search *search,
                 const struct gpu *gpu)
{
	INVARIANT(search->shape != NULL);
	if (!filter_allows(search->shape->filter, gpu) || !gpu_is_open(gpu, placement->config) ||
	    is_promised(placement, search, gpu) || is_kept(search, gpu) ||
	    is_closed_by_window(placement, search, gpu->windows))
		return false;
	if (search->shape->request.gpu_kind == GPU_WHOLE)
		return gpu->books.claims == 0 &&
		       gpu->r.foreign_mib <= placement->config->foreign_tolerance_mib;
	return is_divisible(search, gpu) && fit_compute_room(placement, search, gpu) > 0;
}

enum check place_check_gpu(const struct placement *placement, const struct search *search,
                           const struct gpu *gpu, int64_t *short_by)
{
	*short_by = 0;
	if (!filter_allows(search->shape->filter, gpu))
		return CHECK_MODEL;
	if (!gpu_is_open(gpu, placement->config))
		return closed_check(placement, gpu);
	enum check check = search->shape->request.gpu_kind == GPU_WHOLE
	                       ? check_whole(placement, search, gpu, short_by)
	                       : check_shared(placement, search, gpu, short_by);
	if (check == CHECK_OK && is_kept(search, gpu))
		return CHECK_PROMISE;
	if (check == CHECK_OK && is_closed_by_window(placement, search, gpu->windows))
		return CHECK_WINDOW;
	return check == CHECK_OK && is_promised(placement, search, gpu) ? CHECK_PROMISE : check;
}

static int64_t free_in_view(const struct search *search, const struct host_books *books,
                            int64_t total, int64_t mark)
{
	int64_t later = host_free_later(books, total);

	if (search->view == VIEW_CLEARED)
		return later + mark;
	return search->view == VIEW_NOW ? min64(host_free_now(books, total), later) : later;
}

int64_t fit_cpu_free(const struct search *search, const struct node *node)
{
	return free_in_view(search, &node->cpu, node_cpu_milli(node), node->mark_cpu);
}

int64_t fit_host_free(const struct search *search, const struct node *node)
{
	return free_in_view(search, &node->host, node_host_bytes(node), node->mark_host);
}

enum check place_check_node(const struct placement *placement, const struct search *search,
                            const struct node *node, int64_t *short_by)
{
	const struct shape_request *request = &search->shape->request;
	int64_t cpu = fit_cpu_free(search, node), host = fit_host_free(search, node);

	*short_by = 0;
	if (!node_is_open(node))
		return CHECK_NODE;
	if (*search->shape->filter->labels && !node_has_labels(node, search->shape->filter->labels))
		return CHECK_LABELS;
	if (search->shape->filter->demand) {
		enum check check = rules_check(placement, search, node, short_by);
		if (check != CHECK_OK)
			return check;
	}
	if (request->cpu_milli > 0 && cpu < request->cpu_milli) {
		*short_by = request->cpu_milli - cpu;
		return CHECK_CPU;
	}
	if (request->host_bytes > 0 && host < request->host_bytes) {
		*short_by = request->host_bytes - host;
		return CHECK_HOST;
	}
	if (request->gpu_count > 0) /* its GPUs say whether windows keep it off */
		return CHECK_OK;
	if (is_closed_by_window(placement, search, node->windows) ||
	    (*search->shape->filter->window &&
	     (node->windows & search->shape->filter->window_bit) == 0))
		return CHECK_WINDOW;
	return CHECK_OK;
}
