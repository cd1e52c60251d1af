/* model_json.c - a model as people send it and read it */
#include "api/model/model_json.h"

#include <stdlib.h>

#include "api/job/job_json.h"
#include "api/text/ids.h"
#include "api/text/resource_change.h"

struct model_record model_json_default(void)
{
	struct model_record model = { .payload = "", .message = "" };
	resource_store_initial(&model_resource, &model);
	return model;
}

/* What the row of a field does not say. */
static const bool is_special[MODEL_FIELDS_COUNT] = {
	[MODEL_FIELD_tenant_id] = true,
	[MODEL_FIELD_command] = true,
	[MODEL_FIELD_shared] = true,
};

struct reader {
	struct json_reader json;
	const struct model_reading *with;
	struct model_record *model;
};

static const json_t *given(const struct reader *reader, const char *name)
{
	return reader->json.object ? json_object_get(reader->json.object, name) : NULL;
}

static const struct roster_tenant *model_json_find_tenant(const struct reader *reader,
                                                          const json_t *value)
{
	if (json_is_integer(value))
		return roster_find(reader->with->roster, json_integer_value(value));
	if (json_is_string(value))
		return roster_named(reader->with->roster, text_of(json_string_value(value)));
	return NULL;
}

static int64_t model_json_tenant_of(struct reader *reader, const char *name, const json_t *value)
{
	const struct roster_tenant *tenant = model_json_find_tenant(reader, value);
	if (tenant)
		return tenant->id;
	json_fail(&reader->json, name, "names no tenant; GET /api/v1/tenants lists them");
	return 0;
}

static void model_json_read_tenant(struct reader *reader)
{
	const json_t *value = given(reader, "tenant_id");
	struct model_record *model = reader->model;
	if (value && !json_is_null(value))
		model->tenant_id = model_json_tenant_of(reader, "tenant_id", value);
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
	const json_t *list = json_get_array(&reader->json, "users",
	                                    (size_t)model_resource.fields[MODEL_FIELD_users].items);
	int64_t *ids = arena_alloc(reader->with->arena, (json_array_size(list) + 1) * sizeof(*ids));
	json_array_foreach(list, i, item)
	{
		const struct roster_tenant *tenant = model_json_find_tenant(reader, item);
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
	if (given(reader, "shared"))
		reader->model->shared = json_get_flag(&reader->json, "shared", false);
	if (reader->model->shared && !before && reader->with->identity->role != ROLE_ADMIN)
		json_fail(&reader->json, "shared",
		          "lets all tenants use the model: that takes an administrator");
}

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
	const size_t most = (size_t)model_resource.fields[MODEL_FIELD_command].most;
	const json_t *value = given(reader, "command"), *item;
	size_t i;
	if (!value)
		return;
	if (!json_is_array(value)) {
		struct text text = json_get_text(&reader->json, "command", most);
		reader->model->command =
		    text.data ? arena_string(reader->with->arena, text.data) : "";
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
	if (shell.size > most)
		json_fail(&reader->json, "command", "must have at most %zu bytes", most);
	reader->model->command = arena_string(reader->with->arena, shell.data);
	buffer_free(&shell);
}

static void check_texts(struct reader *reader, const struct resource_field *field,
                        const json_t *value)
{
	const char *name = field->name, *key;
	const json_t *item;
	size_t i;
	bool is_args = field->kind == VALUE_TEXTS;
	if (json_array_size(value) + json_object_size(value) > (size_t)field->items)
		json_fail(&reader->json, name, "has more than %lld members",
		          (long long)field->items);
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
	size_t most = (size_t)model_resource.fields[MODEL_FIELD_health_path].most;
	bool good = path && *path == '/' && strlen(path) <= most &&
	            json_string_length(value) == strlen(path);

	for (const char *at = path; good && *at; at++)
		good = *at > ' ' && *at <= '~';
	if (!good)
		json_fail(&reader->json, "health_path",
		          "must be a path such as \"/health\": it begins with '/' and has at most "
		          "256 printable ASCII characters, none of them a space");
}

static void read_payload_member(struct reader *reader, json_t *payload,
                                const struct resource_field *field)
{
	const char *name = field->name;
	const json_t *value = given(reader, name);
	if (!value)
		return;
	if (json_is_null(value)) {
		json_object_del(payload, name);
		return;
	}
	if (field->pattern)
		check_health_path(reader, value);
	else if (field->kind == VALUE_TEXT)
		json_get_text(&reader->json, name, (size_t)field->most);
	else
		check_texts(reader, field, value);
	if (reader->json.failed)
		return;
	if (field->shown_as)
		json_object_set_new(payload, name, sealed(reader, value));
	else
		json_object_set(payload, name, (json_t *)value);
}

static void model_json_read_payload(struct reader *reader)
{
	struct model_record *model = reader->model;
	json_t *payload = *model->payload ? json_loads(model->payload, 0, NULL) : json_object();
	if (!json_is_object(payload)) {
		json_decref(payload);
		payload = json_object();
	}
	for (int i = 0; i < model_resource.field_count; i++)
		if (model_resource.fields[i].in_payload)
			read_payload_member(reader, payload, &model_resource.fields[i]);
	char *text = json_object_size(payload) > 0 ? json_dumps(payload, JSON_COMPACT) : NULL;
	model->payload = text ? arena_string(reader->with->arena, text) : "";
	free(text);
	json_decref(payload);
}

static void check_model(struct reader *reader)
{
	const struct model_record *model = reader->model;
	int64_t id;

	if (!*model->name)
		json_fail(&reader->json, "name", "is missing: give the model a name");
	else if (id_read(text_of(model->name), ID_MODEL, &id))
		json_fail(&reader->json, "name", "looks like an id: give the model another name");
	if (model->memory_mib == 0)
		json_fail(&reader->json, "gpu_memory_mb",
		          "is missing: say how much GPU memory one slot takes, over all its GPUs "
		          "(gpu-cli estimate tells)");
}

bool model_json_read(struct text body, const struct model_reading *reading,
                     struct model_record *model, struct error *error)
{
	json_t *json = json_read(body, NULL, error);
	if (!json)
		return false;
	struct reader reader = { .json = json_reader_of(json, "", error),
		                 .with = reading,
		                 .model = model };
	struct resource_change change = { .json = &reader.json,
		                          .resource = &model_resource,
		                          .record = model,
		                          .arena = reading->arena,
		                          .is_special = is_special };

	resource_change(&change);
	check_model(&reader);
	model_json_read_tenant(&reader);
	read_command(&reader);
	read_splits(&reader);
	read_users(&reader);
	read_shared(&reader);
	model_json_read_payload(&reader);
	bool read = resource_change_end(&change);
	json_decref(json);
	return read;
}
