/* config_use.c - settings checked together, and as the parts of the scheduler take them */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/notify/webhook.h"
#include "core/record/heat.h"
#include "server/settings/config.h"
#include "server/settings/settings.h"

enum { HOUR_MS = 3600 * 1000 };

static int64_t whole_degrees(int64_t thousandths)
{
	return (thousandths + 999) / 1000;
}

void config_to_record(const struct config *config, struct config_record *record)
{
	int64_t hot_c = whole_degrees(config->scheduler.thermal_threshold);
	int64_t cool_c = whole_degrees(config->scheduler.thermal_resume);
	record->policy = (int32_t)config->scheduler.policy;
	record->enable_preemption = config->scheduler.enable_preemption;
	record->enable_gangs = config->scheduler.enable_gang_scheduling;
	record->enable_thermal = config->scheduler.enable_thermal_aware;
	record->enable_consolidation = config->scheduler.consolidate > 0;
	record->enable_backfill = config->scheduler.enable_backfill;
	record->move_any_job = config->scheduler.consolidate == 2;
	record->queue_max = config->scheduler.max_queue_size;
	record->tenant_queue_max = config->scheduler.max_queue_size_per_tenant > 0
	                               ? config->scheduler.max_queue_size_per_tenant
	                               : UNLIMITED;
	record->default_priority = (int32_t)config->scheduler.default_priority;
	record->ageing_per_minute = config->scheduler.ageing_per_minute;
	record->ageing_cap = config->scheduler.ageing_cap;
	record->thermal_threshold_c = hot_c;
	if (cool_c == 0 && hot_c > 0)
		cool_c = max64(hot_c - HEAT_MARGIN_C, 0);
	record->thermal_resume_c = cool_c;
	record->usage_half_life_ms = config->scheduler.usage_half_life_hours * HOUR_MS;
	record->usage_influence = config->scheduler.usage_influence;
	record->min_runtime_ms = config->scheduler.min_runtime_ms;
	record->release_timeout_ms = config->scheduler.release_timeout_ms;
	record->gang_grace_ms = config->scheduler.gang_grace_ms;
	record->refuse_backoff_ms = config->scheduler.refuse_backoff_ms;
	record->grace_ms = config->scheduler.grace_ms;
	record->retention_ms = config->scheduler.keep_finished_ms;
	record->predict_jobs = config->scheduler.predict_jobs;
	record->predict_experts = config->scheduler.predict_experts;
	record->promise_jobs = config->scheduler.promise_jobs;
	record->promise_gpus = config->scheduler.promise_gpus;
	record->foreign_tolerance_mib = config->scheduler.foreign_tolerance_mb;
	record->search_pause_us = config->scheduler.search_pause_us;
	record->search_width = config->scheduler.search_width;
	record->time_sharing = (int32_t)config->scheduler.time_sharing;
	record->sharing_wait_ms = config->scheduler.sharing_wait_ms;
	record->sharing_turn_ms = config->scheduler.sharing_turn_ms;
	record->sharing_delay_ms = config->scheduler.sharing_delay_ms;
	record->sharing_compute = (int32_t)config->sharing.compute;
	record->sharing_mixed = config->sharing.mix_tenants;
	record->suspend_wait_ms = config->scheduler.suspend_wait_ms;
	record->deadline_risk = 10 * config->scheduler.deadline_risk_percent;
	record->quota_follow_ms = config->scheduler.quota_follow_days * 24 * HOUR_MS;
	record->deadline_first = config->scheduler.deadline_first;
	record->suspend = (int32_t)config->scheduler.suspend;
	record->suspend_host = 10 * config->scheduler.suspend_host_percent;
	record->lease_ms = config->scheduler.request_lease_ms;
	record->loads_per_gpu = config->scheduler.loads_per_gpu;
	record->request_goal_ms = config->scheduler.request_goal_ms;
	record->turn_wait_ms = config->scheduler.turn_wait_ms;
	record->slot_stay_ms = config->scheduler.slot_stay_ms;
	record->loading = 10 * config->scheduler.loading_percent;
	record->foreign_requeues = config->scheduler.foreign_requeues;
}

struct session_policy config_to_policy(const struct config *config)
{
	struct session_policy policy = session_policy_default();
	struct config_record record = config_default();
	config_to_record(config, &record);
	policy.silent_ms = config->agent.silent_ms;
	policy.lease_ms = config->agent.lease_ms;
	policy.grace_ms = config->scheduler.grace_ms;
	policy.margin_ms = config->agent.margin_ms;
	policy.standing_ms = config->agent.standing_ms;
	policy.resend_ms = config->agent.resend_ms;
	policy.starts_max = config->agent.starts_max;
	policy.foreign_step_mib = config->agent.foreign_step_mb;
	policy.hot_c = record.thermal_threshold_c;
	policy.cool_c = record.thermal_resume_c;
	return policy;
}

/* Heartbeats must arrive, and leases be renewed, before either expires. */
static int64_t heartbeat_most_ms(const struct config *config)
{
	return min64(config->agent.silent_ms, config->agent.lease_ms) / 2;
}

struct agents_advice config_to_advice(const struct config *config)
{
	/* By the words of the setting; containerd has nothing of its own here. */
	static const char *const runtimes[] = { "auto", "none", "docker", "podman", "auto" };

	return (struct agents_advice){
		.heartbeat_ms =
		    min64(config->agent.heartbeat_interval_ms, heartbeat_most_ms(config)),
		.metrics_ms = config->agent.metrics_interval_ms,
		.container_runtime = runtimes[config->agent.container_runtime],
		.sign_in = config->auth.enable,
	};
}

struct limits config_to_limits(const struct config *config)
{
	struct limits limits = limits_default();
	limits.body_bytes = (size_t)config->limits.body_bytes;
	limits.connections = (size_t)config->limits.connections;
	limits.connections_per_address = (size_t)config->limits.connections_per_address;
	limits.connections_reserved = (size_t)config->limits.connections_reserved;
	limits.held_bytes = (size_t)config->limits.held_bytes;
	limits.held_bytes_per_connection = (size_t)config->limits.held_bytes_per_connection;
	limits.buffered_bytes = (size_t)config->limits.buffered_bytes;
	limits.exchanges = (size_t)config->limits.requests;
	limits.head_ms = config->limits.head_ms;
	limits.body_ms = config->limits.body_ms;
	limits.idle_ms = config->limits.idle_ms;
	limits.write_ms = config->limits.write_ms;
	return limits;
}

const struct proxies *config_to_proxies(struct config *config)
{
	const struct texts *texts = &config->api.trusted_proxies;
	struct proxies *proxies = arena_alloc(&config->arena, sizeof(*proxies));
	struct ip_network *networks =
	    arena_alloc(&config->arena, (texts->count + 1) * sizeof(*networks));
	struct error error;
	*proxies =
	    (struct proxies){ .networks = networks,
		              .count = texts->count,
		              .send_header = config->api.proxy_protocol,
		              .forwarded = (enum forwarded_header)config->api.forwarded_header };
	for (size_t i = 0; i < texts->count; i++)
		if (!network_read(texts->at[i], &networks[i], &error))
			panic("%s", error.text);
	return proxies;
}

static bool check_proxies(const struct config *config, struct error *error)
{
	struct ip_network network;
	struct error reason = { 0 };
	for (size_t i = 0; i < config->api.trusted_proxies.count; i++)
		if (!network_read(config->api.trusted_proxies.at[i], &network, &reason))
			return config_refuse(config, "api", "trusted_proxies", error,
			                     "is wrong: %s", reason.text);
	if (config->api.proxy_protocol && config->api.trusted_proxies.count == 0)
		return config_refuse(config, "api", "proxy_protocol", error,
		                     "needs api.trusted_proxies: the addresses of the proxies");
	return true;
}

bool config_is_postgres(const struct config *config)
{
	return *config->database.host != '\0';
}

/* A value of libpq's key words. */
static void connection_put_value(struct buffer *text, const char *key, const char *value)
{
	if (!*value)
		return;
	buffer_print(text, "%s%s='", text->size > 0 ? " " : "", key);
	for (; *value; value++) {
		if (*value == '\'' || *value == '\\')
			buffer_bytes(text, "\\", 1);
		buffer_bytes(text, value, 1);
	}
	buffer_text(text, "'");
}

const char *config_database(struct config *config)
{
	struct buffer text = { 0 };
	char port[24] = "";
	if (config_is_postgres(config)) {
		if (config->database.port > 0)
			snprintf(port, sizeof(port), "%lld", (long long)config->database.port);
		connection_put_value(&text, "host", config->database.host);
		connection_put_value(&text, "port", port);
		connection_put_value(&text, "user", config->database.user);
		connection_put_value(&text, "password", config->database.password);
		connection_put_value(&text, "dbname", config->database.database);
		connection_put_value(&text, "sslmode", config->database.sslmode);
	} else if (*config->database.path) {
		buffer_text(&text, config->database.path);
	} else {
		buffer_print(&text, "%s/scheduler.db", config->store.data_dir);
	}
	const char *database = arena_string(&config->arena, text.data);
	explicit_bzero(text.data, text.size);
	buffer_free(&text);
	return database;
}

static void add_exposed(struct buffer *text, const char *section, const char *key, const char *path)
{
	struct stat status;

	if (*path && stat(path, &status) == 0 && (status.st_mode & S_IROTH))
		buffer_print(text, "%s%s.%s in %s", text->size > 0 ? ", " : "", section, key, path);
}

void config_exposed_secrets(const struct config *config, struct buffer *text)
{
	for (size_t i = 0; i < setting_count; i++) {
		const struct place *place = &config->places[i];
		if (settings[i].kind != SETTING_SECRET || !place->given)
			continue;
		if (place->value_file)
			add_exposed(text, settings[i].section, settings[i].key, place->value_file);
		else if (place->line > 0)
			add_exposed(text, settings[i].section, settings[i].key, config->file);
	}
	for (size_t i = 0; i < config->auth.jwt_keys.count; i++) {
		const char *secret = strstr(config->auth.jwt_keys.at[i], ":HS256:");
		if (secret)
			add_exposed(text, "auth", "jwt_keys", secret + strlen(":HS256:"));
	}
	add_exposed(text, "api", "tls_key_path", config->api.tls_key_path);
}

bool config_is_loopback(const struct config *config)
{
	struct in_addr four;
	struct in6_addr six;
	if (inet_pton(AF_INET, config->api.listen, &four) == 1)
		return ntohl(four.s_addr) >> 24 == 127;
	return inet_pton(AF_INET6, config->api.listen, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

/* What is listened on beyond this machine is protected, unless that was waived. */
static bool check_reach(const struct config *config, struct error *error)
{
	struct buffer exposed = { 0 };

	if (config_is_loopback(config))
		return true;
	if (!config->auth.enable && !config->auth.allow_open_network)
		return config_refuse(
		    config, "api", "listen", error,
		    "is %.60s, which others can reach: set auth.enable to true "
		    "(and make a token by 'gpu-scheduler token create'), or "
		    "listen on 127.0.0.1; auth.allow_open_network lets everyone in",
		    config->api.listen);
	if (!config->api.enable_tls && !config->api.allow_plaintext)
		return config_refuse(config, "api", "listen", error,
		                     "is %.60s, which others can reach, and tokens would pass in "
		                     "the clear: set api.enable_tls to true, or listen on "
		                     "127.0.0.1 behind a proxy; api.allow_plaintext allows it",
		                     config->api.listen);
	config_exposed_secrets(config, &exposed);
	bool ok = exposed.size == 0 ||
	          error_set(error, ERROR_INVALID,
	                    "every user of this machine can read %s: chmod 640", exposed.data);
	buffer_free(&exposed);
	return ok;
}

static bool check_listening(const struct config *config, struct error *error)
{
	struct in6_addr address;
	if (inet_pton(AF_INET, config->api.listen, &address) != 1 &&
	    inet_pton(AF_INET6, config->api.listen, &address) != 1)
		return config_refuse(config, "api", "listen", error,
		                     "is '%.60s': write an IPv4 or IPv6 address, such as 0.0.0.0",
		                     config->api.listen);
	if (!check_reach(config, error))
		return false;
	const struct {
		const char *key;
		int64_t port;
	} ports[] = { { "http_port", config->api.http_port },
		      { "grpc_port", config->api.grpc_port },
		      { "", config->metrics.enable ? config->metrics.port : 0 } };
	for (int i = 0; i < 3; i++)
		for (int j = 0; j < i; j++)
			if (ports[i].port > 0 && ports[i].port == ports[j].port)
				return config_refuse(config, "api", ports[j].key, error,
				                     "is %lld, and so is another port: give "
				                     "each its own",
				                     (long long)ports[j].port);
	return true;
}

static bool check_tls(const struct config *config, struct error *error)
{
	const char *const keys[] = { "tls_cert_path", "tls_key_path" };
	const char *const paths[] = { config->api.tls_cert_path, config->api.tls_key_path };
	for (int i = 0; config->api.enable_tls && i < 2; i++) {
		if (!*paths[i])
			return config_refuse(config, "api", keys[i], error,
			                     "is missing: api.enable_tls needs it");
		if (access(paths[i], R_OK) != 0)
			return config_refuse(config, "api", keys[i], error,
			                     "is %.100s, which cannot be read", paths[i]);
	}
	return true;
}

/* An entry is ID:ALGORITHM:FILE. */
static bool check_keys(const struct config *config, struct error *error)
{
	static const char *const algorithms[] = { "HS256", "RS256", "ES256", "EdDSA" };
	for (size_t i = 0; i < config->auth.jwt_keys.count; i++) {
		const char *entry = config->auth.jwt_keys.at[i];
		const char *algorithm = strchr(entry, ':');
		const char *file = algorithm ? strchr(algorithm + 1, ':') : NULL;
		bool known = false;
		for (int j = 0; file && j < 4; j++)
			known = known || ((size_t)(file - algorithm - 1) == 5 &&
			                  memcmp(algorithm + 1, algorithms[j], 5) == 0);
		if (!known)
			return config_refuse(config, "auth", "jwt_keys", error,
			                     "has '%.60s': write ID:ALGORITHM:FILE, the algorithm "
			                     "HS256, RS256, ES256 or EdDSA",
			                     entry);
		if (access(file + 1, R_OK) != 0)
			return config_refuse(config, "auth", "jwt_keys", error,
			                     "names the file %.100s, which cannot be read",
			                     file + 1);
	}
	return true;
}

/* Single sign-on needs sign-in, and to know whom it lets in. */
static bool check_login(const struct config *config, struct error *error)
{
	if (!*config->oidc.issuer)
		return true;
	if (!config->auth.enable)
		return config_refuse(config, "oidc", "issuer", error, "needs auth.enable");
	if (!*config->oidc.client_id)
		return config_refuse(config, "oidc", "client_id", error,
		                     "is missing: oidc.issuer needs it");
	if (config->oidc.groups.count == 0)
		return config_refuse(config, "oidc", "groups", error,
		                     "is empty: nobody could sign in");
	if (*config->oidc.ca_path && access(config->oidc.ca_path, R_OK) != 0)
		return config_refuse(config, "oidc", "ca_path", error,
		                     "is %.100s, which cannot be read", config->oidc.ca_path);
	return true;
}

static bool check_database(const struct config *config, struct error *error)
{
	const char *const keys[] = { "user", "password", "database", "sslmode" };
	const char *const values[] = { config->database.user, config->database.password,
		                       config->database.database, config->database.sslmode };
	for (int i = 0; !config_is_postgres(config) && i < 4; i++)
		if (*values[i])
			return config_refuse(config, "database", keys[i], error,
			                     "is given without database.host: give that too, or "
			                     "leave all of it out and the store is one SQLite "
			                     "file");
	if (config_is_postgres(config) && *config->database.path)
		return config_refuse(config, "database", "path", error,
		                     "is SQLite's, and database.host PostgreSQL's: remove one");
	return true;
}

static bool check_heartbeat(const struct config *config, struct error *error)
{
	bool silent = config->agent.silent_ms <= config->agent.lease_ms;

	if (!config_is_given(config, "agent", "heartbeat_interval_ms") ||
	    config->agent.heartbeat_interval_ms <= heartbeat_most_ms(config))
		return true;
	return config_refuse(
	    config, "agent", "heartbeat_interval_ms", error,
	    "is %lld: it may be at most half of agent.%s, which is %lld",
	    (long long)config->agent.heartbeat_interval_ms, silent ? "silent_ms" : "lease_ms",
	    (long long)(silent ? config->agent.silent_ms : config->agent.lease_ms));
}

static bool check_webhook(const struct config *config, struct error *error)
{
	const char *url = config->notifications.webhook;
	struct webhook_url parts;
	struct error reason = { 0 };

	return !*url || webhook_url_read(url, &parts, &reason) ||
	       config_refuse(config, "notifications", "webhook", error,
	                     "is no address to post to: %s", reason.text);
}

static bool check_slot_addresses(const struct config *config, struct error *error)
{
	struct error reason;

	for (size_t i = 0; i < config->agent.slot_addresses.count; i++)
		if (!address_check_rule(config->agent.slot_addresses.at[i], &reason))
			return config_refuse(config, "agent", "slot_addresses", error, "has %s",
			                     reason.text);
	return true;
}

bool config_validate(struct config *config, struct error *error)
{
	struct config_record record = config_default();
	struct error reason;
	struct limits limits = config_to_limits(config);
	config_to_record(config, &record);
	if (!config_check(&record, &reason))
		return error_set(error, ERROR_INVALID, "%s%sscheduler: %s", config->file,
		                 *config->file ? ": " : "", reason.text);
	if (!limits_check(&limits, &reason))
		return error_set(error, ERROR_INVALID, "%s%slimits: %s", config->file,
		                 *config->file ? ": " : "", reason.text);
	if (config->api.page_size > config->api.page_size_max)
		return config_refuse(config, "api", "page_size", error,
		                     "is more than api.page_size_max, %lld",
		                     (long long)config->api.page_size_max);
	if (*config->metrics.path != '/')
		return config_refuse(config, "metrics", "path", error, "must begin with '/'");
	return check_listening(config, error) && check_tls(config, error) &&
	       check_keys(config, error) && check_login(config, error) &&
	       check_database(config, error) && check_heartbeat(config, error) &&
	       check_slot_addresses(config, error) && check_webhook(config, error) &&
	       check_proxies(config, error);
}
