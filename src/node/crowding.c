/* crowding.c - tasks that fail because others took memory that they had reserved */
#include <string.h>

#include "node/local.h"

#define RECENT_MS 10000  /* what others had so long ago may be why a task fails now */
#define NEAR_MS 2000     /* and why an allocation failed */
#define REPEAT_MS 60000  /* between what is told of failed allocations */
#define PATIENCE_MS 5000 /* for a measurement, before an end is told without it */

/* What others surely have. Memory that no process explains may for a moment be that of a process
 * that begins or has just ended. */
static int64_t taken_mib(const struct gpu_view *gpu)
{
	return min64(gpu->strangers_mib + gpu->standing_mib + gpu->unclaimed.mib, gpu->foreign_mib);
}

/* How much of what they have is reserved. */
static int64_t missing_mib(const struct local_node *node, const struct gpu_view *gpu)
{
	return admit_excess_mib(node, gpu) - (gpu->foreign_mib - taken_mib(gpu));
}

/* The first of its GPUs where others left it less than its reservation; NULL: there is none. */
static const struct gpu_view *crowded_gpu(const struct local_node *node, const struct work *work)
{
	for (int64_t i = 0; i < work->order.part_count; i++) {
		const struct gpu_view *gpu = measure_gpu(node, work->order.parts[i].uuid);
		if (gpu && gpu->present && taken_mib(gpu) > 0 && missing_mib(node, gpu) > 0)
			return gpu;
	}
	return NULL;
}

static void look(struct local_node *node, struct work *work)
{
	const struct gpu_view *gpu = crowded_gpu(node, work);

	if (!gpu) {
		if (node->now_ms - work->crowded_ms > RECENT_MS)
			work->crowded_ms = 0;
		return;
	}
	/* Of one that has just ended, what it had itself may still be there without an owner. */
	if (work->crowded_ms > 0 && !work_is_up(work))
		return;
	buffer_clear(&work->crowded);
	buffer_print(&work->crowded,
	             "programs that nobody scheduled used %lld MiB of GPU %s, %lld MiB of "
	             "which were reserved",
	             (long long)taken_mib(gpu), gpu->reading.uuid,
	             (long long)missing_mib(node, gpu));
	work->crowded_ms = max64(node->now_ms, 1);
}

void crowding_guard(struct local_node *node, struct work *work, const struct guard_reading *guard)
{
	int64_t failures = max64(0, min64(guard->failures, TIME_MS_MAX));
	int64_t more = work->failures < 0 ? 0 : failures - work->failures;

	work->imports = guard->imports;
	if (more > 0 && guard->failed_part >= 0 && guard->failed_part < work->order.part_count) {
		work->failed += more;
		work->failed_part = guard->failed_part;
		work->failed_mib = max64(0, min64(guard->failed_mib, MIB_MAX));
		/* Since it was last read, whatever it says. */
		work->failed_ms = max64(work->read_ms, min64(guard->failed_ms, node->now_ms));
	}
	work->failures = failures;
	work->read_ms = node->now_ms;
}

/* Remembers by how much, and where, it uses most beyond its reservation. */
static void look_for_excess(struct local_node *node, struct work *work)
{
	const char *uuid = NULL;
	int64_t most_mib = 0;

	for (const struct use *use = measure_first_use(node, work); use;
	     use = measure_next_use(node, use)) {
		const struct gpu_view *gpu = &node->measure.gpus[use->gpu];
		int64_t part = work_part(work, gpu);
		int64_t excess_mib =
		    part >= 0 ? use->owned_mib - work->order.parts[part].memory_mib : 0;
		if (excess_mib <= most_mib)
			continue;
		most_mib = excess_mib;
		uuid = work->order.parts[part].uuid;
	}
	if (!uuid)
		return;
	work->excess_ms = max64(node->now_ms, 1);
	work->excess_mib = most_mib;
	work->excess_uuid = uuid;
}

/* The one that used most beyond its reservation when an allocation of `work` failed. */
static struct work *find_over(const struct local_node *node, const struct work *work)
{
	const char *uuid = work->order.parts[work->failed_part].uuid;
	struct work *most = NULL;

	for (size_t i = 0; i < node->work_count; i++) {
		struct work *other = node->works[i];
		if (other != work && other->excess_ms > 0 &&
		    other->excess_ms >= work->failed_ms - NEAR_MS &&
		    strcmp(other->excess_uuid, uuid) == 0 &&
		    (!most || other->excess_mib > most->excess_mib))
			most = other;
	}
	return most;
}

static void put_name(struct buffer *text, const struct work *work)
{
	if (work->kept.slot)
		buffer_print(text, "a slot of model %s", work->order.model);
	else
		buffer_print(text, "task %lld of job-%lld", (long long)work->order.task,
		             (long long)work->order.job_id);
}

/* Why its allocations failed: `over`, or programs that nobody scheduled. */
static void tell_failed(struct local_node *node, struct work *work, const struct work *over)
{
	struct buffer text = { 0 };

	if (over) {
		put_name(&text, over);
		buffer_print(&text, " used %lld MiB of GPU %s beyond its reservation",
		             (long long)over->excess_mib, over->excess_uuid);
		if (work->crowded_ms == 0) {
			buffer_clear(&work->crowded);
			buffer_text(&work->crowded, text.data);
		}
		work->crowded_ms = max64(node->now_ms, 1);
	} else {
		buffer_text(&text, work->crowded.data);
	}
	if (work_is_up(work) &&
	    (work->failed_told_ms == 0 || node->now_ms - work->failed_told_ms >= REPEAT_MS)) {
		buffer_print(&text,
		             ", and %lld allocations within the limit of this task failed, the "
		             "last of %lld MiB",
		             (long long)work->failed, (long long)work->failed_mib);
		enforce_warn(node, work, CHANGE_CROWDED, 0, text.data);
		work->failed_told_ms = max64(node->now_ms, 1);
		work->failed = 0;
	}
	buffer_free(&text);
}

/* The other side is told as well. */
static void tell_over(struct local_node *node, struct work *over, const struct work *work)
{
	struct buffer text = { 0 };

	if (!work_is_up(over) ||
	    (over->blamed_ms > 0 && node->now_ms - over->blamed_ms < REPEAT_MS))
		return;
	buffer_print(&text,
	             "it used %lld MiB of GPU %s beyond its reservation, and %lld allocations of ",
	             (long long)over->excess_mib, over->excess_uuid, (long long)work->failed);
	put_name(&text, work);
	buffer_text(&text, ", which were within their limit, failed");
	enforce_warn(node, over, CHANGE_OVER, 0, text.data);
	over->blamed_ms = max64(node->now_ms, 1);
	buffer_free(&text);
}

/* Looks for a task that exceeded its reservation when allocations failed. What a later measurement
 * can still show waits for it. */
static void explain_failures(struct local_node *node, struct work *work)
{
	const struct gpu_view *gpu = crowded_gpu(node, work);
	struct work *over = find_over(node, work);

	INVARIANT(work->failed > 0 && work->failed_part < work->order.part_count);
	if (over)
		tell_over(node, over, work);
	if (over || (gpu && work_part(work, gpu) == work->failed_part))
		tell_failed(node, work, over);
	if (node->now_ms - work->failed_ms > NEAR_MS && !over)
		work->failed = 0;
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
		work->kept.message = arena_string(&work->arena, work->crowded.data);
		work_write(node, work);
	}
	work_tell_end(node, work);
}

void crowding_measured(struct local_node *node)
{
	for (size_t i = 0; i < node->work_count; i++)
		look_for_excess(node, node->works[i]);
	for (size_t i = 0; i < node->work_count; i++) {
		struct work *work = node->works[i];
		bool judged = work->judged_by > 0 && node->measure.number >= work->judged_by;
		if ((work_is_up(work) && !work->kept.slot) || judged)
			look(node, work);
		if (work->failed > 0)
			explain_failures(node, work);
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
