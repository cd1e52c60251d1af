/* report.c - what a node tells about itself: snapshots, beats, figures */
#include <string.h>

#include "base/hash.h"
#include "node/local.h"

#define DEGREES 5 /* by which a temperature moves before that is told at once */

static struct device report_device_of(const struct gpu_view *gpu)
{
	return (struct device){ .uuid = gpu->reading.uuid,
		                .model = gpu->reading.model,
		                .mig_parent = gpu->reading.mig_parent,
		                .place = gpu->reading.place,
		                .capacity_mib = gpu->reading.capacity_mib,
		                .overhead_mib = gpu->reading.overhead_mib,
		                .foreign_mib = gpu->foreign_mib,
		                .temperature_c = gpu->reading.temperature_c,
		                .nvlink_group = gpu->reading.nvlink_group,
		                .healthy = gpu->reading.healthy,
		                .mig_mode = gpu->reading.mig_mode };
}

static int64_t names_of(const struct gpu_view *gpu)
{
	return gpu->present ? max64(1, min64(gpu->reading.replicas, 1024)) : 0;
}

/* One device for each name that a GPU is advertised under. */
static void fill_devices(const struct local_node *node, struct node_report_command *report,
                         struct arena *arena)
{
	const struct measure *measure = &node->measure;
	int64_t count = 0;

	for (int i = 0; i < measure->gpu_count; i++)
		count += names_of(&measure->gpus[i]);
	struct device *devices = arena_alloc(arena, (size_t)(count + 1) * sizeof(*devices));
	int64_t *slowdowns_c = arena_alloc(arena, (size_t)(count + 1) * sizeof(*slowdowns_c));
	report->devices = devices;
	report->slowdowns_c = (struct rows){ slowdowns_c, count };
	for (int i = 0; i < measure->gpu_count; i++)
		for (int64_t name = 0; name < names_of(&measure->gpus[i]); name++) {
			slowdowns_c[report->device_count] = measure->gpus[i].reading.slowdown_c;
			devices[report->device_count++] = report_device_of(&measure->gpus[i]);
		}
}

/* A slot's GPUs are told even where it uses nothing yet: a scheduler that does not
 * know it learns from this where it is. */
static bool is_told(const struct work *work, const struct gpu_view *gpu, const struct use *use)
{
	if (!gpu->present || !work_counts(work))
		return false;
	if (use && use->owned_mib + use->charged_mib > 0)
		return true;
	return work->kept.slot && work_part(work, gpu) >= 0;
}

/* What works use, on one GPU or (NULL) on all. */
static int64_t fill_measurements(const struct local_node *node, const struct gpu_view *only,
                                 struct measurement *at)
{
	const struct measure *measure = &node->measure;
	int64_t count = 0;

	for (size_t w = 0; w < node->work_count; w++)
		for (int g = 0; g < measure->gpu_count; g++) {
			const struct gpu_view *gpu = &measure->gpus[g];
			const struct use *use = measure_use(node, node->works[w], gpu);
			if ((only && only != gpu) || !is_told(node->works[w], gpu, use))
				continue;
			at[count++] = (struct measurement){
				.reservation_id = node->works[w]->kept.reservation_id,
				.uuid = gpu->reading.uuid,
				.memory_mib = use ? use->owned_mib + use->charged_mib : 0,
			};
		}
	return count;
}

static struct measurement *room_for_measurements(const struct local_node *node, struct arena *arena)
{
	size_t most = node->work_count * (size_t)node->measure.gpu_count + 1;

	return arena_alloc(arena, most * sizeof(struct measurement));
}

/* Running slots are reported as slots; ending ones only as present. */
static void fill_works(struct local_node *node, struct node_report_command *report,
                       struct arena *arena)
{
	size_t most = node->work_count + 1;
	int64_t *running = arena_alloc(arena, most * sizeof(*running));
	struct slot_report *slots = arena_alloc(arena, most * sizeof(*slots));

	report->running = running;
	report->slots = slots;
	for (size_t i = 0; i < node->work_count; i++) {
		struct work *work = node->works[i];
		const struct kept_work *kept = &work->kept;
		if (kept->phase == WORK_WAITING)
			continue;
		work->told = true;
		if (kept->slot && work_is_up(work))
			slots[report->slot_count++] =
			    (struct slot_report){ kept->reservation_id, work->order.model,
				                  kept->address, kept->ready };
		else
			running[report->running_count++] = kept->reservation_id;
	}
}

void report_snapshot(struct local_node *node, struct message *message, struct arena *arena)
{
	const struct node_identity *identity = &node->identity;
	struct node_report_command *report = &message->snapshot;
	struct measurement *measurements = room_for_measurements(node, arena);

	*report = (struct node_report_command){ .name = identity->name,
		                                .boot = identity->boot,
		                                .zone = identity->zone,
		                                .rack = identity->rack,
		                                .labels = identity->labels,
		                                .cpu_milli = identity->cpu_milli,
		                                .host_bytes = identity->host_bytes,
		                                .snapshot = true };
	fill_devices(node, report, arena);
	fill_works(node, report, arena);
	report->measurements = measurements;
	report->measurement_count = fill_measurements(node, NULL, measurements);
}

static struct gpu_sample sample_of(const struct gpu_view *gpu)
{
	return (struct gpu_sample){ .uuid = gpu->reading.uuid,
		                    .foreign_mib = gpu->foreign_mib,
		                    .used_mib = gpu->reading.used_mib,
		                    .temperature_c = gpu->reading.temperature_c,
		                    .power_mw = gpu->reading.power_mw,
		                    .utilisation = gpu->reading.utilisation,
		                    .healthy = gpu->reading.healthy };
}

static void fill_slots(const struct local_node *node, struct beat *beat, struct arena *arena)
{
	struct slot_sample *slots = arena_alloc(arena, (node->work_count + 1) * sizeof(*slots));

	beat->slots = slots;
	for (size_t i = 0; i < node->work_count; i++) {
		const struct work *work = node->works[i];
		if (work->kept.slot && work->kept.ready)
			slots[beat->slot_count++] =
			    (struct slot_sample){ work->kept.reservation_id, work->active };
	}
}

static void fill_uses(const struct local_node *node, struct beat *beat, struct arena *arena)
{
	const struct measure *measure = &node->measure;
	struct use_sample *uses = arena_alloc(arena, (measure->use_count + 1) * sizeof(*uses));

	beat->uses = uses;
	for (size_t i = 0; i < measure->use_count; i++) {
		const struct use *use = &measure->uses[i];
		const struct gpu_view *gpu = &measure->gpus[use->gpu];
		int64_t part = work_part(use->work, gpu);
		if (!is_told(use->work, gpu, use))
			continue;
		uses[beat->use_count++] = (struct use_sample){
			.reservation_id = use->work->kept.reservation_id,
			.uuid = gpu->reading.uuid,
			.memory_mib = use->owned_mib + use->charged_mib,
			.reserved_mib = part >= 0 ? use->work->order.parts[part].memory_mib : 0,
		};
	}
}

static void fill_accounts(const struct local_node *node, struct beat *beat, struct arena *arena)
{
	struct work_sample *works = arena_alloc(arena, (node->work_count + 1) * sizeof(*works));

	beat->works = works;
	for (size_t i = 0; i < node->work_count; i++) {
		const struct kept_work *kept = &node->works[i]->kept;
		if (kept->phase == WORK_RUNNING && node->works[i]->order.part_count > 0)
			works[beat->work_count++] =
			    (struct work_sample){ kept->reservation_id, kept->use };
	}
}

/* Only GPUs that there is something to tell of. */
static void fill_counters(const struct local_node *node, struct beat *beat, struct arena *arena)
{
	const struct measure *measure = &node->measure;
	struct gpu_counters *counters =
	    arena_alloc(arena, ((size_t)measure->gpu_count + 1) * sizeof(*counters));

	beat->counters = counters;
	for (int i = 0; i < measure->gpu_count; i++) {
		const struct gpu_reading *reading = &measure->gpus[i].reading;
		if (!measure->gpus[i].present || (!reading->profiled && !*reading->reason))
			continue;
		counters[beat->counter_count++] = (struct gpu_counters){
			.uuid = reading->uuid,
			.sm_active = reading->profiled ? reading->sm_active : -1,
			.dram_active = reading->profiled ? reading->dram_active : -1,
			.reason = reading->reason,
		};
	}
}

/* Only GPUs that have some. */
static void fill_unexplained(const struct local_node *node, struct beat *beat, struct arena *arena)
{
	const struct measure *measure = &node->measure;
	struct gpu_unexplained *unexplained =
	    arena_alloc(arena, ((size_t)measure->gpu_count + 1) * sizeof(*unexplained));

	beat->unexplained = unexplained;
	for (int i = 0; i < measure->gpu_count; i++) {
		const struct gpu_view *gpu = &measure->gpus[i];
		if (gpu->present && gpu->unclaimed.mib > 0)
			unexplained[beat->unexplained_count++] =
			    (struct gpu_unexplained){ gpu->reading.uuid, gpu->unclaimed.mib };
	}
}

uint64_t report_facts(const struct local_node *node)
{
	const struct measure *measure = &node->measure;
	uint64_t facts = 0;

	for (int i = 0; i < measure->gpu_count; i++) {
		const struct gpu_view *gpu = &measure->gpus[i];
		facts = hash_combine(facts, (uint64_t)gpu->present);
		facts = hash_combine(facts, (uint64_t)gpu->foreign_mib);
		facts = hash_combine(facts, (uint64_t)gpu->unclaimed.mib);
		facts = hash_combine(facts, (uint64_t)gpu->reading.healthy);
		facts = hash_combine(facts, (uint64_t)(gpu->reading.temperature_c / DEGREES));
	}
	for (size_t i = 0; i < measure->use_count; i++) {
		const struct use *use = &measure->uses[i];
		facts = hash_combine(facts, (uint64_t)use->work->kept.reservation_id);
		facts = hash_combine(facts, (uint64_t)use->gpu);
		facts = hash_combine(facts, (uint64_t)(use->owned_mib + use->charged_mib));
	}
	return facts;
}

void report_beat(struct local_node *node, struct message *message, bool figures,
                 struct arena *arena)
{
	const struct measure *measure = &node->measure;
	struct beat *beat = &message->beat;
	size_t most = (size_t)measure->gpu_count + 1;
	struct gpu_sample *samples = arena_alloc(arena, most * sizeof(*samples));

	*beat = (struct beat){ .sent_ms = node->now_ms };
	fill_slots(node, beat, arena);
	if (!figures)
		return;
	for (int i = 0; i < measure->gpu_count; i++)
		if (measure->gpus[i].present)
			samples[beat->sample_count++] = sample_of(&measure->gpus[i]);
	beat->samples = samples;
	fill_uses(node, beat, arena);
	fill_accounts(node, beat, arena);
	fill_counters(node, beat, arena);
	fill_unexplained(node, beat, arena);
}

void report_refusal(const struct local_node *node, const struct node_order *order,
                    struct change *change, struct arena *arena)
{
	struct gpu_sample *samples =
	    arena_alloc(arena, (size_t)(order->part_count + 1) * sizeof(*samples));
	struct measurement *measurements = room_for_measurements(node, arena);

	INVARIANT(change->kind == CHANGE_REFUSED);
	change->samples = samples;
	change->measurements = measurements;
	for (int64_t i = 0; i < order->part_count; i++) {
		const struct gpu_view *gpu = measure_gpu(node, order->parts[i].uuid);
		if (!gpu || !gpu->present)
			continue;
		samples[change->sample_count++] = sample_of(gpu);
		change->measurement_count +=
		    fill_measurements(node, gpu, measurements + change->measurement_count);
	}
	for (int64_t i = 0; i < change->sample_count; i++)
		samples[i].uuid = arena_string(arena, samples[i].uuid);
}

void report_pids(const struct local_node *node, const struct work *work, struct change *change,
                 struct arena *arena)
{
	const struct measure *measure = &node->measure;
	int64_t *pids = arena_alloc(arena, (measure->process_count + 1) * sizeof(*pids));
	int64_t count = 0;

	if (!work->kept.gone && work->kept.pid > 0)
		pids[count++] = work->kept.pid;
	for (size_t i = 0; i < measure->process_count; i++)
		if (measure->processes[i].reservation_id == work->kept.reservation_id &&
		    (count == 0 || measure->processes[i].pid != pids[count - 1]))
			pids[count++] = measure->processes[i].pid;
	change->pids = (struct rows){ pids, count };
}
