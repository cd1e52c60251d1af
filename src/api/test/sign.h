/* sign.h - JSON Web Tokens for tests, good and forged */
#ifndef API_TEST_SIGN_H
#define API_TEST_SIGN_H

#include <openssl/evp.h>

#include "base/buffer.h"

/* A key pair; the public key in PEM, to be freed. */
EVP_PKEY *sign_rsa_key(unsigned int bits);
EVP_PKEY *sign_ec_key(const char *curve);
char *sign_public_pem(EVP_PKEY *key);

/* header.payload.signature; the signature by HMAC, by a key, or given as bytes. To be freed. */
char *sign_hmac(const char *header, const char *payload, const char *secret);
char *sign_key(const char *header, const char *payload, EVP_PKEY *key);
char *sign_bytes(const char *header, const char *payload, const void *signature, size_t size);

#endif
