/* jwt.h - JSON Web Tokens: who signed them, and what they claim */
#ifndef API_AUTH_JWT_H
#define API_AUTH_JWT_H

#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

/* A key and its algorithm. The algorithm that a token states is compared with it and never chooses
 * one. So a public key cannot be used as an HMAC secret, and 'none' matches no key. */
struct jwt_key;

/* `algorithm` is HS256 (material: a secret of 32 bytes at least), RS256, ES256 or EdDSA (a public
 * key in PEM: RSA of 2048 to 8192 bits, of the curve P-256, of the curve Ed25519). NULL with a
 * reason that does not show the material. */
struct jwt_key *jwt_key_new(const char *id, const char *algorithm, const char *material,
                            struct error *error);
void jwt_key_free(struct jwt_key *key);

enum { JWT_BYTES_MAX = 8192, JWT_CLAIM_MAX = 96 };
/* An ID token may list hundreds of groups. */
enum { ID_TOKEN_BYTES_MAX = 64 << 10 };
/* Tolerated difference between an issuer's clock and ours. */
enum { JWT_CLOCK_SKEW_MS = 5000 };

/* What a token must say besides being signed. */
struct jwt_wanted {
	const char *audience, *issuer; /* NULL: any */
	int64_t now_ms;                /* since 1970 */
	/* An ID token of a provider: longer, and without claims of ours. */
	bool is_id_token;
};

/* Claims that are not there are empty. */
struct jwt_claims {
	char role[JWT_CLAIM_MAX], tenant[JWT_CLAIM_MAX], node[JWT_CLAIM_MAX],
	    subject[JWT_CLAIM_MAX];
	int64_t expires_ms;
};

/* What is wrong with a token. */
enum jwt_fault { JWT_SOUND, JWT_MALFORMED, JWT_NO_KEY, JWT_EXPIRED, JWT_BAD_CLAIMS, JWT_FORGED };

/* A token. Its claims are not to be trusted before its signature is checked. */
struct jwt {
	struct jwt_claims claims;
	enum jwt_fault fault;
	char key_id[JWT_CLAIM_MAX]; /* cut to size; for people */
	bool is_costly;             /* its signature is of a public key */
	uint64_t key;               /* which key signed it; by jwt_check */
	struct jwt_parts *parts;
};

/* Checks everything that needs no cryptography: form, key id, algorithm, audience, times. False
 * with a reason, and its kind in `fault`. Call jwt_close() in both cases. */
bool jwt_open(struct text token, struct jwt_key *const *keys, size_t key_count,
              const struct jwt_wanted *wanted, struct jwt *jwt, struct error *error);
/* The signature. */
bool jwt_check(struct jwt *jwt, struct jwt_key *const *keys, size_t key_count, struct error *error);
void jwt_close(struct jwt *jwt);
/* The payload, once jwt_check() has found the signature good. Until jwt_close(). */
struct text jwt_payload(const struct jwt *jwt);

/* A number for the key's id, algorithm and material. */
uint64_t jwt_key_number(const struct jwt_key *key);

/* All of the above: whether a key signed it, by its algorithm, and it is for us and for now. A
 * token with a key id is checked with the keys of that id alone, one without with those whose id is
 * empty. Otherwise false, with a reason that says what is wrong and not how to get past. */
bool jwt_verify(struct text token, struct jwt_key *const *keys, size_t key_count,
                const struct jwt_wanted *wanted, struct jwt_claims *claims, struct error *error);

/* Reads the claims of a payload that is trusted to be signed; part of the above. */
bool jwt_read_claims(struct text json, const struct jwt_wanted *wanted, struct jwt_claims *claims,
                     struct error *error);

#endif
