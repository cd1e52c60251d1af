/* gate.c - whom the service lets in: hosts, origins, tokens, and how often */
#include "api/gate.h"

#include <stdio.h>
#include <stdlib.h>

#include "api/digest.h"
#include "api/gate_local.h"
#include "api/jwt.h"
#include "api/origin.h"
#include "api/rate.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/number.h"

/* From an address with more forged signatures than this, no new ones are checked for a
 * while: that costs more than sending them. Many clients may share an address, so it is as
 * many as cost nothing worth speaking of. */
enum { FAILURES_PER_S = 100, FAILURES_BURST = 200 };
enum { CLIENTS_MAX = 16384, FAILING_MAX = 4096 };
/* A JWT that was found good is not checked again for so long. */
enum { REMEMBERED = 4096, REMEMBER_MS = 30000 };

struct remembered {
	unsigned char digest[DIGEST_SIZE];
	int64_t until_ms; /* 0: empty */
	struct identity identity;
};

/* What gate_reload replaces. */
struct rules {
	bool open;
	char **hosts, **origins;
	struct jwt_key **keys;
	size_t key_count;
	char *audience, *issuer;
	struct rates *rates;
};

struct gate {
	struct rules rules;
	struct rates *failing;
	struct remembered *remembered;
	struct gate_token **tokens;
	size_t token_count, token_capacity;
	struct text_map by_hash, by_id;
	int64_t (*find_tenant)(void *context, const char *name);
	void *find_context;
};

static char **copy_list(const char *const *list)
{
	size_t count = 0;

	while (list && list[count])
		count++;
	char **copy = memory_zero(count + 1, sizeof(*copy));
	for (size_t i = 0; i < count; i++)
		copy[i] = memory_text(list[i]);
	return copy;
}

static void free_list(char **list)
{
	for (size_t i = 0; list && list[i]; i++)
		free(list[i]);
	free(list);
}

static void free_rules(struct rules *rules)
{
	free_list(rules->hosts);
	free_list(rules->origins);
	for (size_t i = 0; i < rules->key_count; i++)
		jwt_key_free(rules->keys[i]);
	free(rules->keys);
	free(rules->audience);
	free(rules->issuer);
	rates_free(rules->rates);
}

static bool make_rules(struct rules *rules, const struct gate_settings *settings,
                       struct error *error)
{
	*rules = (struct rules){
		.open = settings->open,
		.hosts = copy_list(settings->hosts),
		.origins = copy_list(settings->origins),
		.audience = settings->audience ? memory_text(settings->audience) : NULL,
		.issuer = settings->issuer ? memory_text(settings->issuer) : NULL,
		.keys = memory_zero(settings->key_count, sizeof(*rules->keys)),
		.rates = rates_new(settings->rate_per_s, settings->burst, CLIENTS_MAX),
	};
	for (size_t i = 0; i < settings->key_count; i++) {
		const struct gate_key *key = &settings->keys[i];
		rules->keys[i] = jwt_key_new(key->id, key->algorithm, key->material, error);
		if (!rules->keys[i]) {
			free_rules(rules);
			return false;
		}
		rules->key_count++;
	}
	return true;
}

struct gate *gate_new(const struct gate_settings *settings, struct error *error)
{
	struct rules rules;

	if (!make_rules(&rules, settings, error))
		return NULL;
	struct gate *gate = NEW(struct gate);
	gate->rules = rules;
	gate->failing = rates_new(FAILURES_PER_S, FAILURES_BURST, FAILING_MAX);
	gate->remembered = memory_zero(REMEMBERED, sizeof(*gate->remembered));
	return gate;
}

static void forget_all(struct gate *gate)
{
	memset(gate->remembered, 0, REMEMBERED * sizeof(*gate->remembered));
}

bool gate_reload(struct gate *gate, const struct gate_settings *settings, struct error *error)
{
	struct rules rules;

	if (!make_rules(&rules, settings, error))
		return false;
	free_rules(&gate->rules);
	gate->rules = rules;
	forget_all(gate);
	return true;
}

void gate_free(struct gate *gate)
{
	if (!gate)
		return;
	free_rules(&gate->rules);
	rates_free(gate->failing);
	free(gate->remembered);
	for (size_t i = 0; i < gate->token_count; i++)
		free(gate->tokens[i]);
	free(gate->tokens);
	text_map_free(&gate->by_hash);
	text_map_free(&gate->by_id);
	free(gate);
}

void gate_find_tenants(struct gate *gate, int64_t (*find)(void *context, const char *name),
                       void *context)
{
	gate->find_tenant = find;
	gate->find_context = context;
}

void gate_put_token(struct gate *gate, const struct gate_token *token)
{
	gate_remove_token(gate, token->id);
	struct gate_token *copy = NEW(struct gate_token);
	*copy = *token;
	array_reserve(gate->tokens, gate->token_capacity, gate->token_count + 1);
	gate->tokens[gate->token_count++] = copy;
	text_map_put(&gate->by_hash, copy->hash, copy);
	text_map_put(&gate->by_id, copy->id, copy);
}

bool gate_remove_token(struct gate *gate, const char *id)
{
	struct gate_token *token = text_map_remove(&gate->by_id, id);

	if (!token)
		return false;
	text_map_remove(&gate->by_hash, token->hash);
	size_t at = 0;
	while (gate->tokens[at] != token)
		at++;
	gate->token_count--;
	memmove(&gate->tokens[at], &gate->tokens[at + 1],
	        (gate->token_count - at) * sizeof(*gate->tokens));
	free(token);
	return true;
}

size_t gate_tokens(const struct gate *gate, const struct gate_token *const **tokens)
{
	*tokens = (const struct gate_token *const *)gate->tokens;
	return gate->token_count;
}

static bool refuse(struct gate_refusal *refusal, int status, const char *code, const char *text)
{
	*refusal = (struct gate_refusal){ .status = status, .code = code };
	snprintf(refusal->text, sizeof(refusal->text), "%s", text);
	return false;
}

static bool refuse_rate(struct gate_refusal *refusal, int64_t wait_ms, const char *text)
{
	refuse(refusal, 429, "too_many_requests", text);
	refusal->retry_after_s = max64(1, (wait_ms + 999) / 1000);
	return false;
}

static bool check_host(const struct rules *rules, const struct exchange *exchange,
                       struct gate_refusal *refusal)
{
	bool any = !rules->open && !rules->hosts[0];

	if (any || origin_is_loopback(exchange->authority) ||
	    origin_host_is_listed(exchange->authority, (const char *const *)rules->hosts))
		return true;
	return refuse(refusal, 403, "forbidden",
	              "this service is not to be called by that name (Host): an administrator "
	              "can add it to the allowed hosts");
}

static struct text origin_of(const struct exchange *exchange)
{
	return headers_get(&exchange->headers, "origin");
}

const char *gate_allowed_origin(const struct gate *gate, const struct exchange *exchange)
{
	struct text origin = origin_of(exchange);

	if (!origin.data || !origin_is_listed(origin, (const char *const *)gate->rules.origins))
		return NULL;
	return origin.data;
}

static bool check_origin(const struct gate *gate, const struct exchange *exchange,
                         struct gate_refusal *refusal)
{
	struct text origin = origin_of(exchange);
	/* Where there is no sign-in, nothing else keeps a page from asking in its visitor's
	 * name. */
	bool is_foreign = gate->rules.open && !origin.data &&
	                  origin_is_foreign(headers_get(&exchange->headers, "sec-fetch-site"));

	if ((!origin.data && !is_foreign) || (origin.data && gate_allowed_origin(gate, exchange)) ||
	    (origin.data && origin_is_same(origin, exchange->authority)))
		return true;
	return refuse(refusal, 403, "forbidden",
	              "pages of that origin may not use this service: an administrator can add it "
	              "to cors_origins");
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

static bool find_token(const struct exchange *exchange, struct text *token,
                       struct gate_refusal *refusal)
{
	struct text value = headers_get(&exchange->headers, "authorization");
	enum { SCHEME = sizeof("Bearer ") - 1 };

	if (headers_count(&exchange->headers, "authorization") > 1)
		return refuse(refusal, 400, "invalid", "there is more than one Authorization");
	if (value.data && value.size > SCHEME && strncasecmp(value.data, "Bearer ", SCHEME) == 0)
		*token = text_trim(text_from(value, SCHEME));
	else if (!value.data && exchange->is_websocket)
		*token = protocol_token(exchange);
	else
		*token = (struct text){ 0 };
	if (token->data && token->size > 0)
		return true;
	return refuse(refusal, 401, "unauthenticated",
	              "sign in with 'Authorization: Bearer TOKEN', TOKEN being an API token or a "
	              "JWT");
}

static bool find_tenant(const struct gate *gate, const char *text, int64_t *id)
{
	char *end = NULL;

	*id = 0;
	if (text[0] == '\0')
		return true;
	if (strncmp(text, "tenant-", 7) == 0 && text[7] >= '1' && text[7] <= '9' &&
	    strlen(text) < 7 + 18) {
		*id = strtoll(text + 7, &end, 10);
		if (*end == '\0')
			return true;
	}
	*id = gate->find_tenant ? gate->find_tenant(gate->find_context, text) : 0;
	return *id > 0;
}

static bool identity_of_claims(const struct gate *gate, const struct jwt_claims *claims,
                               struct identity *identity, struct error *error)
{
	*identity = (struct identity){ 0 };
	if (!gate_role_read(claims->role, &identity->role))
		return error_set(error, ERROR_FORBIDDEN,
		                 "'role' of the token is not admin, tenant, viewer or agent");
	if (!find_tenant(gate, claims->tenant, &identity->tenant_id))
		return error_set(error, ERROR_FORBIDDEN,
		                 "the tenant that the token is for ('tenant') is not known");
	if (!gate_identity_check(identity, error))
		return false;
	snprintf(identity->name, sizeof(identity->name), "jwt %.80s", claims->subject);
	if (identity->role == ROLE_AGENT)
		memcpy(identity->node, claims->node, sizeof(identity->node));
	return true;
}

/* By signature, the first time; then by its digest, for a short while. */
static bool sign_in_jwt(struct gate *gate, struct text token,
                        const unsigned char digest[DIGEST_SIZE], int64_t unix_ms,
                        struct identity *identity, struct error *error)
{
	struct jwt_wanted wanted = { gate->rules.audience, gate->rules.issuer, unix_ms };
	struct jwt_claims claims;

	if (!jwt_verify(token, gate->rules.keys, gate->rules.key_count, &wanted, &claims, error) ||
	    !identity_of_claims(gate, &claims, identity, error))
		return false;
	uint32_t at = 0;
	memcpy(&at, digest, sizeof(at));
	struct remembered *remembered = &gate->remembered[at % REMEMBERED];
	memcpy(remembered->digest, digest, DIGEST_SIZE);
	remembered->until_ms = min64(claims.expires_ms, unix_ms + REMEMBER_MS);
	remembered->identity = *identity;
	return true;
}

static bool recall(const struct gate *gate, const unsigned char digest[DIGEST_SIZE],
                   int64_t unix_ms, struct identity *identity)
{
	uint32_t at = 0;

	memcpy(&at, digest, sizeof(at));
	const struct remembered *remembered = &gate->remembered[at % REMEMBERED];
	if (unix_ms >= remembered->until_ms || remembered->until_ms - unix_ms > REMEMBER_MS ||
	    !digest_equal(remembered->digest, digest, DIGEST_SIZE))
		return false;
	*identity = remembered->identity;
	return true;
}

static bool sign_in_token(const struct gate *gate, const unsigned char digest[DIGEST_SIZE],
                          int64_t unix_ms, struct identity *identity, struct error *error)
{
	char hex[DIGEST_HEX_SIZE];

	digest_hex(digest, hex);
	const struct gate_token *token = text_map_get(&gate->by_hash, hex);
	if (!token || !digest_equal(token->hash, hex, DIGEST_HEX_SIZE))
		return error_set(error, ERROR_FORBIDDEN, "this API token is not known");
	if (token->expires_ms > 0 && unix_ms >= token->expires_ms)
		return error_set(error, ERROR_FORBIDDEN, "this API token has expired");
	*identity = token->identity;
	return true;
}

static bool sign_in(struct gate *gate, const struct exchange *exchange, int64_t unix_ms,
                    struct identity *identity, struct gate_refusal *refusal)
{
	unsigned char digest[DIGEST_SIZE];
	struct error error = { 0 };
	struct text token;
	int64_t wait_ms = 0;

	if (!find_token(exchange, &token, refusal))
		return false;
	digest_sha256(token, digest);
	if (recall(gate, digest, unix_ms, identity))
		return true;
	if (text_starts(token, GATE_TOKEN_PREFIX)) {
		if (sign_in_token(gate, digest, unix_ms, identity, &error))
			return true;
		return refuse(refusal, 401, "unauthenticated", error.text);
	}
	uint64_t client = hash_bytes(exchange->peer_address.data, exchange->peer_address.size);
	if (!rates_has(gate->failing, client, exchange->received_ms, &wait_ms))
		return refuse_rate(refusal, wait_ms,
		                   "too many failed attempts to sign in from this address");
	if (sign_in_jwt(gate, token, digest, unix_ms, identity, &error))
		return true;
	rates_take(gate->failing, client, exchange->received_ms, NULL);
	return refuse(refusal, 401, "unauthenticated", error.text);
}

bool gate_check(struct gate *gate, const struct exchange *exchange, int64_t unix_ms,
                struct identity *identity, struct gate_refusal *refusal)
{
	int64_t wait_ms = 0;
	uint64_t client;

	if (!check_host(&gate->rules, exchange, refusal) || !check_origin(gate, exchange, refusal))
		return false;
	if (gate->rules.open) {
		*identity = (struct identity){ .role = ROLE_ADMIN, .name = "open" };
		client = hash_bytes(exchange->peer_address.data, exchange->peer_address.size);
	} else {
		if (!sign_in(gate, exchange, unix_ms, identity, refusal))
			return false;
		client = hash_combine(hash_text(identity->name), (uint64_t)identity->tenant_id);
	}
	if (!rates_take(gate->rules.rates, client, exchange->received_ms, &wait_ms))
		return refuse_rate(
		    refusal, wait_ms,
		    "more requests a second than one client may make (rate_limit_rps)");
	return true;
}
