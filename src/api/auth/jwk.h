/* jwk.h - the public keys that a provider of sign-in publishes: a JSON Web Key Set */
#ifndef API_AUTH_JWK_H
#define API_AUTH_JWK_H

#include "api/auth/jwt.h"

enum { JWK_BYTES_MAX = 256 << 10, JWK_KEYS_MAX = 64 };

/* Freed with jwk_set_free. */
struct jwk_set {
	struct jwt_key **keys;
	size_t count;
};

/* Reads a set. Each key gets the one algorithm that its kind is for: RS256 for RSA, ES256 for
 * P-256, EdDSA for Ed25519. Keys for anything else are left out, as RFC 7517 asks for: secrets,
 * other curves, keys for encryption. False with a reason if the text is not a set, if one of the
 * keys that are for us is not valid, or if none is left. */
bool jwk_set_read(struct text json, struct jwk_set *set, struct error *error);
void jwk_set_free(struct jwk_set *set);

#endif
