/* model_view.c - a model as people read it */
#include "api/job/job_payload.h"
#include "api/model/model_json.h"
#include "api/text/ids.h"
#include "api/text/times.h"

#define MIB_BYTES INT64_C(1048576)

static void write_splits(struct json_writer *json, const struct model_record *model)
{
	json_open_array(json, "splits");
	for (int64_t i = 0; i < model->splits.count; i++) {
		const int64_t *row = model->splits.at + i * MODEL_SPLIT_WIDTH;
		json_open_object(json, NULL);
		json_put_integer(json, "gpus", row[0]);
		json_put_integer(json, "memory_mb", row[1]);
		json_close(json);
	}
	json_close(json);
}

static void write_users(struct json_writer *json, const struct model_record *model)
{
	json_open_array(json, "users");
	for (int64_t i = 0; i < model->users.count; i++)
		json_put_id(json, NULL, ID_TENANT, model->users.at[i]);
	json_close(json);
}

/* What whoever uses it has to know: how much goes in, and what it takes. */
static void write_sizes(struct json_writer *json, const struct model_record *model)
{
	json_put_integer(json, "gpu_memory_mb", model->memory_mib);
	json_put_flag(json, "uneven", model->uneven);
	json_put_decimal(json, "cpu_cores", model->cpu_milli, 3);
	json_put_integer(json, "memory_mb", model->host_bytes / MIB_BYTES);
	json_put_integer(json, "context_length", model->context);
	json_put_integer(json, "parallel", model->parallel);
	json_put_integer(json, "max_concurrency", model->concurrency);
	write_splits(json, model);
}

static void write_set(struct json_writer *json, const struct model_record *model)
{
	json_put_string(json, "kv_cache_type", model->kv_cache);
	json_put_integer(json, "min_replicas", model->min_replicas);
	json_put_integer(json, "max_replicas", model->max_replicas);
	json_put_flag(json, "prewarm", model->prewarm);
	json_put_flag(json, "pinned", model->pinned);
	json_put_duration(json, "idle_ttl", model->idle_ttl_ms);
	json_put_duration(json, "load_timeout", model->load_timeout_ms);
	json_put_integer(json, "priority", model->priority);
	json_put_flag(json, "shared", model->shared);
	json_put_string(json, "placement", word_of(&slot_policy_words, model->policy));
	json_put_string(json, "gpu_model", model->gpu_models);
	write_users(json, model);
}

static void write_state(struct json_writer *json, const struct model_record *model,
                        const struct model_load *load)
{
	json_put_flag(json, "removed", model->removed);
	json_put_duration(json, "load_time", model->load_ms > 0 ? model->load_ms : -1);
	if (!load)
		return;
	json_put_integer(json, "active_requests", load->active);
	json_put_integer(json, "waiting_requests", load->waiting);
	json_put_integer(json, "places", load->places);
	json_put_integer(json, "ready_slots", load->ready);
	json_put_integer(json, "coming_slots", load->coming);
	json_put_integer(json, "stopping_slots", load->stopping);
}

/* Why it failed is in the words of its server, which has seen all of the above. */
static void write_failures(struct json_writer *json, const struct model_record *model)
{
	json_put_integer(json, "failures", model->failures);
	json_put_moment(json, "failed_at", model->failed_ms);
	json_put_moment(json, "not_before", model->not_before_ms);
	json_put_string(json, "message", model->message);
}

void model_json_write(struct json_writer *json, const struct model_record *model,
                      const struct model_load *load, bool is_owner, struct arena *arena)
{
	json_open_object(json, NULL);
	json_put_id(json, "id", ID_MODEL, model->id);
	json_put_string(json, "name", model->name);
	if (is_owner)
		json_put_id(json, "tenant_id", ID_TENANT, model->tenant_id);
	json_put_string(json, "runtime", word_of(&runtime_words, model->runtime));
	if (is_owner && *model->command)
		json_put_string(json, "command", model->command);
	if (is_owner)
		job_payload_show(json, model->payload, arena);
	write_sizes(json, model);
	if (is_owner)
		write_set(json, model);
	write_state(json, model, load);
	if (is_owner)
		write_failures(json, model);
	json_close(json);
}
