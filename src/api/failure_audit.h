/* failure_audit.h - failed sign-ins in the audit log: a summary for each address */
#ifndef API_FAILURE_AUDIT_H
#define API_FAILURE_AUDIT_H

#include "api/audit.h"
#include "api/desk.h"
#include "api/failures.h"

/* At most one summary a minute, so that a flood of bad tokens fills neither the log nor the
 * store. In the loop's thread alone. */
struct failure_audit;

struct failure_audit *failure_audit_new(struct desk *desk, struct failures *failures,
                                        struct audit *audit);
void failure_audit_free(struct failure_audit *failure_audit);
/* A sign-in failed. */
void failure_audit_wake(struct failure_audit *failure_audit);

#endif
