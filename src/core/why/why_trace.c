/* why_trace.c - how a waiting job would be decided about, step by step */
#include <inttypes.h>

#include "core/state.h"
#include "core/why/why.h"
#include "core/why/why_text.h"

#define LINES_MAX 1024 /* GPUs, and nodes, that are shown one by one */

static int64_t asked_mib(const struct shape_request *request, const struct gpu *gpu)
{
	switch (request->gpu_kind) {
	case GPU_WHOLE:
		return gpu_usable_mib(gpu);
	case GPU_FRACTION:
		return request->fraction * gpu_usable_mib(gpu) / WHOLE_GPU;
	case GPU_UNEVEN:
		return request->uneven_mib[request->gpu_count - 1];
	default:
		return request->memory_mib;
	}
}

static void trace_gpu(const struct sched *sched, const struct search *search, const struct gpu *gpu,
                      struct buffer *buffer)
{
	int64_t short_by;
	enum check check = place_check_gpu(&sched->placement, search, gpu, &short_by);

	buffer_print(buffer, "[GPU_FILTER] job-%" PRId64 ": ", search->job->r.id);
	text_gpu(buffer, sched, gpu->r.id);
	buffer_print(buffer,
	             ": capacity %" PRId64 ", overhead %" PRId64 ", foreign %" PRId64
	             ", used %" PRId64 ", releasing %" PRId64 ", claimed %" PRId64
	             ", asked %" PRId64 " MiB: %s",
	             gpu->r.capacity_mib, gpu->r.overhead_mib, gpu->r.foreign_mib,
	             gpu->books.used_mib, gpu->books.releasing_mib, gpu->books.claimed_mib,
	             asked_mib(&search->shape->request, gpu), check_name(check));
	if (short_by > 0)
		buffer_print(buffer, ", %" PRId64 " MiB short", short_by);
	buffer_text(buffer, "\n");
}

static void trace_filter(const struct sched *sched, const struct search *search,
                         struct buffer *buffer)
{
	int64_t shown = 0, left = 0;

	for (size_t i = 0; i < sched->cluster.node_count; i++) {
		const struct node *node = sched->cluster.by_rank[i];
		for (int g = 0; g < node->gpu_count; g++) {
			if (shown == LINES_MAX) {
				left++;
				continue;
			}
			trace_gpu(sched, search, node->gpus[g], buffer);
			shown++;
		}
	}
	if (left > 0)
		buffer_print(buffer, "[GPU_FILTER] job-%" PRId64 ": %" PRId64 " more GPUs\n",
		             search->job->r.id, left);
}

static void trace_fit(struct sched *sched, struct search *search, struct buffer *buffer)
{
	int64_t short_by, tasks = 0;
	int shown = 0;

	for (size_t i = 0; i < sched->cluster.node_count; i++) {
		const struct node *node = sched->cluster.by_rank[i];
		enum check check = place_check_node(&sched->placement, search, node, &short_by);
		int64_t takes =
		    check == CHECK_OK ? place_count(&sched->placement, search, node) : 0;
		tasks += takes;
		if (shown++ >= LINES_MAX)
			continue;
		buffer_print(buffer,
		             "[GPU_FIT_CHECK] job-%" PRId64 ": node %s: %s, room for %" PRId64
		             " tasks\n",
		             search->job->r.id, node->r.name, check_name(check), takes);
	}
	buffer_print(buffer,
	             "[GPU_FIT_CHECK] job-%" PRId64 ": room for %" PRId64 " tasks in all, %" PRId64
	             " are to start together\n",
	             search->job->r.id, tasks, search->shape->tasks);
}

/* Tries it in a plan that is taken back. */
static bool why_trace_fits(struct sched *sched, struct search search, enum view view)
{
	search.view = view;
	plan_begin(&sched->ledger);
	bool placed = place_job(&sched->placement, &search, search.shape->tasks);
	plan_abandon(&sched->ledger);
	return placed;
}

static void trace_select(struct sched *sched, const struct search *search, struct buffer *buffer)
{
	struct choice choice;
	int64_t candidates = 0;

	scarcity_refresh(&sched->placement);
	for (size_t i = 0; i < sched->cluster.node_count; i++) {
		if (!place_on_node(&sched->placement, search, sched->cluster.by_rank[i], &choice))
			continue;
		if (candidates++ >= LINES_MAX)
			continue;
		buffer_print(buffer, "[GPU_SELECT] job-%" PRId64 ": node %s scores %" PRId64 ":",
		             search->job->r.id, choice.node->r.name, choice.score);
		for (int p = 0; p < choice.part_count; p++)
			buffer_print(buffer, " %s", choice.parts[p].gpu->r.uuid);
		buffer_text(buffer, "\n");
	}
	buffer_print(buffer,
	             "[GPU_SELECT] job-%" PRId64 ": %" PRId64
	             " candidates; the lowest score goes first, by name among equals\n",
	             search->job->r.id, candidates);
}

void why_trace(struct sched *sched, struct job *job, struct buffer *buffer)
{
	INVARIANT(!sched->plan.open);
	if (!job->class) {
		buffer_print(buffer, "[GPU_FIT_CHECK] job-%" PRId64 ": is not in the queue\n",
		             job->r.id);
		return;
	}
	sched_prepare(sched);
	struct search search = applicant_job(&sched->placement, job);
	filter_refresh(search.shape->filter, &sched->cluster, sched->cluster.version);
	trace_filter(sched, &search, buffer);
	trace_fit(sched, &search, buffer);
	bool now = why_trace_fits(sched, search, VIEW_NOW);
	buffer_print(buffer, "[IDLE_CHECK] job-%" PRId64 ": %s\n", job->r.id,
	             now ? "fits now" : "does not fit now");
	buffer_print(buffer,
	             "[RESOURCE_CHECK] job-%" PRId64 ": %s when memory that is being freed is "
	             "back: a claim, never a start\n",
	             job->r.id,
	             now || why_trace_fits(sched, search, VIEW_LATER) ? "would fit"
	                                                              : "would not fit");
	trace_select(sched, &search, buffer);
}
