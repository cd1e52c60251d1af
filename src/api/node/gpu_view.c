/* gpu_view.c - a GPU as people read it: its ledger, its owners, and its measurements */
#include "api/node/gpu_view.h"

#include "api/model/slot_view.h"
#include "api/read/gpu_books.h"
#include "api/service/service_state.h"
#include "api/text/ids.h"
#include "base/hash.h"

static void put_sample(struct json_writer *json, const struct service *service,
                       const struct gpu_record *gpu)
{
	struct agents_sample sample;
	if (!agents_sample(service->agents, gpu->uuid, &sample)) {
		json_put_integer(json, "temperature_c", gpu->temperature_c);
		return;
	}
	json_put_integer(json, "temperature_c", sample.temperature_c);
	json_put_decimal(json, "power_watts", sample.power_mw, 3);
	json_put_decimal(json, "utilization", sample.utilisation, 3);
	json_put_integer(json, "measured_memory_mb", sample.used_mib);
	if (sample.sm_active >= 0)
		json_put_decimal(json, "sm_active", sample.sm_active, 3);
	if (sample.dram_active >= 0)
		json_put_decimal(json, "dram_active", sample.dram_active, 3);
	if (!gpu->healthy && sample.reason[0])
		json_put_string(json, "health_reason", sample.reason);
}

static void gpu_view_put_tenant(struct json_writer *json, const struct gpu_view *view,
                                int64_t tenant_id)
{
	const struct roster_tenant *tenant = roster_find(&view->service->roster, tenant_id);
	json_put_id(json, "tenant_id", ID_TENANT, tenant_id);
	json_put_string(json, "tenant", tenant ? tenant->name : NULL);
}

/* Whose it is, as far as the viewer may know. */
static void put_owner(struct json_writer *json, const struct gpu_view *view,
                      const struct reservation_record *reservation)
{
	const struct catalogue *catalogue = service_catalogue(view->service);
	const struct roster *roster = &view->service->roster;
	struct catalogue_job job;

	if (reservation->job_id > 0) {
		if (catalogue_job(catalogue, reservation->job_id, &job) &&
		    roster_may_see(roster, view->identity, job.job->tenant_id)) {
			json_put_id(json, "job_id", ID_JOB, reservation->job_id);
			json_put_integer(json, "task", reservation->task);
			json_put_string(json, "name", job.job->name);
			gpu_view_put_tenant(json, view, job.job->tenant_id);
			return;
		}
	} else {
		const struct model_record *model =
		    catalogue_get(catalogue, RECORD_MODEL, reservation->model_id, 0);
		if (model && slot_view_may_see(roster, view->identity, model)) {
			json_put_id(json, "slot_id", ID_SLOT, reservation->id);
			json_put_id(json, "model_id", ID_MODEL, model->id);
			json_put_string(json, "name", model->name);
			if (slot_view_owns(roster, view->identity, model)) {
				gpu_view_put_tenant(json, view, model->tenant_id);
				return;
			}
		}
	}
	json_put_string(json, "tenant", "another tenant");
}

static void put_holders(struct json_writer *json, const struct gpu_view *view,
                        const struct gpu_record *gpu)
{
	const struct reservation_record *const *reservations;
	size_t count = catalogue_node_reservations(service_catalogue(view->service), gpu->node_id,
	                                           &reservations);

	json_open_array(json, "holders");
	for (size_t i = 0; i < count; i++)
		for (int64_t part = 0; part < reservations[i]->parts.count; part++) {
			const int64_t *row = reservations[i]->parts.at + part * PART_WIDTH;
			if (row[PART_GPU] != gpu->id)
				continue;
			json_open_object(json, NULL);
			json_put_string(json, "phase",
			                word_of(&phase_words, reservations[i]->phase));
			json_put_integer(json, "memory_mb", row[PART_MIB]);
			json_put_integer(json, "measured_memory_mb", row[PART_MEASURED]);
			json_put_decimal(json, "share", row[PART_SHARE], 3);
			json_put_flag(json, "whole", row[PART_WHOLE] != 0);
			put_owner(json, view, reservations[i]);
			json_close(json);
		}
	json_close(json);
}

void gpu_view_write(struct json_writer *json, const struct gpu_view *view,
                    const struct node_record *node, const struct gpu_record *gpu)
{
	struct gpu_books books = gpu_books(service_catalogue(view->service), gpu);

	json_open_object(json, NULL);
	json_put_string(json, "uuid", gpu->uuid);
	json_put_integer(json, "index", gpu->place);
	json_put_string(json, "node", node->name);
	json_put_string(json, "model", gpu->model);
	if (*gpu->mig_parent)
		json_put_string(json, "mig_parent", gpu->mig_parent);
	json_put_integer(json, "total_memory", books.capacity);
	json_put_integer(json, "free_memory", books.free);
	json_put_integer(json, "used_memory", books.used);
	json_put_integer(json, "allocated_memory", books.reserved + books.releasing);
	json_put_integer(json, "reserved_memory", books.reserved);
	json_put_integer(json, "releasing_memory", books.releasing);
	json_put_integer(json, "claimed_memory", books.claimed);
	json_put_integer(json, "foreign_memory", books.foreign);
	json_put_integer(json, "overhead_memory", books.overhead);
	json_put_decimal(json, "share", books.share, 3);
	json_put_flag(json, "available", gpu_is_available(node, &books));
	json_put_flag(json, "whole", books.whole);
	json_put_flag(json, "healthy", gpu->healthy);
	json_put_flag(json, "hot", gpu->hot);
	json_put_flag(json, "over", books.used > books.capacity);
	json_put_flag(json, "mig_mode", gpu->mig_mode);
	json_put_flag(json, "present", gpu->present);
	json_put_integer(json, "aliases", gpu->aliases);
	json_put_integer(json, "nvlink_group", gpu->nvlink_group);
	if (view->with_holders)
		put_holders(json, view, gpu);
	put_sample(json, view->service, gpu);
	json_close(json);
}

static uint64_t gpu_view_add(uint64_t digest, int64_t value)
{
	return hash_combine(digest, (uint64_t)value);
}

uint64_t gpu_view_digest(const struct catalogue *catalogue, const struct node_record *node,
                         const struct gpu_record *gpu)
{
	const struct reservation_record *const *reservations;
	size_t count = catalogue_node_reservations(catalogue, gpu->node_id, &reservations);
	uint64_t digest = gpu_view_add(hash_text(gpu->uuid), gpu->capacity_mib);

	digest =
	    gpu_view_add(gpu_view_add(gpu_view_add(digest, gpu->overhead_mib), gpu->foreign_mib),
	                 gpu->nvlink_group);
	digest =
	    gpu_view_add(gpu_view_add(gpu_view_add(digest, gpu->hot), gpu->healthy), gpu->mig_mode);
	digest = gpu_view_add(gpu_view_add(gpu_view_add(digest, gpu->present), gpu->aliases),
	                      gpu->place);
	digest = gpu_view_add(gpu_view_add(gpu_view_add(digest, node->state), node->draining),
	                      node->reported);
	for (size_t i = 0; i < count; i++)
		for (int64_t part = 0; part < reservations[i]->parts.count; part++) {
			const int64_t *row = reservations[i]->parts.at + part * PART_WIDTH;
			if (row[PART_GPU] != gpu->id)
				continue;
			digest = gpu_view_add(gpu_view_add(digest, reservations[i]->id),
			                      reservations[i]->phase);
			for (int64_t column = 0; column < PART_WIDTH; column++)
				digest = gpu_view_add(digest, row[column]);
		}
	return digest;
}
