/* report_calls.h - what tenants used and what it cost, over a period */
#ifndef API_TENANT_REPORT_CALLS_H
#define API_TENANT_REPORT_CALLS_H

#include "api/request/request.h"

/* GET /api/v1/tenants/{id}/usage?from&to, GET /api/v1/reports/billing?from&to&format */
void report_calls_usage(struct request *request);
void report_calls_billing(struct request *request);
void report_calls_jobs(struct request *request);

#endif
