/* sign.c - JSON Web Tokens for tests, good and forged */
#include "sign.h"

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <stdlib.h>
#include <string.h>

#include "api/text/base64.h"
#include "api/text/digest.h"
#include "base/error.h"
#include "base/memory.h"

EVP_PKEY *sign_rsa_key(unsigned int bits)
{
	EVP_PKEY *key = EVP_RSA_gen(bits);
	INVARIANT(key);
	return key;
}

EVP_PKEY *sign_ec_key(const char *curve)
{
	EVP_PKEY *key = EVP_EC_gen(curve);
	INVARIANT(key);
	return key;
}

char *sign_public_pem(EVP_PKEY *key)
{
	BIO *bio = BIO_new(BIO_s_mem());
	char *data = NULL;

	INVARIANT(PEM_write_bio_PUBKEY(bio, key) == 1);
	long size = BIO_get_mem_data(bio, &data);
	char *text = memory_zero(1, (size_t)size + 1);
	memcpy(text, data, (size_t)size);
	BIO_free(bio);
	return text;
}

static void signed_text(struct buffer *token, const char *header, const char *payload)
{
	base64url_write(token, header, strlen(header));
	buffer_text(token, ".");
	base64url_write(token, payload, strlen(payload));
}

static char *with_signature(struct buffer *token, const void *signature, size_t size)
{
	buffer_text(token, ".");
	base64url_write(token, signature, size);
	buffer_text(token, "");
	return token->data;
}

char *sign_bytes(const char *header, const char *payload, const void *signature, size_t size)
{
	struct buffer token = { 0 };
	signed_text(&token, header, payload);
	return with_signature(&token, signature, size);
}

char *sign_hmac(const char *header, const char *payload, const char *secret)
{
	struct buffer token = { 0 };
	unsigned char digest[DIGEST_SIZE];

	signed_text(&token, header, payload);
	digest_hmac(text_of(secret), (struct text){ token.data, token.size }, digest);
	return with_signature(&token, digest, sizeof(digest));
}

/* DER, as OpenSSL makes it, to r and s of 32 bytes each. */
static size_t flatten(unsigned char *signature, size_t size)
{
	const unsigned char *at = signature;
	ECDSA_SIG *pair = d2i_ECDSA_SIG(NULL, &at, (long)size);

	INVARIANT(pair);
	BN_bn2binpad(ECDSA_SIG_get0_r(pair), signature, 32);
	BN_bn2binpad(ECDSA_SIG_get0_s(pair), signature + 32, 32);
	ECDSA_SIG_free(pair);
	return 64;
}

char *sign_key(const char *header, const char *payload, EVP_PKEY *key)
{
	struct buffer token = { 0 };
	unsigned char signature[1024];
	size_t size = sizeof(signature);
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	bool has_digest = EVP_PKEY_get_base_id(key) != EVP_PKEY_ED25519;
	const EVP_MD *digest = has_digest ? EVP_sha256() : NULL;

	signed_text(&token, header, payload);
	INVARIANT(EVP_DigestSignInit(context, NULL, digest, NULL, key) == 1);
	INVARIANT(EVP_DigestSign(context, signature, &size, (const unsigned char *)token.data,
	                         token.size) == 1);
	EVP_MD_CTX_free(context);
	if (EVP_PKEY_get_base_id(key) == EVP_PKEY_EC)
		size = flatten(signature, size);
	return with_signature(&token, signature, size);
}
