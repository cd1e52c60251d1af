/* check.c - whether what a node believes agrees with itself */
#include <string.h>

#include "node/local.h"

static void check_work(const struct local_node *node, const struct work *work)
{
	const struct kept_work *kept = &work->kept;

	INVARIANT(kept->phase >= WORK_WAITING && kept->phase <= WORK_BACK);
	INVARIANT(kept->reservation_id == work->order.reservation_id);
	INVARIANT(kept->phase == WORK_WAITING || kept->standing.count == work->order.part_count);
	INVARIANT(kept->phase != WORK_WAITING || node->link.state == LINK_UP);
	INVARIANT(kept->phase != WORK_BACK || (kept->gone && !work_is_untold(work)));
	INVARIANT(!kept->gone || kept->phase >= WORK_OVER);
	INVARIANT(!kept->ready || (kept->slot && kept->phase < WORK_OVER));
	INVARIANT(work->release_change == 0 || kept->phase == WORK_BACK);
	INVARIANT(work->judged_by == 0 || kept->phase == WORK_OVER);
}

/* All that is used is somebody's: an owner's, charged to one, or foreign. */
static void check_check_gpu(const struct local_node *node, int at)
{
	const struct gpu_view *gpu = &node->measure.gpus[at];
	int64_t owned_mib = 0, charged_mib = 0;

	for (size_t i = 0; i < node->measure.use_count; i++) {
		const struct use *use = &node->measure.uses[i];
		if (use->gpu != at)
			continue;
		INVARIANT(use->owned_mib >= 0 && use->charged_mib >= 0);
		owned_mib += use->owned_mib;
		charged_mib += use->charged_mib;
	}
	INVARIANT(at == 0 || strcmp(gpu[-1].reading.uuid, gpu->reading.uuid) < 0);
	INVARIANT(gpu->present || gpu->explained_mib == 0);
	INVARIANT(owned_mib + gpu->strangers_mib <= gpu->explained_mib);
	INVARIANT(charged_mib + gpu->foreign_mib == gpu->strangers_mib + gpu->unexplained_mib);
}

void node_check(const struct local_node *node)
{
	const struct link *link = &node->link;

	for (size_t i = 0; i < node->work_count; i++) {
		INVARIANT(i == 0 || node->works[i - 1]->kept.reservation_id <
		                        node->works[i]->kept.reservation_id);
		check_work(node, node->works[i]);
	}
	for (int i = 0; i < node->measure.gpu_count; i++)
		check_check_gpu(node, i);
	for (size_t i = 0; i < link->pending_count; i++)
		INVARIANT(link->pending[i].number ==
		          link->sent - (int64_t)link->pending_count + 1 + (int64_t)i);
	INVARIANT(link->stored <= link->sent && link->forgotten <= link->stored);
}
