/* quota_plan.c - guaranteed GPUs that follow what tenants use */
#include "core/tenant/quota_plan.h"

#include <stdlib.h>

#include "base/number.h"

static int64_t whole_gpus_up(int64_t milli)
{
	return (milli + WHOLE_GPU - 1) / WHOLE_GPU * WHOLE_GPU;
}

/* What the tenant used, within its bounds, whatever others have. */
static struct quota_proposal propose_alone(const struct tenant *tenant, int64_t total,
                                           int64_t now_ms, int64_t half_life_ms)
{
	const struct tenant_record *r = &tenant->r;
	struct quota_proposal proposal = {
		.tenant_id = r->id,
		.parent_id = r->parent_id,
		.used = tenant_average(tenant, AMOUNT_GPU, now_ms, half_life_ms),
		.quota = r->quota_gpu,
		.least = r->quota_gpu_least,
		.most = r->quota_gpu_most,
		.follows = r->quota_gpu_most > 0,
	};

	proposal.proposed = min64(whole_gpus_up(proposal.used), total);
	if (proposal.follows)
		proposal.proposed = min64(proposal.proposed, proposal.most);
	proposal.proposed = max64(proposal.proposed, proposal.least);
	if (r->limit_gpu != UNLIMITED)
		proposal.proposed = min64(proposal.proposed, r->limit_gpu);
	return proposal;
}

/* What siblings are guaranteed that do not follow, what those that do have at the least, and what
 * they would have beyond that. */
struct siblings {
	int64_t fixed, least, beyond;
};

static int64_t quota_least(const struct quota_proposal *proposal)
{
	return min64(proposal->least, proposal->proposed);
}

static struct siblings siblings_of(const struct quota_proposal *proposals, size_t count,
                                   int64_t parent_id)
{
	struct siblings sum = { 0 };

	for (size_t i = 0; i < count; i++) {
		const struct quota_proposal *one = &proposals[i];
		if (one->parent_id != parent_id)
			continue;
		if (!one->follows && one->quota != UNLIMITED)
			sum.fixed += max64(one->quota, 0);
		if (one->follows) {
			sum.least += quota_least(one);
			sum.beyond += one->proposed - quota_least(one);
		}
	}
	return sum;
}

/* Cuts what the children of a tenant, or (0) those without a parent, would have together. */
static void cut_siblings(struct quota_proposal *proposals, size_t count, int64_t parent_id,
                         int64_t available)
{
	struct siblings sum = siblings_of(proposals, count, parent_id);
	int64_t left = max64(available - sum.fixed - sum.least, 0);

	for (size_t i = 0; i < count && sum.beyond > left; i++) {
		struct quota_proposal *one = &proposals[i];
		if (one->parent_id != parent_id || !one->follows)
			continue;
		int64_t least = quota_least(one);
		int64_t part = muldiv_down(one->proposed - least, left, sum.beyond);
		one->proposed = least + part / WHOLE_GPU * WHOLE_GPU;
	}
}

/* What the parent of siblings is guaranteed then. */
static int64_t available_of(const struct quota_proposal *parent, int64_t total)
{
	int64_t quota = parent->follows ? parent->proposed : parent->quota;

	return quota == UNLIMITED ? total : max64(quota, 0);
}

static int depth_in_tree(const struct tenant *tenant)
{
	int depth = 0;

	for (; tenant->parent; tenant = tenant->parent)
		depth++;
	return depth;
}

struct quota_proposal *quota_propose(const struct tenants *tenants, int64_t total, int64_t now_ms,
                                     int64_t half_life_ms)
{
	size_t count = tenants->count;
	struct quota_proposal *proposals = memory_zero(count + 1, sizeof(*proposals));
	int deepest = 0;

	INVARIANT(total >= 0);
	for (size_t i = 0; i < count; i++) {
		proposals[i] = propose_alone(tenants->all[i], total, now_ms, half_life_ms);
		int depth = depth_in_tree(tenants->all[i]);
		deepest = depth > deepest ? depth : deepest;
	}
	cut_siblings(proposals, count, 0, total);
	/* From the top down: what children may have depends on what is left to their parents. */
	for (int depth = 0; depth < deepest; depth++)
		for (size_t i = 0; i < count; i++)
			if (tenants->all[i]->child_count > 0 &&
			    depth_in_tree(tenants->all[i]) == depth)
				cut_siblings(proposals, count, proposals[i].tenant_id,
				             available_of(&proposals[i], total));
	return proposals;
}
