/* model_view.c - a model as people read it */
#include "api/job/job_payload.h"
#include "api/model/model_json.h"
#include "api/text/ids.h"
#include "api/text/resource_json.h"

struct model_view {
	const struct model_record *model;
	const struct model_load *load;
	const struct model_service *service;
};

static void write_payload(struct resource_writer *writer)
{
	const struct model_view *view = writer->context;
	job_payload_show(writer->json, view->model->payload, writer->arena);
}

static void write_splits(struct resource_writer *writer)
{
	const struct model_record *model = ((const struct model_view *)writer->context)->model;
	struct json_writer *json = writer->json;

	json_open_array(json, writer->field->name);
	for (int64_t i = 0; i < model->splits.count; i++) {
		const int64_t *row = model->splits.at + i * MODEL_SPLIT_WIDTH;
		json_open_object(json, NULL);
		json_put_integer(json, "gpus", row[0]);
		json_put_integer(json, "memory_mb", row[1]);
		json_close(json);
	}
	json_close(json);
}

static void write_users(struct resource_writer *writer)
{
	const struct model_record *model = ((const struct model_view *)writer->context)->model;

	json_open_array(writer->json, writer->field->name);
	for (int64_t i = 0; i < model->users.count; i++)
		json_put_id(writer->json, NULL, ID_TENANT, model->users.at[i]);
	json_close(writer->json);
}

/* What the core counts, where it was asked. */
static void write_load(struct resource_writer *writer)
{
	const struct model_load *load = ((const struct model_view *)writer->context)->load;

	if (!load)
		return;
	const int64_t values[] = { load->active, load->waiting,  load->places, load->ready,
		                   load->coming, load->stopping, load->asleep };
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		json_put_integer(writer->json,
		                 model_resource.fields[MODEL_FIELD_active_requests + i].name,
		                 values[i]);
}
_Static_assert(MODEL_FIELD_asleep_slots == MODEL_FIELD_active_requests + 6,
               "write_load writes these seven in the order of the table");

static const struct serving_model *seen_of(struct resource_writer *writer)
{
	const struct model_service *service = ((const struct model_view *)writer->context)->service;

	return service ? service->seen : NULL;
}

static void write_ms(struct resource_writer *writer, int64_t ms)
{
	if (ms >= 0)
		json_put_integer(writer->json, writer->field->name, ms);
	else
		json_put_null(writer->json, writer->field->name);
}

static void write_oldest_wait(struct resource_writer *writer)
{
	const struct serving_model *seen = seen_of(writer);

	write_ms(writer, seen ? seen->oldest_wait_ms : -1);
}

static void write_answers(struct resource_writer *writer)
{
	const struct serving_model *seen = seen_of(writer);

	if (seen)
		json_put_integer(writer->json, writer->field->name, seen->answers);
}

static void write_first_token_p50(struct resource_writer *writer)
{
	const struct serving_model *seen = seen_of(writer);

	write_ms(writer, seen ? seen->first_token_p50_ms : -1);
}

static void write_first_token_p99(struct resource_writer *writer)
{
	const struct serving_model *seen = seen_of(writer);

	write_ms(writer, seen ? seen->first_token_p99_ms : -1);
}

static void write_tokens(struct resource_writer *writer)
{
	const struct serving_model *seen = seen_of(writer);

	if (seen)
		json_put_decimal(writer->json, writer->field->name, seen->tokens_per_1000s, 3);
}

static void write_waiting(struct resource_writer *writer)
{
	const struct serving_model *seen = seen_of(writer);
	struct json_writer *json = writer->json;

	if (!seen)
		return;
	json_open_array(json, writer->field->name);
	for (int i = 0; i < seen->waiting_count; i++) {
		const struct serving_waiting *waiting = &seen->waiting[i];
		json_open_object(json, NULL);
		if (waiting->tenant_id > 0)
			json_put_id(json, "tenant_id", ID_TENANT, waiting->tenant_id);
		else
			json_put_null(json, "tenant_id");
		json_put_integer(json, "requests", waiting->requests);
		json_put_integer(json, "oldest_wait_ms", waiting->oldest_ms);
		json_put_integer(json, "tokens", waiting->tokens);
		json_close(json);
	}
	json_close(json);
}

static void write_url(struct resource_writer *writer)
{
	const struct model_service *service = ((const struct model_view *)writer->context)->service;

	if (service && service->url)
		json_put_string(writer->json, writer->field->name, service->url);
	else
		json_put_null(writer->json, writer->field->name);
}

static void (*const writers[MODEL_FIELDS_COUNT])(struct resource_writer *) = {
	[MODEL_FIELD_image] = write_payload,
	[MODEL_FIELD_splits] = write_splits,
	[MODEL_FIELD_users] = write_users,
	[MODEL_FIELD_active_requests] = write_load,
	[MODEL_FIELD_oldest_wait_ms] = write_oldest_wait,
	[MODEL_FIELD_answers_per_minute] = write_answers,
	[MODEL_FIELD_first_token_p50_ms] = write_first_token_p50,
	[MODEL_FIELD_first_token_p99_ms] = write_first_token_p99,
	[MODEL_FIELD_tokens_per_second] = write_tokens,
	[MODEL_FIELD_waiting_tenants] = write_waiting,
	[MODEL_FIELD_gateway_url] = write_url,
};

void model_json_write(struct json_writer *json, const struct model_record *model,
                      const struct model_load *load, const struct model_service *service,
                      bool is_owner, struct arena *arena)
{
	const struct model_view view = { model, load, service };
	const void *const records[RECORD_KINDS] = { [RECORD_MODEL] = model };
	struct resource_writer writer = { .resource = &model_resource,
		                          .json = json,
		                          .records = records,
		                          .special = writers,
		                          .is_stranger = !is_owner,
		                          .context = &view,
		                          .arena = arena };

	json_open_object(json, NULL);
	resource_write(&writer);
	json_close(json);
}
