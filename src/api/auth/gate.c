/* gate.c - whom the service lets in: hosts, origins, tokens, and how often */
#include "api/auth/gate.h"

#include <stdio.h>
#include <stdlib.h>

#include "api/auth/gate_local.h"
#include "api/auth/origin.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/number.h"

enum { CLIENTS_MAX = 16384 };

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

static void free_rules(struct gate_rules *rules)
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

static bool make_rules(struct gate_rules *rules, const struct gate_settings *settings,
                       struct error *error)
{
	*rules = (struct gate_rules){
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
	struct gate_rules rules;

	if (!make_rules(&rules, settings, error))
		return NULL;
	struct gate *gate = NEW(struct gate);
	gate->rules = rules;
	gate_sign_in_begin(gate);
	return gate;
}

bool gate_reload(struct gate *gate, const struct gate_settings *settings, struct error *error)
{
	struct gate_rules rules;

	if (!make_rules(&rules, settings, error))
		return false;
	free_rules(&gate->rules);
	gate->rules = rules;
	gate_forget(gate);
	return true;
}

void gate_free(struct gate *gate)
{
	if (!gate)
		return;
	free_rules(&gate->rules);
	gate_sign_in_end(gate);
	for (size_t i = 0; i < gate->token_count; i++)
		free(gate->tokens[i]);
	free(gate->tokens);
	text_map_free(&gate->by_hash);
	text_map_free(&gate->by_id);
	free(gate);
}

void gate_use_tenants(struct gate *gate, const struct gate_tenants *tenants)
{
	gate->tenants = *tenants;
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

const struct gate_token *gate_find_token(const struct gate *gate, const char *id)
{
	return text_map_get(&gate->by_id, id);
}

void gate_use_sessions(struct gate *gate, int64_t provider, const char *cookie)
{
	gate->provider = provider;
	gate->session_cookie = cookie;
}

size_t gate_tokens(const struct gate *gate, const struct gate_token *const **tokens)
{
	*tokens = (const struct gate_token *const *)gate->tokens;
	return gate->token_count;
}

bool gate_refuse(struct gate_refusal *refusal, int status, const char *code, const char *text)
{
	*refusal = (struct gate_refusal){ .status = status, .code = code };
	snprintf(refusal->text, sizeof(refusal->text), "%s", text);
	return false;
}

bool gate_refuse_rate(struct gate_refusal *refusal, int64_t wait_ms, const char *text)
{
	gate_refuse(refusal, 429, "too_many_requests", text);
	refusal->retry_after_s = max64(1, (wait_ms + 999) / 1000);
	return false;
}

static bool check_host(const struct gate_rules *rules, const struct exchange *exchange,
                       struct gate_refusal *refusal)
{
	bool any = !rules->open && !rules->hosts[0];

	if (any || origin_is_loopback(exchange->authority) ||
	    origin_host_is_listed(exchange->authority, (const char *const *)rules->hosts))
		return true;
	return gate_refuse(refusal, 403, "forbidden",
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
	return gate_refuse(
	    refusal, 403, "forbidden",
	    "pages of that origin may not use this service: an administrator can add it "
	    "to cors_origins");
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
		if (!gate_sign_in(gate, exchange, unix_ms, identity, refusal))
			return false;
		client = hash_combine(hash_text(identity->name), (uint64_t)identity->tenant_id);
	}
	if (!rates_take(gate->rules.rates, client, exchange->received_ms, &wait_ms))
		return gate_refuse_rate(
		    refusal, wait_ms,
		    "more requests a second than one client may make (rate_limit_rps)");
	return true;
}
