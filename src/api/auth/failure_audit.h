/* failure_audit.h - failed sign-ins in the audit log: a summary for each address */
#ifndef API_AUTH_FAILURE_AUDIT_H
#define API_AUTH_FAILURE_AUDIT_H

#include "api/auth/failures.h"
#include "api/engine/audit.h"
#include "api/engine/engine_port.h"

/* At most one summary a minute, so that a flood of bad tokens fills neither the log nor the
 * store. In the loop's thread alone. */
struct failure_audit;

struct failure_audit *failure_audit_new(struct engine_port *port, struct failures *failures,
                                        struct audit *audit);
void failure_audit_free(struct failure_audit *failure_audit);
/* A sign-in failed. */
void failure_audit_wake(struct failure_audit *failure_audit);

#endif
