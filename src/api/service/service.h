/* service.h - the service: what is behind the ports */
#ifndef API_SERVICE_SERVICE_H
#define API_SERVICE_SERVICE_H

#include "api/auth/gate.h"
#include "api/session/agents.h"
#include "seal/secret.h"

/* Single sign-on with a provider of OpenID Connect. Texts are copied. */
struct login_settings {
	const char *name; /* of the provider, for people */
	const char *issuer, *client_id;
	const char *client_secret; /* NULL: a public client */
	const char *scopes;        /* "openid profile groups" */
	const char *redirect_url;  /* NULL: no sign-in with a browser */
	const char *user_claim, *groups_claim;
	const char *ca_path;       /* NULL: the system's */
	const char *const *groups; /* GROUP=ROLE[:TENANT]; ends with NULL */
	int64_t session_ms;
};

/* All of the api for one loop. In the loop's thread alone. */
struct service;

struct service_settings {
	struct gate_settings gate;
	struct session_policy sessions;
	struct agents_advice advice;
	const char *const *slot_addresses;     /* see agents_settings */
	const struct secret_keys *secret_keys; /* NULL: secret_environment is refused */
	bool check_possible;                   /* refuse what could never run, unasked */
	bool allow_unix_user;                  /* tenants may be given Unix users */
	bool direct_leases;                    /* over REST; else gateways alone ask models */
	int64_t session_idle_ms;               /* interactive sessions end then; 0: never */
	bool owners_only;                      /* others of its tenant do not change a job */
	bool job_recipients;                   /* jobs may say who is told about them */
	const char *job_recipients_only;       /* of these domains and addresses; empty: any */
	bool allow_private_webhooks;           /* and webhooks in a private network */
	int64_t default_limit, limit_max;      /* of listings: 50, 1000 */
	const char *version;                   /* of the program */
	const struct notify_settings *notify;  /* NULL: no notifications */
	const char *metrics_path;              /* "/metrics" */
	const struct login_settings *login;    /* NULL: no single sign-on */
	/* Where tokens and other things that were kept are read from at the start. */
};

/* NULL with a reason. Sets the engine's listener. */
struct service *service_new(struct engine_port *port, const struct service_settings *settings,
                            struct error *error);
/* At the start, before the loop runs: restores what the store kept under a kind and a key. */
void service_load_kept(struct service *service, const struct kept *keep);
/* The engine leads: sessions begin. */
void service_begin(struct service *service);
/* Applies the settings that can change at run time: rates, origins, keys, notifications, settings
 * of agents. False: nothing changed. */
bool service_reload(struct service *service, const struct service_settings *settings,
                    struct error *error);
/* The loop is stopping: ends the streams of nodes and health watches, which would not end by
 * themselves. */
void service_stop(struct service *service);
void service_free(struct service *service);

/* For the listeners: REST, WebSocket and dashboard; gRPC; metrics alone. The first serves
 * gRPC too, and the second REST: one port is enough for those who want just one. */
const struct handler *service_http(struct service *service);
const struct handler *service_grpc(struct service *service);
const struct handler *service_metrics(struct service *service);

#endif
