/* quotas.c - quotas of GPUs follow what tenants use */
#include "core/quotas.h"

#include <stdlib.h>

#include "core/state.h"
#include "core/tenant/quota_plan.h"

struct quota_proposal *sched_propose_quotas(struct sched *sched, int64_t now_ms, size_t *count)
{
	const struct cluster *totals = sched_totals(sched);

	*count = sched->tenants.count;
	return quota_propose(&sched->tenants, totals->total.of[AMOUNT_GPU],
	                     max64(now_ms, sched_now(sched)), sched->config.usage_half_life_ms);
}

static void set_quota(struct sched *sched, struct tenant *tenant, int64_t quota_gpu)
{
	struct error error = { 0 };

	tenant_settle_now(&sched->tenants, tenant, sched_now(sched), &sched->config);
	struct tenant_record record = tenant->r;
	record.quota_gpu = quota_gpu;
	if (!tenants_put(&sched->tenants, &record, &error))
		panic("a quota that was proposed is refused: %s", error.text);
	sched_dirty_tenant(sched, tenant);
	sched->pass.change_seq++;
	sched_event(sched,
	            (struct event){ .kind = EVENT_TENANT_CHANGED, .tenant_id = tenant->r.id });
}

void quotas_follow(struct sched *sched)
{
	int64_t now_ms = sched_now(sched);
	size_t count;

	INVARIANT(!sched->plan.open);
	if (sched->config.quota_follow_ms == 0 ||
	    now_ms - sched->meta.quotas_ms < sched->config.quota_follow_ms)
		return;
	sched->meta.quotas_ms = now_ms;
	struct quota_proposal *proposals = sched_propose_quotas(sched, now_ms, &count);
	for (size_t i = 0; i < count; i++) {
		struct tenant *tenant = tenants_find(&sched->tenants, proposals[i].tenant_id);
		if (proposals[i].follows && proposals[i].proposed != tenant->r.quota_gpu)
			set_quota(sched, tenant, proposals[i].proposed);
	}
	free(proposals);
}
