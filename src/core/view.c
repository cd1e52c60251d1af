/* view.c - what a node has free, in the numbers that a score is made of */
#include "core/view.h"

#include <string.h>

static void add_gpu(struct node_view *view, const struct gpu_summary *has)
{
	int at = 0;

	if (has->free_milli == 0 && has->takes_milli == 0)
		return;
	while (at < view->kind_count && (view->kinds[at].free_milli != has->free_milli ||
	                                 view->kinds[at].takes_milli != has->takes_milli))
		at++;
	if (at == view->kind_count) {
		view->kinds[at] = (struct view_kind){ has->free_milli, has->takes_milli, 0 };
		view->kind_count++;
	}
	view->kinds[at].times++;
}

void view_make(struct node_view *view, const struct node *node)
{
	const struct node_summary *has = &node->summary;

	view->cpu_milli = min64(has->cpu_now, has->cpu_later);
	view->host_bytes = min64(has->host_now, has->host_later);
	view->cpu_now_milli = has->cpu_now;
	view->mix = 0;
	view->whole = has->whole;
	view->gpu_count = (int16_t)node->gpu_count;
	view->open = has->open;
	view->plain = true;
	view->kind_count = 0;
	for (int i = 0; i < node->gpu_count; i++) {
		const struct gpu_summary *gpu = &node->gpus[i]->summary;
		add_gpu(view, gpu);
		view->plain = view->plain && gpu->whole == (gpu->free_milli == WHOLE_GPU);
	}
}

bool view_equal(const struct node_view *a, const struct node_view *b)
{
	return a->cpu_milli == b->cpu_milli && a->host_bytes == b->host_bytes &&
	       a->cpu_now_milli == b->cpu_now_milli && a->whole == b->whole &&
	       a->gpu_count == b->gpu_count && a->open == b->open && a->plain == b->plain &&
	       a->kind_count == b->kind_count &&
	       memcmp(a->kinds, b->kinds, (size_t)a->kind_count * sizeof(a->kinds[0])) == 0;
}
