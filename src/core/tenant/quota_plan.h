/* quota_plan.h - guaranteed GPUs that follow what tenants use */
#ifndef CORE_TENANT_QUOTA_PLAN_H
#define CORE_TENANT_QUOTA_PLAN_H

#include "core/tenant/tenant.h"

/* What a tenant held of GPUs on average, with the tenants below it, and what it could be
 * guaranteed instead of its quota. Thousandths of GPUs. */
struct quota_proposal {
	int64_t tenant_id, parent_id;
	int64_t used; /* by decayed time, see tenant_usage() */
	int64_t quota, proposed;
	int64_t least, most; /* as its record has them */
	bool follows;        /* its quota is set to what is proposed, where that is switched on */
};

/* Proposes a quota for each tenant, in the order of their ids: what it used, in whole GPUs rounded
 * up, within its bounds and its limit. Where those of siblings are more than their parent is
 * guaranteed, or the cluster has, they are cut in proportion, down to their lower bounds, beside
 * the quotas of siblings that do not follow. A tenant follows if it has an upper bound. Returns an
 * array of tenants.count, to be freed with free(). */
struct quota_proposal *quota_propose(const struct tenants *tenants, int64_t total, int64_t now_ms,
                                     int64_t half_life_ms);

#endif
