/* identity.h - who asks, and what they may see and touch */
#ifndef API_READ_IDENTITY_H
#define API_READ_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum role {
	ROLE_ADMIN,     /* everything */
	ROLE_TENANT,    /* its own tenant and those below it: jobs, models, reports */
	ROLE_VIEWER,    /* reads: of its tenant (and below), or of all where tenant_id is 0 */
	ROLE_AGENT,     /* a node: AgentService alone, and only as the node it is named after */
	ROLE_GATEWAY,   /* a gateway: GatewayService alone, and only under its name */
	ROLE_INFERENCE, /* asks models by a gateway, for its tenant, and nothing else */
	/* Like ROLE_TENANT, and changes all jobs and tokens of its tenant and those below it. */
	ROLE_TENANT_ADMIN,
};

/* What an identity was established by, so that the gate can tell later whether it still
 * holds. */
struct credential {
	enum { CREDENTIAL_OPEN, CREDENTIAL_TOKEN, CREDENTIAL_JWT } kind;
	int64_t expires_ms; /* since 1970; 0: never */
	uint64_t key;       /* JWT: the key, and what else was required of the token */
	char text[96];      /* token: its id. JWT: its tenant as the token names it */
};

struct identity {
	enum role role;
	int64_t tenant_id; /* 0: bound to none */
	char name[96];     /* for the audit log: "token t-3f2a", "jwt alice", "open" */
	char node[96];     /* ROLE_AGENT, ROLE_GATEWAY: its name; empty: any */
	struct credential credential;
};

/* The user: the id of a token, or the subject of a JWT. Empty without sign-in. */
static inline const char *identity_user(const struct identity *identity)
{
	if (identity->credential.kind == CREDENTIAL_OPEN)
		return "";
	const char *space = strchr(identity->name, ' ');
	return space ? space + 1 : "";
}
/* The tenant that explanations are redacted for; 0 sees all. */
static inline int64_t identity_viewer(const struct identity *identity)
{
	return identity->tenant_id;
}
/* True if it may change anything. */
static inline bool identity_may_change(const struct identity *identity)
{
	return identity->role == ROLE_ADMIN || identity->role == ROLE_TENANT ||
	       identity->role == ROLE_TENANT_ADMIN;
}
/* True if it may change what others of its tenant, or of any, made. */
static inline bool identity_may_manage(const struct identity *identity)
{
	return identity->role == ROLE_ADMIN || identity->role == ROLE_TENANT_ADMIN;
}

#endif
