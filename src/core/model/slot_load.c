/* slot_load.c - slots from their records, and whether all about them is right */
#include <stdlib.h>

#include "core/model/replica.h"
#include "core/state.h"

bool slot_load(struct sched *sched, const struct slot_record *record, struct error *error)
{
	struct model *model = models_find(&sched->models, record->model_id);

	if (!model || map_get(&sched->models.slots, record->id))
		return error_set(error, ERROR_CORRUPT, "slot %lld cannot be",
		                 (long long)record->id);
	struct slot *slot = NEW(struct slot);
	slot->r = *record;
	slot->address = memory_text(record->address);
	slot->r.address = slot->address;
	slot->model = model;
	slot->recorded = true;
	slot->open_index = slot->timer_index = slot->rival_index = -1;
	slot->timer_ms = INT64_MAX;
	map_put(&sched->models.slots, slot->r.id, slot);
	return true;
}

bool slot_load_reservation(struct sched *sched, const struct reservation_record *record,
                           struct error *error)
{
	struct slot *slot = map_get(&sched->models.slots, record->id);
	struct reservation *reservation =
	    slot && !slot->reservation ? reservation_from(sched, record) : NULL;

	if (!reservation)
		return error_set(
		    error, ERROR_CORRUPT,
		    "reservation %lld is stored with a slot, a node or GPUs that cannot be",
		    (long long)record->id);
	reservation->slot = slot;
	slot->reservation = reservation;
	map_put(&sched->reservations, reservation->id, reservation);
	ledger_enter(&sched->ledger, reservation);
	reservation_watch(sched, reservation);
	slot_link(sched, slot);
	return true;
}

void slots_loaded(struct sched *sched)
{
	for (size_t m = 0; m < sched->models.count; m++) {
		struct model *model = sched->models.all[m];
		for (size_t i = 0; i < model->slot_count; i++)
			slot_settle(sched, model->slots[i]);
	}
	for (size_t m = 0; m < sched->models.count; m++) {
		evict_list_model(sched, sched->models.all[m]);
		replica_list(sched, sched->models.all[m]);
	}
}

static bool suits(const struct slot *slot)
{
	switch (slot->reservation->phase) {
	case PHASE_CLAIM:
		return slot->r.state == SLOT_WAITING;
	case PHASE_GRANTED:
		return slot->r.state == SLOT_PLACED || slot->r.state == SLOT_LOADING;
	case PHASE_LIVE:
		return slot->r.state == SLOT_LOADING || slot->r.state == SLOT_READY;
	case PHASE_SUSPENDING:
		return slot->r.state == SLOT_SLEEPING;
	case PHASE_SUSPENDED:
		return slot->r.state == SLOT_ASLEEP;
	case PHASE_WAKING:
	case PHASE_RESUMING:
		return slot->r.state == SLOT_WAKING;
	default:
		return slot->r.state == SLOT_STOPPING;
	}
}

static void slot_load_check_slot(const struct slot *slot, struct model_counts *counts,
                                 int64_t *places)
{
	const struct node *node = slot->reservation->node;
	bool routable = slot->r.state == SLOT_READY && slot->r.closing_for == 0 &&
	                !slot->r.evicted && node_is_open(node);

	INVARIANT(slot->linked && slot->reservation->slot == slot && suits(slot));
	INVARIANT(slot->r.id == slot->reservation->id);
	INVARIANT(slot->routable == routable);
	INVARIANT((slot->open_index >= 0) == (routable && slot->active < slot->r.concurrency));
	INVARIANT(slot->timer_index >= 0 ||
	          !(slot->r.state == SLOT_LOADING || (slot->r.state == SLOT_READY && !slot->cold)));
	counts->coming += slot->r.state < SLOT_READY || slot->r.state == SLOT_WAKING;
	counts->asleep += slot->r.state == SLOT_SLEEPING || slot->r.state == SLOT_ASLEEP;
	INVARIANT(slot->claims ==
	          (slot->r.state == SLOT_WAITING || slot->reservation->phase == PHASE_WAKING));
	INVARIANT(slot->sleeps == (slot->r.state == SLOT_ASLEEP));
	counts->ready += slot->r.state == SLOT_READY;
	counts->stopping += slot->r.state == SLOT_STOPPING;
	counts->routable += routable;
	INVARIANT(slot->r.closing_for == 0 || slot->r.state == SLOT_READY);
	counts->closing += slot->r.closing_for != 0;
	counts->leaving += slot_counts(slot) && (node->r.draining || slot->r.evicted);
	*places += routable ? slot->r.concurrency : 0;
}

static void check_model(const struct sched *sched, const struct model *model)
{
	struct model_counts counts = { 0 };
	int64_t places = 0;

	INVARIANT(models_find(&sched->models, model->r.id) == model);
	INVARIANT(!model->r.removed || model->slot_count > 0);
	for (size_t i = 0; i < model->slot_count; i++) {
		INVARIANT(i == 0 || model->slots[i - 1]->r.id < model->slots[i]->r.id);
		INVARIANT(model->slots[i]->model == model);
		slot_load_check_slot(model->slots[i], &counts, &places);
	}
	INVARIANT(counts.coming == model->counts.coming && counts.ready == model->counts.ready);
	INVARIANT(counts.stopping == model->counts.stopping);
	INVARIANT(counts.asleep == model->counts.asleep);
	INVARIANT(counts.routable == model->counts.routable && places == model->capacity);
	INVARIANT(counts.leaving == model->counts.leaving);
	INVARIANT(counts.closing == model->counts.closing);
	for (size_t i = 0; i < model->slot_count; i++)
		INVARIANT((model->slots[i]->rival_index >= 0) ==
		          (model->slots[i]->routable && counts.routable > ROUTE_SCAN));
	for (size_t i = 1; i < model->open.count && counts.routable > ROUTE_SCAN; i++)
		INVARIANT(!route_before(model->open.items[i], model->open.items[(i - 1) / 2]));
}

/* On each node: requests in flight, and loads under way. */
static void slot_load_check_node(const struct node *node)
{
	int64_t active = 0;
	int rivals = 0;

	for (int g = 0; g < node->gpu_count; g++) {
		int32_t loading = 0;
		for (int i = 0; i < node->reservation_count; i++) {
			const struct reservation *reservation = node->reservations[i];
			for (int p = 0; p < reservation->part_count && reservation->slot; p++)
				loading += reservation->parts[p].gpu == node->gpus[g] &&
				           slot_holds_up(reservation->slot);
		}
		INVARIANT(loading == node->gpus[g]->loading);
	}
	for (int i = 0; i < node->reservation_count; i++) {
		const struct slot *slot = node->reservations[i]->slot;
		active += slot ? slot->active : 0;
		rivals += slot && slot->rival_index >= 0;
	}
	INVARIANT(active == node->active && rivals == node->rival_count);
}

void slots_check(const struct sched *sched)
{
	size_t slots = 0;

	for (size_t i = 0; i < sched->models.count; i++) {
		check_model(sched, sched->models.all[i]);
		slots += sched->models.all[i]->slot_count;
	}
	INVARIANT(slots == sched->models.slots.count);
	for (size_t i = 0; i < sched->cluster.node_count; i++)
		slot_load_check_node(sched->cluster.nodes[i]);
}
