/* gpu_view.c - a GPU as people read it: its ledger, its owners, and its measurements */
#include "api/node/gpu_view.h"

#include "api/model/slot_view.h"
#include "api/read/gpu_books.h"
#include "api/service/service_state.h"
#include "api/text/resource_json.h"
#include "base/hash.h"

/* What a GPU is written from. */
struct gpu_source {
	const struct gpu_view *view;
	const struct node_record *node;
	const struct gpu_record *gpu;
	struct agents_sample sample;
};

static void holder_give_tenant(struct field_value values[HOLDER_FIELDS_COUNT],
                               const struct gpu_view *view, int64_t tenant_id)
{
	const struct roster_tenant *tenant = roster_find(&view->service->roster, tenant_id);
	values[HOLDER_FIELD_tenant_id] = (struct field_value)FIELD_ID(tenant_id);
	values[HOLDER_FIELD_tenant] =
	    (struct field_value)FIELD_STRING(tenant ? tenant->name : NULL);
}

static void holder_give_job(struct field_value values[HOLDER_FIELDS_COUNT],
                            const struct gpu_view *view,
                            const struct reservation_record *reservation)
{
	struct catalogue_job job;

	if (!catalogue_job(service_catalogue(view->service), reservation->job_id, &job) ||
	    !roster_may_see(&view->service->roster, view->identity, job.job->tenant_id))
		return;
	values[HOLDER_FIELD_job_id] = (struct field_value)FIELD_ID(reservation->job_id);
	values[HOLDER_FIELD_task] = (struct field_value)FIELD_NUMBER(reservation->task);
	values[HOLDER_FIELD_name] = (struct field_value)FIELD_STRING(job.job->name);
	holder_give_tenant(values, view, job.job->tenant_id);
}

static void holder_give_slot(struct field_value values[HOLDER_FIELDS_COUNT],
                             const struct gpu_view *view,
                             const struct reservation_record *reservation)
{
	const struct roster *roster = &view->service->roster;
	const struct model_record *model =
	    catalogue_get(service_catalogue(view->service), RECORD_MODEL, reservation->model_id, 0);

	if (!model || !slot_view_may_see(roster, view->identity, model))
		return;
	values[HOLDER_FIELD_slot_id] = (struct field_value)FIELD_ID(reservation->id);
	values[HOLDER_FIELD_model_id] = (struct field_value)FIELD_ID(model->id);
	values[HOLDER_FIELD_name] = (struct field_value)FIELD_STRING(model->name);
	if (slot_view_owns(roster, view->identity, model))
		holder_give_tenant(values, view, model->tenant_id);
}

/* What an owner uses: as measured last, or, where nobody tells, as the ledger has it. */
static int64_t measured_of(const struct gpu_source *source,
                           const struct reservation_record *reservation, const int64_t *part)
{
	int64_t use = agents_part_use(source->view->service->agents, source->node->name,
	                              reservation->id, source->gpu->uuid);
	return use >= 0 ? use : part[PART_MEASURED];
}

/* Whose it is, as far as the viewer may know. */
static void write_holder(struct resource_writer *writer,
                         const struct reservation_record *reservation, const int64_t *part)
{
	const struct gpu_source *source = writer->context;
	struct field_value values[HOLDER_FIELDS_COUNT] = {
		[HOLDER_FIELD_phase] = FIELD_NUMBER(reservation->phase),
		[HOLDER_FIELD_memory_mb] = FIELD_NUMBER(part[PART_MIB]),
		[HOLDER_FIELD_measured_memory_mb] =
		    FIELD_NUMBER(measured_of(source, reservation, part)),
		[HOLDER_FIELD_share] = FIELD_NUMBER(part[PART_SHARE]),
		[HOLDER_FIELD_whole] = FIELD_NUMBER(part[PART_WHOLE] != 0),
		[HOLDER_FIELD_tenant] = FIELD_STRING("another tenant"),
	};

	if (reservation->job_id > 0)
		holder_give_job(values, source->view, reservation);
	else
		holder_give_slot(values, source->view, reservation);
	resource_write_element(writer, (struct resource_writer){ .values = values });
}

static void write_holders(struct resource_writer *writer)
{
	const struct gpu_source *source = writer->context;
	const struct reservation_record *const *reservations;
	size_t count = catalogue_node_reservations(service_catalogue(source->view->service),
	                                           source->gpu->node_id, &reservations);

	if (!source->view->with_holders)
		return;
	json_open_array(writer->json, writer->field->name);
	for (size_t i = 0; i < count; i++)
		for (int64_t part = 0; part < reservations[i]->parts.count; part++) {
			const int64_t *row = reservations[i]->parts.at + part * PART_WIDTH;
			if (row[PART_GPU] == source->gpu->id)
				write_holder(writer, reservations[i], row);
		}
	json_close(writer->json);
}

/* Without a sample, the temperature is that of the last report. */
static void gpu_give_sample(struct field_value values[GPU_FIELDS_COUNT],
                            const struct gpu_record *gpu, const struct agents_sample *sample)
{
	bool has_reason = !gpu->healthy && sample->reason[0];

	values[GPU_FIELD_temperature_c] = (struct field_value)FIELD_NUMBER(sample->temperature_c);
	values[GPU_FIELD_power_watts] = (struct field_value)FIELD_NUMBER(sample->power_mw);
	values[GPU_FIELD_utilization] = (struct field_value)FIELD_NUMBER(sample->utilisation);
	values[GPU_FIELD_measured_memory_mb] = (struct field_value)FIELD_NUMBER(sample->used_mib);
	values[GPU_FIELD_sm_active] =
	    (struct field_value)FIELD_NUMBER_IF(sample->sm_active >= 0, sample->sm_active);
	values[GPU_FIELD_dram_active] =
	    (struct field_value)FIELD_NUMBER_IF(sample->dram_active >= 0, sample->dram_active);
	values[GPU_FIELD_health_reason] =
	    (struct field_value)FIELD_STRING(has_reason ? sample->reason : NULL);
}

static void (*const writers[GPU_FIELDS_COUNT])(struct resource_writer *) = {
	[GPU_FIELD_holders] = write_holders,
};

void gpu_view_write(struct json_writer *json, const struct gpu_view *view,
                    const struct node_record *node, const struct gpu_record *gpu)
{
	struct gpu_books books = gpu_books(service_catalogue(view->service), gpu);
	struct gpu_source source = { .view = view, .node = node, .gpu = gpu };
	const void *const records[RECORD_KINDS] = { [RECORD_NODE] = node, [RECORD_GPU] = gpu };
	struct field_value values[GPU_FIELDS_COUNT] = {
		[GPU_FIELD_total_memory] = FIELD_NUMBER(books.capacity),
		[GPU_FIELD_free_memory] = FIELD_NUMBER(books.free),
		[GPU_FIELD_used_memory] = FIELD_NUMBER(books.used),
		[GPU_FIELD_allocated_memory] = FIELD_NUMBER(books.reserved + books.releasing),
		[GPU_FIELD_reserved_memory] = FIELD_NUMBER(books.reserved),
		[GPU_FIELD_releasing_memory] = FIELD_NUMBER(books.releasing),
		[GPU_FIELD_claimed_memory] = FIELD_NUMBER(books.claimed),
		[GPU_FIELD_foreign_memory] = FIELD_NUMBER(books.foreign),
		[GPU_FIELD_overhead_memory] = FIELD_NUMBER(books.overhead),
		[GPU_FIELD_share] = FIELD_NUMBER(books.share),
		[GPU_FIELD_compute_share] = FIELD_NUMBER_IF(books.compute > 0, books.compute),
		[GPU_FIELD_available] = FIELD_NUMBER(gpu_is_available(node, &books)),
		[GPU_FIELD_whole] = FIELD_NUMBER(books.whole),
		[GPU_FIELD_over] = FIELD_NUMBER(books.used > books.capacity),
		[GPU_FIELD_temperature_c] = FIELD_NUMBER(gpu->temperature_c),
	};

	if (agents_sample(view->service->agents, gpu->uuid, &source.sample))
		gpu_give_sample(values, gpu, &source.sample);
	json_open_object(json, NULL);
	resource_write(&(struct resource_writer){ .resource = &gpu_resource,
	                                          .json = json,
	                                          .records = records,
	                                          .special = writers,
	                                          .values = values,
	                                          .context = &source });
	json_close(json);
}

static uint64_t gpu_view_add(uint64_t digest, int64_t value)
{
	return hash_combine(digest, (uint64_t)value);
}

/* Use in steps that can be seen, so that not every measurement is a change. */
enum { USE_STEPS = 8 };

uint64_t gpu_view_digest(const struct catalogue *catalogue, const struct agents *agents,
                         const struct node_record *node, const struct gpu_record *gpu)
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
			/* Of a whole GPU, the samples of the GPU say it. */
			if (!row[PART_WHOLE] && row[PART_MIB] > 0)
				digest = gpu_view_add(digest, agents_part_use(agents, node->name,
				                                              reservations[i]->id,
				                                              gpu->uuid) *
				                                  USE_STEPS / row[PART_MIB]);
		}
	return digest;
}
