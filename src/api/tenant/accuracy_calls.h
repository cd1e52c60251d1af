/* accuracy_calls.h - how well run times and starts were predicted, over a period */
#ifndef API_TENANT_ACCURACY_CALLS_H
#define API_TENANT_ACCURACY_CALLS_H

#include "api/request/request.h"

/* GET /api/v1/reports/predictions?from&to&tenant_id */
void accuracy_calls_get(struct request *request);

#endif
