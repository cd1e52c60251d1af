/* jwk.c - JSON Web Key Sets (RFC 7517, 7518, 8037) as keys of tokens */
#include "api/auth/jwk.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/param_build.h>
#include <stdlib.h>

#include "api/auth/jwt_local.h"
#include "api/text/base64.h"
#include "base/buffer.h"
#include "base/memory.h"
#include "json/json_reader.h"

enum {
	COORDINATE_BYTES = 32,
	ED25519_BYTES = 32,
	MODULUS_BYTES_MAX = 1024,
	EXPONENT_BYTES_MAX = 8
};

static const struct json_limits set_limits = { .bytes = JWK_BYTES_MAX, .depth = 8, .values = 8192 };

/* A member that is bytes in base64url. */
static bool read_bytes(struct json_reader *reader, const char *name, size_t least, size_t most,
                       struct buffer *bytes)
{
	struct text text = json_get_text(reader, name, 2 * most + 4);
	size_t before = bytes->size;

	if (reader->failed)
		return false;
	if (!text.data || !base64url_read(text, bytes) || bytes->size - before < least ||
	    bytes->size - before > most)
		return json_fail(reader, name, "is not %zu to %zu bytes in base64url", least, most);
	return true;
}

static EVP_PKEY *public_key_of(const char *kind, OSSL_PARAM_BLD *builder)
{
	OSSL_PARAM *parameters = OSSL_PARAM_BLD_to_param(builder);
	EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, kind, NULL);
	EVP_PKEY *key = NULL;

	if (!parameters || !context || EVP_PKEY_fromdata_init(context) != 1 ||
	    EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, parameters) != 1)
		key = NULL;
	EVP_PKEY_CTX_free(context);
	OSSL_PARAM_free(parameters);
	ERR_clear_error();
	return key;
}

static BIGNUM *number_of(const struct buffer *bytes)
{
	return BN_bin2bn((const unsigned char *)bytes->data, (int)bytes->size, NULL);
}

static EVP_PKEY *read_rsa(struct json_reader *reader)
{
	struct buffer modulus = { 0 }, exponent = { 0 };
	EVP_PKEY *key = NULL;

	if (read_bytes(reader, "n", 1, MODULUS_BYTES_MAX, &modulus) &&
	    read_bytes(reader, "e", 1, EXPONENT_BYTES_MAX, &exponent)) {
		OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
		BIGNUM *n = number_of(&modulus), *e = number_of(&exponent);
		/* An exponent of 1 would let everybody sign. */
		if (builder && n && e && BN_is_odd(e) && !BN_is_one(e) &&
		    OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_N, n) == 1 &&
		    OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_E, e) == 1)
			key = public_key_of("RSA", builder);
		BN_free(n);
		BN_free(e);
		OSSL_PARAM_BLD_free(builder);
	}
	buffer_free(&modulus);
	buffer_free(&exponent);
	return key;
}

static EVP_PKEY *read_p256(struct json_reader *reader)
{
	struct buffer point = { 0 };
	EVP_PKEY *key = NULL;

	buffer_bytes(&point, "\x04", 1); /* x and y follow */
	if (read_bytes(reader, "x", COORDINATE_BYTES, COORDINATE_BYTES, &point) &&
	    read_bytes(reader, "y", COORDINATE_BYTES, COORDINATE_BYTES, &point)) {
		OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
		if (builder &&
		    OSSL_PARAM_BLD_push_utf8_string(builder, OSSL_PKEY_PARAM_GROUP_NAME,
		                                    "prime256v1", 0) == 1 &&
		    OSSL_PARAM_BLD_push_octet_string(builder, OSSL_PKEY_PARAM_PUB_KEY, point.data,
		                                     point.size) == 1)
			key = public_key_of("EC", builder);
		OSSL_PARAM_BLD_free(builder);
	}
	buffer_free(&point);
	return key;
}

static EVP_PKEY *read_ed25519(struct json_reader *reader)
{
	struct buffer bytes = { 0 };
	EVP_PKEY *key = NULL;

	if (read_bytes(reader, "x", ED25519_BYTES, ED25519_BYTES, &bytes))
		key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL,
		                                  (const unsigned char *)bytes.data, bytes.size);
	buffer_free(&bytes);
	ERR_clear_error();
	return key;
}

/* The kinds of keys that are for us. */
static const struct key_kind {
	const char *type, *curve; /* curve NULL: it has none */
	enum jwt_algorithm algorithm;
	EVP_PKEY *(*read)(struct json_reader *reader);
} key_kinds[] = {
	{ "RSA", NULL, JWT_RS256, read_rsa },
	{ "EC", "P-256", JWT_ES256, read_p256 },
	{ "OKP", "Ed25519", JWT_EDDSA, read_ed25519 },
};

static bool has_text(const json_t *object, const char *name, const char *wanted)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text && strcmp(text, wanted) == 0;
}

/* NULL: the key is for something else. */
static const struct key_kind *kind_of(const json_t *object)
{
	for (size_t i = 0; i < sizeof(key_kinds) / sizeof(*key_kinds); i++) {
		const struct key_kind *kind = &key_kinds[i];
		const char *algorithm = jwt_algorithm_names[kind->algorithm];

		if (has_text(object, "kty", kind->type) &&
		    (!kind->curve || has_text(object, "crv", kind->curve)) &&
		    (!json_object_get(object, "use") || has_text(object, "use", "sig")) &&
		    (!json_object_get(object, "alg") || has_text(object, "alg", algorithm)))
			return kind;
	}
	return NULL;
}

/* True: it was added, or is for something else. */
static bool add_key(struct jwk_set *set, const json_t *object, size_t place, struct error *error)
{
	char where[32], id[JWT_CLAIM_MAX * 2] = "";
	const struct key_kind *kind = json_is_object(object) ? kind_of(object) : NULL;

	if (!kind)
		return true;
	snprintf(where, sizeof(where), "keys[%zu].", place);
	struct json_reader reader = json_reader_of(object, where, error);
	struct text kid = json_get_text(&reader, "kid", sizeof(id) - 1);
	if (!reader.failed && kid.size > 0)
		memcpy(id, kid.data, kid.size);
	EVP_PKEY *public_key = reader.failed ? NULL : kind->read(&reader);
	if (!public_key) {
		if (!reader.failed)
			json_fail(&reader, "kty", "is of a key that is not valid");
		return false;
	}
	struct jwt_key *key = jwt_key_of_public(id, kind->algorithm, public_key, error);
	if (!key)
		return false;
	set->keys[set->count++] = key;
	return true;
}

bool jwk_set_read(struct text json, struct jwk_set *set, struct error *error)
{
	json_t *document = json_read(json, &set_limits, error);

	*set = (struct jwk_set){ 0 };
	if (!document)
		return false;
	struct json_reader reader = json_reader_of(document, "", error);
	const json_t *keys = json_need_array(&reader, "keys", JWK_KEYS_MAX);
	bool ok = !reader.failed;
	set->keys = memory_zero(JWK_KEYS_MAX, sizeof(struct jwt_key *));
	for (size_t i = 0; ok && i < json_array_size(keys); i++)
		ok = add_key(set, json_array_get(keys, i), i, error);
	if (ok && set->count == 0)
		ok = error_set(error, ERROR_INVALID,
		               "no key of the set is for RS256, ES256 or EdDSA");
	json_decref(document);
	if (!ok)
		jwk_set_free(set);
	return ok;
}

void jwk_set_free(struct jwk_set *set)
{
	for (size_t i = 0; i < set->count; i++)
		jwt_key_free(set->keys[i]);
	free(set->keys);
	*set = (struct jwk_set){ 0 };
}
