/* gate_sign_in.c - who a credential is for, and how often it may be wrong */
#include <stdio.h>
#include <stdlib.h>

#include "api/auth/gate_local.h"
#include "api/auth/origin.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/number_text.h"

/* Whoever fails is answered 401, and 429 after this many failures from an address. That
 * alone must not keep others at the same address out, who may share a proxy with it: a good
 * credential is let in however many bad ones came before it.
 *
 * Looking up an API token or checking an HMAC costs no more than reading the request. The
 * signature of a public key costs much more, so it is only checked while its connection, its
 * address or its account has failures left. An account has its own once a token of it was
 * found good. So forged signatures cost at most what opening connections costs anyway, and
 * use up nothing that a client on another connection depends on. */
enum { ADDRESS_PER_S = 100, ADDRESS_BURST = 200, ADDRESSES_MAX = 4096 };
enum { CONNECTION_PER_S = 2, CONNECTION_BURST = 8, CONNECTIONS_MAX = 16384 };
enum { ACCOUNT_PER_S = 2, ACCOUNT_BURST = 8, ACCOUNTS = 4096 };
#define ACCOUNT_MS INT64_C(86400000)
/* A JWT that was found good is not checked again for this long. */
enum { REMEMBERED = 8192, REMEMBER_MS = 600000 };

void gate_sign_in_begin(struct gate *gate)
{
	gate->by_address = rates_new(ADDRESS_PER_S, ADDRESS_BURST, ADDRESSES_MAX);
	gate->by_connection = rates_new(CONNECTION_PER_S, CONNECTION_BURST, CONNECTIONS_MAX);
	gate->by_account = rates_new(ACCOUNT_PER_S, ACCOUNT_BURST, ACCOUNTS);
	gate->remembered = memory_zero(REMEMBERED, sizeof(*gate->remembered));
	gate->accounts = memory_zero(ACCOUNTS, sizeof(*gate->accounts));
	gate->failures = failures_new();
}

void gate_sign_in_end(struct gate *gate)
{
	rates_free(gate->by_address);
	rates_free(gate->by_connection);
	rates_free(gate->by_account);
	free(gate->remembered);
	free(gate->accounts);
	failures_free(gate->failures);
}

struct failures *gate_failures(struct gate *gate)
{
	return gate->failures;
}

void gate_forget(struct gate *gate)
{
	gate->generation++;
}

/* What a WebSocket in a browser can send instead of a header. */
static struct text protocol_token(const struct exchange *exchange)
{
	struct text list = headers_get(&exchange->headers, "sec-websocket-protocol");
	struct text item;

	while (list.data && text_next(&list, ',', &item))
		if (text_starts(item, "bearer."))
			return text_from(item, strlen("bearer."));
	return (struct text){ 0 };
}

struct text gate_cookie(const struct exchange *exchange, const char *name)
{
	const struct headers *headers = &exchange->headers;
	struct text found = { 0 }, item;
	size_t size = strlen(name);
	int count = 0;

	/* HTTP/2 may send each in a header of its own. */
	for (size_t i = 0; i < headers->count; i++) {
		struct text list = headers->of[i].value;
		if (!text_is(headers->of[i].name, "cookie"))
			continue;
		while (text_next(&list, ';', &item))
			if (text_starts(item, name) && item.size > size && item.data[size] == '=') {
				found = text_from(item, size + 1);
				count++;
			}
	}
	return count == 1 ? found : (struct text){ 0 };
}

/* Browsers send a cookie whoever made them ask. It counts only for what a page of this very service
 * asks for, and for what a person opens. */
static bool is_asked_by_us(const struct exchange *exchange)
{
	struct text origin = headers_get(&exchange->headers, "origin");
	struct text site = headers_get(&exchange->headers, "sec-fetch-site");
	bool is_read = exchange->method == METHOD_GET || exchange->method == METHOD_HEAD;

	if (site.data && !text_is(site, "same-origin") && !(is_read && text_is(site, "none")))
		return false;
	if (origin.data)
		return origin_is_same(origin, exchange->authority);
	return !exchange->is_websocket && (is_read || site.data);
}

static struct text find_token(const struct gate *gate, const struct exchange *exchange)
{
	struct text value = headers_get(&exchange->headers, "authorization");
	enum { SCHEME = sizeof("Bearer ") - 1 };

	if (value.data && value.size > SCHEME && strncasecmp(value.data, "Bearer ", SCHEME) == 0)
		return text_trim(text_from(value, SCHEME));
	struct text token = { 0 };
	if (!value.data && exchange->is_websocket)
		token = protocol_token(exchange);
	if (!value.data && !token.data && gate->session_cookie && is_asked_by_us(exchange))
		token = gate_cookie(exchange, gate->session_cookie);
	return token;
}

static bool tenant_exists(const struct gate *gate, int64_t id)
{
	return id == 0 || !gate->tenants.exists || gate->tenants.exists(gate->tenants.context, id);
}

bool gate_find_tenant(const struct gate *gate, const char *text, int64_t *id)
{
	*id = 0;
	if (text[0] == '\0')
		return true;
	if (strncmp(text, "tenant-", 7) == 0 && text[7] != '0' &&
	    number_read(text_of(text + 7), 1, INT64_MAX, id))
		return tenant_exists(gate, *id);
	*id = gate->tenants.find ? gate->tenants.find(gate->tenants.context, text) : 0;
	return *id > 0;
}

static bool identity_of_claims(const struct gate *gate, const struct jwt_claims *claims,
                               struct identity *identity, enum sign_in_fault *fault,
                               struct error *error)
{
	*identity = (struct identity){ 0 };
	*fault = FAULT_CLAIMS;
	if (!gate_role_read(claims->role, &identity->role))
		return error_set(error, ERROR_FORBIDDEN,
		                 "'role' of the token is not admin, tenant, tenant_admin, viewer, "
		                 "agent, gateway or inference");
	if (!gate_find_tenant(gate, claims->tenant, &identity->tenant_id)) {
		*fault = FAULT_TENANT;
		return error_set(error, ERROR_FORBIDDEN,
		                 "the tenant that the token is for ('tenant') does not exist");
	}
	if (!gate_identity_check(identity, error))
		return false;
	snprintf(identity->name, sizeof(identity->name), "jwt %.80s", claims->subject);
	if (identity->role == ROLE_AGENT || identity->role == ROLE_GATEWAY)
		memcpy(identity->node, claims->node, sizeof(identity->node));
	return true;
}

/* What a JWT was found good by: a key, and what was required besides. */
static uint64_t gate_sign_in_number_of(const struct gate_rules *rules, uint64_t key)
{
	uint64_t audience = rules->audience ? hash_text(rules->audience) : 0;
	uint64_t issuer = rules->issuer ? hash_text(rules->issuer) : 0;

	return hash_combine(hash_combine(key, audience), issuer);
}

static void gate_sign_in_remember(struct gate *gate, const unsigned char digest[DIGEST_SIZE],
                                  const struct identity *identity, int64_t unix_ms)
{
	uint32_t at = 0;

	memcpy(&at, digest, sizeof(at));
	struct gate_remembered *remembered = &gate->remembered[at % REMEMBERED];
	memcpy(remembered->digest, digest, DIGEST_SIZE);
	remembered->until_ms = min64(identity->credential.expires_ms, unix_ms + REMEMBER_MS);
	remembered->generation = gate->generation;
	remembered->identity = *identity;
}

static bool recall(const struct gate *gate, const unsigned char digest[DIGEST_SIZE],
                   int64_t unix_ms, struct identity *identity)
{
	uint32_t at = 0;

	memcpy(&at, digest, sizeof(at));
	const struct gate_remembered *remembered = &gate->remembered[at % REMEMBERED];
	if (remembered->generation != gate->generation || unix_ms >= remembered->until_ms ||
	    remembered->until_ms - unix_ms > REMEMBER_MS ||
	    !digest_equal(remembered->digest, digest, DIGEST_SIZE))
		return false;
	*identity = remembered->identity;
	return true;
}

/* A sign-in on its way. `account` is who it claims to be. */
struct attempt {
	struct gate *gate;
	const struct exchange *exchange;
	enum sign_in_method method;
	enum sign_in_fault fault;
	char account[2 * JWT_CLAIM_MAX];
	struct error error;
};

static uint64_t address_of(const struct exchange *exchange)
{
	return hash_bytes(exchange->peer_address.data, exchange->peer_address.size);
}

static uint64_t connection_of(const struct exchange *exchange)
{
	return hash_combine(address_of(exchange), exchange->peer_port);
}

static uint64_t account_of(const struct jwt *jwt)
{
	return hash_combine(hash_text(jwt->key_id), hash_text(jwt->claims.subject));
}

static bool is_known(const struct gate *gate, uint64_t account, int64_t now_ms)
{
	const struct gate_account *known = &gate->accounts[account % ACCOUNTS];

	return known->account == account && now_ms < known->until_ms;
}

/* Whose failure it is if the signature turns out to be forged. NULL: nobody has one left. */
static struct rates *find_budget(const struct attempt *attempt, uint64_t account, uint64_t *client)
{
	struct gate *gate = attempt->gate;
	int64_t now_ms = attempt->exchange->received_ms;

	*client = connection_of(attempt->exchange);
	if (rates_has(gate->by_connection, *client, now_ms, NULL))
		return gate->by_connection;
	*client = address_of(attempt->exchange);
	if (rates_has(gate->by_address, *client, now_ms, NULL))
		return gate->by_address;
	*client = account;
	if (is_known(gate, account, now_ms) && rates_has(gate->by_account, account, now_ms, NULL))
		return gate->by_account;
	return NULL;
}

static bool check_signature(struct attempt *attempt, struct jwt *jwt)
{
	struct gate *gate = attempt->gate;
	const struct gate_rules *rules = &gate->rules;
	int64_t now_ms = attempt->exchange->received_ms;
	uint64_t account = account_of(jwt), client = 0;
	struct rates *budget = NULL;

	if (jwt->is_costly && !(budget = find_budget(attempt, account, &client))) {
		attempt->fault = FAULT_LIMITED;
		return error_set(&attempt->error, ERROR_FORBIDDEN,
		                 "too many forged tokens came by this connection: try again later");
	}
	if (!jwt_check(jwt, rules->keys, rules->key_count, &attempt->error)) {
		attempt->fault = FAULT_SIGNATURE;
		if (budget)
			rates_take(budget, client, now_ms, NULL);
		return false;
	}
	if (jwt->is_costly)
		gate->accounts[account % ACCOUNTS] =
		    (struct gate_account){ account, now_ms + ACCOUNT_MS };
	return true;
}

static enum sign_in_fault fault_of(enum jwt_fault fault)
{
	switch (fault) {
	case JWT_NO_KEY:
		return FAULT_KEY;
	case JWT_EXPIRED:
		return FAULT_EXPIRED;
	case JWT_BAD_CLAIMS:
		return FAULT_CLAIMS;
	case JWT_FORGED:
		return FAULT_SIGNATURE;
	default:
		return FAULT_MALFORMED;
	}
}

static bool sign_in_jwt(struct attempt *attempt, struct text token, int64_t unix_ms,
                        struct identity *identity)
{
	const struct gate *gate = attempt->gate;
	const struct gate_rules *rules = &gate->rules;
	struct jwt_wanted wanted = { .audience = rules->audience,
		                     .issuer = rules->issuer,
		                     .now_ms = unix_ms };
	struct jwt jwt;

	attempt->method = SIGN_IN_JWT;
	bool ok = jwt_open(token, rules->keys, rules->key_count, &wanted, &jwt, &attempt->error);
	attempt->fault = fault_of(jwt.fault);
	snprintf(attempt->account, sizeof(attempt->account), "%s%s%s", jwt.key_id,
	         jwt.key_id[0] ? "/" : "", jwt.claims.subject);
	ok = ok && check_signature(attempt, &jwt) &&
	     identity_of_claims(gate, &jwt.claims, identity, &attempt->fault, &attempt->error);
	if (ok) {
		identity->credential = (struct credential){
			.kind = CREDENTIAL_JWT,
			.expires_ms = jwt.claims.expires_ms,
			.key = gate_sign_in_number_of(rules, jwt.key),
		};
		memcpy(identity->credential.text, jwt.claims.tenant, JWT_CLAIM_MAX);
	}
	jwt_close(&jwt);
	return ok;
}

static bool sign_in_token(struct attempt *attempt, const unsigned char digest[DIGEST_SIZE],
                          int64_t unix_ms, struct identity *identity)
{
	const struct gate *gate = attempt->gate;
	char hex[DIGEST_HEX_SIZE];

	digest_hex(digest, hex);
	const struct gate_token *token = text_map_get(&gate->by_hash, hex);
	attempt->method = SIGN_IN_TOKEN;
	attempt->fault = FAULT_UNKNOWN;
	if (!token || !digest_equal(token->hash, hex, DIGEST_HEX_SIZE))
		return error_set(&attempt->error, ERROR_FORBIDDEN, "this API token is not known");
	if (token->provider != 0 && token->provider != gate->provider)
		return error_set(&attempt->error, ERROR_FORBIDDEN,
		                 "this session is of a provider that is not configured any more");
	snprintf(attempt->account, sizeof(attempt->account), "%s", token->id);
	attempt->fault = FAULT_EXPIRED;
	if (token->expires_ms > 0 && unix_ms >= token->expires_ms)
		return error_set(&attempt->error, ERROR_FORBIDDEN, "this API token has expired");
	attempt->fault = FAULT_TENANT;
	if (!tenant_exists(gate, token->identity.tenant_id))
		return error_set(&attempt->error, ERROR_FORBIDDEN,
		                 "the tenant of this API token was deleted");
	*identity = token->identity;
	identity->credential =
	    (struct credential){ .kind = CREDENTIAL_TOKEN, .expires_ms = token->expires_ms };
	memcpy(identity->credential.text, token->id, sizeof(token->id));
	return true;
}

/* Counts the failure, and answers it. */
static bool gate_sign_in_fail(const struct attempt *attempt, struct gate_refusal *refusal)
{
	const struct exchange *exchange = attempt->exchange;
	struct gate *gate = attempt->gate;
	int64_t wait_ms = 0;

	failures_add(gate->failures, &(struct sign_in_failure){
					 attempt->method, attempt->fault, exchange->peer_address,
					 attempt->account, exchange->received_ms });
	if (attempt->fault == FAULT_MISSING)
		return gate_refuse(refusal, 401, "unauthenticated",
		                   "sign in with 'Authorization: Bearer TOKEN', TOKEN being an API "
		                   "token or a JWT");
	bool has_more =
	    rates_take(gate->by_address, address_of(exchange), exchange->received_ms, &wait_ms);
	if (attempt->fault == FAULT_LIMITED || !has_more)
		return gate_refuse_rate(refusal, wait_ms,
		                        "too many failed attempts to sign in from this address");
	return gate_refuse(refusal, 401, "unauthenticated", attempt->error.text);
}

bool gate_sign_in(struct gate *gate, const struct exchange *exchange, int64_t unix_ms,
                  struct identity *identity, struct gate_refusal *refusal)
{
	unsigned char digest[DIGEST_SIZE];
	struct attempt attempt = { .gate = gate, .exchange = exchange };

	if (headers_count(&exchange->headers, "authorization") > 1)
		return gate_refuse(refusal, 400, "invalid", "there is more than one Authorization");
	struct text token = find_token(gate, exchange);
	if (!token.data || token.size == 0)
		return gate_sign_in_fail(&attempt, refusal);
	digest_sha256(token, digest);
	if (recall(gate, digest, unix_ms, identity))
		return true;
	if (text_starts(token, GATE_TOKEN_PREFIX))
		return sign_in_token(&attempt, digest, unix_ms, identity) ||
		       gate_sign_in_fail(&attempt, refusal);
	if (!sign_in_jwt(&attempt, token, unix_ms, identity))
		return gate_sign_in_fail(&attempt, refusal);
	gate_sign_in_remember(gate, digest, identity, unix_ms);
	return true;
}

static bool has_key(const struct gate_rules *rules, uint64_t number)
{
	for (size_t i = 0; i < rules->key_count; i++)
		if (gate_sign_in_number_of(rules, jwt_key_number(rules->keys[i])) == number)
			return true;
	return false;
}

static const char *why_not_token(const struct gate *gate, const struct identity *identity)
{
	const struct gate_token *token = text_map_get(&gate->by_id, identity->credential.text);

	if (!token)
		return "the token was revoked";
	if (token->identity.role != identity->role ||
	    token->identity.tenant_id != identity->tenant_id ||
	    strcmp(token->identity.node, identity->node) != 0)
		return "the token was changed";
	return NULL;
}

static const char *why_not_jwt(const struct gate *gate, const struct identity *identity)
{
	int64_t tenant_id;

	if (!has_key(&gate->rules, identity->credential.key))
		return "the key of the token is not accepted any more";
	if (!gate_find_tenant(gate, identity->credential.text, &tenant_id) ||
	    tenant_id != identity->tenant_id)
		return "the tenant of the token was deleted or renamed";
	return NULL;
}

bool gate_admits(const struct gate *gate, const struct identity *identity, int64_t unix_ms,
                 const char **reason)
{
	const struct credential *credential = &identity->credential;

	*reason = NULL;
	if (gate->rules.open != (credential->kind == CREDENTIAL_OPEN))
		*reason = "the service changed how clients sign in";
	else if (credential->expires_ms > 0 && unix_ms >= credential->expires_ms)
		*reason = "the token has expired";
	else if (credential->kind == CREDENTIAL_TOKEN)
		*reason = why_not_token(gate, identity);
	else if (credential->kind == CREDENTIAL_JWT)
		*reason = why_not_jwt(gate, identity);
	if (!*reason && !tenant_exists(gate, identity->tenant_id))
		*reason = "the tenant of the token was deleted";
	return *reason == NULL;
}
