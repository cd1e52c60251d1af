/* gate_local.h - what the files of the gate share */
#ifndef API_AUTH_GATE_LOCAL_H
#define API_AUTH_GATE_LOCAL_H

#include "api/auth/failures.h"
#include "api/auth/gate.h"
#include "api/auth/jwt.h"
#include "api/auth/rate.h"
#include "api/text/digest.h"
#include "base/map.h"

#define GATE_TOKEN_PREFIX "gst_"

/* What gate_reload replaces. */
struct gate_rules {
	bool open;
	char **hosts, **origins;
	struct jwt_key **keys;
	size_t key_count;
	char *audience, *issuer;
	struct rates *rates;
};

/* A JWT that was found good. */
struct gate_remembered {
	unsigned char digest[DIGEST_SIZE];
	int64_t until_ms;    /* 0: empty */
	uint64_t generation; /* what was found in another one does not count */
	struct identity identity;
};

/* An account (key id and subject) with a JWT that was valid. */
struct gate_account {
	uint64_t account;
	int64_t until_ms;
};

struct gate {
	struct gate_rules rules;
	/* How many failures each may still have; see gate_sign_in.c. */
	struct rates *by_address, *by_connection, *by_account;
	struct gate_remembered *remembered;
	uint64_t generation;
	struct gate_account *accounts;
	struct failures *failures;
	struct gate_token **tokens;
	size_t token_count, token_capacity;
	struct text_map by_hash, by_id;
	struct gate_tenants tenants;
	int64_t provider;           /* of sessions; 0: none */
	const char *session_cookie; /* NULL: none */
};

bool gate_refuse(struct gate_refusal *refusal, int status, const char *code, const char *text);
bool gate_refuse_rate(struct gate_refusal *refusal, int64_t wait_ms, const char *text);

/* gate_sign_in.c */
void gate_sign_in_begin(struct gate *gate);
void gate_sign_in_end(struct gate *gate);
bool gate_sign_in(struct gate *gate, const struct exchange *exchange, int64_t unix_ms,
                  struct identity *identity, struct gate_refusal *refusal);

/* "admin", "tenant", "viewer", "agent", "gateway", "inference", "tenant_admin". */
bool gate_role_read(const char *text, enum role *role);
const char *gate_role_name(enum role role);
/* Whether role and tenant go together. */
bool gate_identity_check(const struct identity *identity, struct error *error);

#endif
