/* notify.c - what people asked to be told: who, what, and until it has arrived */
#include "api/notify/notify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/notify/notify_local.h"
#include "api/notify/webhook.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/number_text.h"
#include "wire/text/json_writer.h"
#include "json/json_reader.h"

enum {
	TRIES_MAX = 12,
	RETRY_MS = 2000,
	RETRY_MS_MAX = 600000,
	TIMEOUT_MS = 10000,
	WAITING_MAX = 10000,
	LOOK_MS = 5000,
};

/* Something that is to be kept or forgotten; nobody waits for it. */
struct notify_request {
	struct engine_request engine; /* first: one pointer is the other */
	struct notify *notify;
};

static char *copy(const char *text)
{
	return text && text[0] ? memory_text(text) : NULL;
}

static void free_means(struct notify_means *means)
{
	free(means->webhook);
	free(means->secret);
	free(means->billing_webhook);
	free(means->billing_secret);
	free(means->email);
	free(means->smtp_host);
	free(means->smtp_user);
	free(means->smtp_password);
	free(means->smtp_from);
	free(means->ca_path);
	free(means->service_url);
}

static bool make_means(struct notify_means *means, const struct notify_settings *from,
                       struct error *error)
{
	struct webhook_url url;

	if (from->webhook && from->webhook[0] && !webhook_url_read(from->webhook, &url, error))
		return false;
	if (from->billing_webhook && from->billing_webhook[0] &&
	    !webhook_url_read(from->billing_webhook, &url, error))
		return false;
	if (from->email && from->email[0] && !smtp_address_check(from->email, error))
		return false;
	if (from->smtp_host && from->smtp_host[0] &&
	    (!from->smtp_from || !smtp_address_check(from->smtp_from, error)))
		return error_set(error, ERROR_INVALID,
		                 "e-mail needs an address that it comes from (smtp_from)");
	*means = (struct notify_means){
		.webhook = copy(from->webhook),
		.secret = copy(from->secret),
		.billing_webhook = copy(from->billing_webhook),
		.billing_secret = copy(from->billing_secret),
		.email = copy(from->email),
		.smtp_host = copy(from->smtp_host),
		.smtp_user = copy(from->smtp_user),
		.smtp_password = copy(from->smtp_password),
		.smtp_from = copy(from->smtp_from),
		.ca_path = copy(from->ca_path),
		.service_url = copy(from->service_url),
		.settings = *from,
	};
	return true;
}

/* In a thread of the courier. Means may change meanwhile, so this has its own. */
static bool notify_deliver(void *context, const struct parcel *parcel, struct error *error)
{
	struct notify *notify = context;
	struct notify_means means = { 0 };

	pthread_mutex_lock(&notify->lock);
	struct notify_settings settings = notify->means.settings;
	settings.webhook = settings.email = NULL;
	settings.secret = settings.billing_webhook = settings.billing_secret = NULL;
	settings.smtp_host = notify->means.smtp_host;
	settings.smtp_user = notify->means.smtp_user;
	settings.smtp_password = notify->means.smtp_password;
	settings.smtp_from = notify->means.smtp_from;
	settings.ca_path = notify->means.ca_path;
	bool ok = make_means(&means, &settings, error);
	pthread_mutex_unlock(&notify->lock);
	if (!ok)
		return false;
	if (parcel->webhook)
		ok = webhook_post(&(struct webhook){ .url = parcel->webhook,
		                                     .secret = parcel->secret,
		                                     .is_timed = parcel->is_billing,
		                                     .event = parcel->event,
		                                     .number = parcel->number,
		                                     .body = text_of(parcel->body),
		                                     .ca_path = means.ca_path,
		                                     .only_public = parcel->only_public,
		                                     .timeout_ms = TIMEOUT_MS,
		                                     .end_ms = parcel->end_ms },
		                  error);
	else if (!means.smtp_host)
		ok = error_set(error, ERROR_NOT_FOUND, "there is no mail server");
	else
		ok = smtp_send(&(struct smtp_mail){ .host = means.smtp_host,
		                                    .port = means.settings.smtp_port,
		                                    .security = means.settings.smtp_security,
		                                    .user = means.smtp_user,
		                                    .password = means.smtp_password,
		                                    .ca_path = means.ca_path,
		                                    .from = means.smtp_from,
		                                    .to = parcel->email,
		                                    .subject = parcel->subject,
		                                    .body = parcel->body,
		                                    .number = parcel->number,
		                                    .unix_ms = parcel->unix_ms,
		                                    .timeout_ms = TIMEOUT_MS,
		                                    .end_ms = parcel->end_ms },
		               error);
	free_means(&means);
	return ok;
}

static void notify_on_kept(struct engine_request *done)
{
	struct notify_request *request = (struct notify_request *)done;

	engine_pool_give_back(&request->notify->requests, request);
}

/* Keeps them together, or (`value` NULL) forgets them. */
static void notify_keep_all(struct notify *notify, const struct kept *keeps, size_t count)
{
	struct notify_request *request = engine_pool_take(&notify->requests);
	struct engine_request *engine = &request->engine;
	struct kept *all = arena_alloc(&engine->arena, count * sizeof(*all));

	request->notify = notify;
	for (size_t i = 0; i < count; i++)
		all[i] = (struct kept){ keeps[i].kind, arena_string(&engine->arena, keeps[i].key),
			                arena_string(&engine->arena, keeps[i].value) };
	engine->keeps = all;
	engine->keep_count = count;
	engine->patient = true;
	engine->done = notify_on_kept;
	engine_port_send(notify->port, engine);
}

/* Keeps a notification until it has arrived, or (`value` NULL) forgets it. */
static void notify_keep(struct notify *notify, int64_t number, const char *value)
{
	char key[32];

	snprintf(key, sizeof(key), "%018lld", (long long)number);
	notify_keep_all(notify, &(struct kept){ "notify", key, value }, 1);
}

static void on_over(void *context, struct parcel *parcel, const struct error *error)
{
	struct notify *notify = context;

	if (error && parcel->is_billing) { /* once more from the start, until somebody takes it */
		parcel->tries = 0;
		courier_put(notify->courier, parcel);
		return;
	}
	if (error)
		notify->failed++;
	else
		notify->delivered++;
	notify_keep(notify, parcel->number, NULL);
	parcel_free(parcel);
}

static void notify_on_timer(struct timer *timer)
{
	struct notify *notify =
	    (struct notify *)(void *)((char *)timer - offsetof(struct notify, timer));

	notify_look(notify);
	loop_timer_set(notify->loop, &notify->timer, LOOK_MS);
}

struct notify *notify_new(struct engine_port *port, const struct notify_settings *settings,
                          struct error *error)
{
	struct notify_means means;

	if (!make_means(&means, settings, error))
		return NULL;
	struct notify *notify = NEW(struct notify);
	notify->port = port;
	notify->requests.size = sizeof(struct notify_request);
	notify->loop = port->loop;
	notify->means = means;
	notify->timer = TIMER(notify_on_timer);
	pthread_mutex_init(&notify->lock, NULL);
	notify->courier = courier_start(&(struct courier_settings){
	    .loop = port->loop,
	    .tries_max = settings->tries_max > 0 ? settings->tries_max : TRIES_MAX,
	    .retry_ms = settings->retry_ms > 0 ? settings->retry_ms : RETRY_MS,
	    .retry_ms_max = RETRY_MS_MAX,
	    .deliver = notify_deliver,
	    .over = on_over,
	    .context = notify });
	return notify;
}

bool notify_reload(struct notify *notify, const struct notify_settings *settings,
                   struct error *error)
{
	struct notify_means means;

	if (!make_means(&means, settings, error))
		return false;
	pthread_mutex_lock(&notify->lock);
	free_means(&notify->means);
	notify->means = means;
	pthread_mutex_unlock(&notify->lock);
	return true;
}

static void free_tenant(struct notify_tenant *tenant)
{
	if (!tenant)
		return;
	free(tenant->webhook);
	free(tenant->email);
	free(tenant->secret);
	free(tenant->name);
	free(tenant);
}

void notify_free(struct notify *notify)
{
	if (!notify)
		return;
	bool has_ended = courier_stop(notify->courier);
	loop_timer_clear(notify->loop, &notify->timer);
	for (size_t i = 0; i < notify->tenants.capacity; i++)
		free_tenant(notify->tenants.entries[i].value);
	map_free(&notify->tenants);
	notify_conditions_free(notify);
	while (notify->loaded) {
		struct parcel *parcel = notify->loaded;
		notify->loaded = parcel->next;
		parcel_free(parcel);
	}
	engine_pool_free(&notify->requests, NULL);
	if (!has_ended)
		return; /* a delivery that hangs may still read the means */
	free_means(&notify->means);
	pthread_mutex_destroy(&notify->lock);
	free(notify);
}

/* What goes out is signed with the secret of whom it is for. */
static void notify_put(struct notify *notify, struct parcel *parcel)
{
	const struct notify_tenant *tenant =
	    parcel->tenant_id > 0 ? notify_tenant(notify, parcel->tenant_id) : NULL;

	if (parcel->is_billing)
		parcel->secret = copy(notify->means.billing_secret);
	else if (parcel->webhook && !parcel->is_unsigned)
		parcel->secret =
		    copy(tenant && tenant->secret ? tenant->secret : notify->means.secret);
	parcel->only_public = parcel->tenant_id > 0 && !notify->means.settings.allow_private;
	courier_put(notify->courier, parcel);
}

void notify_load(struct notify *notify, const char *key, const char *value)
{
	int64_t number = 0;
	number_read(text_of(key), 0, INT64_MAX, &number);
	struct parcel *parcel = notify_parcel_read(value, number);
	struct parcel **end = &notify->loaded;

	if (!parcel)
		return;
	/* In the order of their numbers, however they come. */
	while (*end && (*end)->number < parcel->number)
		end = &(*end)->next;
	parcel->next = *end;
	*end = parcel;
}

void notify_begin(struct notify *notify)
{
	notify->begun = true;
	notify->last_number = clock_unix_ms() * 1000;
	while (notify->loaded) {
		struct parcel *parcel = notify->loaded;
		notify->loaded = parcel->next;
		notify_put(notify, parcel);
	}
	loop_timer_set(notify->loop, &notify->timer, LOOK_MS);
}

struct notify_counters notify_counters(const struct notify *notify)
{
	return (struct notify_counters){ .delivered = notify->delivered,
		                         .failed = notify->failed,
		                         .dropped = notify->dropped,
		                         .waiting = courier_waiting(notify->courier) };
}

/* {"delivery":..,"event":..,"time":..,"message":..,"text":..} and the details. */
static char *webhook_body(int64_t number, const struct notify_message *message)
{
	struct buffer body = { 0 };
	struct json_writer json = json_writer_to(&body);

	json_open_object(&json, NULL);
	json_put_integer(&json, "delivery", number);
	json_put_string(&json, "event", message->event);
	json_put_time(&json, "time", message->unix_ms * 1000);
	json_put_string(&json, "message", message->sentence);
	/* What Slack, Mattermost and others show. */
	json_put_string(&json, "text", message->sentence);
	if (message->details && message->details->size > 0)
		json_put_raw(&json, message->about,
		             (struct text){ message->details->data, message->details->size });
	json_close(&json);
	buffer_text(&body, "");
	return body.data;
}

static void notify_send_to(struct notify *notify, int64_t tenant_id, const char *webhook,
                           const char *email, bool is_unsigned,
                           const struct notify_message *message)
{
	int64_t most = notify->means.settings.waiting_max;

	if (!webhook && !email)
		return;
	if (courier_waiting(notify->courier) >= (most > 0 ? most : WAITING_MAX)) {
		notify->dropped++;
		return;
	}
	struct parcel *parcel = NEW(struct parcel);
	struct buffer json = { 0 };
	parcel->number = ++notify->last_number;
	parcel->unix_ms = message->unix_ms;
	parcel->tenant_id = tenant_id;
	parcel->is_unsigned = is_unsigned;
	parcel->event = memory_text(message->event);
	if (webhook) {
		parcel->webhook = memory_text(webhook);
		parcel->body = webhook_body(parcel->number, message);
	} else {
		parcel->email = memory_text(email);
		parcel->subject = memory_text(message->subject);
		buffer_print(&json, "%s\n", message->sentence);
		if (notify->means.service_url)
			buffer_print(&json, "\n%s\n", notify->means.service_url);
		parcel->body = memory_text(json.data);
		buffer_clear(&json);
	}
	notify_parcel_write(parcel, &json);
	notify_keep(notify, parcel->number, json.data);
	buffer_free(&json);
	notify_put(notify, parcel);
}

bool notify_has_billing(const struct notify *notify)
{
	return notify && notify->begun && notify->means.billing_webhook;
}

bool notify_tell_billing(struct notify *notify, int64_t day, const char *body)
{
	struct buffer json = { 0 };
	char key[32], value[32];

	if (!notify_has_billing(notify))
		return false;
	struct parcel *parcel = NEW(struct parcel);
	parcel->number = ++notify->last_number;
	parcel->unix_ms = clock_unix_ms();
	parcel->is_billing = true;
	parcel->event = memory_text("billing.day");
	parcel->webhook = memory_text(notify->means.billing_webhook);
	parcel->body = memory_text(body);
	notify_parcel_write(parcel, &json);
	snprintf(key, sizeof(key), "%018lld", (long long)parcel->number);
	snprintf(value, sizeof(value), "%lld", (long long)day);
	notify_keep_all(
	    notify, (struct kept[]){ { "notify", key, json.data }, { "billing", "day", value } },
	    2);
	buffer_free(&json);
	notify_put(notify, parcel);
	return true;
}

static void notify_send(struct notify *notify, int64_t tenant_id, const char *webhook,
                        const char *email, const struct notify_message *message)
{
	notify_send_to(notify, tenant_id, webhook, email, false, message);
}

void notify_tell_recipient(struct notify *notify, int64_t tenant_id, enum notify_kind kind,
                           const char *recipient, const struct notify_message *message)
{
	const struct notify_tenant *tenant = notify_tenant(notify, tenant_id);
	bool is_url =
	    strncmp(recipient, "http://", 7) == 0 || strncmp(recipient, "https://", 8) == 0;
	const char *told = is_url ? tenant->webhook : tenant->email;

	/* The tenant's own receiver is told already. */
	if ((tenant->on & 1U << kind) && told && strcmp(told, recipient) == 0)
		return;
	if (is_url)
		notify_send_to(notify, tenant_id, recipient, NULL, true, message);
	else if (notify->means.smtp_host)
		notify_send_to(notify, tenant_id, NULL, recipient, false, message);
}

void notify_tell_tenant(struct notify *notify, int64_t tenant_id, enum notify_kind kind,
                        const struct notify_message *message)
{
	const struct notify_tenant *tenant = notify_tenant(notify, tenant_id);

	if (!(tenant->on & 1U << kind))
		return;
	notify_send(notify, tenant_id, tenant->webhook, NULL, message);
	if (notify->means.smtp_host)
		notify_send(notify, tenant_id, NULL, tenant->email, message);
}

void notify_tell_operator(struct notify *notify, const struct notify_message *message)
{
	notify_send(notify, 0, notify->means.webhook, NULL, message);
	if (notify->means.smtp_host)
		notify_send(notify, 0, NULL, notify->means.email, message);
}

/* Words of "notify_on". */
static unsigned read_kinds(const json_t *list)
{
	static const char *const words[NOTIFY_KINDS] = { "started",   "completed", "failed",
		                                         "cancelled", "preempted", "budget" };
	unsigned on = 0;

	if (!json_is_array(list))
		return ((1U << NOTIFY_KINDS) - 1) & ~(1U << NOTIFY_STARTED);
	for (size_t i = 0; i < json_array_size(list); i++)
		for (unsigned kind = 0; kind < NOTIFY_KINDS; kind++)
			if (json_is_string(json_array_get(list, i)) &&
			    strcmp(json_string_value(json_array_get(list, i)), words[kind]) == 0)
				on |= 1U << kind;
	return on;
}

static void notify_read_tenant(struct notify_tenant *tenant, const char *payload)
{
	struct error error;
	struct webhook_url url;
	json_t *document = json_read(text_of(payload), NULL, &error);
	const char *webhook = json_string_value(json_object_get(document, "notify_webhook"));
	const json_t *wants = json_object_get(document, "notify_email");
	const char *email = json_is_true(wants)
	                        ? json_string_value(json_object_get(document, "email"))
	                        : json_string_value(wants);

	if (webhook && webhook_url_read(webhook, &url, &error))
		tenant->webhook = copy(webhook);
	if (email && smtp_address_check(email, &error))
		tenant->email = copy(email);
	tenant->secret = copy(json_string_value(json_object_get(document, "notify_secret")));
	if (tenant->webhook || tenant->email)
		tenant->on = read_kinds(json_object_get(document, "notify_on"));
	json_decref(document);
}

const struct notify_tenant *notify_tenant(struct notify *notify, int64_t tenant_id)
{
	struct notify_tenant *tenant = map_get(&notify->tenants, tenant_id);
	struct catalogue *catalogue = notify->port->catalogue;

	if (tenant)
		return tenant;
	tenant = NEW(struct notify_tenant);
	catalogue_lock(catalogue);
	const struct tenant_record *record = catalogue_get(catalogue, RECORD_TENANT, tenant_id, 0);
	char *payload = record ? memory_text(record->payload) : NULL;
	tenant->name = memory_text(record ? record->name : "");
	catalogue_unlock(catalogue);
	if (payload)
		notify_read_tenant(tenant, payload);
	free(payload);
	map_put(&notify->tenants, tenant_id, tenant);
	return tenant;
}

void notify_forget_tenant(struct notify *notify, int64_t tenant_id)
{
	free_tenant(map_remove(&notify->tenants, tenant_id));
}
