/* metrics.h - GET /metrics: Prometheus text */
#ifndef API_METRICS_H
#define API_METRICS_H

#include "api/request/request.h"

void metrics_get(struct request *request);

#endif
