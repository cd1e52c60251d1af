/* gate_local.h - what the files of the gate share */
#ifndef API_GATE_LOCAL_H
#define API_GATE_LOCAL_H

#include "api/gate.h"

#define GATE_TOKEN_PREFIX "gst_"

/* "admin", "tenant", "viewer", "agent". */
bool gate_role_read(const char *text, enum role *role);
const char *gate_role_name(enum role role);
/* Whether role and tenant go together. */
bool gate_identity_check(const struct identity *identity, struct error *error);

#endif
