/* view.c - what a node has free, in the numbers that a score is made of */
#include "core/cluster/view.h"

static void add_gpu(struct node_view *view, const struct gpu_summary *has)
{
	int at = 0;

	if (has->free_milli == 0 && has->takes_milli == 0)
		return;
	while (at < view->kind_count && (view->kinds[at].free_milli != has->free_milli ||
	                                 view->kinds[at].takes_milli != has->takes_milli))
		at++;
	if (at == view->kind_count) {
		view->kinds[at] = (struct view_kind){ has->free_milli, has->takes_milli, 0, 0 };
		view->kind_count++;
	}
	view->kinds[at].times++;
}

const struct node_view *view_make(struct node_view *view, const struct node *node)
{
	const struct node_summary *has = &node->summary;

	INVARIANT(node->gpu_count >= 0 && node->gpu_count <= GPUS_PER_NODE_MAX);
	view->cpu_milli = min64(has->cpu_now, has->cpu_later);
	view->host_bytes = min64(has->host_now, has->host_later);
	view->cpu_now_milli = has->cpu_now;
	view->cpu_total_milli = node->r.cpu_milli;
	view->free_milli = 0;
	view->mix = 0;
	view->whole = (int16_t)has->whole;
	view->gpu_count = (int16_t)node->gpu_count;
	view->open = has->open;
	view->plain = true;
	view->uniform = true;
	view->model = node->gpu_count > 0 ? node->gpus[0]->model : -1;
	view->kind_count = 0;
	for (int i = 0; i < node->gpu_count; i++) {
		const struct gpu_summary *gpu = &node->gpus[i]->summary;
		add_gpu(view, gpu);
		view->free_milli += gpu->free_milli;
		view->plain = view->plain && gpu->whole == (gpu->free_milli == WHOLE_GPU);
		view->uniform = view->uniform && node->gpus[i]->model == view->model;
	}
	return view;
}

static bool kinds_equal(const struct node_view *a, const struct node_view *b)
{
	for (int i = 0; i < a->kind_count; i++) {
		const struct view_kind *one = &a->kinds[i], *other = &b->kinds[i];
		if (one->free_milli != other->free_milli ||
		    one->takes_milli != other->takes_milli || one->times != other->times)
			return false;
	}
	return true;
}

bool view_equal(const struct node_view *a, const struct node_view *b)
{
	return a->cpu_milli == b->cpu_milli && a->host_bytes == b->host_bytes &&
	       a->cpu_now_milli == b->cpu_now_milli && a->cpu_total_milli == b->cpu_total_milli &&
	       a->free_milli == b->free_milli && a->whole == b->whole &&
	       a->gpu_count == b->gpu_count && a->open == b->open && a->plain == b->plain &&
	       a->uniform == b->uniform && a->model == b->model && a->kind_count == b->kind_count &&
	       kinds_equal(a, b);
}
