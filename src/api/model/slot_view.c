/* slot_view.c - a loaded model as people read it */
#include "api/model/slot_view.h"

#include "api/job/use_view.h"
#include "api/model/leases.h"
#include "api/service/service_state.h"
#include "api/text/ids.h"
#include "api/text/resource_json.h"

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

/* What a slot is written from. */
struct slot_view {
	const struct catalogue *catalogue;
	const struct reservation_record *reservation;
	const struct task_use *use; /* NULL: not known */
};

static void write_gpus(struct resource_writer *writer)
{
	const struct slot_view *view = writer->context;

	json_open_array(writer->json, writer->field->name);
	for (int64_t i = 0; i < view->reservation->parts.count; i++) {
		const int64_t *part = view->reservation->parts.at + i * PART_WIDTH;
		const struct gpu_record *gpu =
		    catalogue_get(view->catalogue, RECORD_GPU, part[PART_GPU], 0);
		const struct field_value values[SLOT_PART_FIELDS_COUNT] = {
			[SLOT_PART_FIELD_index] = FIELD_NUMBER(gpu ? gpu->place : -1),
			[SLOT_PART_FIELD_uuid] = FIELD_STRING(gpu ? gpu->uuid : NULL),
			[SLOT_PART_FIELD_memory_mb] = FIELD_NUMBER(part[PART_MIB]),
			[SLOT_PART_FIELD_measured_memory_mb] = FIELD_NUMBER(part[PART_MEASURED]),
		};
		resource_write_element(writer, (struct resource_writer){ .values = values });
	}
	json_close(writer->json);
}

static void write_guard(struct resource_writer *writer)
{
	const struct slot_view *view = writer->context;
	use_view_write_guard(writer->json, view->use);
}

static void (*const writers[SLOT_FIELDS_COUNT])(struct resource_writer *) = {
	[SLOT_FIELD_gpu_allocation] = write_gpus,
	[SLOT_FIELD_guard] = write_guard,
};

void slot_view_write(struct request *request, const struct catalogue *catalogue, int64_t slot_id)
{
	const struct service *service = request->service;
	const struct slot_record *slot = catalogue_get(catalogue, RECORD_SLOT, slot_id, 0);
	const struct reservation_record *reservation =
	    catalogue_get(catalogue, RECORD_RESERVATION, slot_id, 0);
	const struct model_record *model =
	    slot ? catalogue_get(catalogue, RECORD_MODEL, slot->model_id, 0) : NULL;
	if (!slot || !reservation || !model ||
	    !slot_view_may_see(&service->roster, &request->identity, model))
		return;
	const struct node_record *node =
	    catalogue_get(catalogue, RECORD_NODE, reservation->node_id, 0);
	const char *name = node ? node->name : NULL;
	struct task_use use;
	struct slot_view view = { .catalogue = catalogue,
		                  .reservation = reservation,
		                  .use = agents_use(service->agents, name, slot_id, &use) ? &use
		                                                                          : NULL };
	const void *const records[RECORD_KINDS] = { [RECORD_SLOT] = slot, [RECORD_MODEL] = model };
	/* Requests may reach a server without a lease or a gateway, and leases may wait for theirs.
	 */
	int64_t active = max64(agents_slot_active(service->agents, name, slot_id),
	                       leases_in_slot(service->leases, slot_id) +
	                           serving_in_slot(&service->serving, slot_id));
	int64_t created_ms = slot->ordered_ms > 0 ? slot->ordered_ms : reservation->since_ms;
	struct field_value values[SLOT_FIELDS_COUNT] = {
		[SLOT_FIELD_runner_id] = FIELD_STRING(name),
		[SLOT_FIELD_active_requests] = FIELD_NUMBER(active),
		[SLOT_FIELD_created] = FIELD_NUMBER_IF(created_ms > 0, created_ms),
	};
	if (slot_view_owns(&service->roster, &request->identity, model))
		values[SLOT_FIELD_tenant_id] = (struct field_value)FIELD_ID(model->tenant_id);
	json_open_object(&request->json, NULL);
	resource_write(&(struct resource_writer){ .resource = &slot_resource,
	                                          .json = &request->json,
	                                          .records = records,
	                                          .special = writers,
	                                          .values = values,
	                                          .context = &view });
	json_close(&request->json);
}
