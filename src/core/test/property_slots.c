/* property_slots.c - slots, recounted from records: the memory invariant, replicas, eviction */
#include <string.h>

#include "base/error.h"
#include "core/cluster/window.h"
#include "core/test/property_checks.h"

static const struct model_record *model_of(const struct keeper *keeper, int64_t model_id)
{
	const struct model_record *model = keeper_find(keeper, RECORD_MODEL, model_id, 0);

	if (!model)
		panic("model-%lld is not kept, and has a slot", (long long)model_id);
	return model;
}

static bool state_fits(enum slot_state state, enum phase phase)
{
	switch (state) {
	case SLOT_WAITING:
		return phase == PHASE_CLAIM;
	case SLOT_PLACED:
		return phase == PHASE_GRANTED;
	case SLOT_LOADING:
		return phase == PHASE_GRANTED || phase == PHASE_LIVE;
	case SLOT_READY:
		return phase == PHASE_LIVE;
	case SLOT_STOPPING:
		return phase == PHASE_RELEASING;
	case SLOT_SLEEPING:
		return phase == PHASE_SUSPENDING;
	case SLOT_ASLEEP:
		return phase == PHASE_SUSPENDED;
	case SLOT_WAKING:
		return phase == PHASE_WAKING || phase == PHASE_RESUMING;
	}
	return false;
}

static int64_t parts_on(const struct reservation_record *right, int64_t gpu_id)
{
	int64_t count = 0;

	for (int64_t p = 0; p < right->parts.count; p++)
		count += right->parts.at[p * PART_WIDTH + PART_GPU] == gpu_id;
	return count;
}

/* Of all slots on a GPU as many load as may load at once, beside those that are overdue. */
static void check_loads(const struct keeper *keeper, const struct reservation_record *right)
{
	const struct config_record *config = keeper_find(keeper, RECORD_CONFIG, 1, 0);

	for (int64_t p = 0; p < right->parts.count; p++) {
		int64_t gpu_id = right->parts.at[p * PART_WIDTH + PART_GPU], loads = 0;
		for (size_t i = 0; i < keeper_slot_count(keeper); i++) {
			const struct slot_record *slot = keeper_slot(keeper, i);
			if (slot->state == SLOT_LOADING && slot->overdue_ms > 0)
				loads += parts_on(
				    keeper_find(keeper, RECORD_RESERVATION, slot->id, 0), gpu_id);
		}
		if (loads > config->loads_per_gpu)
			panic("%lld slots are loaded onto one GPU at once, slot %lld among them",
			      (long long)loads, (long long)right->id);
	}
}

void check_slots(const struct keeper *keeper)
{
	size_t owned = 0;

	for (size_t i = 0; i < keeper_slot_count(keeper); i++) {
		const struct slot_record *slot = keeper_slot(keeper, i);
		const struct reservation_record *right =
		    keeper_find(keeper, RECORD_RESERVATION, slot->id, 0);
		if (!right || right->job_id != 0 || right->model_id != slot->model_id)
			panic("slot %lld has no reservation", (long long)slot->id);
		if (!state_fits((enum slot_state)slot->state, (enum phase)right->phase))
			panic("slot %lld is in state %d and its reservation in phase %d",
			      (long long)slot->id, slot->state, right->phase);
		model_of(keeper, slot->model_id);
		if ((right->residue_mib > 0 || right->copy_bytes > 0) &&
		    !phase_is_suspended((enum phase)right->phase) &&
		    right->phase != PHASE_RELEASING)
			panic("slot %lld is awake and has what a sleeper has", (long long)slot->id);
		if (slot->state == SLOT_LOADING)
			check_loads(keeper, right);
	}
	for (size_t i = 0; i < keeper_reservation_count(keeper); i++)
		owned += keeper_reservation(keeper, i)->job_id == 0;
	if (owned != keeper_slot_count(keeper))
		panic("%zu reservations are of slots, and there are %zu slots", owned,
		      keeper_slot_count(keeper));
}

/* Whether a window is open where the slot is: what is not its own has to go. */
static bool is_in_window(const struct keeper *keeper, int64_t slot_id, int64_t now_ms)
{
	const struct reservation_record *right =
	    keeper_find(keeper, RECORD_RESERVATION, slot_id, 0);
	const struct node_record *node =
	    right ? keeper_find(keeper, RECORD_NODE, right->node_id, 0) : NULL;

	for (size_t i = 0; i < keeper_window_count(keeper) && node; i++) {
		const struct window_record *window = keeper_window(keeper, i);
		bool on = window_lists(window->nodes, node->name);
		for (int64_t p = 0; p < right->parts.count && !on; p++) {
			const struct gpu_record *gpu = keeper_find(
			    keeper, RECORD_GPU, right->parts.at[p * PART_WIDTH + PART_GPU], 0);
			on = gpu && window_lists(window->gpus, gpu->uuid);
		}
		if (on && window_time(window, now_ms).begin_ms <= now_ms)
			return true;
	}
	return false;
}

/* Those on nodes that are drained, and those that are evicted, are on their way out. */
static bool is_leaving(const struct keeper *keeper, int64_t slot_id)
{
	const struct slot_record *slot = keeper_find(keeper, RECORD_SLOT, slot_id, 0);
	const struct reservation_record *right =
	    keeper_find(keeper, RECORD_RESERVATION, slot_id, 0);
	const struct node_record *node = keeper_find(keeper, RECORD_NODE, right->node_id, 0);

	return node->draining || (slot && slot->evicted);
}

/* It was the turn of another model: its time to live does not count. */
static bool was_closed(const struct slot_record *before, const struct effects *effects)
{
	bool closed = before->closing_for != 0;

	for (size_t i = 0; i < effects->count && !closed; i++) {
		const struct effect *effect = &effects->at[i];
		const struct decision_record *decision = effect->record;
		closed = effect->kind == EFFECT_PUT && effect->record_kind == RECORD_DECISION &&
		         decision->kind == DECISION_CLOSE && decision->slot_id == before->id;
	}
	return closed;
}

/* Requests in flight to the model that the pass found to have expired. */
static int64_t expired(const struct effects *effects, int64_t model_id)
{
	int64_t count = 0;

	for (size_t i = 0; i < effects->count; i++)
		count += effects->at[i].kind == EFFECT_ROUTE &&
		         effects->at[i].route.outcome == ROUTE_EXPIRED &&
		         effects->at[i].route.model_id == model_id;
	return count;
}

/* Those that are closed for other models count for the minimum alone. */
static int64_t count_slots(const struct keeper *keeper, int64_t model_id, bool closing)
{
	int64_t count = 0;

	for (size_t i = 0; i < keeper_slot_count(keeper); i++) {
		const struct slot_record *slot = keeper_slot(keeper, i);
		count += slot->model_id == model_id && slot->state != SLOT_STOPPING &&
		         slot->state != SLOT_SLEEPING && slot->state != SLOT_ASLEEP &&
		         (closing || slot->closing_for == 0) && !is_leaving(keeper, slot->id);
	}
	return count;
}

/* It was closed for another model, and its own has as many as it may have without it. */
static bool is_one_too_many(const struct keeper *keeper, const struct slot_record *slot,
                            const struct model_record *model)
{
	return slot->closing_for != 0 &&
	       count_slots(keeper, model->id, false) >= model->max_replicas;
}

/* A slot that a pass stops is idle beyond its time, or closed, and may be. `keeper` is as it
 * was before the command. */
static void check_evicted(const struct keeper *keeper, const struct router *router,
                          const struct slot_record *before, const struct effects *effects,
                          int64_t now_ms)
{
	bool closed = was_closed(before, effects);
	const struct model_record *model = model_of(keeper, before->model_id);
	struct slot_use use = router_slot(router, before->id);

	if (before->state != SLOT_READY)
		panic("slot %lld is stopped by a pass in state %d", (long long)before->id,
		      before->state);
	if (use.active > expired(effects, before->model_id))
		panic("slot %lld is evicted with %lld requests in flight", (long long)before->id,
		      (long long)use.active);
	if (!closed && now_ms - use.used_ms < model->idle_ttl_ms)
		panic("slot %lld is evicted after %lld ms, before its time of %lld ms",
		      (long long)before->id, (long long)(now_ms - use.used_ms),
		      (long long)model->idle_ttl_ms);
	if (model->pinned && !is_one_too_many(keeper, before, model))
		panic("slot %lld is evicted, and model-%lld is pinned", (long long)before->id,
		      (long long)model->id);
}

void check_evictions(const struct keeper *keeper, const struct router *router,
                     const struct command *command, const struct effects *effects, int64_t now_ms)
{
	for (size_t i = 0; i < effects->count && command->kind == COMMAND_PASS; i++) {
		const struct effect *effect = &effects->at[i];
		if (effect->kind != EFFECT_PUT || effect->record_kind != RECORD_SLOT)
			continue;
		const struct slot_record *after = effect->record;
		const struct slot_record *before = keeper_find(keeper, RECORD_SLOT, after->id, 0);
		const struct slot_record loading = { .state = SLOT_LOADING };
		int32_t was = (before ? before : &loading)->state;
		bool stopped = (after->state == SLOT_STOPPING && was != SLOT_STOPPING) ||
		               (after->state == SLOT_SLEEPING && was == SLOT_READY);
		/* A load or a move that took too long is stopped when time is looked at, and one
		 * that is asleep when its model or its host has no place for it; what is on a
		 * node that is drained goes with its last request. */
		bool late = before && before->state != SLOT_READY && before->state >= SLOT_LOADING;
		if (stopped && !late && !(before && is_leaving(keeper, before->id)) &&
		    !is_in_window(keeper, after->id, now_ms))
			check_evicted(keeper, router, before ? before : after, effects, now_ms);
	}
}

void check_replicas(const struct keeper *keeper, const struct command *command,
                    const struct effects *effects, int64_t last_id)
{
	const struct meta_record *meta = keeper_find(keeper, RECORD_META, 1, 0);

	for (size_t i = 0; i < effects->count && command->kind == COMMAND_PASS; i++) {
		const struct effect *effect = &effects->at[i];
		if (effect->kind != EFFECT_PUT || effect->record_kind != RECORD_SLOT)
			continue;
		const struct slot_record *slot = effect->record;
		const struct model_record *model =
		    keeper_find(keeper, RECORD_MODEL, slot->model_id, 0);
		if (!model)
			continue;
		int64_t count = count_slots(keeper, model->id, true);
		int64_t open = count_slots(keeper, model->id, false);
		if (slot->id > last_id && open > model->max_replicas)
			panic("model-%lld has %lld slots and %lld at the most",
			      (long long)model->id, (long long)open,
			      (long long)model->max_replicas);
		if (slot->id > last_id && model->removed)
			panic("model-%lld is removed, and gets a slot", (long long)model->id);
		if (slot->state == SLOT_STOPPING && slot->sleep == SLEEP_OFF &&
		    slot->ready_ms > 0 && count < model->min_replicas &&
		    !is_leaving(keeper, slot->id) && !is_in_window(keeper, slot->id, meta->now_ms))
			panic("model-%lld has %lld slots left, less than its minimum of %lld",
			      (long long)model->id, (long long)count,
			      (long long)model->min_replicas);
	}
}

int64_t model_each_mib(const struct model_record *model, int64_t count)
{
	int64_t even = (model->memory_mib + count - 1) / count;

	if (model->splits.count == 0)
		return even;
	for (int64_t i = 0; i < model->splits.count; i++) {
		const int64_t *row = model->splits.at + i * MODEL_SPLIT_WIDTH;
		if (row[0] == count)
			return row[1] ? row[1] : even;
	}
	return 0;
}

void check_slot_parts(const struct keeper *keeper, const struct reservation_record *right)
{
	const struct model_record *model = model_of(keeper, right->model_id);
	int64_t count = right->parts.count, each = count > 0 ? model_each_mib(model, count) : 0,
		sum = 0;

	if (each == 0)
		panic("model-%lld is split over %lld GPUs, which it cannot be",
		      (long long)model->id, (long long)count);
	for (int64_t p = 0; p < count; p++) {
		const int64_t *part = right->parts.at + p * PART_WIDTH;
		sum += part[PART_MIB];
		if (part[PART_WHOLE] || part[PART_MIB] <= 0 ||
		    (!model->uneven && part[PART_MIB] != each))
			panic("model-%lld gets %lld MiB of a GPU, and should have %lld",
			      (long long)model->id, (long long)part[PART_MIB], (long long)each);
	}
	if (sum < each * count)
		panic("model-%lld gets %lld MiB and needs %lld", (long long)model->id,
		      (long long)sum, (long long)(each * count));
}

void check_load(const struct keeper *keeper, const struct load_order *order)
{
	const struct meta_record *meta = keeper_find(keeper, RECORD_META, 1, 0);
	const struct slot_record *slot = keeper_find(keeper, RECORD_SLOT, order->reservation_id, 0);
	const struct reservation_record *right =
	    keeper_find(keeper, RECORD_RESERVATION, order->reservation_id, 0);

	/* One may have been placed, ordered and given up again by the same command. */
	if (!right || !slot || slot->state == SLOT_STOPPING)
		return;
	if (slot->state != SLOT_LOADING || order->term != meta->term ||
	    order->model_id != slot->model_id || order->node_id != right->node_id ||
	    order->parts.count != right->parts.count ||
	    order->tensor_parallel != right->parts.count)
		panic("a load of slot %lld is ordered that is not decided", (long long)slot->id);
	for (int64_t p = 0; p < right->parts.count; p++) {
		const int64_t *told = order->parts.at + p * PART_WIDTH;
		const int64_t *kept = right->parts.at + p * PART_WIDTH;
		const struct gpu_record *gpu = keeper_find(keeper, RECORD_GPU, kept[PART_GPU], 0);
		if (told[PART_GPU] != kept[PART_GPU] || told[PART_MIB] != kept[PART_MIB])
			panic("slot %lld is loaded with other parts than it has",
			      (long long)slot->id);
		if (gpu->capacity_mib > 0 &&
		    order->utilisation.at[p] * gpu->capacity_mib > kept[PART_MIB] * 1000)
			panic("slot %lld may use %lld thousandths of a GPU of %lld MiB, and has "
			      "%lld MiB",
			      (long long)slot->id, (long long)order->utilisation.at[p],
			      (long long)gpu->capacity_mib, (long long)kept[PART_MIB]);
	}
}
