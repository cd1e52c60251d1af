/* id_token.h - ID tokens of OpenID Connect: who signed in at the provider, and in which groups */
#ifndef API_AUTH_ID_TOKEN_H
#define API_AUTH_ID_TOKEN_H

#include <jansson.h>

#include "api/auth/jwk.h"
#include "api/read/identity.h"

/* What an ID token must say besides being signed. */
struct id_token_wanted {
	const char *issuer, *client_id;
	const char *nonce; /* NULL: the sign-in had none, as with device codes */
	/* Which claims name the user and the groups; with dots, members of members. */
	const char *user_claim, *groups_claim;
	int64_t now_ms; /* since 1970 */
};

enum { ID_TOKEN_USER_MAX = 64, ID_TOKEN_GROUPS_MAX = 1024 };

/* What a token says that was found good. Freed with id_token_free. */
struct id_token {
	char user[ID_TOKEN_USER_MAX];
	char subject[JWT_CLAIM_MAX * 3]; /* the provider's own name for the user, which never
	                                    changes */
	json_t *groups;                  /* an array of texts; may be empty */
};

/* Checks all that OpenID Connect Core (3.1.3.7) asks for: the signature by one of `keys` with the
 * key's own algorithm, issuer, audience, authorized party, times, nonce. False with a reason. */
bool id_token_read(struct text token, const struct jwk_set *keys,
                   const struct id_token_wanted *wanted, struct id_token *to, struct error *error);
void id_token_free(struct id_token *token);

/* Which role, and in which tenant, the members of a group have. */
struct group_rule {
	char *group; /* "*": everybody who can sign in */
	enum role role;
	char *tenant; /* empty: none */
};
struct group_rules {
	struct group_rule *of;
	size_t count;
};

/* Reads one rule, GROUP=ROLE or GROUP=ROLE:TENANT. The group may contain '=' and ':'. */
bool group_rule_read(const char *text, struct group_rule *rule, struct error *error);
void group_rule_free(struct group_rule *rule);
/* A list that ends with NULL. False with a reason: nothing is to be freed. */
bool group_rules_read(const char *const *texts, struct group_rules *rules, struct error *error);
void group_rules_free(struct group_rules *rules);
/* The first rule that applies to one of the groups, or NULL. */
const struct group_rule *group_rules_find(const struct group_rules *rules, const json_t *groups);

#endif
