/* metrics.h - GET /metrics: Prometheus text */
#ifndef API_METRICS_H
#define API_METRICS_H

#include "api/request/call.h"

void metrics_get(struct call *call);

#endif
