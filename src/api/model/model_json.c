/* model_json.c - a model as people send it and read it */
#include "api/model/model_json.h"

#include <limits.h>
#include <stdlib.h>

#include "api/job/job_json.h"
#include "api/job/job_payload.h"
#include "api/text/ids.h"
#include "api/text/labels.h"
#include "api/text/times.h"

#define MIB_BYTES INT64_C(1048576)

enum { TEXT_BYTES_MAX = 4096, COUNT_MAX = 1000000, USERS_MAX = 4096, LABELS_MAX = 64 };

/* Those from `image` on go into the payload; the last ones are only told. */
static const char *const members[] = {
	"name", "tenant_id", "runtime", "command", "gpu_memory_mb", "splits", "uneven", "cpu_cores",
	"memory_mb", "context_length", "parallel", "kv_cache_type", "max_concurrency",
	"min_replicas", "max_replicas", "prewarm", "pinned", "idle_ttl", "load_timeout", "priority",
	"shared", "users", "placement", "gpu_model", "node_labels",
	/* payload */
	"image", "path", "health_path", "args", "environment", "secret_environment", "labels",
	/* told */
	"id", "removed", "failures", "failed_at", "not_before", "message", "load_time",
	"active_requests", "waiting_requests", "places", "ready_slots", "coming_slots",
	"stopping_slots", NULL
};
enum { PAYLOAD_FIRST = 25, PAYLOAD_LAST = 31, HEALTH_PATH_BYTES_MAX = 256 };

const char *model_json_member(size_t place)
{
	return place <= PAYLOAD_LAST ? members[place] : NULL;
}

struct model_record model_json_default(void)
{
	return (struct model_record){ .name = "",
		                      .command = "",
		                      .payload = "",
		                      .kv_cache = "",
		                      .gpu_models = "",
		                      .node_labels = "",
		                      .message = "",
		                      .priority = 500 };
}

struct reader {
	struct json_reader json;
	const struct model_reading *with;
	struct model_record *model;
};

static const json_t *given(const struct reader *reader, const char *name)
{
	return reader->json.object ? json_object_get(reader->json.object, name) : NULL;
}

static void read_text(struct reader *reader, const char *name, const char **value)
{
	if (!given(reader, name))
		return;
	struct text text = json_get_text(&reader->json, name, TEXT_BYTES_MAX);
	*value = text.data ? arena_string(reader->with->arena, text.data) : "";
}

static void read_number(struct reader *reader, const char *name, int digits, int64_t scale,
                        int64_t most, int64_t *value)
{
	if (given(reader, name))
		*value = json_get_decimal(&reader->json, name, digits, 0, most / scale, 0) * scale;
}

static void read_flag(struct reader *reader, const char *name, bool *value)
{
	if (given(reader, name))
		*value = json_get_flag(&reader->json, name, false);
}

/* A duration such as "10m", or a number of seconds. */
static void read_duration(struct reader *reader, const char *name, int64_t *value_ms)
{
	const json_t *value = given(reader, name);
	if (!value)
		return;
	if (json_is_null(value)) {
		*value_ms = 0;
	} else if (json_is_number(value)) {
		*value_ms = json_get_decimal(&reader->json, name, 3, 0, TIME_MS_MAX, 0);
	} else {
		struct text text = json_get_text(&reader->json, name, TEXT_BYTES_MAX);
		if (text.data && !duration_read(text, DURATION_MAX_MS, value_ms))
			json_fail(&reader->json, name, "must be a duration such as \"10m\"");
	}
}

static const struct roster_tenant *find_tenant(const struct reader *reader, const json_t *value)
{
	if (json_is_integer(value))
		return roster_find(reader->with->roster, json_integer_value(value));
	if (json_is_string(value))
		return roster_named(reader->with->roster, text_of(json_string_value(value)));
	return NULL;
}

static int64_t tenant_of(struct reader *reader, const char *name, const json_t *value)
{
	const struct roster_tenant *tenant = find_tenant(reader, value);
	if (tenant)
		return tenant->id;
	json_fail(&reader->json, name, "names no tenant; GET /api/v1/tenants lists them");
	return 0;
}

static void read_tenant(struct reader *reader)
{
	const json_t *value = given(reader, "tenant_id");
	struct model_record *model = reader->model;
	if (value && !json_is_null(value))
		model->tenant_id = tenant_of(reader, "tenant_id", value);
	if (model->tenant_id == 0)
		model->tenant_id = reader->with->identity->tenant_id;
	if (model->tenant_id == 0)
		json_fail(&reader->json, "tenant_id",
		          "is missing: name the tenant that pays for the model's slots");
	else if (!roster_may_see(reader->with->roster, reader->with->identity, model->tenant_id))
		json_fail(&reader->json, "tenant_id",
		          "names no tenant; GET /api/v1/tenants lists them");
}

/* GPU counts, or {"gpus":2,"memory_mb":40000} for each. */
static void read_splits(struct reader *reader)
{
	const json_t *list, *item;
	size_t i;
	if (!given(reader, "splits"))
		return;
	list = json_get_array(&reader->json, "splits", PARTS_MAX);
	int64_t *rows = arena_alloc(reader->with->arena, (json_array_size(list) + 1) *
	                                                     MODEL_SPLIT_WIDTH * sizeof(*rows));
	json_array_foreach(list, i, item)
	{
		int64_t *row = rows + i * MODEL_SPLIT_WIDTH;
		row[0] =
		    json_integer_value(json_is_object(item) ? json_object_get(item, "gpus") : item);
		row[1] = json_integer_value(json_object_get(item, "memory_mb"));
		json_t *memory = json_object_get(item, "memory_mb");
		bool is_known = !json_is_object(item) || json_object_size(item) == (memory ? 2 : 1);
		if (row[0] < 1 || row[0] > PARTS_MAX || row[1] < 0 || row[1] > MIB_MAX ||
		    !is_known || (memory && !json_is_integer(memory)))
			json_fail(&reader->json, "splits",
			          "must be GPU counts that rise, such as [1,2,4], or objects such "
			          "as {\"gpus\":2,\"memory_mb\":40000}");
	}
	reader->model->splits = (struct rows){ rows, (int64_t)json_array_size(list) };
}

static bool has_user(const struct rows *users, int64_t id)
{
	for (int64_t i = 0; i < users->count; i++)
		if (users->at[i] == id)
			return true;
	return false;
}

/* Whether who asks may let that tenant use the model: one of its own, or one that it is shared
 * with already. Tenants that it may not know of are the same as none. */
static bool may_share_with(const struct reader *reader, const struct roster_tenant *tenant)
{
	return tenant &&
	       (roster_may_see(reader->with->roster, reader->with->identity, tenant->id) ||
	        has_user(&reader->model->users, tenant->id));
}

static void read_users(struct reader *reader)
{
	const json_t *item;
	size_t i;
	if (!given(reader, "users"))
		return;
	const json_t *list = json_get_array(&reader->json, "users", USERS_MAX);
	int64_t *ids = arena_alloc(reader->with->arena, (json_array_size(list) + 1) * sizeof(*ids));
	json_array_foreach(list, i, item)
	{
		const struct roster_tenant *tenant = find_tenant(reader, item);
		bool may_share = may_share_with(reader, tenant);
		ids[i] = may_share ? tenant->id : 0;
		if (!may_share)
			json_fail(&reader->json, "users",
			          "names no tenant that you can share with: GET /api/v1/tenants "
			          "lists yours, and an administrator can share with others");
	}
	reader->model->users = (struct rows){ ids, (int64_t)json_array_size(list) };
}

static void read_shared(struct reader *reader)
{
	bool before = reader->model->shared;
	read_flag(reader, "shared", &reader->model->shared);
	if (reader->model->shared && !before && reader->with->identity->role != ROLE_ADMIN)
		json_fail(&reader->json, "shared",
		          "lets all tenants use the model: that takes an administrator");
}

/* One, or a list of them, as the core wants it: with '|' between. */
static void read_gpu_models(struct reader *reader)
{
	const json_t *value = given(reader, "gpu_model"), *item;
	struct buffer text = { 0 };
	size_t i;
	if (!value)
		return;
	if (!json_is_array(value)) {
		read_text(reader, "gpu_model", &reader->model->gpu_models);
		return;
	}
	buffer_text(&text, "");
	json_array_foreach(value, i, item)
	{
		if (!json_is_string(item))
			json_fail(&reader->json, "gpu_model",
			          "must be a text, or an array of texts");
		else
			buffer_print(&text, "%s%s", i > 0 ? "|" : "", json_string_value(item));
	}
	reader->model->gpu_models = arena_string(reader->with->arena, text.data);
	buffer_free(&text);
}

static void read_node_labels(struct reader *reader)
{
	const json_t *value = given(reader, "node_labels");
	struct arena scratch = { 0 };
	if (!value)
		return;
	reader->model->node_labels = "";
	char *text = json_is_null(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY);
	if (text) {
		struct json_scan scan = json_scan_of(text_of(text), &scratch, reader->json.error);
		if (!reader->json.failed &&
		    !labels_read(&scan, &job_resource.fields[JOB_FIELD_node_labels],
		                 reader->with->arena, &reader->model->node_labels,
		                 reader->json.error))
			reader->json.failed = true;
	}
	free(text);
	arena_free(&scratch);
}

/* An array of words is kept as JSON, as a command of a job is; one text as it is. */
/* How long a name in braces is that stands for a value, such as {port}; 0: it is none. */
static size_t placeholder(const char *text)
{
	size_t size = *text == '{' ? strspn(text + 1, "abcdefghijklmnopqrstuvwxyz_") : 0;
	return size > 0 && text[size + 1] == '}' ? size + 2 : 0;
}

/* A word of a command as the shell takes it for one. Names in braces stay bare: the agent
 * quotes what it puts there. */
static void put_word(struct buffer *shell, const char *word)
{
	bool is_quoted = false;
	size_t size = placeholder(word);

	buffer_text(shell, *word ? "" : "''");
	for (; *word; word += size > 0 ? size : 1, size = placeholder(word)) {
		if (is_quoted != (size == 0))
			buffer_text(shell, "'");
		is_quoted = size == 0;
		if (*word == '\'')
			buffer_text(shell, "'\\''");
		else
			buffer_bytes(shell, word, size > 0 ? size : 1);
	}
	buffer_text(shell, is_quoted ? "'" : "");
}

/* A line for the shell, or an array of words, which becomes one. */
static void read_command(struct reader *reader)
{
	const json_t *value = given(reader, "command"), *item;
	size_t i;
	if (!value || !json_is_array(value)) {
		read_text(reader, "command", &reader->model->command);
		return;
	}
	json_array_foreach(value, i, item) if (!json_is_string(item))
	    json_fail(&reader->json, "command", "must be an array of texts");
	struct buffer shell = { 0 };
	buffer_text(&shell, json_array_size(value) > 0 ? "exec" : "");
	json_array_foreach(value, i, item) if (json_is_string(item))
	{
		buffer_text(&shell, " ");
		put_word(&shell, json_string_value(item));
	}
	if (shell.size > TEXT_BYTES_MAX)
		json_fail(&reader->json, "command", "must have at most %d bytes", TEXT_BYTES_MAX);
	reader->model->command = arena_string(reader->with->arena, shell.data);
	buffer_free(&shell);
}

static void read_choices(struct reader *reader)
{
	static const char *const runtimes[] = { "vllm", "ollama", "llama.cpp", "custom", NULL };
	static const char *const policies[] = { "spread", "pack", NULL };
	if (given(reader, "runtime"))
		reader->model->runtime = json_get_word(&reader->json, "runtime", runtimes, 0);
	if (given(reader, "placement"))
		reader->model->policy = json_get_word(&reader->json, "placement", policies, 0);
	if (given(reader, "priority"))
		reader->model->priority =
		    json_get_integer(&reader->json, "priority", INT_MIN, INT_MAX, 500);
}

static void check_texts(struct reader *reader, const char *name, const json_t *value)
{
	const json_t *item;
	const char *key;
	size_t i;
	bool is_args = strcmp(name, "args") == 0;
	if (is_args ? !json_is_array(value) : !json_is_object(value)) {
		json_fail(&reader->json, name,
		          is_args ? "must be an array of texts"
		                  : "must be an object of texts, such as {\"NAME\":\"value\"}");
		return;
	}
	json_array_foreach(value, i, item) if (!json_is_string(item))
	    json_fail(&reader->json, name, "must be an array of texts");
	json_object_foreach((json_t *)value, key, item) if (!json_is_string(item) || !*key)
	    json_fail(&reader->json, name,
	              "must be an object of texts, such as {\"NAME\":\"value\"}");
}

static json_t *sealed(struct reader *reader, const json_t *secrets)
{
	struct buffer text = { 0 };
	json_t *value = NULL;
	char context[32], *plain = json_dumps(secrets, JSON_COMPACT);
	if (!reader->with->secret_keys) {
		json_fail(
		    &reader->json, "secret_environment",
		    "cannot be kept safe here: no key is configured. Set store.secret_keys in the "
		    "configuration of the service, or use environment");
	} else {
		job_secret_context(context, reader->model->tenant_id);
		if (secret_seal(reader->with->secret_keys, context, plain, strlen(plain), &text,
		                reader->json.error))
			value = json_stringn(text.data, text.size);
		else
			reader->json.failed = true;
	}
	free(plain);
	buffer_free(&text);
	return value;
}

/* It becomes a part of the request that a node makes. */
static void check_health_path(struct reader *reader, const json_t *value)
{
	const char *path = json_string_value(value);
	bool good = path && *path == '/' && strlen(path) <= HEALTH_PATH_BYTES_MAX &&
	            json_string_length(value) == strlen(path);

	for (const char *at = path; good && *at; at++)
		good = *at > ' ' && *at <= '~';
	if (!good)
		json_fail(&reader->json, "health_path",
		          "must be a path such as \"/health\": it begins with '/' and has at most "
		          "256 printable ASCII characters, none of them a space");
}

static void read_payload_member(struct reader *reader, json_t *payload, const char *name)
{
	const json_t *value = given(reader, name);
	if (!value)
		return;
	if (json_is_null(value)) {
		json_object_del(payload, name);
	} else if (strcmp(name, "image") == 0 || strcmp(name, "path") == 0) {
		json_get_text(&reader->json, name, TEXT_BYTES_MAX);
		json_object_set(payload, name, (json_t *)value);
	} else if (strcmp(name, "health_path") == 0) {
		check_health_path(reader, value);
		json_object_set(payload, name, (json_t *)value);
	} else {
		check_texts(reader, name, value);
		if (reader->json.failed)
			return;
		if (strcmp(name, "secret_environment") == 0)
			json_object_set_new(payload, name, sealed(reader, value));
		else
			json_object_set(payload, name, (json_t *)value);
	}
}

static void read_payload(struct reader *reader)
{
	struct model_record *model = reader->model;
	json_t *payload = *model->payload ? json_loads(model->payload, 0, NULL) : json_object();
	if (!json_is_object(payload)) {
		json_decref(payload);
		payload = json_object();
	}
	for (size_t i = PAYLOAD_FIRST; i <= PAYLOAD_LAST; i++)
		read_payload_member(reader, payload, members[i]);
	char *text = json_object_size(payload) > 0 ? json_dumps(payload, JSON_COMPACT) : NULL;
	model->payload = text ? arena_string(reader->with->arena, text) : "";
	free(text);
	json_decref(payload);
}

static void read_numbers(struct reader *reader)
{
	struct model_record *model = reader->model;
	read_number(reader, "gpu_memory_mb", 0, 1, MIB_MAX, &model->memory_mib);
	read_number(reader, "cpu_cores", 3, 1, CPU_MILLI_MAX, &model->cpu_milli);
	read_number(reader, "memory_mb", 0, MIB_BYTES, HOST_BYTES_MAX, &model->host_bytes);
	read_number(reader, "context_length", 0, 1, INT32_MAX, &model->context);
	read_number(reader, "parallel", 0, 1, COUNT_MAX, &model->parallel);
	read_number(reader, "max_concurrency", 0, 1, COUNT_MAX, &model->concurrency);
	read_number(reader, "min_replicas", 0, 1, COUNT_MAX, &model->min_replicas);
	read_number(reader, "max_replicas", 0, 1, COUNT_MAX, &model->max_replicas);
	read_duration(reader, "idle_ttl", &model->idle_ttl_ms);
	read_duration(reader, "load_timeout", &model->load_timeout_ms);
	read_flag(reader, "uneven", &model->uneven);
	read_flag(reader, "prewarm", &model->prewarm);
	read_flag(reader, "pinned", &model->pinned);
}

bool model_json_read(struct text body, const struct model_reading *reading,
                     struct model_record *model, struct error *error)
{
	json_t *json = json_read(body, NULL, error);
	int64_t id;
	if (!json)
		return false;
	struct reader reader = { .json = json_reader_of(json, "", error),
		                 .with = reading,
		                 .model = model };
	read_text(&reader, "name", &model->name);
	if (!*model->name)
		json_fail(&reader.json, "name", "is missing: give the model a name");
	else if (text_has_control(text_of(model->name)))
		json_fail(&reader.json, "name", "has control characters in it");
	else if (id_read(text_of(model->name), ID_MODEL, &id))
		json_fail(&reader.json, "name", "looks like an id: give the model another name");
	read_tenant(&reader);
	read_choices(&reader);
	read_command(&reader);
	read_text(&reader, "kv_cache_type", &model->kv_cache);
	read_numbers(&reader);
	if (model->memory_mib == 0)
		json_fail(&reader.json, "gpu_memory_mb",
		          "is missing: say how much GPU memory one slot takes, over all its GPUs "
		          "(gpu-cli estimate tells)");
	read_splits(&reader);
	read_users(&reader);
	read_shared(&reader);
	read_gpu_models(&reader);
	read_node_labels(&reader);
	read_payload(&reader);
	bool read = json_reader_end(&reader.json, members);
	json_decref(json);
	return read;
}
