/* id_token.c - ID tokens of OpenID Connect, checked by ourselves with OpenSSL */
#include "api/auth/id_token.h"

#include "api/text/digest.h"
#include "json/json_reader.h"

static const struct json_limits limits = { .bytes = ID_TOKEN_BYTES_MAX,
	                                   .depth = 8,
	                                   .values = 4096 };

/* A claim; "realm_access.roles" is the member "roles" of the claim "realm_access". A claim whose
 * own name has the dots comes first. */
static const json_t *find_claim(const json_t *claims, const char *name)
{
	const json_t *value = json_object_get(claims, name);
	const char *dot = strchr(name, '.');
	char first[JWT_CLAIM_MAX];

	if (value || !dot || (size_t)(dot - name) >= sizeof(first))
		return value;
	memcpy(first, name, (size_t)(dot - name));
	first[dot - name] = '\0';
	return find_claim(json_object_get(claims, first), dot + 1);
}

static bool refuse_id_token(struct error *error, const char *sentence)
{
	return error_set(error, ERROR_FORBIDDEN, "%s", sentence);
}

static bool is_claim(const json_t *claims, const char *name, const char *wanted)
{
	const json_t *value = json_object_get(claims, name);

	return json_is_string(value) && json_string_length(value) == strlen(wanted) &&
	       digest_equal(json_string_value(value), wanted, strlen(wanted));
}

/* What was asked for, and for whom: a token for another client, or from another sign-in, is not
 * for us. */
static bool check_party(const json_t *claims, const struct id_token_wanted *wanted,
                        struct error *error)
{
	bool has_party = json_object_get(claims, "azp") != NULL;

	if (json_array_size(json_object_get(claims, "aud")) > 1 && !has_party)
		return refuse_id_token(error,
		                       "the ID token is for several audiences and does not say "
		                       "which asked for it ('azp')");
	if (has_party && !is_claim(claims, "azp", wanted->client_id))
		return refuse_id_token(error,
		                       "the ID token was asked for by another client ('azp')");
	if (wanted->nonce && !is_claim(claims, "nonce", wanted->nonce))
		return refuse_id_token(error, "the ID token belongs to another sign-in ('nonce')");
	return true;
}

static bool copy_claim(const json_t *claims, const char *name, char *to, size_t size,
                       struct error *error)
{
	const json_t *value = find_claim(claims, name);
	struct text text = { json_string_value(value), json_string_length(value) };

	if (!json_is_string(value) || text.size == 0 || text.size >= size)
		return error_set(error, ERROR_FORBIDDEN,
		                 "'%.60s' of the ID token is missing, or not a text of 1 to %zu "
		                 "bytes",
		                 name, size - 1);
	if (text_has_control(text) || strlen(text.data) != text.size)
		return error_set(error, ERROR_FORBIDDEN,
		                 "'%.60s' of the ID token has control characters in it", name);
	memcpy(to, text.data, text.size + 1);
	return true;
}

/* t-20df1e19dc55: a user of that name would pass for an API token. */
static bool is_like_token(const char *user)
{
	return strncmp(user, "t-", 2) == 0 && strlen(user) == 14 &&
	       strspn(user + 2, "0123456789abcdef") == 12;
}

static bool read_user(const json_t *claims, const struct id_token_wanted *wanted,
                      struct id_token *to, struct error *error)
{
	const json_t *verified = json_object_get(claims, "email_verified");

	if (!copy_claim(claims, "sub", to->subject, sizeof(to->subject), error) ||
	    !copy_claim(claims, wanted->user_claim, to->user, sizeof(to->user), error))
		return false;
	if (strcmp(wanted->user_claim, "email") == 0 && verified && !json_is_true(verified))
		return refuse_id_token(error, "the provider has not verified the user's address "
		                              "('email_verified')");
	if (is_like_token(to->user))
		return refuse_id_token(error, "the user's name looks like the id of an API token");
	return true;
}

/* One text, or a list of them. A provider that has none leaves the claim out. */
static bool read_groups(const json_t *claims, const struct id_token_wanted *wanted,
                        struct id_token *to, struct error *error)
{
	const json_t *value = find_claim(claims, wanted->groups_claim);
	bool ok = !value || json_is_null(value) || json_is_string(value) ||
	          (json_is_array(value) && json_array_size(value) <= ID_TOKEN_GROUPS_MAX);

	to->groups = json_array();
	if (ok && json_is_string(value))
		json_array_append(to->groups, (json_t *)value);
	for (size_t i = 0; ok && i < json_array_size(value); i++) {
		json_t *group = json_array_get(value, i);
		ok = json_is_string(group);
		if (ok)
			json_array_append(to->groups, group);
	}
	return ok || error_set(error, ERROR_FORBIDDEN,
	                       "'%.60s' of the ID token is not a list of at most %d texts",
	                       wanted->groups_claim, ID_TOKEN_GROUPS_MAX);
}

bool id_token_read(struct text token, const struct jwk_set *keys,
                   const struct id_token_wanted *wanted, struct id_token *to, struct error *error)
{
	const struct jwt_wanted signed_for = { .audience = wanted->client_id,
		                               .issuer = wanted->issuer,
		                               .now_ms = wanted->now_ms,
		                               .is_id_token = true };
	json_t *claims = NULL;
	struct jwt jwt;

	*to = (struct id_token){ 0 };
	bool ok = jwt_open(token, keys->keys, keys->count, &signed_for, &jwt, error) &&
	          jwt_check(&jwt, keys->keys, keys->count, error) &&
	          (claims = json_read(jwt_payload(&jwt), &limits, error)) != NULL &&
	          check_party(claims, wanted, error) && read_user(claims, wanted, to, error) &&
	          read_groups(claims, wanted, to, error);
	json_decref(claims);
	jwt_close(&jwt);
	if (!ok)
		id_token_free(to);
	return ok;
}

void id_token_free(struct id_token *token)
{
	json_decref(token->groups);
	*token = (struct id_token){ 0 };
}
