/* handed_calls.h - requests that others answer: leases, tokens and the audit log */
#ifndef API_HANDED_CALLS_H
#define API_HANDED_CALLS_H

#include "api/service/call.h"

void handed_lease_create(struct call *call);
void handed_lease_show(struct call *call);
void handed_lease_delete(struct call *call);
void handed_lease_renew(struct call *call);
void handed_token_create(struct call *call);
void handed_token_list(struct call *call);
void handed_token_revoke(struct call *call);
void handed_audit(struct call *call);

#endif
