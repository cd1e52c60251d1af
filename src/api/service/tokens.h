/* tokens.h - API tokens over REST: made, listed, revoked */
#ifndef API_SERVICE_TOKENS_H
#define API_SERVICE_TOKENS_H

#include "api/auth/gate.h"
#include "api/auth/streams.h"
#include "api/engine/audit.h"
#include "api/engine/desk.h"

/* All three are for administrators, answer the exchange now or later, and end it. */
struct tokens;
/* `streams` may be NULL. */
struct tokens *tokens_new(struct desk *desk, struct gate *gate, struct audit *audit,
                          struct streams *streams);
void tokens_free(struct tokens *tokens);

/* A token that was kept (kind "token"), at the start. False with a reason: not readable. */
bool tokens_load(struct tokens *tokens, const char *value, struct error *error);

/* POST /api/v1/tokens {"role","tenant_id","node","note","expires_in"}: 201 with the token,
 * which is not shown again. */
void tokens_create(struct tokens *tokens, struct exchange *exchange,
                   const struct identity *identity);
/* GET /api/v1/tokens: what they are, never the tokens themselves. */
void tokens_list(struct tokens *tokens, struct exchange *exchange, const struct identity *identity);
/* DELETE /api/v1/tokens/{id} */
void tokens_revoke(struct tokens *tokens, struct exchange *exchange,
                   const struct identity *identity, const char *id);

#endif
