/* tokens.c - API tokens over REST: made, listed, revoked */
#include "api/service/tokens.h"

#include <stdio.h>
#include <stdlib.h>

#include "api/auth/gate_local.h"
#include "api/auth/streams.h"
#include "api/engine/audit.h"
#include "api/service/service_state.h"
#include "api/service/token_use.h"
#include "api/text/ids.h"
#include "api/text/resource_json.h"
#include "api/text/times.h"
#include "base/clock.h"
#include "base/memory.h"
#include "wire/text/json_writer.h"
#include "json/json_reader.h"

/* A change that waits to be durable; in the request's arena. */
struct token_change {
	struct gate_token token;
	char text[96];         /* empty: it is revoked */
	const char **replaced; /* ids of tokens that it replaces */
	size_t replaced_count;
};

bool tokens_load(struct gate *gate, const char *value, struct error *error)
{
	struct gate_token token;

	if (!gate_token_read(value, &token, error))
		return false;
	gate_put_token(gate, &token);
	return true;
}

static void forget_token(struct service *service, const char *id)
{
	gate_remove_token(service->gate, id);
	streams_check(service->streams);
}

/* An administrator has to do with all tokens, one of a tenant with those of people in that tenant
 * and below it. */
static bool tokens_may_manage(const struct request *request, const struct identity *identity)
{
	if (request->identity.role == ROLE_ADMIN)
		return true;
	return identity->tenant_id > 0 && identity->role != ROLE_AGENT &&
	       identity->role != ROLE_GATEWAY &&
	       roster_may_see(&request->service->roster, &request->identity, identity->tenant_id);
}

static void write_token(struct request *request, struct json_writer *json,
                        const struct gate_token *token, const char *text)
{
	const struct field_value values[TOKEN_FIELDS_COUNT] = {
		[TOKEN_FIELD_id] = FIELD_STRING(token->id),
		[TOKEN_FIELD_token] = FIELD_STRING(text),
		[TOKEN_FIELD_role] = FIELD_NUMBER(token->identity.role),
		[TOKEN_FIELD_tenant_id] = FIELD_ID(token->identity.tenant_id),
		[TOKEN_FIELD_node] =
		    FIELD_STRING(token->identity.node[0] ? token->identity.node : NULL),
		[TOKEN_FIELD_user] = FIELD_STRING(token->user[0] ? token->user : NULL),
		[TOKEN_FIELD_note] = FIELD_STRING(token->note),
		[TOKEN_FIELD_created_at] =
		    FIELD_NUMBER_IF(token->created_ms > 0, token->created_ms),
		[TOKEN_FIELD_expires_at] =
		    FIELD_NUMBER_IF(token->expires_ms > 0, token->expires_ms),
		[TOKEN_FIELD_requests_per_minute] =
		    FIELD_NUMBER_IF(token->requests_per_minute > 0, token->requests_per_minute),
		[TOKEN_FIELD_tokens_per_minute] =
		    FIELD_NUMBER_IF(token->tokens_per_minute > 0, token->tokens_per_minute),
		[TOKEN_FIELD_max_streams] =
		    FIELD_NUMBER_IF(token->max_streams > 0, token->max_streams),
		[TOKEN_FIELD_budget_per_month] =
		    FIELD_NUMBER_IF(token->budget_per_month > 0, token->budget_per_month),
		[TOKEN_FIELD_month_cost] =
		    FIELD_NUMBER(token_uses_of_key(request->service->token_uses, token->id)),
	};
	json_open_object(json, NULL);
	resource_write(&(struct resource_writer){
	    .resource = &token_resource, .json = json, .values = values });
	json_close(json);
}

/* Only what is durable opens the gate, or closes it. */
static void tokens_on_changed(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	const struct token_change *change = request->state;

	if (!engine->ok) {
		request_fail(request, &engine->error);
	} else if (change->text[0]) {
		gate_put_token(request->service->gate, &change->token);
		for (size_t i = 0; i < change->replaced_count; i++)
			forget_token(request->service, change->replaced[i]);
		buffer_clear(&request->body);
		request->json = json_writer_to(&request->body);
		write_token(request, &request->json, &change->token, change->text);
		request_answer_secret(request, 201);
	} else {
		forget_token(request->service, change->token.id);
		request_answer_message(request, 200, "Token revoked");
	}
}

static void hand_in(struct request *request, const struct token_change *change, const char *value,
                    const char *action)
{
	struct token_change *kept = arena_alloc(&request->engine.arena, sizeof(*kept));
	size_t count = 1 + change->replaced_count;
	struct kept *keeps = arena_alloc(&request->engine.arena, count * sizeof(*keeps));
	struct buffer detail = { 0 };

	*kept = *change;
	keeps[0] = (struct kept){ "token", kept->token.id, value };
	buffer_text(&detail, gate_role_name(kept->token.identity.role));
	for (size_t i = 1; i < count; i++) {
		keeps[i] = (struct kept){ "token", change->replaced[i - 1], NULL };
		buffer_print(&detail, "%s%s", i == 1 ? ", instead of " : ", ",
		             change->replaced[i - 1]);
	}
	request->state = kept;
	request->engine.keeps = keeps;
	request->engine.keep_count = count;
	request_audit(request, action, kept->token.id,
	              arena_string(&request->engine.arena, detail.data), tokens_on_changed);
	buffer_free(&detail);
}

/* The tokens of the same role and node, which a new one replaces. */
static void find_replaced(struct request *request, struct token_change *change)
{
	const struct gate_token *const *list;
	size_t count = gate_tokens(request->service->gate, &list);
	const struct identity *identity = &change->token.identity;

	change->replaced =
	    arena_alloc(&request->engine.arena, (count + 1) * sizeof(*change->replaced));
	for (size_t i = 0; i < count; i++)
		if (list[i]->identity.role == identity->role &&
		    strcmp(list[i]->identity.node, identity->node) == 0)
			change->replaced[change->replaced_count++] =
			    arena_string(&request->engine.arena, list[i]->id);
}

static bool tokens_find_tenant(const struct request *request, struct text name, int64_t *id)
{
	struct catalogue *catalogue = service_catalogue(request->service);
	char text[128];

	*id = 0;
	if (!name.data || name.size == 0)
		return true;
	snprintf(text, sizeof(text), "%.*s", (int)name.size, name.data);
	catalogue_lock(catalogue);
	const struct tenant_record *tenant = catalogue_tenant_named(catalogue, text);
	if (!tenant && id_read(name, ID_TENANT, id))
		tenant = catalogue_get(catalogue, RECORD_TENANT, *id, 0);
	*id = tenant ? tenant->id : 0;
	catalogue_unlock(catalogue);
	return tenant != NULL;
}

static void copy(char *to, size_t size, struct text text)
{
	snprintf(to, size, "%.*s", (int)text.size, text.data ? text.data : "");
}

static int64_t read_limit(struct json_reader *reader, enum token_field at)
{
	const struct resource_field *field = &token_resource.fields[at];

	return json_get_decimal(reader, field->name, field->digits, 1, field->most, 0);
}

static void read_token(const struct request *request, struct json_reader *reader,
                       struct gate_token *token, bool *replace)
{
	static const char *const roles[] = { "admin",   "tenant",    "viewer",       "agent",
		                             "gateway", "inference", "tenant_admin", NULL };
	int role = json_get_word(reader, "role", roles, -1);
	struct text expires = json_get_text(reader, "expires_in", 64);
	int64_t duration_ms = 0;

	token->created_ms = clock_unix_ms();
	if (!reader->failed && role < 0)
		json_fail(reader, "role",
		          "is missing: admin, tenant, tenant_admin, viewer, agent, gateway or "
		          "inference");
	else
		token->identity.role = role < 0 ? ROLE_VIEWER : (enum role)role;
	if (!tokens_find_tenant(request, json_get_text(reader, "tenant_id", 96),
	                        &token->identity.tenant_id))
		json_fail(reader, "tenant_id", "is not a tenant that is known");
	copy(token->identity.node, sizeof(token->identity.node),
	     json_get_text(reader, "node", sizeof(token->identity.node) - 1));
	copy(token->note, sizeof(token->note),
	     json_get_text(reader, "note", sizeof(token->note) - 1));
	if (expires.data && !duration_read(expires, DURATION_MAX_MS, &duration_ms))
		json_fail(reader, "expires_in", "must be a duration such as \"30d\" or \"12h\"");
	if (duration_ms > 0)
		token->expires_ms = token->created_ms + duration_ms;
	token->requests_per_minute = read_limit(reader, TOKEN_FIELD_requests_per_minute);
	token->tokens_per_minute = read_limit(reader, TOKEN_FIELD_tokens_per_minute);
	token->max_streams = read_limit(reader, TOKEN_FIELD_max_streams);
	token->budget_per_month = read_limit(reader, TOKEN_FIELD_budget_per_month);
	if (!reader->failed && token->identity.node[0] && token->identity.role != ROLE_AGENT &&
	    token->identity.role != ROLE_GATEWAY)
		json_fail(reader, "node", "is only for the roles agent and gateway");
	*replace = json_get_flag(reader, "replace", false);
	if (!reader->failed && *replace && !token->identity.node[0])
		json_fail(reader, "replace", "is only for the token of a node");
}

void tokens_create(struct request *request)
{
	static const char *const known[] = { "role",
		                             "tenant_id",
		                             "node",
		                             "note",
		                             "expires_in",
		                             "requests_per_minute",
		                             "max_streams",
		                             "tokens_per_minute",
		                             "budget_per_month",
		                             "replace",
		                             NULL };
	struct error error = { 0 };
	struct token_change change = { .text = "" };
	struct gate_token *token = &change.token;
	bool replace = false;

	json_t *document = json_read(request->exchange->body, NULL, &error);
	struct json_reader reader = json_reader_of(document, "", &error);
	if (document)
		read_token(request, &reader, token, &replace);
	bool ok = document && json_reader_end(&reader, known) &&
	          gate_identity_check(&token->identity, &error) &&
	          (tokens_may_manage(request, &token->identity) ||
	           error_set(&error, ERROR_FORBIDDEN,
	                     "administrators of a tenant make tokens of its people alone: say the "
	                     "tenant, and a role of tenant, tenant_admin, viewer or inference")) &&
	          gate_make_token(token, change.text, &error);
	json_decref(document);
	if (!ok) {
		request_fail(request, &error);
		return;
	}
	struct buffer json = { 0 };
	if (replace)
		find_replaced(request, &change);
	gate_token_write(token, &json);
	const char *value = arena_string(&request->engine.arena, json.data);
	buffer_free(&json);
	hand_in(request, &change, value, "create token");
}

void tokens_list(struct request *request)
{
	const struct gate_token *const *list;
	size_t count = gate_tokens(request->service->gate, &list);
	struct json_writer *json = request_object(request);

	json_open_array(json, "tokens");
	int64_t total = 0;
	for (size_t i = 0; i < count; i++) {
		if (!tokens_may_manage(request, &list[i]->identity))
			continue;
		write_token(request, json, list[i], NULL);
		total++;
	}
	json_close(json);
	json_put_integer(json, "total", total);
	json_close(json);
	request_answer_json(request, 200);
}

void tokens_revoke(struct request *request)
{
	const char *id = request_segment(request, 3).data;
	const struct gate_token *const *list;
	size_t count = gate_tokens(request->service->gate, &list), at = 0;

	while (at < count && strcmp(list[at]->id, id) != 0)
		at++;
	if (at == count || !tokens_may_manage(request, &list[at]->identity))
		request_refuse(request, 404, "not_found", "there is no token %.40s", id);
	else
		hand_in(request, &(struct token_change){ .token = *list[at] }, NULL,
		        "revoke token");
}

void audit_calls_list(struct request *request)
{
	enum { LIMIT_DEFAULT = 100, LIMIT_MAX = 1000 };
	const struct query *query = &request->exchange->query;
	struct error error = { 0 };
	int64_t limit, before;

	if (!query_integer(query, "limit", 1, LIMIT_MAX, LIMIT_DEFAULT, &limit, &error) ||
	    !query_integer(query, "before", 1, INT64_MAX, INT64_MAX, &before, &error)) {
		request_fail(request, &error);
		return;
	}
	struct json_writer *json = request_object(request);
	json_open_array(json, "entries");
	audit_write(request->service->audit, json, limit, before);
	json_close(json);
	json_close(json);
	request_answer_json(request, 200);
}
