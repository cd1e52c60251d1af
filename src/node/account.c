/* account.c - what works use of GPUs, counted from one measurement to the next */
#include "node/local.h"

#define WRITE_MS 60000 /* an agent that fails forgets no more than what came since */

/* Peaks and energy are of no use to anyone who does not know how far they go. */
static bool is_counted(const struct work *work)
{
	return work->kept.phase == WORK_RUNNING || work->kept.phase == WORK_STOPPING;
}

/* Its time on GPUs up to then, by its share of each. */
static void count_time(struct work *work, int64_t until_ms)
{
	const struct kept_work *kept = &work->kept;
	int64_t left_ms = kept->memory == MEMORY_ON_GPU ? until_ms : kept->memory_ms;
	int64_t had_ms = max64(left_ms - kept->started_ms - kept->paused_ms, 0);
	int64_t share = 0;

	for (int64_t i = 0; i < work->order.part_count; i++)
		share += max64(0, min64(work->order.parts[i].share, WHOLE_GPU));
	work->kept.use.gpu_ms = min64(muldiv_down(had_ms, share, WHOLE_GPU), TIME_MS_MAX);
}

/* Its GPUs have used since it was last counted what they use now. */
static void count_energy(const struct local_node *node, struct work *work, int64_t until_ms)
{
	struct kept_work *kept = &work->kept;
	int64_t elapsed_ms = max64(until_ms - max64(kept->accounted_ms, kept->started_ms), 0);
	int64_t energy_mj = kept->use.energy_mj;

	for (int64_t i = 0; i < work->order.part_count && kept->memory == MEMORY_ON_GPU; i++) {
		const struct gpu_view *gpu = measure_gpu(node, work->order.parts[i].uuid);
		int64_t share = max64(0, min64(work->order.parts[i].share, WHOLE_GPU));
		int64_t power_mw = gpu ? max64(0, min64(gpu->reading.power_mw, INT32_MAX)) : 0;
		energy_mj += muldiv_down(muldiv_down(power_mw, elapsed_ms, 1000), share, WHOLE_GPU);
	}
	kept->use.energy_mj = min64(energy_mj, TIME_MS_MAX);
	kept->accounted_ms = max64(kept->accounted_ms, until_ms);
}

static void count_peaks(const struct local_node *node, struct work *work)
{
	struct task_use *counted = &work->kept.use;

	for (const struct use *use = measure_first_use(node, work); use;
	     use = measure_next_use(node, use)) {
		counted->peak_mib = max64(counted->peak_mib, use->owned_mib);
		counted->unguarded = counted->unguarded || use->unguarded > 0;
	}
}

static int64_t in_range(int64_t number)
{
	return max64(0, min64(number, TIME_MS_MAX));
}

void account_guard(struct work *work, const struct guard_reading *guard)
{
	struct task_use *use = &work->kept.use;

	work->guarded = true;
	if (!is_counted(work))
		return;
	use->limit_mib = in_range(guard->limit_mib);
	use->guard_peak_mib = max64(use->guard_peak_mib, in_range(guard->peak_mib));
	use->peak_mib = max64(use->peak_mib, use->guard_peak_mib);
	use->refusals = max64(use->refusals, in_range(guard->refusals));
	if (guard->refused_mib > 0)
		use->refused_mib = in_range(guard->refused_mib);
}

static void write_now_and_then(struct local_node *node, struct work *work)
{
	if (work->written_ms == 0)
		work->written_ms = node->now_ms;
	if (node->now_ms - work->written_ms < WRITE_MS)
		return;
	work->written_ms = node->now_ms;
	work_write(node, work);
}

void account_measured(struct local_node *node, const struct measured *measured)
{
	for (int64_t i = 0; i < measured->guard_count; i++) {
		struct work *work = work_find(node, measured->guards[i].reservation_id);
		if (work)
			account_guard(work, &measured->guards[i]);
		if (work)
			crowding_guard(node, work, &measured->guards[i]);
		if (work && measured->guards[i].changed)
			enforce_limit_changed(node, work);
	}
	for (size_t i = 0; i < node->work_count; i++) {
		struct work *work = node->works[i];
		if (!is_counted(work) || work->order.part_count == 0)
			continue;
		count_time(work, node->now_ms);
		count_energy(node, work, node->now_ms);
		count_peaks(node, work);
		write_now_and_then(node, work);
	}
}

void account_end(struct local_node *node, struct work *work)
{
	INVARIANT(work->kept.ended_ms <= node->now_ms);
	count_time(work, work->kept.ended_ms);
	count_energy(node, work, work->kept.ended_ms);
}
