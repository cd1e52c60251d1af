/* session_calls.h - who is asking */
#ifndef API_SESSION_CALLS_H
#define API_SESSION_CALLS_H

#include "api/request/request.h"

/* GET /api/v1/session: the caller's role and tenant. */
void session_calls_get(struct request *request);

#endif
