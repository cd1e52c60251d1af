/* jwt.c - JSON Web Tokens: taken apart strictly, checked with the keys that are configured */
#include "api/auth/jwt.h"

#include <math.h>
#include <stdlib.h>

#include "api/auth/jwt_local.h"
#include "api/text/base64.h"
#include "base/buffer.h"
#include "base/memory.h"
#include "json/json_reader.h"

enum { AUDIENCES_MAX = 32 };

static const struct json_limits small = { .bytes = JWT_BYTES_MAX, .depth = 8, .values = 256 };
static const struct json_limits large = { .bytes = ID_TOKEN_BYTES_MAX, .depth = 8, .values = 4096 };

/* What a token is made of: texts of the token, and decoded. */
struct jwt_parts {
	struct text signed_text; /* header and payload as they were signed */
	struct text header, payload, signature;
	struct text algorithm, id; /* of the header */
	json_t *document;          /* that they are in */
	struct buffer storage;
};

static bool jwt_decode(struct jwt_parts *parts, struct text text, size_t *from, size_t *size)
{
	*from = parts->storage.size;
	if (text.size == 0 || !base64url_read(text, &parts->storage))
		return false;
	*size = parts->storage.size - *from;
	return true;
}

static bool take_apart(struct text token, size_t bytes_max, struct jwt_parts *parts)
{
	struct text of[3];
	size_t from[3], size[3];

	if (token.size > bytes_max)
		return false;
	for (int i = 0; i < 3; i++) {
		const char *dot = memchr(token.data, '.', token.size);
		if ((dot == NULL) != (i == 2))
			return false;
		of[i] = (struct text){ token.data, dot ? (size_t)(dot - token.data) : token.size };
		token = text_from(token, dot ? of[i].size + 1 : of[i].size);
	}
	parts->signed_text = (struct text){ of[0].data, of[0].size + 1 + of[1].size };
	for (int i = 0; i < 3; i++)
		if (!jwt_decode(parts, of[i], &from[i], &size[i]))
			return false;
	const char *storage = parts->storage.data;
	parts->header = (struct text){ storage + from[0], size[0] };
	parts->payload = (struct text){ storage + from[1], size[1] };
	parts->signature = (struct text){ storage + from[2], size[2] };
	return true;
}

/* Nothing of the header is followed: it has to agree with a key that we have. */
static bool jwt_matches(const struct jwt_parts *parts, const struct jwt_key *key)
{
	return text_is(parts->id, key->id) &&
	       text_is(parts->algorithm, jwt_algorithm_names[key->algorithm]);
}

static bool read_header(struct jwt *jwt, struct error *error)
{
	struct jwt_parts *parts = jwt->parts;

	jwt->fault = JWT_MALFORMED;
	parts->document = json_read(parts->header, &small, error);
	struct json_reader reader = json_reader_of(parts->document, "", error);
	parts->algorithm = json_get_text(&reader, "alg", JWT_CLAIM_MAX);
	parts->id = json_get_text(&reader, "kid", JWT_BYTES_MAX);
	if (!parts->document || reader.failed)
		return error_set(error, ERROR_FORBIDDEN, "the header of the token is not valid");
	if (json_object_get(parts->document, "crit"))
		return error_set(error, ERROR_FORBIDDEN,
		                 "the token asks for extensions ('crit') that are not supported");
	size_t size = parts->id.size < JWT_CLAIM_MAX ? parts->id.size : JWT_CLAIM_MAX - 1;
	if (size > 0)
		memcpy(jwt->key_id, parts->id.data, size);
	return true;
}

/* Whether there is a key that the token may be signed with. */
static bool has_key(struct jwt *jwt, struct jwt_key *const *keys, size_t key_count,
                    struct error *error)
{
	bool found = false;

	for (size_t i = 0; i < key_count; i++) {
		if (!jwt_matches(jwt->parts, keys[i]))
			continue;
		found = true;
		jwt->is_costly |= keys[i]->algorithm != JWT_HS256;
	}
	if (found)
		return true;
	jwt->fault = JWT_NO_KEY;
	return error_set(error, ERROR_FORBIDDEN,
	                 "the token is not signed with a key that is known here");
}

/* Seconds since 1970, which may have decimals, as milliseconds. */
static bool jwt_read_time(const json_t *claims, const char *name, int64_t *time_ms)
{
	const json_t *value = json_object_get(claims, name);
	double seconds = json_number_value(value);

	if (!json_is_number(value) || !isfinite(seconds) || seconds < 0 || seconds > 1e12)
		return false;
	*time_ms = (int64_t)(seconds * 1000);
	return true;
}

static bool check_times(const json_t *object, int64_t now_ms, struct jwt_claims *claims,
                        struct error *error)
{
	int64_t not_before_ms = 0;

	if (!jwt_read_time(object, "exp", &claims->expires_ms))
		return error_set(error, ERROR_FORBIDDEN,
		                 "the token does not say when it expires ('exp')");
	if (json_object_get(object, "nbf") && !jwt_read_time(object, "nbf", &not_before_ms))
		return error_set(error, ERROR_FORBIDDEN, "'nbf' of the token is not a time");
	if (now_ms >= claims->expires_ms + JWT_CLOCK_SKEW_MS)
		return error_set(error, ERROR_FORBIDDEN, "the token has expired");
	if (now_ms < not_before_ms - JWT_CLOCK_SKEW_MS)
		return error_set(error, ERROR_FORBIDDEN, "the token is not valid yet");
	return true;
}

static bool is_text(const json_t *value, const char *text)
{
	return json_is_string(value) && json_string_length(value) == strlen(text) &&
	       strcmp(json_string_value(value), text) == 0;
}

/* One text, or a list of them. */
static bool has_audience(const json_t *audience, const char *wanted)
{
	bool found = is_text(audience, wanted);

	for (size_t i = 0; i < json_array_size(audience) && i < AUDIENCES_MAX; i++)
		found |= is_text(json_array_get(audience, i), wanted);
	return found;
}

static bool read_claim(const json_t *object, const char *name, char to[JWT_CLAIM_MAX],
                       struct error *error)
{
	const json_t *value = json_object_get(object, name);
	size_t size = json_string_length(value);

	to[0] = '\0';
	if (!value || json_is_null(value))
		return true;
	if (!json_is_string(value) || size >= JWT_CLAIM_MAX)
		return error_set(error, ERROR_FORBIDDEN,
		                 "'%s' of the token is not a text of less than %d bytes", name,
		                 JWT_CLAIM_MAX);
	if (text_has_control((struct text){ json_string_value(value), size }))
		return error_set(error, ERROR_FORBIDDEN,
		                 "'%s' of the token has control characters in it", name);
	memcpy(to, json_string_value(value), size + 1);
	return true;
}

bool jwt_read_claims(struct text json, const struct jwt_wanted *wanted, struct jwt_claims *claims,
                     struct error *error)
{
	json_t *object = json_read(json, wanted->is_id_token ? &large : &small, error);
	bool ok = false;

	if (!json_is_object(object)) {
		error_set(error, ERROR_FORBIDDEN, "what the token claims is not a JSON object");
	} else if (wanted->audience &&
	           !has_audience(json_object_get(object, "aud"), wanted->audience)) {
		error_set(error, ERROR_FORBIDDEN, "the token is for another audience ('aud')");
	} else if (wanted->issuer && !is_text(json_object_get(object, "iss"), wanted->issuer)) {
		error_set(error, ERROR_FORBIDDEN, "the token is from another issuer ('iss')");
	} else {
		ok = check_times(object, wanted->now_ms, claims, error) &&
		     (wanted->is_id_token || (read_claim(object, "role", claims->role, error) &&
		                              read_claim(object, "tenant", claims->tenant, error) &&
		                              read_claim(object, "node", claims->node, error) &&
		                              read_claim(object, "sub", claims->subject, error)));
	}
	json_decref(object);
	return ok;
}

bool jwt_open(struct text token, struct jwt_key *const *keys, size_t key_count,
              const struct jwt_wanted *wanted, struct jwt *jwt, struct error *error)
{
	*jwt = (struct jwt){ .fault = JWT_MALFORMED, .parts = NEW(struct jwt_parts) };
	if (!take_apart(token, wanted->is_id_token ? ID_TOKEN_BYTES_MAX : JWT_BYTES_MAX,
	                jwt->parts))
		return error_set(
		    error, ERROR_FORBIDDEN,
		    "the token is not three parts of base64url with dots between them");
	if (!read_header(jwt, error) || !has_key(jwt, keys, key_count, error))
		return false;
	jwt->fault = JWT_BAD_CLAIMS;
	if (!jwt_read_claims(jwt->parts->payload, wanted, &jwt->claims, error)) {
		if (jwt->claims.expires_ms > 0 &&
		    wanted->now_ms >= jwt->claims.expires_ms + JWT_CLOCK_SKEW_MS)
			jwt->fault = JWT_EXPIRED;
		return false;
	}
	jwt->fault = JWT_SOUND;
	return true;
}

bool jwt_check(struct jwt *jwt, struct jwt_key *const *keys, size_t key_count, struct error *error)
{
	const struct jwt_parts *parts = jwt->parts;

	for (size_t i = 0; i < key_count; i++)
		if (jwt_matches(parts, keys[i]) &&
		    jwt_key_signed(keys[i], parts->signed_text, parts->signature)) {
			jwt->key = keys[i]->number;
			error_clear(error);
			return true;
		}
	jwt->fault = JWT_FORGED;
	return error_set(error, ERROR_FORBIDDEN,
	                 "the token is not signed with a key that is known here");
}

struct text jwt_payload(const struct jwt *jwt)
{
	INVARIANT(jwt->parts && jwt->fault == JWT_SOUND);
	return jwt->parts->payload;
}

void jwt_close(struct jwt *jwt)
{
	if (!jwt->parts)
		return;
	json_decref(jwt->parts->document);
	buffer_free(&jwt->parts->storage);
	free(jwt->parts);
	jwt->parts = NULL;
}

bool jwt_verify(struct text token, struct jwt_key *const *keys, size_t key_count,
                const struct jwt_wanted *wanted, struct jwt_claims *claims, struct error *error)
{
	struct jwt jwt;
	bool ok = jwt_open(token, keys, key_count, wanted, &jwt, error) &&
	          jwt_check(&jwt, keys, key_count, error);

	*claims = jwt.claims;
	jwt_close(&jwt);
	return ok;
}
