/* tokens.c - API tokens over REST: made, listed, revoked */
#include "api/service/tokens.h"

#include <stdio.h>
#include <stdlib.h>

#include "api/auth/gate_local.h"
#include "api/service/call.h"
#include "api/text/ids.h"
#include "api/text/times.h"
#include "base/clock.h"
#include "base/memory.h"
#include "wire/text/json_reader.h"
#include "wire/text/json_writer.h"

struct tokens {
	struct desk *desk;
	struct gate *gate;
	struct audit *audit;
	struct streams *streams;
};

/* A change that waits to be durable. */
struct token_change {
	struct ask ask; /* first: one pointer is the other */
	struct tokens *tokens;
	struct exchange *exchange;
	struct gate_token token;
	char text[96]; /* empty: it is revoked */
};

struct tokens *tokens_new(struct desk *desk, struct gate *gate, struct audit *audit,
                          struct streams *streams)
{
	struct tokens *tokens = NEW(struct tokens);

	*tokens = (struct tokens){ desk, gate, audit, streams };
	return tokens;
}

void tokens_free(struct tokens *tokens)
{
	free(tokens);
}

bool tokens_load(struct tokens *tokens, const char *value, struct error *error)
{
	struct gate_token token;

	if (!gate_token_read(value, &token, error))
		return false;
	gate_put_token(tokens->gate, &token);
	return true;
}

static bool is_admin(struct exchange *exchange, const struct identity *identity)
{
	if (identity->role == ROLE_ADMIN)
		return true;
	exchange_refuse(exchange, 403, "forbidden", "tokens are for administrators");
	return false;
}

static void write_token(struct json_writer *json, const struct gate_token *token, const char *text)
{
	json_open_object(json, NULL);
	json_put_string(json, "id", token->id);
	if (text)
		json_put_string(json, "token", text);
	json_put_string(json, "role", gate_role_name(token->identity.role));
	json_put_id(json, "tenant_id", ID_TENANT, token->identity.tenant_id);
	if (token->identity.node[0])
		json_put_string(json, "node", token->identity.node);
	json_put_string(json, "note", token->note);
	json_put_moment(json, "created_at", token->created_ms);
	json_put_moment(json, "expires_at", token->expires_ms);
	json_close(json);
}

static void answer_json(struct exchange *exchange, int status, struct buffer *body)
{
	exchange_respond(exchange, &(struct response){ .status = status,
	                                               .content_type = "application/json",
	                                               .body = { body->data, body->size },
	                                               .never_compress = true });
	buffer_free(body);
}

static void refuse(struct exchange *exchange, const struct error *error)
{
	exchange_refuse(exchange, status_of(error->code), error_code_name(error->code), "%s",
	                error->text);
}

/* Only what is durable opens the gate, or closes it. */
static void on_done(struct ask *ask)
{
	struct token_change *change = (struct token_change *)ask;
	struct exchange *exchange = change->exchange;
	struct buffer body = { 0 };

	if (change->tokens->audit)
		audit_settle(change->tokens->audit, ask);
	if (!ask->ok) {
		refuse(exchange, &ask->error);
	} else if (change->text[0]) {
		gate_put_token(change->tokens->gate, &change->token);
		struct json_writer json = json_writer_to(&body);
		write_token(&json, &change->token, change->text);
		answer_json(exchange, 201, &body);
	} else {
		gate_remove_token(change->tokens->gate, change->token.id);
		if (change->tokens->streams)
			streams_check(change->tokens->streams);
		buffer_text(&body, "{\"message\":\"Token revoked\"}");
		answer_json(exchange, 200, &body);
	}
	ask_free(ask);
	free(change);
}

static void hand_in(struct token_change *change, const char *value, const char *action,
                    const struct identity *identity)
{
	struct kept *keep = arena_alloc(&change->ask.arena, sizeof(*keep));

	*keep = (struct kept){ "token", change->token.id, value };
	change->ask.keeps = keep;
	change->ask.keep_count = 1;
	change->ask.done = on_done;
	if (change->tokens->audit)
		audit_note(
		    change->tokens->audit, &change->ask,
		    &(struct audit_entry){ .action = action,
		                           .object = change->token.id,
		                           .detail = gate_role_name(change->token.identity.role),
		                           .identity = identity,
		                           .exchange = change->exchange,
		                           .unix_ms = clock_unix_ms() });
	desk_ask(change->tokens->desk, &change->ask);
}

static bool find_tenant(struct tokens *tokens, struct text name, int64_t *id)
{
	struct catalogue *catalogue = tokens->desk->catalogue;
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

static void read_token(struct tokens *tokens, struct json_reader *reader, struct gate_token *token)
{
	static const char *const roles[] = { "admin", "tenant", "viewer", "agent", NULL };
	int role = json_get_word(reader, "role", roles, -1);
	struct text expires = json_get_text(reader, "expires_in", 64);
	int64_t duration_ms = 0;

	token->created_ms = clock_unix_ms();
	if (!reader->failed && role < 0)
		json_fail(reader, "role", "is missing: admin, tenant, viewer or agent");
	else
		token->identity.role = role < 0 ? ROLE_VIEWER : (enum role)role;
	if (!find_tenant(tokens, json_get_text(reader, "tenant_id", 96),
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
	if (!reader->failed && token->identity.node[0] && token->identity.role != ROLE_AGENT)
		json_fail(reader, "node", "is only for the role agent");
}

void tokens_create(struct tokens *tokens, struct exchange *exchange,
                   const struct identity *identity)
{
	static const char *const known[] = {
		"role", "tenant_id", "node", "note", "expires_in", NULL
	};
	struct error error = { 0 };
	struct gate_token token = { 0 };
	char text[96] = "";

	if (!is_admin(exchange, identity))
		return;
	json_t *document = json_read(exchange->body, NULL, &error);
	struct json_reader reader = json_reader_of(document, "", &error);
	if (document)
		read_token(tokens, &reader, &token);
	bool ok = document && json_reader_end(&reader, known) &&
	          gate_identity_check(&token.identity, &error) &&
	          gate_make_token(&token, text, &error);
	json_decref(document);
	if (!ok) {
		refuse(exchange, &error);
		return;
	}
	struct token_change *change = NEW(struct token_change);
	struct buffer json = { 0 };
	change->tokens = tokens;
	change->exchange = exchange;
	change->token = token;
	memcpy(change->text, text, sizeof(text));
	gate_token_write(&token, &json);
	const char *value = arena_string(&change->ask.arena, json.data);
	buffer_free(&json);
	hand_in(change, value, "create token", identity);
}

void tokens_list(struct tokens *tokens, struct exchange *exchange, const struct identity *identity)
{
	const struct gate_token *const *list;
	struct buffer body = { 0 };

	if (!is_admin(exchange, identity))
		return;
	size_t count = gate_tokens(tokens->gate, &list);
	struct json_writer json = json_writer_to(&body);
	json_open_object(&json, NULL);
	json_open_array(&json, "tokens");
	for (size_t i = 0; i < count; i++)
		write_token(&json, list[i], NULL);
	json_close(&json);
	json_put_integer(&json, "total", (int64_t)count);
	json_close(&json);
	answer_json(exchange, 200, &body);
}

void tokens_revoke(struct tokens *tokens, struct exchange *exchange,
                   const struct identity *identity, const char *id)
{
	const struct gate_token *const *list;

	if (!is_admin(exchange, identity))
		return;
	size_t count = gate_tokens(tokens->gate, &list), at = 0;
	while (at < count && strcmp(list[at]->id, id) != 0)
		at++;
	if (at == count) {
		exchange_refuse(exchange, 404, "not_found", "there is no token %.40s", id);
		return;
	}
	struct token_change *change = NEW(struct token_change);
	change->tokens = tokens;
	change->exchange = exchange;
	change->token = *list[at];
	hand_in(change, NULL, "revoke token", identity);
}
