/* config.h - what the scheduler is told before it starts: a file, and the environment */
#ifndef SERVER_CONFIG_H
#define SERVER_CONFIG_H

#include "api/session/agents.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/memory.h"
#include "core/record/record.h"
#include "node/session.h"
#include "wire/net/limits.h"
#include "wire/net/proxy.h"

/* Texts of a list, NULL behind the last. Never NULL itself. */
struct texts {
	const char *const *at;
	size_t count;
};

/* One member for each key, by section, as settings.c describes them. Texts are
 * never NULL: what is not given is empty. Decimals are thousandths. */
struct config {
	struct {
		int64_t scheduling_interval_ms, max_queue_size, max_queue_size_per_tenant,
		    default_priority, thermal_threshold, thermal_resume, ageing_per_minute,
		    ageing_cap, usage_half_life_hours, usage_influence, min_runtime_ms,
		    release_timeout_ms, gang_grace_ms, refuse_backoff_ms, grace_ms,
		    keep_finished_ms, predict_jobs, predict_experts, promise_jobs, promise_gpus,
		    foreign_tolerance_mb, search_pause_us, search_width, request_lease_ms,
		    clock_step_ms, clock_hold_ms, policy, consolidate, time_sharing,
		    sharing_wait_ms, sharing_turn_ms, foreign_requeues, loads_per_gpu, suspend,
		    suspend_host_percent, turn_wait_ms, slot_stay_ms, loading_percent,
		    sharing_delay_ms, suspend_wait_ms, deadline_risk_percent, quota_follow_days,
		    request_goal_ms;
		bool enable_preemption, enable_gang_scheduling, enable_thermal_aware,
		    enable_backfill, deadline_first, check_possible;
	} scheduler;
	struct {
		int64_t compute;
		bool mix_tenants;
	} sharing;
	struct {
		const char *host, *user, *password, *database, *sslmode, *path, *name;
		int64_t port, lease_ms, timeout_ms;
	} database;
	struct {
		const char *host, *password, *prefix;
		int64_t port, db, events_max, cache_s;
	} redis;
	struct {
		const char *listen, *tls_cert_path, *tls_key_path, *tls_client_ca_path;
		int64_t http_port, grpc_port, rate_limit_rps, rate_limit_burst, stop_grace_ms,
		    page_size, page_size_max, forwarded_header;
		bool enable_tls, allow_plaintext, proxy_protocol;
		struct texts cors_origins, allowed_hosts, trusted_proxies;
	} api;
	struct {
		const char *jwt_secret, *jwt_audience, *jwt_issuer;
		struct texts jwt_keys;
		bool enable, allow_open_network, allow_open_unix_user;
		int64_t job_changes;
	} auth;
	struct {
		const char *name, *issuer, *client_id, *client_secret, *scopes, *redirect_url,
		    *user_claim, *groups_claim, *ca_path;
		struct texts groups;
		int64_t session_hours;
	} oidc;
	struct {
		bool enable;
		int64_t port;
		const char *path;
	} metrics;
	struct {
		int64_t heartbeat_interval_ms, metrics_interval_ms, silent_ms, lease_ms, margin_ms,
		    standing_ms, resend_ms, starts_max, foreign_step_mb, container_runtime;
		struct texts slot_addresses;
	} agent;
	struct {
		bool direct_leases;
	} models;
	struct {
		int64_t idle_minutes;
	} sessions;
	struct {
		bool enable, kai_queues;
		const char *kubeconfig_path, *context, *default_tenant, *namespace;
		struct texts scheduler_names, tenants;
		int64_t force_release_ms, replace_ms;
	} kubernetes;
	struct {
		const char *data_dir;
		bool journal;
		int64_t journal_file_mb, journal_files, decisions_days, events_days, jobs_days,
		    runs_days;
		const char *secret_keys;
	} store;
	struct {
		const char *webhook, *webhook_secret, *email, *smtp_host, *smtp_user,
		    *smtp_password, *smtp_from, *ca_path, *service_url, *job_recipients_only,
		    *billing_webhook, *billing_secret;
		int64_t smtp_port, smtp_security, queue_threshold, tries;
		bool allow_private_addresses, job_recipients;
	} notifications;
	struct {
		int64_t body_bytes, connections, connections_per_address, connections_reserved,
		    held_bytes, held_bytes_per_connection, buffered_bytes, requests, head_ms,
		    body_ms, idle_ms, write_ms;
	} limits;
	struct {
		int64_t verbosity;
	} logging;

	struct place *places; /* where each setting was given, by its place in the table */
	const char *file;     /* empty: none */
	struct arena arena;
};

/* Where a setting was given: in a line of the file, or (line 0) by a variable of
 * the environment or an option, which `by` names. */
struct place {
	bool given;
	int line, column;
	const char *by;
	const char *value_file; /* a file of its own, in which the value is; NULL: there is none */
};

/* Every setting as it is where nothing is said. */
struct config *config_new(void);
void config_free(struct config *config);

/* Reads YAML of which `name` is the name for people. False with a reason that
 * begins with 'NAME:LINE:COLUMN: ' and says what to do; anything may have been
 * changed by then. */
bool config_read_yaml(struct config *config, const char *name, const char *text, size_t size,
                      struct error *error);
/* Like config_read_yaml(), from a file. */
bool config_read_file(struct config *config, const char *path, struct error *error);
/* Takes GPU_SCHEDULER_SECTION_KEY=value from an environment. What names a section
 * of ours and no key in it is refused; other variables are not ours. */
bool config_read_environment(struct config *config, char *const *environment, struct error *error);
/* Sets one from outside, such as an option of the command line, that is named in errors. */
bool config_set(struct config *config, const char *section, const char *key, const char *value,
                const char *by, struct error *error);

/* Whether the settings make sense together. Reads the files that secrets are in. */
bool config_validate(struct config *config, struct error *error);

/* Whether the setting was given, by whatever way. */
bool config_is_given(const struct config *config, const char *section, const char *key);
/* A reason that begins with where the setting was given. Returns false. */
bool config_refuse(const struct config *config, const char *section, const char *key,
                   struct error *error, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Settings that differ and do not take effect before the next start, as a text
 * with commas; empty if there are none. */
void config_differences(const struct config *before, const struct config *after,
                        struct buffer *text);

/* Settings that were given and have no effect: those of an earlier system, which are
 * taken so that its files can be used. The same form. */
void config_without_effect(const struct config *config, struct buffer *text);

/* Settings that are secrets and in a file that every user of the machine can read, with that
 * file, as a text with commas; empty if there are none. */
void config_exposed_secrets(const struct config *config, struct buffer *text);

/* What the parts of the scheduler are given. */
void config_to_record(const struct config *config, struct config_record *record);
struct session_policy config_to_policy(const struct config *config);
struct agents_advice config_to_advice(const struct config *config);
struct limits config_to_limits(const struct config *config);
/* In the arena of the config, which was validated. */
const struct proxies *config_to_proxies(struct config *config);
/* A path of SQLite or a connection of libpq, in the arena of the config. */
const char *config_database(struct config *config);
bool config_is_postgres(const struct config *config);
/* Whether only this machine can reach the service. */
bool config_is_loopback(const struct config *config);

#endif
