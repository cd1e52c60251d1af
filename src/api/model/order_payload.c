/* order_payload.c - what a node is given to run a task or load a model with */
#include <stdlib.h>
#include <string.h>

#include "api/job/job_json.h"
#include "api/service/service_state.h"
#include "api/text/ids.h"

/* The plain text of the secrets, which is a JSON object, instead of what they are sealed in. */
static bool put_secrets(const struct service *service, struct json_writer *json, struct text sealed,
                        int64_t tenant_id, struct error *error)
{
	struct buffer plain = { 0 };
	char context[32], *text;

	if (!service->settings.secret_keys)
		return error_set(error, ERROR_UNAVAILABLE,
		                 "the job has secrets, and no key to open them is configured");
	job_secret_context(context, tenant_id);
	text = memory_alloc(sealed.size + 1);
	memcpy(text, sealed.data, sealed.size);
	text[sealed.size] = '\0';
	bool opened = secret_open(service->settings.secret_keys, context, text, &plain, error);
	if (opened)
		json_put_raw(json, "secret_environment", (struct text){ plain.data, plain.size });
	free(text);
	if (plain.data)
		explicit_bzero(plain.data, plain.size);
	buffer_free(&plain);
	return opened;
}

static const char *key_text(struct arena *arena, struct text key)
{
	char *copy = arena_alloc(arena, key.size + 1);
	memcpy(copy, key.data, key.size);
	copy[key.size] = '\0';
	return copy;
}

/* Everything in the stored payload, with secrets opened. */
static bool put_members(const struct service *service, struct json_writer *json,
                        const char *payload, int64_t tenant_id, struct error *error)
{
	struct arena arena = { 0 };
	struct json_scan scan = json_scan_of(text_of(payload), &arena, error);
	struct text key = { NULL, 0 }, value = { NULL, 0 };
	bool done = !*payload || json_scan_open(&scan, JSON_KIND_OBJECT);

	while (done && *payload && json_scan_member(&scan, &key)) {
		bool sealed =
		    text_is(key, "secret_environment") && json_scan_kind(&scan) == JSON_KIND_TEXT;
		if (sealed)
			done = json_scan_text(&scan, &value) &&
			       put_secrets(service, json, value, tenant_id, error);
		else if ((done = json_scan_skip(&scan, &value)))
			json_put_raw(json, key_text(&arena, key), value);
	}
	arena_free(&arena);
	return done && !scan.failed;
}

/* What others reach a node by: its label says so, else its name does. */
static void put_address(struct json_writer *json, const struct node_record *node)
{
	struct text labels = text_of(node ? node->labels : ""), label;

	while (text_next(&labels, '\n', &label)) {
		if (text_starts(label, "address=")) {
			json_put_text(json, NULL, text_from(label, strlen("address=")));
			return;
		}
	}
	json_put_string(json, NULL, node ? node->name : "");
}

/* Where the tasks of a gang are, so that they can find each other. */
static void put_gang(struct json_writer *json, const struct catalogue *catalogue,
                     const struct catalogue_job *job)
{
	json_open_object(json, "gang");
	json_open_array(json, "addresses");
	for (size_t i = 0; i < job->task_count; i++) {
		int64_t id = job->tasks[i]->reservation_id;
		const struct reservation_record *reservation =
		    catalogue_get(catalogue, RECORD_RESERVATION, id, 0);
		const struct node_record *node =
		    reservation ? catalogue_get(catalogue, RECORD_NODE, reservation->node_id, 0)
				: NULL;
		put_address(json, node);
	}
	json_close(json);
	json_close(json);
}

static void put_array(struct json_writer *json, const struct job_record *job)
{
	json_open_object(json, "array");
	json_put_id(json, "job", ID_JOB, job->array_id);
	json_put_integer(json, "index", job->array_index);
	json_put_integer(json, "first", job->array_first);
	json_put_integer(json, "last", job->array_last);
	json_put_integer(json, "count", job->array_count);
	json_close(json);
}

static void order_payload_put_tenant(struct json_writer *json, const struct catalogue *catalogue,
                                     int64_t tenant_id)
{
	const struct tenant_record *tenant = catalogue_get(catalogue, RECORD_TENANT, tenant_id, 0);
	if (!tenant)
		return;
	json_put_string(json, "tenant", tenant->name);
	if (!*tenant->payload)
		return;
	json_t *payload = json_loads(tenant->payload, 0, NULL);
	const char *user = json_string_value(json_object_get(payload, "unix_user"));
	if (user)
		json_put_string(json, "user", user);
	json_decref(payload);
}

bool order_task_payload(void *context, int64_t job_id, int64_t task, struct buffer *payload,
                        struct error *error)
{
	const struct service *service = context;
	struct catalogue *catalogue = service_catalogue(service);
	struct json_writer json = json_writer_to(payload);
	struct catalogue_job job;

	catalogue_lock(catalogue);
	bool done = catalogue_job(catalogue, job_id, &job);
	if (!done) {
		error_set(error, ERROR_NOT_FOUND, "job-%lld is not known", (long long)job_id);
	} else {
		json_open_object(&json, NULL);
		json_put_id(&json, "job", ID_JOB, job_id);
		json_put_string(&json, "name", job.job->name);
		json_put_integer(&json, "task", task);
		order_payload_put_tenant(&json, catalogue, job.job->tenant_id);
		if (job.job->compute > 0) {
			json_put_integer(&json, "compute", job.job->compute);
			json_put_integer(&json, "sharer", job.job->tenant_id);
			json_put_integer(&json, "gpu_processes", job.job->compute_processes);
		}
		if (job.job->array_id > 0)
			put_array(&json, job.job);
		if (job.task_count > 1)
			put_gang(&json, catalogue, &job);
		done = put_members(service, &json, job.job->payload, job.job->tenant_id, error);
		json_close(&json);
	}
	catalogue_unlock(catalogue);
	return done;
}

bool order_model_payload(void *context, int64_t model_id, struct buffer *payload,
                         struct error *error)
{
	const struct service *service = context;
	struct catalogue *catalogue = service_catalogue(service);
	struct json_writer json = json_writer_to(payload);

	catalogue_lock(catalogue);
	const struct model_record *model = catalogue_get(catalogue, RECORD_MODEL, model_id, 0);
	bool done = model != NULL;
	if (!done) {
		error_set(error, ERROR_NOT_FOUND, "model-%lld is not known", (long long)model_id);
	} else {
		json_open_object(&json, NULL);
		order_payload_put_tenant(&json, catalogue, model->tenant_id);
		done = put_members(service, &json, model->payload, model->tenant_id, error);
		json_close(&json);
	}
	catalogue_unlock(catalogue);
	return done;
}
