/* decision_view.c - a decision with its arithmetic, as people read it */
#include "api/job/decision_view.h"

#include "api/text/ids.h"
#include "api/text/resource_json.h"

static const char *node_of_gpu(const struct decision_view *view, int64_t gpu_id)
{
	const struct gpu_record *gpu = catalogue_get(view->catalogue, RECORD_GPU, gpu_id, 0);
	const struct node_record *node =
	    gpu ? catalogue_get(view->catalogue, RECORD_NODE, gpu->node_id, 0) : NULL;
	return node ? node->name : NULL;
}

/* What a decision is written from. */
struct decision_source {
	const struct decision_record *decision;
	const struct decision_view *view;
};

static void write_gpus(struct resource_writer *writer)
{
	const struct decision_source *source = writer->context;

	json_open_array(writer->json, writer->field->name);
	for (int64_t i = 0; i < source->decision->gpus.count; i++) {
		const int64_t *line = source->decision->gpus.at + i * LINE_WIDTH;
		const struct gpu_record *gpu =
		    catalogue_get(source->view->catalogue, RECORD_GPU, line[LINE_GPU], 0);
		const struct field_value values[DECISION_GPU_FIELDS_COUNT] = {
			[DECISION_GPU_FIELD_uuid] = FIELD_STRING(gpu ? gpu->uuid : NULL),
			[DECISION_GPU_FIELD_node] =
			    FIELD_STRING(node_of_gpu(source->view, line[LINE_GPU])),
			[DECISION_GPU_FIELD_capacity_mb] = FIELD_NUMBER(line[LINE_CAPACITY]),
			[DECISION_GPU_FIELD_overhead_mb] = FIELD_NUMBER(line[LINE_OVERHEAD]),
			[DECISION_GPU_FIELD_foreign_mb] = FIELD_NUMBER(line[LINE_FOREIGN]),
			[DECISION_GPU_FIELD_unexplained_mb] =
			    FIELD_NUMBER(decision_unexplained_mib(source->decision, i)),
			[DECISION_GPU_FIELD_used_before_mb] = FIELD_NUMBER(line[LINE_USED_BEFORE]),
			[DECISION_GPU_FIELD_releasing_mb] = FIELD_NUMBER(line[LINE_RELEASING]),
			[DECISION_GPU_FIELD_claimed_mb] = FIELD_NUMBER(line[LINE_CLAIMED]),
			[DECISION_GPU_FIELD_asked_mb] = FIELD_NUMBER(line[LINE_ASKED]),
			[DECISION_GPU_FIELD_used_after_mb] = FIELD_NUMBER(line[LINE_USED_AFTER]),
		};
		resource_write_element(writer, (struct resource_writer){ .values = values });
	}
	json_close(writer->json);
}

/* A job by its id, unless it is somebody else's. */
static const char *name_job(char text[ID_TEXT_MAX], int64_t job_id,
                            const struct decision_view *view)
{
	struct catalogue_job job;
	bool known = catalogue_job(view->catalogue, job_id, &job);
	if (view->viewer != 0 && (!known || job.job->tenant_id != view->viewer))
		return "another tenant";
	id_write(text, ID_JOB, job_id);
	return job_id > 0 ? text : NULL;
}

static void write_victims(struct resource_writer *writer)
{
	const struct decision_source *source = writer->context;
	char text[ID_TEXT_MAX];

	json_open_array(writer->json, writer->field->name);
	for (int64_t i = 0; i < source->decision->victims.count; i++) {
		const int64_t *row = source->decision->victims.at + i * VICTIM_WIDTH;
		const struct field_value values[VICTIM_FIELDS_COUNT] = {
			[VICTIM_FIELD_job_id] = FIELD_STRING(name_job(text, row[0], source->view)),
			[VICTIM_FIELD_task] = FIELD_NUMBER(row[1]),
			[VICTIM_FIELD_moved] = FIELD_NUMBER(row[2] == VICTIM_MOVED),
			[VICTIM_FIELD_lost_gpu_seconds] = FIELD_NUMBER(row[3] / 1000),
		};
		resource_write_element(writer, (struct resource_writer){ .values = values });
	}
	json_close(writer->json);
}

static void write_evicted(struct resource_writer *writer)
{
	const struct decision_source *source = writer->context;
	const struct decision_view *view = source->view;

	json_open_array(writer->json, writer->field->name);
	for (int64_t i = 0; i < source->decision->evicted.count; i++) {
		const int64_t *row = source->decision->evicted.at + i * EVICTED_WIDTH;
		const struct model_record *model =
		    catalogue_get(view->catalogue, RECORD_MODEL, row[EVICTED_MODEL], 0);
		bool hidden = view->viewer != 0 && (!model || model->tenant_id != view->viewer);
		struct field_value values[EVICTED_SLOT_FIELDS_COUNT] = {
			[EVICTED_SLOT_FIELD_model] = FIELD_STRING(hidden  ? "another tenant"
			                                          : model ? model->name
			                                                  : NULL),
			[EVICTED_SLOT_FIELD_memory_mb] = FIELD_NUMBER(row[EVICTED_MIB]),
			[EVICTED_SLOT_FIELD_reload] =
			    FIELD_NUMBER_IF(row[EVICTED_RELOAD_MS] >= 0, row[EVICTED_RELOAD_MS]),
			[EVICTED_SLOT_FIELD_idle] =
			    FIELD_NUMBER_IF(row[EVICTED_IDLE_MS] >= 0, row[EVICTED_IDLE_MS]),
		};
		if (!hidden)
			values[EVICTED_SLOT_FIELD_slot_id] =
			    (struct field_value)FIELD_ID(row[EVICTED_SLOT]);
		resource_write_element(writer, (struct resource_writer){ .values = values });
	}
	json_close(writer->json);
}

static void write_explanation(struct resource_writer *writer)
{
	const struct decision_source *source = writer->context;
	struct text rest, line;

	if (!source->view->explanation)
		return;
	rest = text_of(source->view->explanation);
	json_open_array(writer->json, writer->field->name);
	while (text_next(&rest, '\n', &line))
		if (line.size > 0)
			json_put_text(writer->json, NULL, line);
	json_close(writer->json);
}

static void (*const writers[DECISION_FIELDS_COUNT])(struct resource_writer *) = {
	[DECISION_FIELD_gpus] = write_gpus,
	[DECISION_FIELD_victims] = write_victims,
	[DECISION_FIELD_evicted] = write_evicted,
	[DECISION_FIELD_explanation] = write_explanation,
};

/* The model and the slot that it is about. */
static void give_model(struct field_value values[DECISION_FIELDS_COUNT],
                       const struct decision_record *decision, const struct decision_view *view)
{
	const struct model_record *model =
	    catalogue_get(view->catalogue, RECORD_MODEL, decision->model_id, 0);

	values[DECISION_FIELD_model] =
	    (struct field_value)FIELD_STRING_OR_NULL(model ? model->name : NULL);
	values[DECISION_FIELD_slot_id] = (struct field_value)FIELD_ID(decision->slot_id);
}

void decision_view_write(struct json_writer *json, const struct decision_record *decision,
                         const struct decision_view *view)
{
	struct decision_source source = { .decision = decision, .view = view };
	const void *const records[RECORD_KINDS] = { [RECORD_DECISION] = decision };
	bool has_costs = decision->wait_gpu_ms > 0 || decision->lost_gpu_ms > 0;
	char text[ID_TEXT_MAX];
	struct catalogue_job job;
	struct field_value values[DECISION_FIELDS_COUNT] = {
		[DECISION_FIELD_runner_id] = FIELD_STRING(
		    decision->gpus.count > 0 ? node_of_gpu(view, decision->gpus.at[LINE_GPU])
					     : NULL),
		[DECISION_FIELD_wait_gpu_seconds] =
		    FIELD_NUMBER_IF(has_costs, decision->wait_gpu_ms / 1000),
		[DECISION_FIELD_lost_gpu_seconds] =
		    FIELD_NUMBER_IF(has_costs, decision->lost_gpu_ms / 1000),
	};

	if (decision->job_id > 0 && catalogue_job(view->catalogue, decision->job_id, &job)) {
		values[DECISION_FIELD_name] = (struct field_value)FIELD_STRING(job.job->name);
		values[DECISION_FIELD_array_index] = (struct field_value)FIELD_NUMBER_IF(
		    job.job->array_id > 0, job.job->array_index);
	}
	if (decision->model_id > 0)
		give_model(values, decision, view);
	if (decision->for_job_id > 0)
		values[DECISION_FIELD_for_job_id] = (struct field_value)FIELD_STRING_OR_NULL(
		    name_job(text, decision->for_job_id, view));
	if (decision->for_model_id > 0 && view->viewer == 0)
		values[DECISION_FIELD_for_model_id] =
		    (struct field_value)FIELD_ID(decision->for_model_id);
	json_open_object(json, NULL);
	resource_write(&(struct resource_writer){ .resource = &decision_resource,
	                                          .json = json,
	                                          .records = records,
	                                          .special = writers,
	                                          .values = values,
	                                          .context = &source });
	json_close(json);
}
