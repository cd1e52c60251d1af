/* wiring.c - settings as the engine and the service take them */
#include "server/wiring.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/settings/file.h"

#define DAY_MS INT64_C(86400000)
enum { KEY_BYTES_MAX = 65536, MIB = 1 << 20 };

static const char *or_null(const char *text)
{
	return *text ? text : NULL;
}

/* Which no other scheduler on the same database may have. */
static const char *name_of(struct config *config)
{
	char name[HOST_NAME_MAX + 1] = "";
	if (*config->database.name)
		return config->database.name;
	gethostname(name, sizeof(name) - 1);
	return arena_string(&config->arena, *name ? name : "scheduler");
}

static void make_engine(struct wiring *wiring, struct config *config)
{
	struct buffer directory = { 0 };
	buffer_print(&directory, "%s/journal", config->store.data_dir);
	wiring->journal =
	    (struct journal_options){ .directory = arena_string(&config->arena, directory.data),
		                      .file_bytes = config->store.journal_file_mb * MIB,
		                      .files = config->store.journal_files };
	buffer_free(&directory);
	wiring->redis = (struct redis_options){ .host = config->redis.host,
		                                .port = (int)config->redis.port,
		                                .password = or_null(config->redis.password),
		                                .database = (int)config->redis.db,
		                                .prefix = config->redis.prefix,
		                                .events_max = config->redis.events_max,
		                                .cache_s = config->redis.cache_s };
	wiring->engine = (struct engine_options){
		.store = { .database = config_database(config),
		           .name = name_of(config),
		           .lease_ms = config->database.lease_ms,
		           .timeout_ms = config->database.timeout_ms },
		.journal = config->store.journal ? &wiring->journal : NULL,
		.redis = *config->redis.host ? &wiring->redis : NULL,
		.retention = { .decisions_ms = config->store.decisions_days * DAY_MS,
		               .events_ms = config->store.events_days * DAY_MS,
		               .jobs_ms = config->store.jobs_days * DAY_MS,
		               .runs_ms = config->store.runs_days * DAY_MS },
		.pass_interval_ms = config->scheduler.scheduling_interval_ms,
		.clock_step_ms = config->scheduler.clock_step_ms,
		.clock_hold_ms = config->scheduler.clock_hold_ms,
	};
}

/* ID:ALGORITHM:FILE, as config_validate has seen it. */
static bool read_key(struct wiring *wiring, struct config *config, const char *entry,
                     struct error *error)
{
	char *id = arena_string(&config->arena, entry);
	char *algorithm = strchr(id, ':'), *file = algorithm ? strchr(algorithm + 1, ':') : NULL;
	INVARIANT(file);
	*algorithm++ = *file++ = '\0';
	struct buffer *material = &wiring->materials[wiring->key_count];
	wiring->keys[wiring->key_count].id = id;
	wiring->keys[wiring->key_count].algorithm = algorithm;
	wiring->key_count++;
	if (!file_read(file, KEY_BYTES_MAX, material, error))
		return false;
	/* Of a secret, the newline at its end is the editor's. */
	if (strcmp(algorithm, "HS256") == 0 && material->size > 0 &&
	    material->data[material->size - 1] == '\n')
		material->size--;
	buffer_text(material, "");
	wiring->keys[wiring->key_count - 1].material = material->data;
	return true;
}

static bool make_keys(struct wiring *wiring, struct config *config, struct error *error)
{
	size_t count = config->auth.jwt_keys.count + 1;
	wiring->keys = memory_zero(count, sizeof(*wiring->keys));
	wiring->materials = memory_zero(count, sizeof(*wiring->materials));
	for (size_t i = 0; i + 1 < count; i++)
		if (!read_key(wiring, config, config->auth.jwt_keys.at[i], error))
			return false;
	if (*config->auth.jwt_secret) {
		struct buffer *material = &wiring->materials[wiring->key_count];
		buffer_text(material, config->auth.jwt_secret);
		wiring->keys[wiring->key_count++] =
		    (struct gate_key){ .id = "", .algorithm = "HS256", .material = material->data };
	}
	if (*config->store.secret_keys) {
		wiring->secret_keys = secret_keys_read(config->store.secret_keys, error);
		return wiring->secret_keys != NULL;
	}
	return true;
}

static void make_notify(struct wiring *wiring, const struct config *config)
{
	wiring->notify = (struct notify_settings){
		.webhook = or_null(config->notifications.webhook),
		.secret = or_null(config->notifications.webhook_secret),
		.billing_webhook = or_null(config->notifications.billing_webhook),
		.billing_secret = or_null(config->notifications.billing_secret),
		.email = or_null(config->notifications.email),
		.smtp_host = or_null(config->notifications.smtp_host),
		.smtp_port = config->notifications.smtp_port,
		.smtp_user = or_null(config->notifications.smtp_user),
		.smtp_password = or_null(config->notifications.smtp_password),
		.smtp_from = or_null(config->notifications.smtp_from),
		.smtp_security = (enum smtp_security)config->notifications.smtp_security,
		.ca_path = or_null(config->notifications.ca_path),
		.queue_threshold = config->notifications.queue_threshold,
		.tries_max = config->notifications.tries,
		.allow_private = config->notifications.allow_private_addresses,
		.service_url = or_null(config->notifications.service_url),
	};
}

static const struct login_settings *make_login(struct wiring *wiring, const struct config *config)
{
	if (!*config->oidc.issuer)
		return NULL;
	wiring->login = (struct login_settings){
		.name = config->oidc.name,
		.issuer = config->oidc.issuer,
		.client_id = config->oidc.client_id,
		.client_secret = or_null(config->oidc.client_secret),
		.scopes = config->oidc.scopes,
		.redirect_url = or_null(config->oidc.redirect_url),
		.user_claim = config->oidc.user_claim,
		.groups_claim = config->oidc.groups_claim,
		.ca_path = or_null(config->oidc.ca_path),
		.groups = config->oidc.groups.at,
		.session_ms = config->oidc.session_hours * 3600000,
	};
	return &wiring->login;
}

static void make_service(struct wiring *wiring, const struct config *config)
{
	int64_t burst = config->api.rate_limit_burst;
	wiring->service = (struct service_settings){
		.gate = { .open = !config->auth.enable,
		          .hosts = config->api.allowed_hosts.at,
		          .origins = config->api.cors_origins.at,
		          .rate_per_s = config->api.rate_limit_rps,
		          .burst = burst > 0 ? burst : 2 * config->api.rate_limit_rps,
		          .keys = wiring->keys,
		          .key_count = wiring->key_count,
		          .audience = or_null(config->auth.jwt_audience),
		          .issuer = or_null(config->auth.jwt_issuer) },
		.sessions = config_to_policy(config),
		.advice = config_to_advice(config),
		.slot_addresses = config->agent.slot_addresses.at,
		.secret_keys = wiring->secret_keys,
		.check_possible = config->scheduler.check_possible,
		.direct_leases = config->models.direct_leases,
		.session_idle_ms = config->sessions.idle_minutes * 60000,
		.job_recipients = config->notifications.job_recipients,
		.job_recipients_only = config->notifications.job_recipients_only,
		.allow_private_webhooks = config->notifications.allow_private_addresses,
		.allow_unix_user = config->auth.enable || config->auth.allow_open_unix_user,
		.default_limit = config->api.page_size,
		.limit_max = config->api.page_size_max,
		.version = GPU_SCHEDULER_VERSION,
		.notify = &wiring->notify,
		.metrics_path = config->metrics.path,
		.login = make_login(wiring, config),
		.owners_only = config->auth.job_changes == 1,
	};
}

struct wiring *wiring_new(struct config *config, struct error *error)
{
	struct wiring *wiring = NEW(struct wiring);
	if (!make_keys(wiring, config, error)) {
		wiring_free(wiring);
		return NULL;
	}
	make_engine(wiring, config);
	make_notify(wiring, config);
	make_service(wiring, config);
	return wiring;
}

void wiring_free(struct wiring *wiring)
{
	if (!wiring)
		return;
	for (size_t i = 0; i < wiring->key_count; i++) {
		if (wiring->materials[i].data)
			explicit_bzero(wiring->materials[i].data, wiring->materials[i].size);
		buffer_free(&wiring->materials[i]);
	}
	free(wiring->materials);
	free(wiring->keys);
	secret_keys_free(wiring->secret_keys);
	free(wiring);
}
