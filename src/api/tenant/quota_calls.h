/* quota_calls.h - guaranteed GPUs that are proposed from what tenants used */
#ifndef API_TENANT_QUOTA_CALLS_H
#define API_TENANT_QUOTA_CALLS_H

#include "api/request/request.h"

/* GET /api/v1/reports/quotas?tenant_id */
void quota_calls_get(struct request *request);

#endif
