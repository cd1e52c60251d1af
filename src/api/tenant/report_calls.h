/* report_calls.h - what tenants used and what it cost, over a period */
#ifndef API_TENANT_REPORT_CALLS_H
#define API_TENANT_REPORT_CALLS_H

#include "api/request/request.h"

/* GET /api/v1/tenants/{id}/usage?from&to, GET /api/v1/reports/billing?from&to&format */
/* The billing export of that period, for the service itself: reads what it is made of, and writes
 * it in `done`. */
void report_read_billing(struct request *request, int64_t from_ms, int64_t until_ms,
                         void (*done)(struct engine_request *engine));
void report_write_billing(struct request *request, struct buffer *body);
void report_calls_usage(struct request *request);
void report_calls_billing(struct request *request);
void report_calls_jobs(struct request *request);
void report_calls_owners(struct request *request);

/* Of the query. False: it was answered. The last 30 days where nothing is said. */
bool report_read_period(struct request *request, int64_t *from_ms, int64_t *until_ms);
/* A tenant that the caller may see, by its name or id. False: it was answered. */
bool report_find_tenant(struct request *request, struct text name, int64_t *id);
/* The tenant that the query names, or those that the caller may see; a count of 0 is all. False:
 * it was answered. */
bool report_read_tenants(struct request *request, const int64_t **tenant_ids, size_t *count);

#endif
