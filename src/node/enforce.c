/* enforce.c - what a measurement or the end of a lease means for works that run */
#include "node/local.h"

#define CHANGED_REPEAT_MS 60000

/* The GPU on which it uses most beyond what it may; NULL: on none. */
static const struct use *worst_use(const struct local_node *node, const struct work *work,
                                   int64_t *reserved_mib)
{
	const struct use *worst = NULL;
	int64_t worst_mib = node->policy.overuse_tolerance_mib;

	INVARIANT(work_is_up(work));
	for (const struct use *use = measure_first_use(node, work); use;
	     use = measure_next_use(node, use)) {
		int64_t part = work_part(work, &node->measure.gpus[use->gpu]);
		int64_t may_mib = part >= 0 ? work->order.parts[part].memory_mib : 0;
		int64_t over_mib = use->owned_mib + unclaimed_blamed_mib(node, use) - may_mib;
		if (over_mib <= worst_mib)
			continue;
		worst_mib = over_mib;
		*reserved_mib = may_mib;
		worst = use;
	}
	return worst;
}

void enforce_warn(struct local_node *node, const struct work *work, enum change_kind kind,
                  int64_t took_ms, const char *message)
{
	struct change change = { .kind = (int32_t)kind,
		                 .reservation_id = work->kept.reservation_id,
		                 .slot = work->kept.slot,
		                 .message = message,
		                 .address = "",
		                 .took_ms = took_ms };
	struct output *output = node_output(node, OUTPUT_WARN, work->kept.reservation_id);

	output->message = arena_string(&node->outputs->arena, message);
	int64_t since = kind == CHANGE_CROWDED       ? NODE_PROTOCOL_CROWDED
	                : kind == CHANGE_UNEXPLAINED ? NODE_PROTOCOL_UNEXPLAINED
	                                             : NODE_PROTOCOL_LEAST;
	if (node->link.protocol >= since)
		link_change(node, &change);
}

static bool is_stopped_for_overuse(const struct local_node *node, const struct work *work)
{
	return node->policy.overuse == OVERUSE_STOP ||
	       (node->policy.overuse == OVERUSE_GUARDED && work->guarded);
}

static void check_overuse(struct local_node *node, struct work *work)
{
	int64_t reserved_mib = 0;
	const struct use *use = worst_use(node, work, &reserved_mib);
	struct error message = { 0 };

	if (!use) {
		work->over_ms = 0;
		return;
	}
	int64_t blamed_mib = unclaimed_blamed_mib(node, use);
	error_set(&message, ERROR_FORBIDDEN, "it uses %lld MiB of GPU %s and reserved %lld MiB%s",
	          (long long)use->owned_mib + blamed_mib, node->measure.gpus[use->gpu].reading.uuid,
	          (long long)reserved_mib,
	          blamed_mib > 0 ? "; this includes memory that no process explains" : "");
	if (work->over_ms == 0) {
		work->over_ms = max64(node->now_ms, 1);
		enforce_warn(node, work, CHANGE_OVER, 0, message.text);
	}
	if (is_stopped_for_overuse(node, work) &&
	    node->now_ms - work->over_ms >= node->policy.overuse_stop_ms)
		work_stop(node, work, END_OVER, 0, message.text);
}

void enforce_limit_changed(struct local_node *node, struct work *work)
{
	if (!work_is_up(work) ||
	    (work->changed_ms > 0 && node->now_ms - work->changed_ms < CHANGED_REPEAT_MS))
		return;
	work->changed_ms = max64(node->now_ms, 1);
	enforce_warn(
	    node, work, CHANGE_UNGUARDED, 0,
	    "the limit of GPU memory in its guard was changed, and was put right: programs that "
	    "run as the same user can write it");
}

static const struct process_reading *unguarded_process(const struct local_node *node,
                                                       const struct work *work)
{
	size_t first = 0;

	for (const struct use *use = measure_first_use(node, work); use;
	     use = measure_next_use(node, use))
		if (use->unguarded > 0 && (first == 0 || use->unguarded < first))
			first = use->unguarded;
	return first > 0 ? &node->measure.processes[first - 1] : NULL;
}

static void check_guard(struct local_node *node, struct work *work)
{
	const struct process_reading *process = unguarded_process(node, work);
	struct error message = { 0 };

	if (!process)
		return;
	error_set(&message, ERROR_FORBIDDEN,
	          "process %lld of it uses GPU %s and is not under the guard: nothing keeps it "
	          "to its limit (is it linked statically, in an image without glibc, or without "
	          "LD_PRELOAD?)",
	          (long long)process->pid, process->uuid);
	if (!work->unguarded_told)
		enforce_warn(node, work, CHANGE_UNGUARDED, 0, message.text);
	work->unguarded_told = true;
	if (node->policy.unguarded == UNGUARDED_STOP)
		work_stop(node, work, END_UNGUARDED, work->order.grace_ms, message.text);
}

static bool is_busy(const struct local_node *node, const struct work *work)
{
	for (int64_t i = 0; i < work->order.part_count; i++) {
		const struct gpu_view *gpu = measure_gpu(node, work->order.parts[i].uuid);
		if (gpu && gpu->present && gpu->reading.utilisation > 0)
			return true;
	}
	return work->order.part_count == 0;
}

static void warn_of_idleness(struct local_node *node, struct work *work)
{
	const struct node_policy *policy = &node->policy;
	int64_t idle_ms = node->now_ms - work->busy_ms;
	int64_t left_ms = max64(policy->idle_ms + policy->idle_stop_ms - idle_ms, 0);
	struct error message = { 0 };

	if (policy->idle_stop_ms > 0)
		error_set(&message, ERROR_FORBIDDEN,
		          "it holds GPUs and has not used them for %lld s; if it stays idle, it is "
		          "stopped in %lld s",
		          (long long)(idle_ms / 1000), (long long)(left_ms + 999) / 1000);
	else
		error_set(&message, ERROR_FORBIDDEN,
		          "it holds GPUs and has not used them for %lld s",
		          (long long)(idle_ms / 1000));
	work->idle_told = true;
	enforce_warn(node, work, CHANGE_IDLE, idle_ms, message.text);
}

static void check_idle(struct local_node *node, struct work *work)
{
	const struct node_policy *policy = &node->policy;

	if (policy->idle_ms == 0 || work->kept.slot || work->kept.phase != WORK_RUNNING ||
	    work->kept.memory != MEMORY_ON_GPU)
		return;
	if (is_busy(node, work)) {
		work->busy_ms = node->now_ms;
		work->idle_told = false;
		return;
	}
	if (!work->idle_told && node->now_ms - work->busy_ms >= policy->idle_ms)
		warn_of_idleness(node, work);
	if (policy->idle_stop_ms > 0 &&
	    node->now_ms - work->busy_ms >= policy->idle_ms + policy->idle_stop_ms)
		work_stop(node, work, END_IDLE, work->order.grace_ms,
		          "it held GPUs and did not use them");
}

/* How a GPU speaks against the release of a work that has no processes left. */
enum doubt {
	DOUBT_NONE,
	DOUBT_OTHERS, /* memory is left, and charged to what ended before: it may still be its */
	DOUBT_OWN,    /* memory is left that is charged to it */
};

static enum doubt doubt_of(const struct local_node *node, const struct work *work, const char *uuid)
{
	const struct gpu_view *gpu = measure_gpu(node, uuid);
	int64_t tolerance_mib = node->policy.release_tolerance_mib;

	if (!gpu)
		return DOUBT_OWN;
	if (!gpu->present)
		return node->now_ms - gpu->absent_ms >= node->policy.absent_ms ? DOUBT_NONE
		                                                               : DOUBT_OWN;
	const struct use *use = measure_use(node, work, gpu);
	if (use && (use->owned_mib > 0 || use->charged_mib > tolerance_mib))
		return DOUBT_OWN;
	return gpu->unexplained_mib - gpu->standing_mib > tolerance_mib ? DOUBT_OTHERS : DOUBT_NONE;
}

static enum doubt worst_doubt(const struct local_node *node, const struct work *work)
{
	enum doubt worst = DOUBT_NONE;

	for (int i = 0; i < node->measure.gpu_count; i++) {
		const struct gpu_view *gpu = &node->measure.gpus[i];
		bool concerned = work_part(work, gpu) >= 0 || measure_use(node, work, gpu);
		enum doubt doubt = concerned ? doubt_of(node, work, gpu->reading.uuid) : DOUBT_NONE;
		worst = doubt > worst ? doubt : worst;
	}
	for (int64_t i = 0; i < work->order.part_count; i++)
		if (!measure_gpu(node, work->order.parts[i].uuid))
			worst = DOUBT_OWN;
	return worst;
}

/* True if a measurement that was begun after its last process was gone shows that
 * its memory is back. What could be its, but is charged to others that ended
 * before, must have been so for a while. */
static bool is_back(const struct local_node *node, struct work *work)
{
	if (!node->measure.any || node->measure.number < work->asked_gone)
		return false;
	switch (worst_doubt(node, work)) {
	case DOUBT_NONE:
		return true;
	case DOUBT_OTHERS:
		if (work->clear_ms == 0)
			work->clear_ms = max64(node->now_ms, 1);
		return node->now_ms - work->clear_ms >= node->policy.release_settle_ms;
	default:
		work->clear_ms = 0;
		return false;
	}
}

void enforce_measured(struct local_node *node)
{
	INVARIANT(node->measure.any);
	unclaimed_tell(node);
	for (size_t i = node->work_count; i-- > 0;) {
		struct work *work = node->works[i];
		if (work_is_up(work)) {
			check_overuse(node, work);
			check_guard(node, work);
			check_idle(node, work);
		} else if (work->kept.phase == WORK_OVER && work->kept.gone &&
		           is_back(node, work)) {
			work_released(node, work);
			measure_charge(node);
		}
	}
}

void enforce_lease(struct local_node *node)
{
	if (node->lease_until_ms > node->now_ms)
		return;
	for (size_t i = node->work_count; i-- > 0;) {
		struct work *work = node->works[i];
		if (work_is_up(work) && work->order.lease_loss == LEASE_STOP)
			work_stop(node, work, END_LEASE, work->order.grace_ms,
			          "no scheduler renewed its lease");
	}
}
