/* gateway_routes.c - what gateways are told: models, slots, tenants, tokens */
#include <jansson.h>
#include <openssl/crypto.h>
#include <stdlib.h>

#include "api/auth/gate_local.h"
#include "api/gateway/gateways_local.h"
#include "api/service/service_state.h"
#include "api/service/token_use.h"
#include "api/text/digest.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"

/* Everything that a message points to lives in the arena. */
struct drawer {
	const struct gateway_peer *peer;
	struct catalogue *catalogue;
	struct arena arena;
};

static char *text_in(struct drawer *drawer, const char *text)
{
	return arena_string(&drawer->arena, text ? text : "");
}

static int64_t *ids_in(struct drawer *drawer, const struct rows *rows)
{
	return rows->count > 0
	           ? arena_copy(&drawer->arena, rows->at, (size_t)rows->count * sizeof(*rows->at))
	           : NULL;
}

/* A list of texts in a payload. */
static char **draw_names(struct drawer *drawer, const json_t *payload, const char *name,
                         size_t *count)
{
	const json_t *list = json_object_get(payload, name), *item;
	char **names = arena_alloc(&drawer->arena, (json_array_size(list) + 1) * sizeof(*names));
	size_t i;

	*count = 0;
	json_array_foreach(list, i, item) if (json_is_string(item)) names[(*count)++] =
	    text_in(drawer, json_string_value(item));
	return names;
}

static void draw_payload(struct drawer *drawer, const char *text, Gateway__Model *model)
{
	json_t *payload = *text ? json_loads(text, 0, NULL) : NULL;

	model->aliases = draw_names(drawer, payload, "aliases", &model->n_aliases);
	model->fallbacks = draw_names(drawer, payload, "fallbacks", &model->n_fallbacks);
	model->adapters = draw_names(drawer, payload, "adapters", &model->n_adapters);
	json_decref(payload);
}

static Gateway__Model *draw_model(struct drawer *drawer, const struct model_record *record)
{
	Gateway__Model *model = arena_alloc(&drawer->arena, sizeof(*model));

	gateway__model__init(model);
	model->model_id = record->id;
	model->tenant_id = record->tenant_id;
	model->name = text_in(drawer, record->name);
	model->runtime = text_in(drawer, word_of(&runtime_words, record->runtime));
	model->shared = record->shared;
	model->n_users = (size_t)record->users.count;
	model->users = ids_in(drawer, &record->users);
	model->load_ms = record->load_ms;
	model->keep_alive = text_in(drawer, word_of(&keep_alive_words, record->keep_alive));
	model->queue_timeout_ms = record->queue_timeout_ms;
	draw_payload(drawer, record->payload, model);
	model->message = text_in(drawer, record->not_before_ms > 0 ? record->message : "");
	return model;
}

static Gateway__Slot *draw_slot(struct drawer *drawer, const struct slot_record *record)
{
	const struct model_record *model =
	    catalogue_get(drawer->catalogue, RECORD_MODEL, record->model_id, 0);
	const struct reservation_record *reservation =
	    catalogue_get(drawer->catalogue, RECORD_RESERVATION, record->id, 0);
	const struct node_record *node =
	    reservation ? catalogue_get(drawer->catalogue, RECORD_NODE, reservation->node_id, 0)
			: NULL;
	Gateway__Slot *slot = arena_alloc(&drawer->arena, sizeof(*slot));
	const struct service *service = drawer->peer->gateways->service;
	int64_t now_ms = service_time_ms(service);
	bool follows = false, tls_only;

	gateway__slot__init(slot);
	slot->slot_id = record->id;
	slot->model_id = record->model_id;
	slot->address = text_in(drawer, record->address);
	slot->key = text_in(
	    drawer,
	    node ? agents_slot_key(service->agents, node->name, record->id, &follows) : NULL);
	slot->key_follows = follows;
	slot->certificate_sha256 =
	    text_in(drawer, node ? agents_slot_certificate(service->agents, node->name, record->id,
	                                                   &tls_only)
	                         : NULL);
	slot->share = places_share(drawer->peer, record->id);
	if (record->state == SLOT_STOPPING || record->closing_for != 0 || record->evicted ||
	    (node && node->draining))
		slot->state = GATEWAY__SLOT__STATE__CLOSING;
	else if (record->state == SLOT_READY)
		slot->state = GATEWAY__SLOT__STATE__READY;
	else if (record->state == SLOT_SLEEPING || record->state == SLOT_ASLEEP)
		slot->state = GATEWAY__SLOT__STATE__ASLEEP;
	else if (model && model->wake_ms > 0 && record->state == SLOT_WAKING)
		slot->ready_in_ms = max64(record->ordered_ms + model->wake_ms - now_ms, 1);
	else if (model && model->load_ms > 0 && record->ordered_ms > 0)
		slot->ready_in_ms = max64(record->ordered_ms + model->load_ms - now_ms, 1);
	return slot;
}

/* NULL: there is none. */
static Gateway__Limits *draw_limits(struct arena *arena, const struct gateways *gateways,
                                    int64_t requests, int64_t tokens, int64_t streams)
{
	Gateway__Limits *limits;

	if (requests == 0 && tokens == 0 && streams == 0)
		return NULL;
	limits = arena_alloc(arena, sizeof(*limits));
	gateway__limits__init(limits);
	limits->requests_per_minute = gateways_part(gateways, requests);
	limits->tokens_per_minute = gateways_part(gateways, tokens);
	limits->streams = gateways_part(gateways, streams);
	return limits;
}

static Gateway__Tenant *draw_tenant(struct drawer *drawer, const struct tenant_record *record)
{
	Gateway__Tenant *tenant = arena_alloc(&drawer->arena, sizeof(*tenant));

	gateway__tenant__init(tenant);
	tenant->tenant_id = record->id;
	tenant->parent_id = record->parent_id;
	tenant->name = text_in(drawer, record->name);
	tenant->weight = record->weight;
	tenant->exhausted = usage_is_exhausted(drawer->peer->gateways, record);
	tenant->limits =
	    draw_limits(&drawer->arena, drawer->peer->gateways, record->requests_per_minute,
	                record->tokens_per_minute, record->max_streams);
	return tenant;
}

/* Pointers to one message for each record of a kind. */
static void **draw_all(struct drawer *drawer, enum record_kind kind, size_t *count,
                       void *(*draw)(struct drawer *, const void *))
{
	struct catalogue_cursor cursor = { .kind = kind };
	const void *record;
	void **list = NULL;
	size_t capacity = 0;

	*count = 0;
	while ((record = catalogue_next(drawer->catalogue, &cursor)) != NULL) {
		void *message = draw(drawer, record);
		if (!message)
			continue;
		array_reserve(list, capacity, *count + 1);
		list[(*count)++] = message;
	}
	void **kept = *count > 0 ? arena_copy(&drawer->arena, list, *count * sizeof(*list)) : NULL;
	free(list);
	return kept;
}

static void *draw_any_model(struct drawer *drawer, const void *record)
{
	const struct model_record *model = record;

	return model->removed ? NULL : draw_model(drawer, model);
}

static void *draw_any_slot(struct drawer *drawer, const void *record)
{
	return draw_slot(drawer, record);
}

static void *draw_any_tenant(struct drawer *drawer, const void *record)
{
	return draw_tenant(drawer, record);
}

void routes_tell(struct gateway_peer *peer)
{
	Gateway__Envelope envelope = GATEWAY__ENVELOPE__INIT;
	Gateway__Routes routes = GATEWAY__ROUTES__INIT;
	struct drawer drawer = { .peer = peer,
		                 .catalogue = service_catalogue(peer->gateways->service) };

	peer->routes_dirty = false;
	routes.version = peer->routes_version = ++peer->gateways->version;
	catalogue_lock(drawer.catalogue);
	routes.models =
	    (Gateway__Model **)draw_all(&drawer, RECORD_MODEL, &routes.n_models, draw_any_model);
	routes.slots =
	    (Gateway__Slot **)draw_all(&drawer, RECORD_SLOT, &routes.n_slots, draw_any_slot);
	routes.tenants = (Gateway__Tenant **)draw_all(&drawer, RECORD_TENANT, &routes.n_tenants,
	                                              draw_any_tenant);
	catalogue_unlock(drawer.catalogue);
	envelope.routes = &routes;
	gateways_send(peer->link, &envelope);
	arena_free(&drawer.arena);
}

static bool may_ask(const struct identity *identity)
{
	return identity_may_change(identity) || identity->role == ROLE_INFERENCE;
}

static bool token_is_exhausted(const struct gateways *gateways, const struct gate_token *token)
{
	return token->budget_per_month > 0 &&
	       token_uses_of_key(gateways->service->token_uses, token->id) >=
	           token->budget_per_month;
}

static uint64_t hash_tokens(const struct gateways *gateways)
{
	const struct gate *gate = gateways->service->gate;
	const struct gate_token *const *tokens;
	size_t count = gate_tokens(gate, &tokens);
	uint64_t hash = hash_number(count + 1 + gate->rules.open);

	hash = hash_combine(hash, (uint64_t)gateways_part(gateways, INT64_MAX));
	for (size_t i = 0; i < count; i++)
		hash = hash_combine(hash, hash_text(tokens[i]->hash) +
		                              token_is_exhausted(gateways, tokens[i]));
	return hash | 1;
}

static int hex_of(char digit)
{
	return digit <= '9' ? digit - '0' : digit - 'a' + 10;
}

static Gateway__Token *draw_token(struct arena *arena, const struct gateways *gateways,
                                  const struct gate_token *given)
{
	Gateway__Token *token = arena_alloc(arena, sizeof(*token));
	uint8_t *digest = arena_alloc(arena, DIGEST_SIZE);

	gateway__token__init(token);
	for (int i = 0; i < DIGEST_SIZE; i++)
		digest[i] =
		    (uint8_t)(hex_of(given->hash[2 * i]) * 16 + hex_of(given->hash[2 * i + 1]));
	token->sha256.data = digest;
	token->sha256.len = DIGEST_SIZE;
	token->id = arena_string(arena, given->id);
	token->tenant_id = given->identity.tenant_id;
	token->administrator = given->identity.role == ROLE_ADMIN;
	token->expires_ms = given->expires_ms;
	token->exhausted = token_is_exhausted(gateways, given);
	token->limits = draw_limits(arena, gateways, given->requests_per_minute,
	                            given->tokens_per_minute, given->max_streams);
	return token;
}

void tokens_tell(struct gateway_peer *peer)
{
	const struct gate *gate = peer->gateways->service->gate;
	Gateway__Envelope envelope = GATEWAY__ENVELOPE__INIT;
	Gateway__Tokens tokens = GATEWAY__TOKENS__INIT;
	const struct gate_token *const *list;
	uint64_t hash = hash_tokens(peer->gateways);
	size_t count = gate_tokens(gate, &list);
	struct arena arena = { 0 };

	if (hash == peer->tokens_hash)
		return;
	peer->tokens_hash = hash;
	tokens.version = ++peer->tokens_version;
	tokens.open = gate->rules.open;
	tokens.tokens = arena_alloc(&arena, (count + 1) * sizeof(*tokens.tokens));
	for (size_t i = 0; i < count; i++)
		if (may_ask(&list[i]->identity))
			tokens.tokens[tokens.n_tokens++] =
			    draw_token(&arena, peer->gateways, list[i]);
	envelope.tokens = &tokens;
	gateways_send(peer->link, &envelope);
	arena_free(&arena);
}

/* The gate looks at a request: one that has nothing but the token. */
void verdict_tell(struct gateway_peer *peer, const Gateway__Question *question)
{
	const struct exchange *asker = peer->link->request->exchange;
	Gateway__Envelope envelope = GATEWAY__ENVELOPE__INIT;
	Gateway__Verdict verdict = GATEWAY__VERDICT__INIT;
	Gateway__Token token = GATEWAY__TOKEN__INIT;
	struct identity identity = { 0 };
	struct gate_refusal refusal = { 0 };
	struct buffer bearer = { 0 };

	buffer_print(&bearer, "Bearer %s", question->token);
	struct header header = { TEXT("authorization"), { bearer.data, bearer.size } };
	struct exchange exchange = { .headers = { &header, 1 },
		                     .peer_address = asker->peer_address,
		                     .peer_port = asker->peer_port,
		                     .received_ms = loop_now_ms(peer->gateways->loop),
		                     .loop = asker->loop };
	verdict.number = question->number;
	verdict.admitted = gate_sign_in(peer->gateways->service->gate, &exchange, clock_unix_ms(),
	                                &identity, &refusal) &&
	                   may_ask(&identity);
	verdict.reason = refusal.text;
	token.id = (char *)identity_user(&identity);
	token.tenant_id = identity.tenant_id;
	token.administrator = identity.role == ROLE_ADMIN;
	token.expires_ms = identity.credential.expires_ms;
	verdict.token = &token;
	envelope.verdict = &verdict;
	gateways_send(peer->link, &envelope);
	OPENSSL_cleanse(bearer.data, bearer.size);
	buffer_free(&bearer);
}
