/* billing.h - the billing export of each day, posted to the operator's receiver */
#ifndef API_TENANT_BILLING_H
#define API_TENANT_BILLING_H

#include "api/service/service.h"

/* After the end of each day in UTC its export is posted, with an id that is the same however often
 * it is sent. Which day was sent last is kept together with the delivery, so that a day is posted
 * at least once, also where the scheduler was away for up to BILLING_DAYS_MAX days. */
struct billing;

enum { BILLING_DAYS_MAX = 31 };

struct billing *billing_new(struct service *service);
void billing_free(struct billing *billing);
/* At the start: the last day that was sent; then the engine leads. */
void billing_load(struct billing *billing, const char *value);
void billing_begin(struct billing *billing);

#endif
