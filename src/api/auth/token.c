/* token.c - opaque API tokens: made, kept as JSON, read back */
#include <openssl/crypto.h>
#include <stdio.h>
#include <sys/random.h>

#include "api/auth/gate_local.h"
#include "api/text/base64.h"
#include "api/text/digest.h"
#include "core/record/types.h"
#include "wire/text/json_writer.h"
#include "json/json_reader.h"

enum { SECRET_BYTES = 32, ID_BYTES = 6 };

static const char *const roles[] = { "admin",   "tenant",    "viewer",       "agent",
	                             "gateway", "inference", "tenant_admin", NULL };

bool gate_role_read(const char *text, enum role *role)
{
	for (int i = 0; roles[i]; i++)
		if (strcmp(text, roles[i]) == 0) {
			*role = (enum role)i;
			return true;
		}
	return false;
}

const char *gate_role_name(enum role role)
{
	return roles[role];
}

bool gate_identity_check(const struct identity *identity, struct error *error)
{
	if ((identity->role == ROLE_TENANT || identity->role == ROLE_TENANT_ADMIN ||
	     identity->role == ROLE_INFERENCE) &&
	    identity->tenant_id == 0)
		return error_set(error, ERROR_INVALID, "the role '%s' needs a tenant",
		                 gate_role_name(identity->role));
	if (identity->role == ROLE_ADMIN && identity->tenant_id != 0)
		return error_set(error, ERROR_INVALID,
		                 "the role 'admin' is not bound to a tenant: use 'tenant'");
	return true;
}

bool gate_make_token(struct gate_token *token, char text[96], struct error *error)
{
	unsigned char random[SECRET_BYTES + ID_BYTES], digest[DIGEST_SIZE];
	struct buffer buffer = { 0 };

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return error_set(error, ERROR_UNAVAILABLE, "the system gives no random bytes");
	buffer_text(&buffer, GATE_TOKEN_PREFIX);
	base64url_write(&buffer, random, SECRET_BYTES);
	snprintf(text, 96, "%.*s", (int)buffer.size, buffer.data);
	digest_sha256(text_of(text), digest);
	digest_hex(digest, token->hash);
	int at = snprintf(token->id, sizeof(token->id), "t-");
	for (int i = 0; i < ID_BYTES; i++)
		at += snprintf(token->id + at, sizeof(token->id) - (size_t)at, "%02x",
		               random[SECRET_BYTES + i]);
	snprintf(token->identity.name, sizeof(token->identity.name), "token %s", token->id);
	OPENSSL_cleanse(random, sizeof(random));
	OPENSSL_cleanse(buffer.data, buffer.size);
	buffer_free(&buffer);
	return true;
}

/* In tokens that have them; of those from before there were any, none. */
enum { TOKEN_LIMITS = 4 };
static const char *const limit_names[TOKEN_LIMITS] = { "requests_per_minute", "tokens_per_minute",
	                                               "max_streams", "budget_per_month" };

static int64_t *limit_of(struct gate_token *token, int i)
{
	int64_t *const limits[TOKEN_LIMITS] = { &token->requests_per_minute,
		                                &token->tokens_per_minute, &token->max_streams,
		                                &token->budget_per_month };

	return limits[i];
}

void gate_token_write(const struct gate_token *token, struct buffer *json)
{
	struct json_writer writer = json_writer_to(json);

	json_open_object(&writer, NULL);
	json_put_string(&writer, "id", token->id);
	json_put_string(&writer, "hash", token->hash);
	json_put_string(&writer, "role", gate_role_name(token->identity.role));
	json_put_integer(&writer, "tenant_id", token->identity.tenant_id);
	json_put_string(&writer, "node", token->identity.node);
	json_put_integer(&writer, "created_ms", token->created_ms);
	json_put_integer(&writer, "expires_ms", token->expires_ms);
	json_put_string(&writer, "note", token->note);
	if (token->user[0]) {
		json_put_string(&writer, "user", token->user);
		json_put_integer(&writer, "provider", token->provider);
	}
	for (int i = 0; i < TOKEN_LIMITS; i++)
		if (*limit_of((struct gate_token *)token, i) > 0)
			json_put_integer(&writer, limit_names[i],
			                 *limit_of((struct gate_token *)token, i));
	json_close(&writer);
	buffer_bytes(json, "", 1);
	json->size--;
}

static void copy(char *to, size_t size, struct text text)
{
	snprintf(to, size, "%.*s", (int)text.size, text.data ? text.data : "");
}

static bool is_hash(struct text text)
{
	bool ok = text.size == DIGEST_HEX_SIZE - 1;

	for (size_t i = 0; ok && i < text.size; i++)
		ok = (text.data[i] >= '0' && text.data[i] <= '9') ||
		     (text.data[i] >= 'a' && text.data[i] <= 'f');
	return ok;
}

static void read_fields(struct json_reader *reader, struct gate_token *token)
{
	struct text hash = json_get_text(reader, "hash", sizeof(token->hash) - 1);
	struct text id = json_get_text(reader, "id", sizeof(token->id) - 1);
	int role = json_get_word(reader, "role", roles, -1);

	if (!reader->failed && id.size == 0)
		json_fail(reader, "id", "is missing");
	if (!reader->failed && !is_hash(hash))
		json_fail(reader, "hash", "is not a SHA-256 in hexadecimal");
	if (!reader->failed && role < 0)
		json_fail(reader, "role", "is missing");
	token->identity.role = role < 0 ? ROLE_VIEWER : (enum role)role;
	token->identity.tenant_id = json_get_integer(reader, "tenant_id", 0, INT64_MAX, 0);
	token->created_ms = json_get_integer(reader, "created_ms", 0, TIME_MS_MAX, 0);
	token->expires_ms = json_get_integer(reader, "expires_ms", 0, TIME_MS_MAX, 0);
	for (int i = 0; i < TOKEN_LIMITS; i++)
		*limit_of(token, i) = json_get_integer(reader, limit_names[i], 0, INT64_MAX, 0);
	copy(token->id, sizeof(token->id), id);
	copy(token->hash, sizeof(token->hash), hash);
	copy(token->identity.node, sizeof(token->identity.node),
	     json_get_text(reader, "node", sizeof(token->identity.node) - 1));
	copy(token->note, sizeof(token->note),
	     json_get_text(reader, "note", sizeof(token->note) - 1));
	copy(token->user, sizeof(token->user),
	     json_get_text(reader, "user", sizeof(token->user) - 1));
	token->provider = json_get_integer(reader, "provider", 0, INT64_MAX, 0);
	if (!reader->failed && (token->user[0] == '\0') != (token->provider == 0))
		json_fail(reader, "user", "and provider belong together");
	snprintf(token->identity.name, sizeof(token->identity.name), "%s %s",
	         token->user[0] ? "user" : "token", token->user[0] ? token->user : token->id);
}

bool gate_token_read(const char *json, struct gate_token *token, struct error *error)
{
	const char *const known[] = { "id",           "hash",         "role",
		                      "tenant_id",    "node",         "created_ms",
		                      "expires_ms",   "note",         limit_names[0],
		                      limit_names[1], limit_names[2], limit_names[3],
		                      "user",         "provider",     NULL };
	json_t *document = json_read(text_of(json), NULL, error);

	if (!document)
		return false;
	*token = (struct gate_token){ 0 };
	struct json_reader reader = json_reader_of(document, "", error);
	read_fields(&reader, token);
	bool ok = json_reader_end(&reader, known) && gate_identity_check(&token->identity, error);
	json_decref(document);
	return ok;
}
