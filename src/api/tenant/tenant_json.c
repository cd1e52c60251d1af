/* tenant_json.c - a tenant as people send it and read it */
#include "api/tenant/tenant_json.h"

#include <stdlib.h>

#include "api/notify/smtp.h"
#include "api/notify/webhook.h"
#include "api/text/ids.h"

#define MIB_BYTES INT64_C(1048576)
#define HOUR_MILLI_MS INT64_C(3600000000) /* thousandths x ms */

enum {
	NAME_BYTES_MAX = 256,
	TEXT_BYTES_MAX = 4096,
	MONEY_DIGITS = 6,
	WEIGHT_DIGITS = 3,
};
#define MONEY_MAX (INT64_C(1) << 52)
#define WEIGHT_MOST INT64_C(1000000000)

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

/* What can be sent; those from `email` on go into the payload. Then what only the service
 * tells, which may be sent back and is not looked at. */
static const char *const members[] = {
	"name", "parent_id", "max_gpus", "max_gpu_memory_mb", "max_cpu_cores", "max_memory_mb",
	"max_concurrent_jobs", "max_queued_jobs", "quota_gpus", "quota_cpu_cores",
	"quota_memory_mb", "priority_tier", "priority", "fair_share_weight", "allow_preemption",
	"can_preempt_others", "max_preemptions", "cost_per_gpu_hour", "budget_per_month",
	/* payload */
	"email", "organization", "unix_user", "notify_email", "notify_webhook", "notify_secret",
	"notify_on",
	/* told */
	"id", "current_gpus", "current_gpu_memory", "current_cpu_cores", "current_memory",
	"current_jobs", "waiting_jobs", "fair_share_gpus", "total_gpu_hours", "total_jobs",
	"successful_jobs", "failed_jobs", "cancelled_jobs", "total_cost", "month_cost", NULL
};
enum { PAYLOAD_FIRST = 19, PAYLOAD_LAST = 25 };

const char *tenant_json_member(size_t place)
{
	return place <= PAYLOAD_LAST ? members[place] : NULL;
}

struct tenant_record tenant_json_default(void)
{
	return (struct tenant_record){
		.name = "",
		.payload = "",
		.limit_gpu = UNLIMITED,
		.limit_cpu = UNLIMITED,
		.limit_host = UNLIMITED,
		.limit_gpu_memory = UNLIMITED,
		.limit_jobs = UNLIMITED,
		.quota_gpu = QUOTA_UNSET,
		.quota_cpu = QUOTA_UNSET,
		.quota_host = QUOTA_UNSET,
		.weight = 1000,
		.priority = 500,
		.allow_preemption = true,
		.can_preempt_others = true,
		.max_preemptions = UNLIMITED,
		.queue_max = UNLIMITED,
		.budget_per_month = UNLIMITED,
	};
}

static const char *own(struct arena *arena, struct text text)
{
	char *copy = arena_alloc(arena, text.size + 1);
	memcpy(copy, text.data, text.size);
	copy[text.size] = '\0';
	return copy;
}

/* Whether a member is there at all; null counts. */
static bool is_given(const struct json_reader *reader, const char *name)
{
	return reader->object && json_object_get(reader->object, name);
}

/* An amount with `digits` decimals, times `scale`: left out it stays, null is `none`. */
static void read_amount(struct json_reader *reader, const char *name, int digits, int64_t scale,
                        int64_t most, int64_t none, int64_t *value)
{
	if (!is_given(reader, name))
		return;
	int64_t given = json_get_decimal(reader, name, digits, 0, most / scale, -1);
	*value = given < 0 ? none : given * scale;
}

/* Reads a quota, where -1 means unlimited. */
static void read_quota(struct json_reader *reader, const char *name, int digits, int64_t scale,
                       int64_t most, int64_t *value)
{
	const json_t *given = reader->object ? json_object_get(reader->object, name) : NULL;
	if (json_is_integer(given) && json_integer_value(given) == -1)
		*value = UNLIMITED;
	else
		read_amount(reader, name, digits, scale, most, QUOTA_UNSET, value);
}

static void read_limits(struct json_reader *reader, struct tenant_record *tenant)
{
	const int64_t most = INT64_C(1) << 40;
	read_amount(reader, "max_gpus", 3, 1, most, UNLIMITED, &tenant->limit_gpu);
	read_amount(reader, "max_gpu_memory_mb", 0, 1, MIB_MAX, UNLIMITED,
	            &tenant->limit_gpu_memory);
	read_amount(reader, "max_cpu_cores", 3, 1, most, UNLIMITED, &tenant->limit_cpu);
	read_amount(reader, "max_memory_mb", 0, MIB_BYTES, HOST_BYTES_MAX, UNLIMITED,
	            &tenant->limit_host);
	read_amount(reader, "max_concurrent_jobs", 0, 1, most, UNLIMITED, &tenant->limit_jobs);
	read_amount(reader, "max_queued_jobs", 0, 1, most, UNLIMITED, &tenant->queue_max);
	read_quota(reader, "quota_gpus", 3, 1, most, &tenant->quota_gpu);
	read_quota(reader, "quota_cpu_cores", 3, 1, most, &tenant->quota_cpu);
	read_quota(reader, "quota_memory_mb", 0, MIB_BYTES, HOST_BYTES_MAX, &tenant->quota_host);
	read_amount(reader, "max_preemptions", 0, 1, most, UNLIMITED, &tenant->max_preemptions);
	read_amount(reader, "cost_per_gpu_hour", MONEY_DIGITS, 1, MONEY_MAX, 0,
	            &tenant->cost_per_gpu_hour);
	read_amount(reader, "budget_per_month", MONEY_DIGITS, 1, MONEY_MAX, UNLIMITED,
	            &tenant->budget_per_month);
	read_amount(reader, "fair_share_weight", WEIGHT_DIGITS, 1, WEIGHT_MOST, 1000,
	            &tenant->weight);
}

static void read_priority(struct json_reader *reader, struct tenant_record *tenant)
{
	static const char *const words[] = { "low", "medium", "high", "critical", NULL };
	if (is_given(reader, "priority_tier"))
		tenant->priority = tiers[json_get_word(reader, "priority_tier", words, 1)].priority;
	if (is_given(reader, "priority"))
		tenant->priority = json_get_integer(reader, "priority", 0, 1000000, 500);
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
		struct text name = json_get_text(reader, "parent_id", NAME_BYTES_MAX);
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

static void check_payload_member(struct json_reader *reader, const char *name, const json_t *value)
{
	if (strcmp(name, "notify_on") == 0)
		check_notify_on(reader);
	else if (strcmp(name, "notify_email") != 0 || !json_is_boolean(value))
		json_get_text(reader, name, TEXT_BYTES_MAX);
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
static void read_payload(struct json_reader *reader, struct arena *arena,
                         struct tenant_record *tenant)
{
	json_t *payload = *tenant->payload ? json_loads(tenant->payload, 0, NULL) : json_object();
	if (!json_is_object(payload)) {
		json_decref(payload);
		payload = json_object();
	}
	for (size_t i = PAYLOAD_FIRST; i <= PAYLOAD_LAST; i++) {
		const char *name = members[i];
		if (!is_given(reader, name))
			continue;
		json_t *value = json_object_get(reader->object, name);
		check_payload_member(reader, name, value);
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

static void read_name(struct json_reader *reader, struct arena *arena, struct tenant_record *tenant)
{
	if (is_given(reader, "name")) {
		struct text name = json_get_text(reader, "name", NAME_BYTES_MAX);
		tenant->name = name.data ? own(arena, name) : "";
	}
	int64_t id;
	if (!*tenant->name)
		json_fail(reader, "name", "is missing: give the tenant a name");
	else if (text_has_control(text_of(tenant->name)))
		json_fail(reader, "name", "has control characters in it");
	else if (id_read(text_of(tenant->name), ID_TENANT, &id))
		json_fail(reader, "name", "looks like an id: give the tenant another name");
}

bool tenant_json_read(struct text body, const struct roster *roster, struct arena *arena,
                      struct tenant_record *tenant, struct error *error)
{
	json_t *json = json_read(body, NULL, error);
	if (!json)
		return false;
	struct json_reader reader = json_reader_of(json, "", error);
	read_name(&reader, arena, tenant);
	read_parent(&reader, roster, tenant);
	read_limits(&reader, tenant);
	read_priority(&reader, tenant);
	if (is_given(&reader, "allow_preemption"))
		tenant->allow_preemption = json_get_flag(&reader, "allow_preemption", true);
	if (is_given(&reader, "can_preempt_others"))
		tenant->can_preempt_others = json_get_flag(&reader, "can_preempt_others", true);
	read_payload(&reader, arena, tenant);
	bool read = json_reader_end(&reader, members);
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

static void put_limit(struct json_writer *json, const char *key, int64_t value, int digits)
{
	if (value == UNLIMITED)
		json_put_null(json, key);
	else
		json_put_decimal(json, key, value, digits);
}

static void put_quota(struct json_writer *json, const char *key, int64_t value, int digits)
{
	if (value == UNLIMITED)
		json_put_integer(json, key, -1);
	else if (value == QUOTA_UNSET)
		json_put_null(json, key);
	else
		json_put_decimal(json, key, value, digits);
}

static int64_t in_mib(int64_t bytes)
{
	return bytes == UNLIMITED || bytes == QUOTA_UNSET ? bytes : bytes / MIB_BYTES;
}

static void write_set(struct json_writer *json, const struct tenant_record *tenant)
{
	put_limit(json, "max_gpus", tenant->limit_gpu, 3);
	put_limit(json, "max_gpu_memory_mb", tenant->limit_gpu_memory, 0);
	put_limit(json, "max_cpu_cores", tenant->limit_cpu, 3);
	put_limit(json, "max_memory_mb", in_mib(tenant->limit_host), 0);
	put_limit(json, "max_concurrent_jobs", tenant->limit_jobs, 0);
	put_limit(json, "max_queued_jobs", tenant->queue_max, 0);
	put_quota(json, "quota_gpus", tenant->quota_gpu, 3);
	put_quota(json, "quota_cpu_cores", tenant->quota_cpu, 3);
	put_quota(json, "quota_memory_mb", in_mib(tenant->quota_host), 0);
	json_put_string(json, "priority_tier", tenant_tier(tenant->priority));
	json_put_integer(json, "priority", tenant->priority);
	json_put_decimal(json, "fair_share_weight", tenant->weight, WEIGHT_DIGITS);
	json_put_flag(json, "allow_preemption", tenant->allow_preemption);
	json_put_flag(json, "can_preempt_others", tenant->can_preempt_others);
	put_limit(json, "max_preemptions", tenant->max_preemptions, 0);
	json_put_decimal(json, "cost_per_gpu_hour", tenant->cost_per_gpu_hour, MONEY_DIGITS);
	put_limit(json, "budget_per_month", tenant->budget_per_month, MONEY_DIGITS);
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

static void write_used(struct json_writer *json, const struct tenant_record *tenant,
                       const struct tenant_figures *figures, int64_t jobs)
{
	const int64_t *now = figures->allocated.of;
	json_put_decimal(json, "current_gpus", now[AMOUNT_GPU], 3);
	json_put_integer(json, "current_gpu_memory", now[AMOUNT_GPU_MEMORY]);
	json_put_decimal(json, "current_cpu_cores", now[AMOUNT_CPU], 3);
	json_put_integer(json, "current_memory", now[AMOUNT_HOST] / MIB_BYTES);
	json_put_integer(json, "current_jobs", now[AMOUNT_JOBS]);
	json_put_integer(json, "waiting_jobs", figures->waiting_jobs);
	json_put_decimal(json, "fair_share_gpus", figures->fair[AMOUNT_GPU], 3);
	json_put_decimal(json, "total_gpu_hours", muldiv_down(figures->gpu_ms, 1000, HOUR_MILLI_MS),
	                 3);
	json_put_integer(json, "total_jobs", jobs);
	json_put_integer(json, "successful_jobs", tenant->jobs_completed);
	json_put_integer(json, "failed_jobs", tenant->jobs_failed);
	json_put_integer(json, "cancelled_jobs", tenant->jobs_cancelled);
	json_put_decimal(json, "total_cost", figures->cost, MONEY_DIGITS);
	json_put_decimal(json, "month_cost", figures->month_cost, MONEY_DIGITS);
}

void tenant_json_write(struct json_writer *json, const char *key,
                       const struct tenant_record *tenant, const struct tenant_figures *figures,
                       int64_t jobs)
{
	json_open_object(json, key);
	json_put_id(json, "id", ID_TENANT, tenant->id);
	json_put_string(json, "name", tenant->name);
	json_put_id(json, "parent_id", ID_TENANT, tenant->parent_id);
	write_payload(json, tenant->payload);
	write_set(json, tenant);
	write_used(json, tenant, figures, jobs);
	json_close(json);
}
