/* tokens.h - API tokens over REST: made, listed, revoked; and who changed what */
#ifndef API_SERVICE_TOKENS_H
#define API_SERVICE_TOKENS_H

#include "api/request/request.h"

/* A token that was kept (kind "token"), at the start. False with a reason: not readable. */
bool tokens_load(struct gate *gate, const char *value, struct error *error);

/* POST /api/v1/tokens {"role","tenant_id","node","note","expires_in"}: 201 with the token,
 * which is not shown again. */
void tokens_create(struct request *request);
/* GET /api/v1/tokens: what they are, never the tokens themselves. */
void tokens_list(struct request *request);
/* DELETE /api/v1/tokens/{id} */
void tokens_revoke(struct request *request);

/* GET /api/v1/audit?limit&before */
void audit_calls_list(struct request *request);

#endif
