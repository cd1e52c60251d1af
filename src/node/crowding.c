/* crowding.c - tasks that fail because others took memory that they had reserved */
#include "node/local.h"

#define RECENT_MS 10000  /* what others had so long ago may be why a task fails now */
#define PATIENCE_MS 5000 /* for a measurement, before an end is told without it */

/* The first of its GPUs where others left it less than its reservation; NULL: there is none. */
static const struct gpu_view *crowded_gpu(const struct local_node *node, const struct work *work)
{
	for (int64_t i = 0; i < work->order.part_count; i++) {
		const struct gpu_view *gpu = measure_gpu(node, work->order.parts[i].uuid);
		if (gpu && gpu->present && gpu->foreign_mib > 0 && admit_excess_mib(node, gpu) > 0)
			return gpu;
	}
	return NULL;
}

static void look(struct local_node *node, struct work *work)
{
	const struct gpu_view *gpu = crowded_gpu(node, work);
	struct error text = { 0 };

	if (!gpu) {
		if (node->now_ms - work->crowded_ms > RECENT_MS)
			work->crowded_ms = 0;
		return;
	}
	if (work->crowded_ms == 0) {
		error_set(&text, ERROR_NO_ROOM,
		          "programs that nobody scheduled used %lld MiB of GPU %s, %lld MiB of "
		          "which were reserved",
		          (long long)gpu->foreign_mib, gpu->reading.uuid,
		          (long long)admit_excess_mib(node, gpu));
		work->crowded = arena_string(&work->arena, text.text);
	}
	work->crowded_ms = max64(node->now_ms, 1);
}

static bool may_be_crowded(const struct work *work)
{
	return !work->kept.slot && work->order.part_count > 0 && work->kept.exit_code != 0 &&
	       work->kept.reason == END_ITSELF;
}

void crowding_hold(struct local_node *node, struct work *work)
{
	INVARIANT(work->kept.phase == WORK_OVER && work->judged_by == 0);
	if (may_be_crowded(work))
		work->judged_by = node_ask_measure(node);
}

static void judge(struct local_node *node, struct work *work)
{
	work->judged_by = 0;
	if (work->crowded_ms > 0) {
		work->kept.reason = END_FOREIGN;
		work->kept.message = work->crowded;
		work_write(node, work);
	}
	work_tell_end(node, work);
}

void crowding_measured(struct local_node *node)
{
	for (size_t i = 0; i < node->work_count; i++) {
		struct work *work = node->works[i];
		bool judged = work->judged_by > 0 && node->measure.number >= work->judged_by;
		if ((work_is_up(work) && !work->kept.slot) || judged)
			look(node, work);
		if (judged)
			judge(node, work);
	}
}

void crowding_time(struct local_node *node, struct work *work)
{
	if (crowding_wake_ms(work) <= node->now_ms)
		judge(node, work);
}

int64_t crowding_wake_ms(const struct work *work)
{
	return work->judged_by > 0 ? work->kept.stop_ms + PATIENCE_MS : INT64_MAX;
}
