/* jwt_key.c - keys of JSON Web Tokens, and signatures made with them */
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdlib.h>

#include "api/auth/jwt_local.h"
#include "api/text/digest.h"
#include "base/hash.h"
#include "base/memory.h"

/* A larger RSA key makes each check of a signature cost milliseconds. */
enum { SECRET_BYTES_MIN = 32, RSA_BITS_MIN = 2048, RSA_BITS_MAX = 8192, ES256_HALF = 32 };

const char *const jwt_algorithm_names[JWT_ALGORITHMS] = { "HS256", "RS256", "ES256", "EdDSA" };

static bool set_secret(struct jwt_key *key, const char *material, struct error *error)
{
	size_t size = strlen(material);

	/* Whoever knows a public key could sign with it. */
	if (strstr(material, "-----BEGIN"))
		return error_set(
		    error, ERROR_INVALID,
		    "key '%s' is for HS256 and looks like a key in PEM: give a secret, "
		    "or RS256, ES256 or EdDSA as its algorithm",
		    key->id);
	if (size < SECRET_BYTES_MIN)
		return error_set(error, ERROR_INVALID,
		                 "the secret of key '%s' has %zu bytes and needs at least %d",
		                 key->id, size, SECRET_BYTES_MIN);
	key->secret = memory_text(material);
	key->secret_size = size;
	return true;
}

static EVP_PKEY *read_public_key(const char *pem)
{
	BIO *bio = BIO_new_mem_buf(pem, -1);
	EVP_PKEY *key = bio ? PEM_read_bio_PUBKEY(bio, NULL, NULL, NULL) : NULL;

	BIO_free(bio);
	ERR_clear_error();
	return key;
}

static bool is_on_p256(const EVP_PKEY *key)
{
	char group[32] = "";
	size_t size = 0;

	return EVP_PKEY_get_group_name(key, group, sizeof(group), &size) == 1 &&
	       strcmp(group, "prime256v1") == 0;
}

/* Whether the public key is one of the key's algorithm. */
static bool check_public_key(const struct jwt_key *key, struct error *error)
{
	int kind = EVP_PKEY_get_base_id(key->public_key), bits = EVP_PKEY_get_bits(key->public_key);

	if (key->algorithm == JWT_RS256 &&
	    (kind != EVP_PKEY_RSA || bits < RSA_BITS_MIN || bits > RSA_BITS_MAX))
		return error_set(error, ERROR_INVALID,
		                 "key '%s' is for RS256 and not an RSA key of %d to %d bits",
		                 key->id, RSA_BITS_MIN, RSA_BITS_MAX);
	if (key->algorithm == JWT_ES256 && (kind != EVP_PKEY_EC || !is_on_p256(key->public_key)))
		return error_set(error, ERROR_INVALID,
		                 "key '%s' is for ES256 and not a key of the curve P-256", key->id);
	if (key->algorithm == JWT_EDDSA && kind != EVP_PKEY_ED25519)
		return error_set(error, ERROR_INVALID,
		                 "key '%s' is for EdDSA and not a key of the curve Ed25519",
		                 key->id);
	return true;
}

static bool set_public_key(struct jwt_key *key, const char *material, struct error *error)
{
	key->public_key = read_public_key(material);
	if (!key->public_key)
		return error_set(
		    error, ERROR_INVALID,
		    "key '%s' is not a public key in PEM ('-----BEGIN PUBLIC KEY-----')", key->id);
	return check_public_key(key, error);
}

static uint64_t jwt_key_number_of(const struct jwt_key *key, const char *material)
{
	unsigned char digest[DIGEST_SIZE];
	uint64_t number;

	digest_sha256(text_of(material), digest);
	memcpy(&number, digest, sizeof(number));
	return hash_combine(hash_combine(number, hash_text(key->id)), (uint64_t)key->algorithm);
}

uint64_t jwt_key_number(const struct jwt_key *key)
{
	return key->number;
}

struct jwt_key *jwt_key_new(const char *id, const char *algorithm, const char *material,
                            struct error *error)
{
	struct jwt_key *key = NEW(struct jwt_key);
	int which = 0;

	key->id = memory_text(id ? id : "");
	while (which < JWT_ALGORITHMS &&
	       (!algorithm || strcmp(algorithm, jwt_algorithm_names[which]) != 0))
		which++;
	key->algorithm = (enum jwt_algorithm)which;
	bool ok = false;
	if (which == JWT_ALGORITHMS)
		error_set(error, ERROR_INVALID,
		          "key '%s' has the algorithm '%s': it is one of HS256, RS256, ES256 and "
		          "EdDSA",
		          key->id, algorithm ? algorithm : "");
	else if (!material)
		error_set(error, ERROR_INVALID, "key '%s' has no secret and no public key",
		          key->id);
	else if (key->algorithm == JWT_HS256)
		ok = set_secret(key, material, error);
	else
		ok = set_public_key(key, material, error);
	if (ok) {
		key->number = jwt_key_number_of(key, material);
		return key;
	}
	jwt_key_free(key);
	return NULL;
}

struct jwt_key *jwt_key_of_public(const char *id, enum jwt_algorithm algorithm,
                                  EVP_PKEY *public_key, struct error *error)
{
	INVARIANT(public_key && algorithm != JWT_HS256 && algorithm < JWT_ALGORITHMS);
	struct jwt_key *key = NEW(struct jwt_key);

	key->id = memory_text(id);
	key->algorithm = algorithm;
	key->public_key = public_key;
	key->number = hash_combine(hash_text(id), (uint64_t)algorithm);
	if (check_public_key(key, error))
		return key;
	jwt_key_free(key);
	return NULL;
}

void jwt_key_free(struct jwt_key *key)
{
	if (!key)
		return;
	if (key->secret)
		OPENSSL_cleanse(key->secret, key->secret_size);
	free(key->secret);
	EVP_PKEY_free(key->public_key);
	free(key->id);
	free(key);
}

/* `digest` is NULL for EdDSA, which has its own. */
static bool verify(EVP_PKEY *key, const EVP_MD *digest, struct text text,
                   const unsigned char *signature, size_t size)
{
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	bool ok = context && EVP_DigestVerifyInit(context, NULL, digest, NULL, key) == 1 &&
	          EVP_DigestVerify(context, signature, size, (const unsigned char *)text.data,
	                           text.size) == 1;

	EVP_MD_CTX_free(context);
	ERR_clear_error();
	return ok;
}

/* A token has r and s one after the other, OpenSSL wants them in DER. */
static bool verify_es256(EVP_PKEY *key, struct text text, struct text signature)
{
	if (signature.size != (size_t)2 * ES256_HALF)
		return false;
	const unsigned char *at = (const unsigned char *)signature.data;
	ECDSA_SIG *pair = ECDSA_SIG_new();
	BIGNUM *r = BN_bin2bn(at, ES256_HALF, NULL);
	BIGNUM *s = BN_bin2bn(at + ES256_HALF, ES256_HALF, NULL);
	unsigned char *der = NULL;
	bool ok = false;

	if (!pair || !r || !s || ECDSA_SIG_set0(pair, r, s) != 1) {
		BN_free(r);
		BN_free(s);
	} else {
		int size = i2d_ECDSA_SIG(pair, &der);
		ok = size > 0 && verify(key, EVP_sha256(), text, der, (size_t)size);
	}
	OPENSSL_free(der);
	ECDSA_SIG_free(pair);
	return ok;
}

bool jwt_key_signed(const struct jwt_key *key, struct text text, struct text signature)
{
	unsigned char expected[DIGEST_SIZE];

	switch (key->algorithm) {
	case JWT_HS256:
		digest_hmac((struct text){ key->secret, key->secret_size }, text, expected);
		return signature.size == DIGEST_SIZE &&
		       digest_equal(expected, signature.data, DIGEST_SIZE);
	case JWT_RS256:
		return verify(key->public_key, EVP_sha256(), text,
		              (const unsigned char *)signature.data, signature.size);
	case JWT_EDDSA:
		return verify(key->public_key, NULL, text, (const unsigned char *)signature.data,
		              signature.size);
	case JWT_ES256:
		return verify_es256(key->public_key, text, signature);
	default:
		panic("algorithm %d is none", (int)key->algorithm);
	}
}
