/* bound.c - whether a tenant may hold more: limits, quotas and budgets up the tree */
#include <inttypes.h>

#include "core/tenant/tenant.h"

enum { MIB = 1024 * 1024, THOUSANDTHS = 1000, MILLIONTHS_PER_HUNDREDTH = 10000 };

/* True if `asked` more than `counted` stays within `allowed`. A bound that is already exceeded
 * refuses only requests that would add to it. */
static bool bound_fits(int64_t asked, int64_t counted, int64_t allowed)
{
	return asked <= 0 || allowed == UNLIMITED || asked <= allowed - counted;
}

static bool within_limits(const struct tenant *tenant, const struct amounts *amounts, bool ever,
                          struct bound *bound)
{
	for (; tenant; tenant = tenant->parent) {
		for (enum amount_kind k = 0; k < AMOUNT_KINDS; k++) {
			int64_t asked = amounts->of[k], has = tenant->allocated.of[k];
			int64_t limit = tenant_limit(tenant, k);
			if (bound_fits(asked, ever ? 0 : has, limit))
				continue;
			*bound = (struct bound){ tenant, k, BOUND_LIMIT, asked, has, limit };
			return false;
		}
	}
	return true;
}

static bool within_quotas(const struct tenant *tenant, const struct amounts *amounts, bool ever,
                          struct bound *bound)
{
	for (; tenant; tenant = tenant->parent) {
		for (enum amount_kind k = 0; k < FAIR_KINDS; k++) {
			int64_t asked = amounts->of[k], has = tenant->fixed.of[k];
			int64_t quota = tenant_quota(tenant, k);
			if (quota == QUOTA_UNSET || bound_fits(asked, ever ? 0 : has, quota))
				continue;
			*bound = (struct bound){ tenant, k, BOUND_QUOTA, asked, has, quota };
			return false;
		}
	}
	return true;
}

static bool within_budgets(const struct tenant *tenant, int64_t asked, int64_t now_ms,
                           struct bound *bound)
{
	for (; tenant && asked > 0; tenant = tenant->parent) {
		int64_t budget = tenant->r.budget_per_month;
		if (budget == UNLIMITED)
			continue;
		int64_t spent = tenant_month_cost(tenant, now_ms);
		if (spent < budget)
			continue;
		*bound = (struct bound){ tenant, AMOUNT_GPU, BOUND_BUDGET, asked, spent, budget };
		return false;
	}
	return true;
}

bool tenant_is_below(const struct tenant *tenant, const struct tenant *above)
{
	while (tenant && tenant != above)
		tenant = tenant->parent;
	return tenant != NULL;
}

bool tenant_may_hold(const struct tenant *tenant, const struct amounts *amounts, bool preemptible,
                     int64_t now_ms, struct bound *bound)
{
	*bound = (struct bound){ 0 };
	return within_limits(tenant, amounts, false, bound) &&
	       (preemptible || within_quotas(tenant, amounts, false, bound)) &&
	       within_budgets(tenant, amounts->of[AMOUNT_GPU], now_ms, bound);
}

bool tenant_could_ever_hold(const struct tenant *tenant, const struct amounts *amounts,
                            bool preemptible, struct bound *bound)
{
	*bound = (struct bound){ 0 };
	return within_limits(tenant, amounts, true, bound) &&
	       (preemptible || within_quotas(tenant, amounts, true, bound));
}

static const char *kind_name(enum amount_kind kind)
{
	static const char *const names[AMOUNT_KINDS] = {
		[AMOUNT_GPU] = "GPUs",
		[AMOUNT_CPU] = "CPU cores",
		[AMOUNT_HOST] = "host memory MiB",
		[AMOUNT_GPU_MEMORY] = "GPU memory MiB",
		[AMOUNT_JOBS] = "running jobs",
	};
	return names[kind];
}

/* An amount in the unit that kind_name says. What is asked for is rounded up and
 * the rest down, so that the numbers shown contradict no refusal. */
static void print_amount(struct buffer *buffer, const char *word, enum amount_kind kind,
                         int64_t amount, bool up)
{
	int64_t thousandths = amount;
	if (kind == AMOUNT_HOST)
		thousandths = up ? muldiv_up(amount, THOUSANDTHS, MIB)
		                 : muldiv_down(amount, THOUSANDTHS, MIB);
	else if (kind == AMOUNT_GPU_MEMORY || kind == AMOUNT_JOBS)
		thousandths = muldiv_down(amount, THOUSANDTHS, 1);

	buffer_print(buffer, "%s%" PRId64, word, thousandths / THOUSANDTHS);
	int64_t rest = thousandths % THOUSANDTHS;
	if (rest == 0)
		return;
	int digits = 3;
	for (; rest % 10 == 0; rest /= 10)
		digits--;
	buffer_print(buffer, ".%0*" PRId64, digits, rest);
}

static void print_money(struct buffer *buffer, int64_t millionths)
{
	int64_t hundredths = millionths / MILLIONTHS_PER_HUNDREDTH;
	buffer_print(buffer, "%" PRId64 ".%02" PRId64, hundredths / 100, hundredths % 100);
}

void bound_print(struct buffer *buffer, const struct bound *bound)
{
	const char *name = bound->tenant->r.name;
	if (bound->of == BOUND_BUDGET) {
		buffer_print(buffer, "tenant %s has spent its budget for this month: ", name);
		print_money(buffer, bound->has);
		buffer_text(buffer, " of ");
		print_money(buffer, bound->allowed);
		return;
	}
	if (bound->of == BOUND_LIMIT)
		buffer_print(buffer, "quota exceeded for tenant %s: ", name);
	else
		buffer_print(
		    buffer,
		    "tenant %s: jobs that may not be preempted are bound by the quota: ", name);
	buffer_text(buffer, kind_name(bound->kind));
	print_amount(buffer, " requested=", bound->kind, bound->asked, true);
	print_amount(buffer, ", quota=", bound->kind, bound->allowed, false);
	print_amount(buffer, ", current=", bound->kind, bound->has, false);
}

void bound_print_waiting(struct buffer *buffer, const struct bound *bound)
{
	static const char *const nouns[AMOUNT_KINDS] = {
		[AMOUNT_GPU] = "GPUs",
		[AMOUNT_CPU] = "CPU cores",
		[AMOUNT_HOST] = "MiB of host memory",
		[AMOUNT_GPU_MEMORY] = "MiB of GPU memory",
		[AMOUNT_JOBS] = "running jobs",
	};
	if (bound->of != BOUND_LIMIT) {
		bound_print(buffer, bound);
		return;
	}
	buffer_print(buffer, "tenant %s is at its limit of ", bound->tenant->r.name);
	print_amount(buffer, "", bound->kind, bound->allowed, false);
	buffer_print(buffer, " %s (", nouns[bound->kind]);
	print_amount(buffer, "", bound->kind, bound->has, false);
	print_amount(buffer, " in use, ", bound->kind, bound->asked, true);
	buffer_text(buffer, " requested)");
}
