/* models_books.c - what the records say about slots and GPUs */
#include <string.h>

#include "sim/scenario/models_run.h"

struct rank_cursor books_all(const struct models_run *run, enum record_kind kind)
{
	return ranktree_seek(&run->driver.world.kept[kind], INT64_MIN, INT64_MIN);
}

const struct slot_record *books_slot(const struct models_run *run, int64_t id)
{
	return world_find(&run->driver.world, RECORD_SLOT, id, 0);
}

const struct reservation_record *books_reservation(const struct models_run *run, int64_t id)
{
	return world_find(&run->driver.world, RECORD_RESERVATION, id, 0);
}

static bool holds_memory(const struct slot_record *slot, bool any)
{
	return slot->state != SLOT_WAITING && (any || slot->state != SLOT_STOPPING);
}

int64_t books_slots(const struct models_run *run, const struct sim_model *model, bool any)
{
	struct rank_cursor cursor = books_all(run, RECORD_SLOT);
	const struct rank_entry *entry;
	int64_t count = 0;
	while ((entry = rank_cursor_next(&cursor))) {
		const struct slot_record *slot = entry->value;
		count += slot->model_id == model->record.id && holds_memory(slot, any);
	}
	return count;
}

const struct slot_record *books_newest(const struct models_run *run, const struct sim_model *model)
{
	struct rank_cursor cursor = books_all(run, RECORD_SLOT);
	const struct rank_entry *entry;
	const struct slot_record *newest = NULL;
	while ((entry = rank_cursor_next(&cursor))) {
		const struct slot_record *slot = entry->value;
		if (slot->model_id == model->record.id && holds_memory(slot, false))
			newest = slot;
	}
	return newest;
}

int books_gpu_place(const struct models_run *run, int64_t gpu_id)
{
	const struct gpu_record *gpu = world_find(&run->driver.world, RECORD_GPU, gpu_id, 0);
	if (!gpu)
		return -1;
	return runner_gpu_place(run, runner_of_node(run, gpu->node_id), (int)gpu->place);
}

static const struct gpu_record *gpu_at(const struct models_run *run, int place)
{
	struct rank_cursor cursor = books_all(run, RECORD_GPU);
	const struct rank_entry *entry;
	while ((entry = rank_cursor_next(&cursor))) {
		const struct gpu_record *gpu = entry->value;
		if (books_gpu_place(run, gpu->id) == place)
			return gpu;
	}
	return NULL;
}

int64_t books_reserved_mib(const struct models_run *run, int place)
{
	struct rank_cursor cursor = books_all(run, RECORD_RESERVATION);
	const struct rank_entry *entry;
	int64_t mib = 0;
	while ((entry = rank_cursor_next(&cursor))) {
		const struct reservation_record *reservation = entry->value;
		for (int64_t p = 0; p < reservation->parts.count; p++) {
			const int64_t *part = reservation->parts.at + p * PART_WIDTH;
			if (reservation->phase != PHASE_CLAIM &&
			    books_gpu_place(run, part[PART_GPU]) == place)
				mib += max64(part[PART_MIB], part[PART_MEASURED]);
		}
	}
	return mib;
}

int64_t books_used_mib(const struct models_run *run, int place)
{
	const struct gpu_record *gpu = gpu_at(run, place);
	return books_reserved_mib(run, place) + (gpu ? gpu->overhead_mib + gpu->foreign_mib : 0);
}

int64_t books_capacity_mib(const struct models_run *run, int place)
{
	const struct gpu_record *gpu = gpu_at(run, place);
	return gpu ? gpu->capacity_mib : 0;
}
