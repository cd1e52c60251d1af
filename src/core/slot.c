/* slot.c - one loaded instance of a model, from its reservation to the end */
#include "core/slot.h"

#include <stdlib.h>

#include "core/state.h"

struct slot *slot_new(struct model *model, struct reservation *reservation)
{
	struct slot *slot = NEW(struct slot);

	slot->r.id = reservation->id;
	slot->r.model_id = model->r.id;
	slot->r.state = reservation->phase == PHASE_CLAIM ? SLOT_WAITING : SLOT_PLACED;
	slot->r.concurrency = model->r.concurrency;
	slot->r.fixed = model->r.pinned;
	slot->address = memory_text("");
	slot->r.address = slot->address;
	slot->model = model;
	slot->reservation = reservation;
	slot->open_place = slot->timer_place = slot->rival_place = -1;
	slot->timer_ms = INT64_MAX;
	return slot;
}

void slot_free(struct slot *slot)
{
	free(slot->address);
	free(slot);
}
