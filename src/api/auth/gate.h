/* gate.h - admission of requests: hosts, origins, tokens, rates */
#ifndef API_AUTH_GATE_H
#define API_AUTH_GATE_H

#include "api/read/identity.h"
#include "wire/exchange.h"

struct gate;

/* Texts are copied. Lists end with NULL; a list that is NULL is empty. */
struct gate_settings {
	bool open;                  /* no sign-in: everyone is an administrator (loopback only) */
	const char *const *hosts;   /* allowed in Host, beside loopback names; empty: any where
	                               sign-in is required, loopback names where open */
	const char *const *origins; /* CORS: allowed in Origin, beside the same origin; "*": all */
	int64_t rate_per_s, burst;  /* of one client (identity, or address); 0: no limit */
	/* Keys of JWTs: each has a key id ("" matches tokens without), an algorithm that is
	 * fixed here (HS256, RS256, ES256, EdDSA) and a secret or a public key in PEM. */
	const struct gate_key {
		const char *id, *algorithm, *material;
	} * keys;
	size_t key_count;
	const char *audience, *issuer; /* required where not NULL */
};

/* NULL with a reason that never shows a secret. */
struct gate *gate_new(const struct gate_settings *settings, struct error *error);
/* Other settings from now on; tokens stay. False with a reason: nothing has changed. */
bool gate_reload(struct gate *gate, const struct gate_settings *settings, struct error *error);
void gate_free(struct gate *gate);

/* The tenants that credentials are for. Without them only "tenant-3" is understood in a
 * JWT, and every tenant is taken to exist. */
struct gate_tenants {
	int64_t (*find)(void *context, const char *name); /* 0: there is none such */
	bool (*exists)(void *context, int64_t id);
	void *context;
};
void gate_use_tenants(struct gate *gate, const struct gate_tenants *tenants);
struct roster;
void gate_use_roster(struct gate *gate, struct roster *roster);
/* Tenants have changed: no answer from before counts. */
void gate_forget(struct gate *gate);

/* Whether an identity that was let in still would be: its token exists, its key is
 * configured, it has not expired, its tenant exists. Otherwise `reason` says what changed. */
bool gate_admits(const struct gate *gate, const struct identity *identity, int64_t unix_ms,
                 const char **reason);

/* Sessions of this provider are let in, also by a cookie of this name, and those of others no
 * more. Without this call there are no sessions. The name is not copied. */
void gate_use_sessions(struct gate *gate, int64_t provider, const char *cookie);
/* The value of a request's cookie; data is NULL if there is none, or more than one. */
struct text gate_cookie(const struct exchange *exchange, const char *name);
/* The tenant that credentials name so, 0 for "". False: there is none. */
bool gate_find_tenant(const struct gate *gate, const char *name, int64_t *id);

struct failures *gate_failures(struct gate *gate);

/* Opaque API tokens, which the store keeps hashed under kind "token". */
struct gate_token {
	char id[32];
	char hash[65]; /* SHA-256, hexadecimal, of the token */
	struct identity identity;
	int64_t created_ms, expires_ms; /* 0: never */
	char note[128];
	/* Of a session by single sign-on: whose it is, and a number for the provider. Otherwise
	 * empty and 0. */
	char user[64];
	int64_t provider;
	/* Of what it asks models; 0: no limit. The budget in millionths of the currency. */
	int64_t requests_per_minute, tokens_per_minute, max_streams, budget_per_month;
};
void gate_put_token(struct gate *gate, const struct gate_token *token);
bool gate_remove_token(struct gate *gate, const char *id);
/* NULL: there is none. */
const struct gate_token *gate_find_token(const struct gate *gate, const char *id);
/* A new token, to be shown once: fills in id and hash. */
bool gate_make_token(struct gate_token *token, char text[96], struct error *error);
/* The JSON under which it is kept, and back. */
void gate_token_write(const struct gate_token *token, struct buffer *json);
bool gate_token_read(const char *json, struct gate_token *token, struct error *error);
size_t gate_tokens(const struct gate *gate, const struct gate_token *const **tokens);

/* Looks at Host, Origin, Authorization (or, for WebSockets, the subprotocol
 * "bearer.TOKEN") and the client's rate. False: refused, with the HTTP status, the code and
 * sentence for the client, and for 429 after how many seconds to try again. */
struct gate_refusal {
	int status;
	const char *code;
	char text[ERROR_TEXT_MAX];
	int64_t retry_after_s;
};
bool gate_check(struct gate *gate, const struct exchange *exchange, int64_t unix_ms,
                struct identity *identity, struct gate_refusal *refusal);
/* The origin to allow in the answer (that of the request), or NULL. For a preflight, which
 * has no sign-in, it is all that there is to ask. */
const char *gate_allowed_origin(const struct gate *gate, const struct exchange *exchange);

#endif
