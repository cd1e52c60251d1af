/* tenant_json.c - a tenant as people send it and read it */
#include "api/tenant/tenant_json.h"

#include <stdlib.h>

#include "api/notify/smtp.h"
#include "api/notify/webhook.h"
#include "api/text/ids.h"
#include "api/text/resource_change.h"
#include "api/text/resource_json.h"

#define MIB_BYTES INT64_C(1048576)
#define HOUR_MILLI_MS INT64_C(3600000000) /* thousandths x ms */

static const struct {
	const char *name;
	int64_t priority;
} tiers[] = { { "low", 100 }, { "medium", 500 }, { "high", 1000 }, { "critical", 5000 } };
enum { TIERS = sizeof(tiers) / sizeof(tiers[0]) };

const char *tenant_tier(int64_t priority)
{
	for (int i = 0; i < TIERS; i++)
		if (tiers[i].priority == priority)
			return tiers[i].name;
	return NULL;
}

struct tenant_record tenant_json_default(void)
{
	struct tenant_record tenant = { .payload = "" };
	resource_store_initial(&tenant_resource, &tenant);
	return tenant;
}

/* What the row of a field does not say. */
static const bool is_special[TENANT_FIELDS_COUNT] = {
	[TENANT_FIELD_parent_id] = true, [TENANT_FIELD_priority] = true, /* after the tier */
};

static bool is_given(const struct json_reader *reader, const char *name)
{
	return reader->object && json_object_get(reader->object, name);
}

static void read_priority(struct json_reader *reader, struct tenant_record *tenant)
{
	static const char *const words[] = { "low", "medium", "high", "critical", NULL };
	if (is_given(reader, "priority_tier"))
		tenant->priority = tiers[json_get_word(reader, "priority_tier", words, 1)].priority;
	if (is_given(reader, "priority"))
		tenant->priority = json_get_integer(
		    reader, "priority", 0, tenant_resource.fields[TENANT_FIELD_priority].most, 500);
}

static void read_parent(struct json_reader *reader, const struct roster *roster,
                        struct tenant_record *tenant)
{
	if (!is_given(reader, "parent_id"))
		return;
	const json_t *given = json_object_get(reader->object, "parent_id");
	const struct roster_tenant *parent = NULL;
	if (json_is_integer(given))
		parent = roster_find(roster, json_integer_value(given));
	else if (!json_is_null(given)) {
		struct text name =
		    json_get_text(reader, "parent_id",
		                  (size_t)tenant_resource.fields[TENANT_FIELD_parent_id].most);
		if (reader->failed)
			return;
		if (name.size == 0) {
			tenant->parent_id = 0;
			return;
		}
		parent = roster_named(roster, name);
	}
	if (!parent && !json_is_null(given))
		json_fail(reader, "parent_id", "names no tenant; GET /api/v1/tenants lists them");
	tenant->parent_id = parent ? parent->id : 0;
}

/* Which ends of jobs are told: a list of texts. */
static void check_notify_on(struct json_reader *reader)
{
	static const char *const words[] = { "started",   "completed", "failed",
		                             "preempted", "cancelled", NULL };
	const json_t *list = json_get_array(reader, "notify_on", 16), *item;
	size_t i;
	json_array_foreach(list, i, item)
	{
		int word = 0;
		const char *text = json_string_value(item);
		while (text && words[word] && strcmp(text, words[word]) != 0)
			word++;
		if (!text || !words[word])
			json_fail(reader, "notify_on",
			          "must be a list of started, completed, failed, preempted and "
			          "cancelled");
	}
}

static void check_payload_member(struct json_reader *reader, const struct resource_field *field,
                                 const json_t *value)
{
	if (field->kind == VALUE_WORDS)
		check_notify_on(reader);
	else if (!(field->also & ALSO_FLAG) || !json_is_boolean(value))
		json_get_text(reader, field->name, (size_t)field->most);
}

/* What could not be delivered to is refused now, and not when there is something to tell. */
static void check_addresses(struct json_reader *reader, const json_t *payload)
{
	const char *webhook = json_string_value(json_object_get(payload, "notify_webhook"));
	const json_t *wanted = json_object_get(payload, "notify_email");
	const char *email =
	    json_string_value(json_is_true(wanted) ? json_object_get(payload, "email") : wanted);
	const char *own = json_string_value(json_object_get(payload, "email"));
	struct webhook_url url;
	struct error error;

	if (is_given(reader, "email") && own && *own && !smtp_address_check(own, &error))
		json_fail(reader, "email", "must be one address such as name@example.org");
	if (is_given(reader, "notify_webhook") && webhook && *webhook &&
	    !webhook_url_read(webhook, &url, &error))
		json_fail(reader, "notify_webhook", "is refused: %s", error.text);
	if (!is_given(reader, "notify_email") && !is_given(reader, "email"))
		return;
	if (json_is_true(wanted) && (!email || !smtp_address_check(email, &error)))
		json_fail(reader, "notify_email",
		          "is true, and 'email' is not one address such as "
		          "name@example.org");
	else if (email && *email && !smtp_address_check(email, &error))
		json_fail(reader, "notify_email", "must be one address such as name@example.org");
}

/* Takes the members that the core does not read over into the old payload. */
static void tenant_json_read_payload(struct json_reader *reader, struct arena *arena,
                                     struct tenant_record *tenant)
{
	json_t *payload = *tenant->payload ? json_loads(tenant->payload, 0, NULL) : json_object();
	if (!json_is_object(payload)) {
		json_decref(payload);
		payload = json_object();
	}
	for (int i = 0; i < tenant_resource.field_count; i++) {
		const struct resource_field *field = &tenant_resource.fields[i];
		const char *name = field->name;
		if (!field->in_payload || !is_given(reader, name))
			continue;
		json_t *value = json_object_get(reader->object, name);
		check_payload_member(reader, field, value);
		if (json_is_null(value))
			json_object_del(payload, name);
		else
			json_object_set(payload, name, value);
	}
	check_addresses(reader, payload);
	char *text = json_object_size(payload) > 0
	                 ? json_dumps(payload, JSON_COMPACT | JSON_SORT_KEYS)
	                 : NULL;
	tenant->payload = text ? arena_string(arena, text) : "";
	free(text);
	json_decref(payload);
}

static void tenant_json_check_name(struct json_reader *reader, const struct tenant_record *tenant)
{
	int64_t id;
	if (!*tenant->name)
		json_fail(reader, "name", "is missing: give the tenant a name");
	else if (id_read(text_of(tenant->name), ID_TENANT, &id))
		json_fail(reader, "name", "looks like an id: give the tenant another name");
}

/* What is guaranteed can be had; a tenant without a weight would get nothing of what is shared. */
static void check_amounts(struct json_reader *reader, const struct tenant_record *tenant)
{
	if (tenant->quota_gpu != QUOTA_UNSET && tenant->quota_gpu != UNLIMITED &&
	    tenant->quota_gpu > tenant->limit_gpu)
		json_fail(reader, json_has(reader, "quota_gpus") ? "quota_gpus" : "max_gpus",
		          "contradicts the tenant's %s: a quota is at most the limit",
		          json_has(reader, "quota_gpus") ? "max_gpus" : "quota_gpus");
	if (tenant->weight == 0)
		json_fail(reader, "fair_share_weight", "must be more than 0");
}

bool tenant_json_read(struct text body, const struct roster *roster, struct arena *arena,
                      struct tenant_record *tenant, struct error *error)
{
	json_t *json = json_read(body, NULL, error);
	if (!json)
		return false;
	struct json_reader reader = json_reader_of(json, "", error);
	struct resource_change change = { .json = &reader,
		                          .resource = &tenant_resource,
		                          .record = tenant,
		                          .arena = arena,
		                          .is_special = is_special };

	resource_change(&change);
	tenant_json_check_name(&reader, tenant);
	read_parent(&reader, roster, tenant);
	read_priority(&reader, tenant);
	tenant_json_read_payload(&reader, arena, tenant);
	check_amounts(&reader, tenant);
	bool read = resource_change_end(&change);
	json_decref(json);
	return read;
}

bool tenant_webhook_is_private(const struct tenant_record *tenant)
{
	json_t *payload = *tenant->payload ? json_loads(tenant->payload, 0, NULL) : NULL;
	const char *webhook = json_string_value(json_object_get(payload, "notify_webhook"));
	struct webhook_url url;
	struct error error;
	bool is_private =
	    webhook && webhook_url_read(webhook, &url, &error) && fetch_is_private_host(url.host);

	json_decref(payload);
	return is_private;
}

const char *tenant_unix_user(const struct tenant_record *tenant, struct arena *arena)
{
	json_t *payload = tenant->payload && *tenant->payload
	                      ? json_loads(tenant->payload, JSON_ALLOW_NUL, NULL)
	                      : NULL;
	const char *user = json_string_value(json_object_get(payload, "unix_user"));

	user = arena_string(arena, user ? user : "");
	json_decref(payload);
	return user;
}

static void write_words(struct json_writer *json, const char *name, const json_t *list)
{
	const json_t *item;
	size_t i;
	json_open_array(json, name);
	json_array_foreach(list, i, item) json_put_string(json, NULL, json_string_value(item));
	json_close(json);
}

/* The payload's members as they are, but for what nobody needs to see again. */
static void write_payload(struct json_writer *json, const char *payload)
{
	json_t *object = *payload ? json_loads(payload, 0, NULL) : NULL;
	const char *name;
	json_t *value;
	json_object_foreach(object, name, value)
	{
		if (strcmp(name, "notify_secret") == 0)
			json_put_string(json, name, "set");
		else if (json_is_string(value))
			json_put_string(json, name, json_string_value(value));
		else if (json_is_boolean(value))
			json_put_flag(json, name, json_is_true(value));
		else if (json_is_array(value))
			write_words(json, name, value);
	}
	json_decref(object);
}

struct tenant_view {
	const struct tenant_record *tenant;
	const struct tenant_figures *figures;
	int64_t jobs;
};

static void write_all_payload(struct resource_writer *writer)
{
	const struct tenant_view *view = writer->context;
	write_payload(writer->json, view->tenant->payload);
}

static void write_tier(struct resource_writer *writer)
{
	const struct tenant_view *view = writer->context;
	json_put_string(writer->json, writer->field->name, tenant_tier(view->tenant->priority));
}

/* All that it uses now and has used, up to the jobs that have ended. */
static void write_used(struct resource_writer *writer)
{
	const struct tenant_view *view = writer->context;
	const struct tenant_figures *figures = view->figures;
	const int64_t *now = figures->allocated.of;
	const int64_t values[] = {
		now[AMOUNT_GPU],
		now[AMOUNT_GPU_MEMORY],
		now[AMOUNT_CPU],
		now[AMOUNT_HOST] / MIB_BYTES,
		now[AMOUNT_JOBS],
		figures->waiting_jobs,
		figures->fair[AMOUNT_GPU],
		muldiv_down(figures->gpu_ms, 1000, HOUR_MILLI_MS),
		view->jobs,
	};

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		field_put(writer->json, &tenant_resource.fields[TENANT_FIELD_current_gpus + i],
		          values[i]);
}

static void write_total_cost(struct resource_writer *writer)
{
	const struct tenant_view *view = writer->context;
	field_put(writer->json, writer->field, view->figures->cost);
}

static void write_month_cost(struct resource_writer *writer)
{
	const struct tenant_view *view = writer->context;
	field_put(writer->json, writer->field, view->figures->month_cost);
}

static void (*const writers[TENANT_FIELDS_COUNT])(struct resource_writer *) = {
	[TENANT_FIELD_email] = write_all_payload,     [TENANT_FIELD_priority_tier] = write_tier,
	[TENANT_FIELD_current_gpus] = write_used,     [TENANT_FIELD_total_cost] = write_total_cost,
	[TENANT_FIELD_month_cost] = write_month_cost,
};
_Static_assert(TENANT_FIELD_total_jobs == TENANT_FIELD_current_gpus + 8,
               "write_used writes these nine in the order of the table");

void tenant_json_write(struct json_writer *json, const char *key,
                       const struct tenant_record *tenant, const struct tenant_figures *figures,
                       int64_t jobs)
{
	const struct tenant_view view = { tenant, figures, jobs };
	const void *const records[RECORD_KINDS] = { [RECORD_TENANT] = tenant };
	struct resource_writer writer = { .resource = &tenant_resource,
		                          .json = json,
		                          .records = records,
		                          .special = writers,
		                          .context = &view };

	json_open_object(json, key);
	resource_write(&writer);
	json_close(json);
}
