/* unclaimed.c - memory of a GPU that no process explains and that came while works were there */
#include "node/local.h"

#define SETTLE_MS 2000 /* so long it must be there before it counts */

/* What is left of a GPU's memory when all that can be is explained or charged. */
static int64_t left_mib(const struct gpu_view *gpu)
{
	return max64(gpu->foreign_mib - gpu->strangers_mib - gpu->standing_mib, 0);
}

void unclaimed_measure(const struct local_node *node, struct gpu_view *gpu)
{
	struct unclaimed *unclaimed = &gpu->unclaimed;
	int64_t now_mib = gpu->present ? left_mib(gpu) : 0;

	INVARIANT(now_mib <= gpu->foreign_mib);
	if (now_mib == 0) {
		*unclaimed = (struct unclaimed){ 0 };
		return;
	}
	unclaimed->mib = min64(unclaimed->mib, now_mib);
	unclaimed->told_mib = min64(unclaimed->told_mib, unclaimed->mib);
	if (unclaimed->since_ms == 0) {
		unclaimed->since_ms = max64(node->now_ms, 1);
		unclaimed->least_mib = now_mib;
	}
	unclaimed->least_mib = min64(unclaimed->least_mib, now_mib);
	if (node->now_ms - unclaimed->since_ms < SETTLE_MS)
		return;
	unclaimed->mib = unclaimed->least_mib;
	unclaimed->least_mib = now_mib;
	unclaimed->since_ms = max64(node->now_ms, 1);
}

static bool is_on(const struct local_node *node, const struct work *work,
                  const struct gpu_view *gpu)
{
	return work_is_up(work) && (work_part(work, gpu) >= 0 || measure_use(node, work, gpu));
}

/* It gives memory to others, or has memory of others, in ways that no process shows. */
static bool is_suspect(const struct local_node *node, const struct work *work,
                       const struct gpu_view *gpu)
{
	const struct use *use = measure_use(node, work, gpu);

	return is_on(node, work, gpu) && (work->imports > 0 || (use && use->hidden_mib > 0));
}

static size_t count_suspects(const struct local_node *node, const struct gpu_view *gpu)
{
	size_t count = 0;

	for (size_t i = 0; i < node->work_count; i++)
		count += is_suspect(node, node->works[i], gpu);
	return count;
}

/* Where one work alone can have it, it has it. */
int64_t unclaimed_blamed_mib(const struct local_node *node, const struct use *use)
{
	const struct gpu_view *gpu = &node->measure.gpus[use->gpu];

	if (gpu->unclaimed.mib == 0 || !is_suspect(node, use->work, gpu) ||
	    count_suspects(node, gpu) > 1)
		return 0;
	return gpu->unclaimed.mib;
}

static void tell_works(struct local_node *node, const struct gpu_view *gpu)
{
	size_t suspects = count_suspects(node, gpu);
	struct error message = { 0 };

	error_set(&message, ERROR_FORBIDDEN,
	          "%lld MiB of GPU %s are in use that no process explains, and came while this "
	          "task ran there%s",
	          (long long)gpu->unclaimed.mib, gpu->reading.uuid,
	          suspects == 1 ? ": they count as its own, because it alone shares memory with "
	                          "other processes or has managed memory"
	                        : "");
	for (size_t i = 0; i < node->work_count; i++)
		if (suspects > 0 ? is_suspect(node, node->works[i], gpu)
		                 : is_on(node, node->works[i], gpu))
			enforce_warn(node, node->works[i], CHANGE_UNEXPLAINED, 0, message.text);
}

void unclaimed_tell(struct local_node *node)
{
	for (int i = 0; i < node->measure.gpu_count; i++) {
		struct gpu_view *gpu = &node->measure.gpus[i];
		if (gpu->unclaimed.mib - gpu->unclaimed.told_mib <=
		    node->policy.overuse_tolerance_mib)
			continue;
		gpu->unclaimed.told_mib = gpu->unclaimed.mib;
		tell_works(node, gpu);
	}
}
