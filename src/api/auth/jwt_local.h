/* jwt_local.h - what the files of jwt share */
#ifndef API_AUTH_JWT_LOCAL_H
#define API_AUTH_JWT_LOCAL_H

#include <openssl/evp.h>

#include "api/auth/jwt.h"

enum jwt_algorithm { JWT_HS256, JWT_RS256, JWT_ES256, JWT_EDDSA, JWT_ALGORITHMS };
extern const char *const jwt_algorithm_names[JWT_ALGORITHMS];

/* Of `secret` and `public_key` the one that the algorithm is for. */
struct jwt_key {
	char *id;
	enum jwt_algorithm algorithm;
	char *secret;
	size_t secret_size;
	EVP_PKEY *public_key;
	uint64_t number; /* of id, algorithm and material */
};

/* A public key that is already read, which is freed in any case. NULL with a reason if it is not
 * one of that algorithm, or too weak. */
struct jwt_key *jwt_key_of_public(const char *id, enum jwt_algorithm algorithm,
                                  EVP_PKEY *public_key, struct error *error);

/* Whether the key made this signature of `text`. */
bool jwt_key_signed(const struct jwt_key *key, struct text text, struct text signature);

#endif
