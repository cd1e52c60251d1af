/* slot_view.c - a loaded model as people read it */
#include "api/model/slot_view.h"

#include "api/job/use_view.h"
#include "api/service/service_state.h"
#include "api/text/ids.h"
#include "api/text/times.h"

bool slot_view_may_see(const struct roster *roster, const struct identity *identity,
                       const struct model_record *model)
{
	if (roster_may_see(roster, identity, model->tenant_id) || model->shared)
		return true;
	for (int64_t i = 0; i < model->users.count; i++)
		if (roster_may_see(roster, identity, model->users.at[i]) ||
		    roster_is_within(roster, identity->tenant_id, model->users.at[i]))
			return true;
	return false;
}

bool slot_view_owns(const struct roster *roster, const struct identity *identity,
                    const struct model_record *model)
{
	return roster_may_see(roster, identity, model->tenant_id);
}

/* How near a model is to who asks; larger is farther. */
enum { OWN, BELOW, USABLE, UNKNOWN };

static int distance(const struct roster *roster, const struct identity *identity,
                    const struct model_record *model)
{
	if (identity->tenant_id > 0 && model->tenant_id == identity->tenant_id)
		return OWN;
	if (slot_view_owns(roster, identity, model))
		return BELOW;
	return slot_view_may_see(roster, identity, model) ? USABLE : UNKNOWN;
}

const struct model_record *slot_view_find_model(const struct catalogue *catalogue,
                                                const struct roster *roster,
                                                const struct identity *identity, struct text text,
                                                bool *several)
{
	const struct model_record *model, *found = NULL;
	int nearest = UNKNOWN;
	int64_t id;

	*several = false;
	if (id_read(text, ID_MODEL, &id)) {
		model = catalogue_get(catalogue, RECORD_MODEL, id, 0);
		return model && slot_view_may_see(roster, identity, model) ? model : NULL;
	}
	for (id = 0; (model = catalogue_model_named(catalogue, text.data, id)); id = model->id) {
		int away = distance(roster, identity, model);
		*several = away < nearest ? false : *several || (away == nearest && found);
		if (away >= nearest)
			continue;
		nearest = away;
		found = model;
	}
	return *several ? NULL : found;
}

static void put_allocation(struct json_writer *json, const struct catalogue *catalogue,
                           const struct reservation_record *reservation)
{
	json_open_array(json, "gpu_allocation");
	for (int64_t i = 0; i < reservation->parts.count; i++) {
		const int64_t *part = reservation->parts.at + i * PART_WIDTH;
		const struct gpu_record *gpu =
		    catalogue_get(catalogue, RECORD_GPU, part[PART_GPU], 0);
		json_open_object(json, NULL);
		json_put_integer(json, "index", gpu ? gpu->place : -1);
		json_put_string(json, "uuid", gpu ? gpu->uuid : NULL);
		json_put_integer(json, "memory_mb", part[PART_MIB]);
		json_put_integer(json, "measured_memory_mb", part[PART_MEASURED]);
		json_close(json);
	}
	json_close(json);
}

void slot_view_write(struct request *request, const struct catalogue *catalogue, int64_t slot_id)
{
	struct json_writer *json = &request->json;
	const struct slot_record *slot = catalogue_get(catalogue, RECORD_SLOT, slot_id, 0);
	const struct reservation_record *reservation =
	    catalogue_get(catalogue, RECORD_RESERVATION, slot_id, 0);
	const struct model_record *model =
	    slot ? catalogue_get(catalogue, RECORD_MODEL, slot->model_id, 0) : NULL;
	if (!slot || !reservation || !model ||
	    !slot_view_may_see(&request->service->roster, &request->identity, model))
		return;
	const struct node_record *node =
	    catalogue_get(catalogue, RECORD_NODE, reservation->node_id, 0);
	int64_t active =
	    agents_slot_active(request->service->agents, node ? node->name : NULL, slot_id);

	json_open_object(json, NULL);
	json_put_id(json, "id", ID_SLOT, slot->id);
	json_put_string(json, "runner_id", node ? node->name : NULL);
	json_put_string(json, "model", model->name);
	json_put_id(json, "model_id", ID_MODEL, model->id);
	if (slot_view_owns(&request->service->roster, &request->identity, model))
		json_put_id(json, "tenant_id", ID_TENANT, model->tenant_id);
	json_put_string(json, "runtime", word_of(&runtime_words, model->runtime));
	put_allocation(json, catalogue, reservation);
	json_put_integer(json, "active_requests", max64(active, 0));
	struct task_use use;
	bool used = agents_use(request->service->agents, node ? node->name : NULL, slot->id, &use);
	use_view_write_guard(json, used ? &use : NULL);
	json_put_integer(json, "max_concurrency", slot->concurrency);
	json_put_string(json, "status", word_of(&slot_state_words, slot->state));
	json_put_string(json, "address", slot->address);
	json_put_flag(json, "adopted", slot->adopted);
	json_put_flag(json, "pinned", slot->fixed);
	json_put_moment(json, "created",
	                slot->ordered_ms > 0 ? slot->ordered_ms : reservation->since_ms);
	json_put_moment(json, "ready_at", slot->ready_ms);
	json_put_moment(json, "last_used_at", slot->used_ms);
	json_close(json);
}
