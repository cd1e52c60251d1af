/* node_summary.c - what a node has free, in the numbers that a score is made of */
#include "core/cluster/node_summary.h"

static void node_summary_add_gpu(struct node_summary *summary, const struct gpu_offer *has)
{
	int at = 0;

	if (has->free_milli == 0 && has->takes_milli == 0)
		return;
	while (at < summary->kind_count && (summary->kinds[at].free_milli != has->free_milli ||
	                                    summary->kinds[at].takes_milli != has->takes_milli))
		at++;
	if (at == summary->kind_count) {
		summary->kinds[at] =
		    (struct summary_kind){ has->free_milli, has->takes_milli, 0, 0 };
		summary->kind_count++;
	}
	summary->kinds[at].times++;
}

const struct node_summary *node_summary_make(struct node_summary *summary, const struct node *node)
{
	const struct node_offer *has = &node->offer;

	INVARIANT(node->gpu_count >= 0 && node->gpu_count <= GPUS_PER_NODE_MAX);
	summary->cpu_milli = min64(has->cpu_now, has->cpu_later);
	summary->host_bytes = min64(has->host_now, has->host_later);
	summary->cpu_now_milli = has->cpu_now;
	summary->cpu_total_milli = node_cpu_milli(node);
	summary->free_milli = 0;
	summary->mix = 0;
	summary->whole = (int16_t)has->whole;
	summary->gpu_count = (int16_t)node->gpu_count;
	summary->open = has->open;
	summary->plain = true;
	summary->uniform = true;
	summary->gpu_type = node->gpu_count > 0 ? node->gpus[0]->gpu_type : -1;
	summary->kind_count = 0;
	for (int i = 0; i < node->gpu_count; i++) {
		const struct gpu_offer *gpu = &node->gpus[i]->offer;
		node_summary_add_gpu(summary, gpu);
		summary->free_milli += gpu->free_milli;
		summary->plain = summary->plain && gpu->whole == (gpu->free_milli == WHOLE_GPU);
		summary->uniform = summary->uniform && node->gpus[i]->gpu_type == summary->gpu_type;
	}
	return summary;
}

static bool kinds_equal(const struct node_summary *a, const struct node_summary *b)
{
	for (int i = 0; i < a->kind_count; i++) {
		const struct summary_kind *one = &a->kinds[i], *other = &b->kinds[i];
		if (one->free_milli != other->free_milli ||
		    one->takes_milli != other->takes_milli || one->times != other->times)
			return false;
	}
	return true;
}

bool node_summary_equal(const struct node_summary *a, const struct node_summary *b)
{
	return a->cpu_milli == b->cpu_milli && a->host_bytes == b->host_bytes &&
	       a->cpu_now_milli == b->cpu_now_milli && a->cpu_total_milli == b->cpu_total_milli &&
	       a->free_milli == b->free_milli && a->whole == b->whole &&
	       a->gpu_count == b->gpu_count && a->open == b->open && a->plain == b->plain &&
	       a->uniform == b->uniform && a->gpu_type == b->gpu_type &&
	       a->kind_count == b->kind_count && kinds_equal(a, b);
}
