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

static bool has_suspects(const struct local_node *node, const struct gpu_view *gpu)
{
	for (size_t i = 0; i < node->work_count; i++)
		if (is_suspect(node, node->works[i], gpu))
			return true;
	return false;
}

/* Whether it alone can have what is unclaimed. Where others are there, one of them may have put it
 * there without its guard, and would have its neighbor stopped. */
static bool is_blamed(const struct local_node *node, const struct work *work,
                      const struct gpu_view *gpu)
{
	if (!is_suspect(node, work, gpu))
		return false;
	for (size_t i = 0; i < node->work_count; i++) {
		const struct work *other = node->works[i];
		if (other != work && work_is_there(other) &&
		    (work_part(other, gpu) >= 0 || measure_use(node, other, gpu)))
			return false;
	}
	return true;
}

int64_t unclaimed_blamed_mib(const struct local_node *node, const struct use *use)
{
	const struct gpu_view *gpu = &node->measure.gpus[use->gpu];

	return gpu->unclaimed.mib > 0 && is_blamed(node, use->work, gpu) ? gpu->unclaimed.mib : 0;
}

static void tell_works(struct local_node *node, const struct gpu_view *gpu)
{
	bool suspected = has_suspects(node, gpu);

	for (size_t i = 0; i < node->work_count; i++) {
		const struct work *work = node->works[i];
		struct error message = { 0 };
		if (suspected ? !is_suspect(node, work, gpu) : !is_on(node, work, gpu))
			continue;
		error_set(&message, ERROR_FORBIDDEN,
		          "%lld MiB of GPU %s are in use that no process explains, and came while "
		          "this task ran there%s",
		          (long long)gpu->unclaimed.mib, gpu->reading.uuid,
		          is_blamed(node, work, gpu) ? ": they count as its own, because it is "
		                                       "alone there, and shares memory with "
		                                       "other processes or has managed memory"
		                                     : "");
		enforce_warn(node, work, CHANGE_UNEXPLAINED, 0, message.text);
	}
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
