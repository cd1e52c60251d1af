/* settings.c - the table of all settings: what they are called, what they may be, what they mean */
#include "server/settings/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/spelling.h"
#include "core/record/config_range.h"
#include "core/record/record.h"

#define POLICY_NAME(symbol, name, ...) name,
#define POLICY_ALIAS(symbol, name, alias, ...) alias,
#define POLICY_HELP(symbol, name, alias, score, cached, traits, help) "; `" name "`: " help
static const char *const policies[] = { PLACEMENT_POLICIES(POLICY_NAME) NULL };
static const char *const policy_aliases[] = { PLACEMENT_POLICIES(POLICY_ALIAS) };
/* In the order of enum sharing_compute. */
static const char *const computes[] = { "none", "mps", NULL };
static const char *const suspends[] = { "auto", "always", "never", NULL };
static const char *const time_sharings[] = { "off", "attained_service", "predicted_service", NULL };
static const char *const consolidations[] = { "none", "checkpointed", "all", NULL };
static const char *const sslmodes[] = { "disable",   "allow",       "prefer", "require",
	                                "verify-ca", "verify-full", NULL };
static const char *const runtimes[] = { "auto", "none", "docker", "podman", "containerd", NULL };
/* In the order of enum forwarded_header. */
static const char *const forwarded_headers[] = { "none", "x-forwarded-for", "forwarded", NULL };
static const char *const job_changers[] = { "tenant", "owner", NULL };
static const char *const smtp_securities[] = { "starttls", "tls", "plain", NULL };

#define AT(section, key) #section, #key
#define IN(section, key) offsetof(struct config, section.key) /* NOLINT: a member has none */
#define FLAG(section, key, fallback, reloads, meaning)                                             \
	{ AT(section, key), SETTING_FLAG, IN(section, key), 0, 0, NULL, NULL,                      \
	  fallback,         reloads,      meaning },
#define INTEGER(section, key, least, most, fallback, reloads, meaning)                             \
	{ AT(section, key), SETTING_INTEGER, IN(section, key), least, most, NULL, NULL,            \
	  fallback,         reloads,         meaning },
/* With a range and a default of the core's: a RANGE_ of config_range.h, which is expanded
 * first. */
#define RANGED_OF(section, key, least, most, fallback, reloads, meaning)                           \
	INTEGER(section, key, least, most, #fallback, reloads, meaning)
#define RANGED(section, key, range, reloads, meaning)                                              \
	RANGED_OF(section, key, range, reloads, meaning)
#define DECIMAL(section, key, least, most, fallback, reloads, meaning)                             \
	{ AT(section, key),                                                                        \
	  SETTING_DECIMAL,                                                                         \
	  IN(section, key),                                                                        \
	  (least)*1000,                                                                            \
	  (most)*1000,                                                                             \
	  NULL,                                                                                    \
	  NULL,                                                                                    \
	  fallback,                                                                                \
	  reloads,                                                                                 \
	  meaning },
#define RANGED_DECIMAL_OF(section, key, least, most, fallback, reloads, meaning)                   \
	DECIMAL(section, key, least, most, #fallback, reloads, meaning)
#define RANGED_DECIMAL(section, key, range, reloads, meaning)                                      \
	RANGED_DECIMAL_OF(section, key, range, reloads, meaning)
#define ALIASED(section, key, words, aliases, fallback, reloads, meaning)                          \
	{ AT(section, key), SETTING_WORD, IN(section, key), 0,      0, words,                      \
	  aliases,          fallback,     reloads,          meaning },
#define WORD(section, key, words, fallback, reloads, meaning)                                      \
	ALIASED(section, key, words, NULL, fallback, reloads, meaning)
#define TEXT_OF(section, key, fallback, reloads, meaning)                                          \
	{ AT(section, key), SETTING_TEXT, IN(section, key), 0, 0, NULL, NULL,                      \
	  fallback,         reloads,      meaning },
#define CHOICE(section, key, words, meaning)                                                       \
	{ AT(section, key), SETTING_TEXT, IN(section, key), 0, 0, words, NULL, "", false, meaning },
#define SECRET(section, key, reloads, meaning)                                                     \
	{                                                                                          \
		AT(section, key), SETTING_SECRET, IN(section, key), 0, 0, NULL, NULL, "",          \
		reloads,          meaning                                                          \
	},
#define LIST(section, key, reloads, meaning)                                                       \
	{                                                                                          \
		AT(section, key), SETTING_LIST, IN(section, key), 0, 0, NULL, NULL, "",            \
		reloads,          meaning                                                          \
	},

#define DAY_MS INT64_C(86400000)
#define PORT_MAX 65535
#define LARGE INT64_C(1000000000000)

/* clang-format off */
const struct setting settings[] = {
	INTEGER(scheduler, scheduling_interval_ms, 0, 60000, "0", false,
	        "Minimum time between two scheduling passes. 0 runs a pass as soon as something changes; more batches changes")
	INTEGER(scheduler, max_queue_size, 1, LARGE, "2000000", true, "Waiting tasks of all jobs; more are refused with 503")
	INTEGER(scheduler, max_queue_size_per_tenant, 0, LARGE, "0", true, "Waiting jobs of one tenant; 0 is no limit")
	FLAG(scheduler, enable_preemption, "true", true, "Whether running jobs may be stopped for others")
	FLAG(scheduler, enable_gang_scheduling, "true", true, "Whether jobs with several tasks are accepted")
	FLAG(scheduler, enable_thermal_aware, "true", true, "Whether hot GPUs get no new work until they have cooled down")
	DECIMAL(scheduler, thermal_threshold, 0, 200, "0", true, "A GPU is hot from this temperature on, in degrees Celsius, rounded up; 0 is 5 degrees below the temperature at which its driver slows it down, or 75 where its node does not report that")
	DECIMAL(scheduler, thermal_resume, 0, 200, "0", true, "At this temperature it is cool again; 0 is 5 degrees below the threshold")
	RANGED(scheduler, default_priority, RANGE_DEFAULT_PRIORITY, true, "Priority of jobs that set none")
	ALIASED(scheduler, policy, policies, policy_aliases, POLICY_DEFAULT_NAME, true, "Where tasks are placed" PLACEMENT_POLICIES(POLICY_HELP))
	WORD(scheduler, time_sharing, time_sharings, "off", true, "Whether interruptible jobs (`checkpoint_enabled`) of one tenant and priority take turns: a job that has had clearly less GPU time (`attained_service`), or is predicted to need clearly less (`predicted_service`), displaces others")
	RANGED(scheduler, sharing_wait_ms, RANGE_SHARING_WAIT_MS, true, "With time sharing: a job that has waited this long goes before all others of its priority")
	RANGED(scheduler, sharing_turn_ms, RANGE_SHARING_TURN_MS, true, "With time sharing: such a job then runs this long before others may displace it")
	RANGED(scheduler, sharing_delay_ms, RANGE_SHARING_DELAY_MS, true, "With time sharing: a job waits this long for free GPUs before others are suspended, stopped or moved for it")
	WORD(scheduler, suspend, suspends, "auto", true, "Whether the GPU memory of jobs that do not say may go to host memory to make room: once a job of the same command and image came back on such a GPU (`auto`), always, or never")
	RANGED(scheduler, suspend_host_percent, RANGE_SUSPEND_HOST_PERCENT, true, "Most host memory of a node that suspended jobs may have for their GPU memory")
	RANGED(scheduler, suspend_wait_ms, RANGE_SUSPEND_WAIT_MS, true, "A job that the scheduler suspended waits this long for its GPUs, or as long as the work that it would lose took if that is longer; then it starts again in the queue")
	WORD(scheduler, consolidate, consolidations, "checkpointed", true, "Which running jobs may be moved to make room on one node")
	RANGED(scheduler, deadline_risk_percent, RANGE_DEADLINE_RISK_PERCENT, true, "A job that will miss its deadline with at least this chance is told so, and when that changes; 0: never")
	FLAG(scheduler, deadline_first, "false", true, "Whether such a job goes before the others of its priority in its tenant's queue")
	FLAG(scheduler, enable_backfill, "true", true, "Whether later jobs may start before a promised one if they do not delay it")
	FLAG(scheduler, check_possible, "false", true, "Whether a job that could never run on this cluster is refused (422) even if it does not request that check")
	RANGED(scheduler, ageing_per_minute, RANGE_AGEING_PER_MINUTE, true, "Priority points added for each minute of waiting")
	RANGED(scheduler, ageing_cap, RANGE_AGEING_CAP, true, "Most priority points that waiting adds")
	RANGED(scheduler, quota_follow_days, RANGE_QUOTA_FOLLOW_DAYS, true, "How often quotas of GPUs follow what tenants use, of tenants with quota_gpus_most; 0: never")
	RANGED(scheduler, usage_half_life_hours, RANGE_USAGE_HALF_LIFE_HOURS, true, "Half-life of past use, in hours")
	DECIMAL(scheduler, usage_influence, 0, 1, "0.5", true, "How strongly past use lowers a tenant's share of the GPUs that are not guaranteed to anyone")
	RANGED(scheduler, min_runtime_ms, RANGE_MIN_RUNTIME_MS, true, "No task is stopped for another before it has run this long")
	RANGED(scheduler, release_timeout_ms, RANGE_RELEASE_TIMEOUT_MS, true, "A release is late if its memory is not free after this time")
	RANGED(scheduler, gang_grace_ms, RANGE_GANG_GRACE_MS, true, "A gang with too few tasks left is stopped after this time")
	RANGED(scheduler, refuse_backoff_ms, RANGE_REFUSE_BACKOFF_MS, true, "Wait after a node refused a task; doubled each time")
	RANGED(scheduler, loads_per_gpu, RANGE_LOADS_PER_GPU, true, "How many models load onto one GPU at once. A load that takes much longer than loads of its model did no longer counts")
	RANGED(scheduler, request_goal_ms, RANGE_REQUEST_GOAL_MS, true, "Requests to models are to be served within this time. Models all of whose requests have waited longer are loaded after those that can still be in time, until it is their turn (`turn_wait_ms`); 0: in the order of arrival")
	RANGED(scheduler, turn_wait_ms, RANGE_TURN_WAIT_MS, true, "Once the oldest request of a model without a slot has waited this long, or three loads if that is longer, a busy slot of another model makes room for it: it takes no new requests, and goes when it has none")
	RANGED(scheduler, slot_stay_ms, RANGE_SLOT_STAY_MS, true, "A slot stays open for this long after it became ready, or for two loads if that is longer, whoever else waits")
	RANGED(scheduler, loading_percent, RANGE_LOADING_PERCENT, true, "Most of a GPU's time that is spent loading models in place of others")
	RANGED(scheduler, foreign_requeues, RANGE_FOREIGN_REQUEUES, true, "How often a job is queued again that failed while programs that nobody scheduled used GPU memory of its reservation; 0: it fails")
	RANGED(scheduler, grace_ms, RANGE_GRACE_MS, true, "Time between notice and kill when a task is stopped")
	RANGED(scheduler, keep_finished_ms, RANGE_RETENTION_MS, true, "How long a finished job stays in memory; after that it is read from the store")
	RANGED(scheduler, predict_jobs, RANGE_PREDICT_JOBS, true, "Run times are predicted from this many finished jobs, and up to twice as many; 0: not at all")
	RANGED(scheduler, predict_experts, RANGE_PREDICT_EXPERTS, true, "How many kinds of jobs durations are learned for; each takes 0.1 to 2 kB of memory")
	RANGED(scheduler, promise_jobs, RANGE_PROMISE_JOBS, true, "How many of the first waiting jobs get an expected start that others may not delay")
	RANGED_DECIMAL(scheduler, promise_gpus, RANGE_PROMISE_GPUS, true, "Jobs that request fewer GPUs get no promise")
	RANGED(scheduler, foreign_tolerance_mb, RANGE_FOREIGN_TOLERANCE_MIB, true, "MiB of external use that a GPU may have and still be given whole")
	RANGED(scheduler, search_pause_us, RANGE_SEARCH_PAUSE_US, true, "Pause after a search for victims without a result, for each job examined")
	RANGED(scheduler, search_width, RANGE_SEARCH_WIDTH, true, "Nodes to compare for one task before the best is chosen")
	INTEGER(scheduler, clock_step_ms, 100, DAY_MS, "5000", false, "A larger jump of the system clock is not followed at once: it is logged, and shown in `/health` and the metrics")
	INTEGER(scheduler, clock_hold_ms, 1000, DAY_MS, "60000", false, "A jump that lasts this long is followed: all times move with it, and no duration, age or bill changes")
	RANGED(scheduler, request_lease_ms, RANGE_LEASE_MS, true, "A request to a model ends if it is not renewed for this long")

	WORD(sharing, compute, computes, "none", true, "Whether parts of GPUs whose job requests no share of compute get one that equals their share of memory (`mps`), or take turns with others")
	FLAG(sharing, mix_tenants, "false", true, "Whether shares of one GPU's compute may go to several tenants at once. They are clients of one MPS server then, and an error of one tenant's program can end the others")

	TEXT_OF(database, host, "", false, "PostgreSQL server: a name, an address or the directory of its socket. Without it the store is one SQLite file")
	INTEGER(database, port, 0, PORT_MAX, "0", false, "0 is PostgreSQL's default, 5432")
	TEXT_OF(database, user, "", false, "")
	SECRET(database, password, false, "Preferably in a file, or in the environment")
	TEXT_OF(database, database, "", false, "Name of the database")
	CHOICE(database, sslmode, sslmodes, "Whether the connection is encrypted, as in libpq")
	TEXT_OF(database, path, "", false, "SQLite's file; if empty, `scheduler.db` in the data directory")
	TEXT_OF(database, name, "", false, "Name of this scheduler, unique on the database; if empty, the machine's name")
	INTEGER(database, lease_ms, 500, 600000, "2000", false, "A leader that is silent for this long is replaced by the standby")
	INTEGER(database, timeout_ms, 100, 600000, "5000", false, "A database that takes longer to answer counts as unreachable")

	TEXT_OF(redis, host, "", false, "A name, an address, or a socket's path. Without it nothing is sent to Redis")
	INTEGER(redis, port, 1, PORT_MAX, "6379", false, "")
	SECRET(redis, password, false, "")
	INTEGER(redis, db, 0, 1000000, "0", false, "Number of the database")
	TEXT_OF(redis, prefix, "gpu-scheduler", false, "Prefix of every key")
	INTEGER(redis, events_max, 100, LARGE, "100000", false, "Approximate number of events to keep in the stream")
	INTEGER(redis, cache_s, 1, DAY_MS, "300", false, "Lifetime of a cached row, in seconds")

	TEXT_OF(api, listen, "127.0.0.1", false, "The address to listen on. Any but a loopback address needs sign-in (`auth.enable`) and TLS (`api.enable_tls`)")
	INTEGER(api, http_port, 0, PORT_MAX, "8080", false, "REST, WebSocket and dashboard; 0 is any free port")
	INTEGER(api, grpc_port, 0, PORT_MAX, "9090", false, "gRPC; 0 is any free port")
	FLAG(api, enable_tls, "false", false, "")
	FLAG(api, allow_plaintext, "false", false, "Allows addresses other than loopback without TLS. Only for a network that nobody else can listen on, such as one between containers, or behind a proxy with TLS: tokens and secrets are sent in the clear")
	TEXT_OF(api, tls_cert_path, "", false, "PEM, the whole chain. Read again when it changes")
	TEXT_OF(api, tls_key_path, "", false, "PEM")
	TEXT_OF(api, tls_client_ca_path, "", false, "Clients must present a certificate signed by this authority")
	LIST(api, cors_origins, true, "Origins of web pages that may use the service, beside its own; `*` is all")
	LIST(api, allowed_hosts, true, "Host names of the service, beside loopback names; if empty, any is accepted where sign-in is required")
	LIST(api, trusted_proxies, false, "Addresses and networks (`10.0.0.0/8`) of proxies in front of the service. Client addresses are accepted from these only")
	FLAG(api, proxy_protocol, "false", false, "Whether those proxies begin each connection with a header of the PROXY protocol, version 1 or 2")
	WORD(api, forwarded_header, forwarded_headers, "x-forwarded-for", false, "The header by which those proxies name the client. They must set it or remove it")
	INTEGER(api, rate_limit_rps, 0, 1000000000, "0", true, "Requests per second of one client; 0 is no limit")
	INTEGER(api, rate_limit_burst, 0, 1000000000, "0", true, "Requests in a burst before the limit applies; 0 is twice the rate")
	INTEGER(api, stop_grace_ms, 0, 600000, "10000", true, "How long requests in flight may take when the service stops")
	INTEGER(api, page_size, 1, 100000, "50", true, "Default number of entries in a listing")
	INTEGER(api, page_size_max, 1, 100000, "1000", true, "Most entries in a listing")

	FLAG(auth, enable, "false", false, "Whether clients must sign in. Without it everyone is an administrator, so only a loopback address is allowed")
	FLAG(auth, allow_open_network, "false", false, "Allows addresses other than loopback without sign-in. Whoever reaches the service can then run programs on every node")
	FLAG(auth, allow_open_unix_user, "false", true, "Allows `unix_user` of tenants to be set without sign-in. Every local user and every job can then run programs as any of those users")
	SECRET(auth, jwt_secret, true, "Accepts JSON web tokens without a `kid` that are signed with it (HS256)")
	LIST(auth, jwt_keys, true, "Keys of JSON web tokens, each `ID:ALGORITHM:FILE`: the `kid`, HS256, RS256, ES256 or EdDSA, and a file with the secret or the public key in PEM")
	TEXT_OF(auth, jwt_audience, "", true, "The `aud` that a token must have; empty is any")
	TEXT_OF(auth, jwt_issuer, "", true, "The `iss` that a token must have; empty is any")

	WORD(auth, job_changes, job_changers, "tenant", true, "Who may cancel a job, change it or write to its standard input: everybody of its tenant and of those above it (`tenant`), or only the user who submitted it and administrators, also of the tenant (`owner`)")

	TEXT_OF(oidc, issuer, "", false, "The address of a provider of OpenID Connect, by which people sign in; empty is none. https://, or http:// on this machine")
	TEXT_OF(oidc, name, "single sign-on", false, "What the dashboard calls the provider")
	TEXT_OF(oidc, client_id, "", false, "What the provider calls this service")
	SECRET(oidc, client_secret, false, "The secret that goes with `client_id`; empty for a public client")
	TEXT_OF(oidc, redirect_url, "", false, "Where the provider sends browsers back to: `https://HOST/api/v1/login/callback`. Empty: people sign in by `gpu-cli login` alone")
	TEXT_OF(oidc, scopes, "openid profile groups", false, "What the provider is asked to tell")
	TEXT_OF(oidc, user_claim, "preferred_username", false, "The claim that names the user. Choose one that users cannot change themselves; with dots, a member of a claim")
	TEXT_OF(oidc, groups_claim, "groups", false, "The claim with the user's groups; with dots, a member of a claim, such as `realm_access.roles`")
	LIST(oidc, groups, false, "Who may sign in, each `GROUP=ROLE` or `GROUP=ROLE:TENANT`: the first that applies counts. The group `*` is everybody whom the provider lets in")
	TEXT_OF(oidc, ca_path, "", false, "Certificates to trust for the provider; empty is the system's")
	INTEGER(oidc, session_hours, 1, 720, "12", false, "How long a sign-in lasts")

	FLAG(metrics, enable, "true", false, "Whether metrics have a port of their own")
	INTEGER(metrics, port, 0, PORT_MAX, "9091", false, "0 is any free port")
	TEXT_OF(metrics, path, "/metrics", false, "")

	INTEGER(agent, heartbeat_interval_ms, 100, 600000, "1000", true, "How often agents measure and report, unless `--beat-ms` is given: at most half of `silent_ms` and of `lease_ms`")
	INTEGER(agent, metrics_interval_ms, 100, 600000, "1000", true, "How often agents report figures (utilization, power, what tasks used so far), unless `--metrics-ms` is given. Changes of memory, health and temperature are reported with the next heartbeat")
	WORD(agent, container_runtime, runtimes, "auto", true, "Runtime for images, unless `--container-runtime` is given: `auto` uses podman or docker, whichever is installed, `none` refuses tasks with an image, `containerd` is accepted for compatibility and means `auto`")
	INTEGER(agent, silent_ms, 1000, DAY_MS, "10000", false, "A node that is silent for this long is unknown")
	INTEGER(agent, lease_ms, 1000, DAY_MS, "30000", false, "How long a node may keep running tasks with `on_lease_loss: stop` without a scheduler")
	INTEGER(agent, margin_ms, 0, DAY_MS, "10000", false, "Margin for clocks that run unevenly and kills that take time")
	INTEGER(agent, standing_ms, 1000, DAY_MS, "10000", false, "A scheduler renews leases for this long after it last knew that it leads")
	INTEGER(agent, resend_ms, 100, DAY_MS, "3000", false, "An order that is not acknowledged for this long is sent again")
	INTEGER(agent, starts_max, 1, 10000, "32", false, "Most tasks and models that a node starts at once. The others wait until one of these runs, is refused or ends; tenants take turns")
	INTEGER(agent, foreign_step_mb, 0, 1000000, "64", false, "External use is reported again when it changes by more than this many MiB")
	LIST(agent, slot_addresses, false, "Hosts that nodes may announce for their slots, beside their own name and the address they connect from: host names, `*.DOMAIN`, IP addresses, networks such as `10.1.0.0/16`. For nodes behind NAT or a proxy")

	FLAG(models, direct_leases, "true", false, "Whether `POST /api/v1/models/ID/leases` gives addresses of slots with their keys; if not, models are asked through gateways alone")

	INTEGER(sessions, idle_minutes, 0, 10080, "0", true, "An interactive session ends after this time without input and output, and says so a minute before; 0 is never")

	FLAG(kubernetes, enable, "false", false, "Whether pods of a Kubernetes cluster that name this scheduler are scheduled")
	TEXT_OF(kubernetes, kubeconfig_path, "", false, "The kubeconfig with the cluster and the account; if empty, those of the pod that the scheduler runs in")
	TEXT_OF(kubernetes, context, "", false, "Context of the kubeconfig; if empty, its current one")
	LIST(kubernetes, scheduler_names, false, "Names under which pods ask for this scheduler (`spec.schedulerName`); if empty, `gpu-scheduler`")
	LIST(kubernetes, tenants, false, "Which namespaces may use which tenants, each `NAMESPACE=TENANT`; the first of a namespace is its default. A namespace that is not listed uses the tenant of its own name")
	TEXT_OF(kubernetes, default_tenant, "", false, "Tenant of namespaces that have no other; if empty, their pods wait")
	FLAG(kubernetes, kai_queues, "false", false, "Whether the labels `kai.scheduler/queue` and `runai/queue` name tenants that every namespace may use")
	INTEGER(kubernetes, force_release_ms, 0, DAY_MS, "60000", false, "A pod that was deleted by force counts as running for this long, and longer while its node is not ready")
	INTEGER(kubernetes, replace_ms, 0, DAY_MS, "300000", false, "An evicted pod keeps its place in the queue for this long, for the pod that its controller makes instead")
	TEXT_OF(kubernetes, namespace, "", false, "Has no effect; accepted for compatibility")

	TEXT_OF(store, data_dir, "data", false, "Directory of SQLite's file and the journal")
	FLAG(store, journal, "true", false, "Whether commands are recorded for diagnosis")
	INTEGER(store, journal_file_mb, 1, 100000, "64", false, "Size of one journal file, in MiB")
	INTEGER(store, journal_files, 1, 100000, "8", false, "Number of journal files to keep")
	INTEGER(store, decisions_days, 0, 100000, "30", false, "Days to keep decisions; 0 is forever")
	INTEGER(store, events_days, 0, 100000, "30", false, "Days to keep events; 0 is forever")
	INTEGER(store, jobs_days, 0, 100000, "0", false, "Days to keep finished jobs; 0 is forever")
	INTEGER(store, runs_days, 0, 100000, "0", false, "Days to keep runs, from which reports and bills are made; 0 is forever")
	SECRET(store, secret_keys, true, "Keys that seal `secret_environment`: `NAME:KEY` pairs, the key 32 bytes in base64; the first one seals, all open")

	TEXT_OF(notifications, webhook, "", true, "Operators' URL for notifications; empty is none")
	SECRET(notifications, webhook_secret, true, "Signs posts (HMAC-SHA256)")
	TEXT_OF(notifications, email, "", true, "Operators' mail address: lost nodes, hot or failing GPUs, a growing queue, tenants over budget")
	TEXT_OF(notifications, smtp_host, "", true, "Mail server; empty is no mail")
	INTEGER(notifications, smtp_port, 0, PORT_MAX, "0", true, "0 is 587 with starttls, 465 with tls, else 25")
	WORD(notifications, smtp_security, smtp_securities, "starttls", true, "Encryption of the connection: STARTTLS, TLS from the start, or none")
	TEXT_OF(notifications, smtp_user, "", true, "")
	TEXT_OF(notifications, billing_webhook, "", true, "Gets the billing export of each day after its end, in UTC")
	SECRET(notifications, billing_secret, true, "Signs these posts, with their time (HMAC-SHA256)")
	SECRET(notifications, smtp_password, true, "")
	TEXT_OF(notifications, smtp_from, "", true, "Sender of mail")
	TEXT_OF(notifications, ca_path, "", true, "Certificates to trust, in PEM; empty is the system's")
	INTEGER(notifications, queue_threshold, 0, LARGE, "0", true, "Operators are notified from this number of waiting jobs on; 0 is never")
	INTEGER(notifications, tries, 1, 1000, "12", true, "How often a delivery is tried, with growing pauses")
	FLAG(notifications, job_recipients, "true", true, "Whether a job may name mail addresses and webhooks that are told about it")
	TEXT_OF(notifications, job_recipients_only, "", true, "Domains and mail addresses that jobs may name, with commas between: example.org, ops@example.com; a domain includes those below it, for webhooks too. Empty is any")
	FLAG(notifications, allow_private_addresses, "false", true, "Whether tenants' webhooks may go to private addresses")
	TEXT_OF(notifications, service_url, "", true, "URL of the service, for links in notifications")

	INTEGER(limits, body_bytes, 1024, 1 << 30, "8388608", false, "Size of a request's body")
	INTEGER(limits, connections, 1, 1000000, "16384", false, "Simultaneous connections; more get 503")
	INTEGER(limits, connections_per_address, 1, 1000000, "4096", false, "Simultaneous connections of one address")
	INTEGER(limits, connections_reserved, 0, 1000000, "1024", false, "Connections that are reserved for each of HTTP, gRPC (agents) and this machine")
	INTEGER(limits, held_bytes, 1048576, LARGE, "268435456", false, "Memory of answers that clients have not read, over all connections")
	INTEGER(limits, held_bytes_per_connection, 65536, LARGE, "16777216", false, "Memory of answers that the client has not read, on one connection")
	INTEGER(limits, buffered_bytes, 1024, LARGE, "268435456", false, "Memory of requests that are being received or served")
	INTEGER(limits, requests, 1, 10000000, "65536", false, "Requests in flight")
	INTEGER(limits, head_ms, 100, 3600000, "10000", false, "Time for a client to send its headers")
	INTEGER(limits, body_ms, 100, 3600000, "300000", false, "Time for a client to send its body")
	INTEGER(limits, idle_ms, 100, 3600000, "75000", false, "Time that a connection may be idle")
	INTEGER(limits, write_ms, 100, 3600000, "30000", false, "Time that a client may read nothing, on a connection or an HTTP/2 stream")

	INTEGER(logging, verbosity, 0, 4, "2", true, "0 errors, 1 warnings, 2 starts and changes, 3 each request, 4 each step of each decision")
};
/* clang-format on */
const size_t setting_count = sizeof(settings) / sizeof(settings[0]);

static bool settings_is_named(const char *name, const char *text, size_t length)
{
	return strlen(name) == length && memcmp(name, text, length) == 0;
}

const struct setting *setting_find(const char *section, const char *key, size_t length)
{
	for (size_t i = 0; i < setting_count; i++)
		if (strcmp(settings[i].section, section) == 0 &&
		    settings_is_named(settings[i].key, key, length))
			return &settings[i];
	return NULL;
}

const struct setting *setting_find_given(const char *section, const char *key, bool *in_file)
{
	static const char suffix[] = "_file";
	size_t length = strlen(key), tail = sizeof(suffix) - 1;
	const struct setting *setting = setting_find(section, key, length);
	*in_file = false;
	if (setting || length <= tail || strcmp(key + length - tail, suffix) != 0)
		return setting;
	setting = setting_find(section, key, length - tail);
	*in_file = true;
	return setting && setting->kind == SETTING_SECRET ? setting : NULL;
}

bool setting_has_section(const char *section, size_t length)
{
	for (size_t i = 0; i < setting_count; i++)
		if (settings_is_named(settings[i].section, section, length))
			return true;
	return false;
}

/* No farther than a third of the name. */
static const char *nearest(const char *section, const char *name)
{
	const char *best = NULL;
	int least = (int)(strlen(name) / 3) + 2;
	for (size_t i = 0; i < setting_count; i++) {
		if (section && strcmp(settings[i].section, section) != 0)
			continue;
		const char *candidate = section ? settings[i].key : settings[i].section;
		int away = spelling_distance(name, candidate);
		if (away < least) {
			least = away;
			best = candidate;
		}
	}
	return best;
}

const char *setting_nearest_section(const char *name)
{
	return nearest(NULL, name);
}

const char *setting_nearest_key(const char *section, const char *name)
{
	return nearest(section, name);
}

static const char *type_name(const struct setting *setting)
{
	switch (setting->kind) {
	case SETTING_FLAG:
		return "true or false";
	case SETTING_INTEGER:
		return "whole number";
	case SETTING_DECIMAL:
		return "number";
	case SETTING_LIST:
		return "list of texts";
	case SETTING_SECRET:
		return "secret text";
	default:
		return "text";
	}
}

static void put_thousandths(struct buffer *text, int64_t value)
{
	buffer_print(text, "%lld", (long long)(value / 1000));
	if (value % 1000)
		buffer_print(text, ".%03lld", (long long)(value % 1000));
}

static void describe_range(struct buffer *text, const struct setting *setting)
{
	if (setting->words) {
		for (int i = 0; setting->words[i]; i++)
			buffer_print(text, "%s`%s`", i == 0 ? "" : ", ", setting->words[i]);
		return;
	}
	buffer_text(text, type_name(setting));
	if (setting->kind != SETTING_INTEGER && setting->kind != SETTING_DECIMAL)
		return;
	bool decimal = setting->kind == SETTING_DECIMAL;
	buffer_text(text, " from ");
	put_thousandths(text, setting->least * (decimal ? 1 : 1000));
	if (setting->most < LARGE) {
		buffer_text(text, " to ");
		put_thousandths(text, setting->most * (decimal ? 1 : 1000));
	}
}

void settings_describe(struct buffer *text)
{
	for (size_t i = 0; i < setting_count; i++) {
		const struct setting *setting = &settings[i];
		if (i == 0 || strcmp(setting->section, settings[i - 1].section) != 0)
			buffer_print(text,
			             "%s### %s\n\n| key | value | default | SIGHUP | meaning |\n"
			             "|---|---|---|---|---|\n",
			             i == 0 ? "" : "\n", setting->section);
		buffer_print(text, "| `%s` | ", setting->key);
		describe_range(text, setting);
		buffer_print(text, " | %s%s%s | %s | %s |\n", *setting->fallback ? "`" : "",
		             setting->fallback, *setting->fallback ? "`" : "",
		             setting->reloads ? "yes" : "", setting->meaning);
	}
}
