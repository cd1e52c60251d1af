/* jwt.h - JSON Web Tokens: who signed them, and what they claim */
#ifndef API_AUTH_JWT_H
#define API_AUTH_JWT_H

#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

/* A key and the one algorithm that it is for. What a token says about its algorithm is
 * only compared with that, never followed: so a public key cannot be taken for the secret
 * of an HMAC, and 'none' is nobody's algorithm. */
struct jwt_key;

/* `algorithm` is HS256 (material: a secret of 32 bytes at least), RS256 or ES256 (a public
 * key in PEM: RSA of 2048 bits at least, or of the curve P-256). NULL with a reason that
 * does not show the material. */
struct jwt_key *jwt_key_new(const char *id, const char *algorithm, const char *material,
                            struct error *error);
void jwt_key_free(struct jwt_key *key);

enum { JWT_BYTES_MAX = 8192, JWT_CLAIM_MAX = 96 };
/* Clocks of those who sign may be ahead of ours by so much, or behind. */
enum { JWT_CLOCK_SKEW_MS = 5000 };

/* What a token must say besides being signed. */
struct jwt_wanted {
	const char *audience, *issuer; /* NULL: any */
	int64_t now_ms;                /* since 1970 */
};

/* Claims that are not there are empty. */
struct jwt_claims {
	char role[JWT_CLAIM_MAX], tenant[JWT_CLAIM_MAX], node[JWT_CLAIM_MAX],
	    subject[JWT_CLAIM_MAX];
	int64_t expires_ms;
};

/* What is wrong with a token. */
enum jwt_fault { JWT_SOUND, JWT_MALFORMED, JWT_NO_KEY, JWT_EXPIRED, JWT_BAD_CLAIMS, JWT_FORGED };

/* A token whose signature has not been checked yet. Until it has, its claims are only what
 * somebody says. */
struct jwt {
	struct jwt_claims claims;
	enum jwt_fault fault;
	char key_id[JWT_CLAIM_MAX]; /* cut to size; for people */
	bool is_costly;             /* its signature is of a public key */
	uint64_t key;               /* which key signed it; by jwt_check */
	struct jwt_parts *parts;
};

/* Everything that can be checked without cryptography: its form, that there is a key of its
 * id and algorithm, and that it is for us and for now. False with a reason, and `fault` says
 * of which kind it is. jwt_close is needed in any case. */
bool jwt_open(struct text token, struct jwt_key *const *keys, size_t key_count,
              const struct jwt_wanted *wanted, struct jwt *jwt, struct error *error);
/* The signature. */
bool jwt_check(struct jwt *jwt, struct jwt_key *const *keys, size_t key_count, struct error *error);
void jwt_close(struct jwt *jwt);

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
