/* measure.c - what a measurement means: whose memory it is that is used */
#include <stdlib.h>
#include <string.h>

#include "node/local.h"

struct gpu_view *measure_gpu(const struct local_node *node, const char *uuid)
{
	for (int i = 0; i < node->measure.gpu_count; i++)
		if (strcmp(node->measure.gpus[i].reading.uuid, uuid) == 0)
			return &node->measure.gpus[i];
	return NULL;
}

static int index_of(const struct measure *measure, const struct gpu_view *gpu)
{
	return (int)(gpu - measure->gpus);
}

struct use *measure_use(const struct local_node *node, const struct work *work,
                        const struct gpu_view *gpu)
{
	int at = index_of(&node->measure, gpu);
	struct use *use = measure_first_use(node, work);

	while (use && use->gpu != at)
		use = measure_next_use(node, use);
	return use;
}

int64_t work_part(const struct work *work, const struct gpu_view *gpu)
{
	for (int64_t i = 0; i < work->order.part_count; i++)
		if (strcmp(work->order.parts[i].uuid, gpu->reading.uuid) == 0)
			return i;
	return -1;
}

static struct use *add_use(struct measure *measure, struct work *work, int gpu)
{
	array_reserve(measure->uses, measure->use_capacity, measure->use_count + 1);
	INVARIANT(gpu >= 0 && gpu < measure->gpu_count);
	struct use *use = &measure->uses[measure->use_count++];
	*use = (struct use){ .work = work, .gpu = gpu, .next = work->first_use };
	work->first_use = measure->use_count;
	return use;
}

static struct use *use_of(struct local_node *node, struct work *work, struct gpu_view *gpu)
{
	struct use *use = measure_use(node, work, gpu);

	return use ? use : add_use(&node->measure, work, index_of(&node->measure, gpu));
}

static int64_t in_range(int64_t mib)
{
	return max64(0, min64(mib, MIB_MAX));
}

/* A GPU that is not there any more is remembered while some work counts on it. */
static bool gpu_is_wanted(const struct local_node *node, const struct gpu_view *gpu)
{
	for (size_t i = 0; i < node->work_count; i++)
		if (work_part(node->works[i], gpu) >= 0)
			return true;
	return false;
}

static struct gpu_view view_of(struct arena *arena, const struct gpu_reading *reading)
{
	struct gpu_view view = { .reading = *reading, .present = true };

	view.reading.uuid = arena_string(arena, reading->uuid);
	view.reading.model = arena_string(arena, reading->model ? reading->model : "");
	view.reading.mig_parent =
	    arena_string(arena, reading->mig_parent ? reading->mig_parent : "");
	view.reading.reason = arena_string(arena, reading->reason ? reading->reason : "");
	view.reading.capacity_mib = in_range(reading->capacity_mib);
	view.reading.overhead_mib =
	    min64(in_range(reading->overhead_mib), view.reading.capacity_mib);
	view.reading.used_mib = in_range(reading->used_mib);
	return view;
}

/* What the works on a GPU that was not seen before kept of it. */
static int64_t kept_standing(const struct local_node *node, const struct gpu_view *gpu)
{
	int64_t standing_mib = MIB_MAX;

	for (size_t i = 0; i < node->work_count; i++) {
		int64_t part = work_part(node->works[i], gpu);
		if (part >= 0 && work_counts(node->works[i]))
			standing_mib = min64(standing_mib, node->works[i]->kept.standing.at[part]);
	}
	return standing_mib;
}

/* What is known of a GPU from earlier measurements. */
static void remember(const struct local_node *node, struct gpu_view *gpu,
                     const struct gpu_view *before, int before_count)
{
	gpu->standing_mib = MIB_MAX;
	for (int i = 0; i < before_count; i++) {
		if (strcmp(before[i].reading.uuid, gpu->reading.uuid) != 0)
			continue;
		gpu->standing_mib = before[i].standing_mib;
		gpu->unclaimed = before[i].unclaimed;
		return;
	}
	gpu->standing_mib = kept_standing(node, gpu);
}

static struct gpu_view absent_view(struct arena *arena, const struct gpu_view *before,
                                   int64_t now_ms)
{
	struct gpu_view view = view_of(arena, &before->reading);

	view.present = view.reading.healthy = false;
	view.reading.used_mib = 0;
	view.absent_ms = before->present ? now_ms : before->absent_ms;
	return view;
}

static int compare_views(const void *a, const void *b)
{
	const struct gpu_view *x = a, *y = b;

	return strcmp(x->reading.uuid, y->reading.uuid);
}

static bool is_same_hardware(const struct gpu_view *a, const struct gpu_view *b)
{
	return a->present == b->present && strcmp(a->reading.uuid, b->reading.uuid) == 0 &&
	       strcmp(a->reading.model, b->reading.model) == 0 &&
	       strcmp(a->reading.mig_parent, b->reading.mig_parent) == 0 &&
	       a->reading.place == b->reading.place && a->reading.replicas == b->reading.replicas &&
	       a->reading.capacity_mib == b->reading.capacity_mib &&
	       a->reading.overhead_mib == b->reading.overhead_mib &&
	       a->reading.nvlink_group == b->reading.nvlink_group &&
	       a->reading.slowdown_c == b->reading.slowdown_c &&
	       a->reading.mig_mode == b->reading.mig_mode;
}

/* A GPU that works count on, and that was never seen since the agent started. */
static void add_missing(struct local_node *node, const struct work *work, struct arena *arena)
{
	struct measure *measure = &node->measure;

	for (int64_t i = 0; i < work->order.part_count && work_counts(work); i++) {
		struct gpu_reading reading = { .uuid = work->order.parts[i].uuid };
		struct gpu_view seen = view_of(arena, &reading);
		if (measure_gpu(node, reading.uuid))
			continue;
		array_reserve(measure->gpus, measure->gpu_capacity, (size_t)measure->gpu_count + 1);
		measure->gpus[measure->gpu_count++] = absent_view(arena, &seen, node->now_ms);
	}
}

/* Replaces the views by those of the new readings. True if the hardware is another. */
static bool take_gpus(struct local_node *node, const struct measured *measured)
{
	struct measure *measure = &node->measure;
	struct gpu_view *before = measure->gpus;
	struct arena arena = { 0 };
	int before_count = measure->gpu_count;
	bool changed = false;

	measure->gpus = NULL;
	measure->gpu_count = 0;
	measure->gpu_capacity = 0;
	array_reserve(measure->gpus, measure->gpu_capacity,
	              (size_t)(measured->gpu_count + before_count + 1));
	for (int64_t i = 0; i < measured->gpu_count; i++)
		if (!measure_gpu(node, measured->gpus[i].uuid))
			measure->gpus[measure->gpu_count++] = view_of(&arena, &measured->gpus[i]);
	for (int i = 0; i < before_count; i++)
		if (!measure_gpu(node, before[i].reading.uuid) && gpu_is_wanted(node, &before[i]))
			measure->gpus[measure->gpu_count++] =
			    absent_view(&arena, &before[i], node->now_ms);
	for (size_t i = 0; i < node->work_count; i++)
		add_missing(node, node->works[i], &arena);
	for (int i = 0; i < measure->gpu_count; i++)
		remember(node, &measure->gpus[i], before, before_count);
	if (measure->gpu_count > 0)
		qsort(measure->gpus, (size_t)measure->gpu_count, sizeof(*measure->gpus),
		      compare_views);
	changed = before_count != measure->gpu_count;
	for (int i = 0; !changed && i < before_count; i++)
		changed = !is_same_hardware(&before[i], &measure->gpus[i]);
	free(before);
	arena_free(&measure->arena);
	measure->arena = arena;
	return changed;
}

/* Processes of works that we do not have are strangers. */
static void take_processes(struct local_node *node, const struct measured *measured)
{
	struct measure *measure = &node->measure;

	measure->use_count = measure->process_count = 0;
	for (size_t i = 0; i < node->work_count; i++)
		node->works[i]->first_use = 0;
	array_reserve(measure->processes, measure->process_capacity,
	              (size_t)measured->process_count + 1);
	for (int64_t i = 0; i < measured->process_count; i++) {
		struct process_reading process = measured->processes[i];
		struct gpu_view *gpu = measure_gpu(node, process.uuid);
		if (!gpu || !gpu->present)
			continue;
		struct work *work = work_find(node, process.reservation_id);
		if (work && work->kept.phase == WORK_WAITING)
			work = NULL;
		process.uuid = gpu->reading.uuid;
		process.memory_mib = in_range(process.memory_mib);
		process.reservation_id = work ? process.reservation_id : 0;
		measure->processes[measure->process_count++] = process;
		gpu->explained_mib = in_range(gpu->explained_mib + process.memory_mib);
		if (!work) {
			gpu->strangers_mib = in_range(gpu->strangers_mib + process.memory_mib);
			continue;
		}
		struct use *use = use_of(node, work, gpu);
		use->owned_mib += process.memory_mib;
		if (process.unguarded && use->unguarded == 0)
			use->unguarded = measure->process_count;
	}
}

/* One that was told to stop and still runs may yet use all of its part, so nothing
 * of what others left behind fits into it. One whose memory is being moved has it before the
 * driver lists its process again. */
static bool is_released(const struct work *work)
{
	if (work->kept.phase == WORK_OVER)
		return work->kept.memory != MEMORY_AWAY;
	return work->kept.phase < WORK_OVER &&
	       (work->kept.memory == MEMORY_LEAVING || work->kept.memory == MEMORY_COMING);
}

/* In the order in which they were told to stop. */
static int compare_released(const void *a, const void *b)
{
	const struct kept_work *x = &(*(struct work *const *)a)->kept;
	const struct kept_work *y = &(*(struct work *const *)b)->kept;

	if (x->stop_ms != y->stop_ms)
		return x->stop_ms < y->stop_ms ? -1 : 1;
	return (x->reservation_id > y->reservation_id) - (x->reservation_id < y->reservation_id);
}

/* Those that are being released on the GPU, in measure.released. How many they are. */
static size_t find_released(struct local_node *node, const struct gpu_view *gpu)
{
	struct measure *measure = &node->measure;
	size_t count = 0;

	array_reserve(measure->released, measure->released_capacity, node->work_count + 1);
	for (size_t i = 0; i < node->work_count; i++)
		if (is_released(node->works[i]) && work_part(node->works[i], gpu) >= 0)
			measure->released[count++] = node->works[i];
	if (count > 0)
		qsort(measure->released, count, sizeof(struct work *), compare_released);
	return count;
}

/* No more than its part. */
static int64_t charge(struct local_node *node, struct work *work, struct gpu_view *gpu,
                      int64_t left_mib)
{
	const struct use *use = measure_use(node, work, gpu);
	int64_t reserved_mib = work->order.parts[work_part(work, gpu)].memory_mib;
	int64_t charged_mib = min64(left_mib, reserved_mib - (use ? use->owned_mib : 0));

	if (charged_mib <= 0)
		return 0;
	use_of(node, work, gpu)->charged_mib = charged_mib;
	return charged_mib;
}

void measure_charge(struct local_node *node)
{
	struct measure *measure = &node->measure;

	for (size_t i = 0; i < measure->use_count; i++)
		measure->uses[i].charged_mib = 0;
	for (int i = 0; i < measure->gpu_count; i++) {
		struct gpu_view *gpu = &measure->gpus[i];
		int64_t left_mib = gpu->unexplained_mib - gpu->standing_mib;
		size_t count = left_mib > 0 ? find_released(node, gpu) : 0;
		for (size_t w = 0; w < count && left_mib > 0; w++)
			left_mib -= charge(node, measure->released[w], gpu, left_mib);
		gpu->foreign_mib = in_range(gpu->strangers_mib + gpu->standing_mib + left_mib);
	}
}

/* What works have that no process shows is theirs, as far as it is there and came with them. */
static void take_hidden(struct local_node *node, const struct measured *measured)
{
	for (int64_t i = 0; i < measured->hidden_count; i++) {
		const struct hidden_reading *hidden = &measured->hidden[i];
		struct work *work = work_find(node, hidden->reservation_id);
		struct gpu_view *gpu = measure_gpu(node, hidden->uuid);
		if (!work || !gpu || !work_counts(work))
			continue;
		int64_t there_mib = gpu->reading.used_mib - gpu->explained_mib - gpu->standing_mib;
		int64_t its_mib = min64(in_range(hidden->memory_mib), max64(there_mib, 0));
		if (its_mib == 0)
			continue;
		struct use *use = use_of(node, work, gpu);
		use->owned_mib += its_mib;
		use->hidden_mib += its_mib;
		gpu->explained_mib = in_range(gpu->explained_mib + its_mib);
	}
}

static bool is_in_use(const struct local_node *node, const struct gpu_view *gpu)
{
	for (size_t i = 0; i < node->work_count; i++) {
		const struct work *work = node->works[i];
		if (work_counts(work) && (work->kept.unordered || work_part(work, gpu) >= 0 ||
		                          measure_use(node, work, gpu)))
			return true;
	}
	return false;
}

/* What stands on a GPU that nothing of ours is on is not ours, and stays not ours
 * for as long as it stays. */
static void settle_standing(const struct local_node *node, struct gpu_view *gpu)
{
	gpu->unexplained_mib = max64(gpu->reading.used_mib - gpu->explained_mib, 0);
	if (!is_in_use(node, gpu))
		gpu->standing_mib = gpu->unexplained_mib;
	else if (gpu->present)
		gpu->standing_mib = min64(gpu->standing_mib, gpu->unexplained_mib);
}

/* Each work remembers the memory that was on its GPUs before it, in case the agent restarts
 * while it runs. */
static void keep_standing(struct local_node *node, struct work *work)
{
	bool lowered = false;

	for (int64_t i = 0; i < work->kept.standing.count; i++) {
		const struct gpu_view *gpu = measure_gpu(node, work->order.parts[i].uuid);
		int64_t *standing_mib = (int64_t *)&work->kept.standing.at[i];
		if (!gpu || gpu->standing_mib >= *standing_mib)
			continue;
		*standing_mib = gpu->standing_mib;
		lowered = true;
	}
	if (lowered)
		work_write(node, work);
}

void measure_take(struct local_node *node, const struct measured *measured)
{
	bool first = !node->measure.any;
	bool changed = take_gpus(node, measured);

	node->measure.any = true;
	node->measure.number = measured->number;
	take_processes(node, measured);
	take_hidden(node, measured);
	for (int i = 0; i < node->measure.gpu_count; i++)
		settle_standing(node, &node->measure.gpus[i]);
	for (size_t i = 0; i < node->work_count; i++)
		if (work_counts(node->works[i]))
			keep_standing(node, node->works[i]);
	measure_charge(node);
	for (int i = 0; i < node->measure.gpu_count; i++)
		unclaimed_measure(node, &node->measure.gpus[i]);
	if (changed && !first)
		link_want_snapshot(node);
}

void measure_forget(struct local_node *node, const struct work *work)
{
	struct measure *measure = &node->measure;
	size_t count = measure->use_count;

	if (work->first_use == 0)
		return;
	for (size_t i = 0; i < count; i++)
		measure->uses[i].work->first_use = 0;
	measure->use_count = 0;
	for (size_t i = 0; i < count; i++) {
		struct use use = measure->uses[i];
		if (use.work == work)
			continue;
		use.next = use.work->first_use;
		measure->uses[measure->use_count++] = use;
		use.work->first_use = measure->use_count;
	}
}

void measure_free(struct measure *measure)
{
	free(measure->gpus);
	free(measure->processes);
	free(measure->uses);
	free(measure->released);
	arena_free(&measure->arena);
}
