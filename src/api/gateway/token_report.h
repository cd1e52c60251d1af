/* token_report.h - what tokens of models were used and what they cost, over a period */
#ifndef API_GATEWAY_TOKEN_REPORT_H
#define API_GATEWAY_TOKEN_REPORT_H

#include "api/gateway/gateways.h"

/* GET /api/v1/reports/tokens?from&to&tenant_id: by tenant, key, model and adapter. */
void token_report_get(struct request *request);

#endif
