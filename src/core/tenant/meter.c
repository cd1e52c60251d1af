/* meter.c - what tenants used and what it cost, from what they held since when */
#include <stdlib.h>

#include "core/tenant/tenant.h"

#define MS_PER_DAY INT64_C(86400000)
#define MS_PER_HOUR INT64_C(3600000)
#define BYTES_PER_MIB 1048576

/* A decayed sum is linear in its rate, so it is taken of this rate, which leaves
 * room for any time, and scaled to the amount. */
#define UNIT_RATE (INT64_C(1) << 20)
#define MS_PER_SECOND 1000

static int64_t add_saturated(int64_t a, int64_t b)
{
	int64_t sum;
	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* Days from 1970-01-01 to the first of a month of the Gregorian calendar. The
 * year is taken to begin in March, so that leap days come last. */
static int64_t month_first_day(int64_t month)
{
	int64_t from_march = month - 2;
	int64_t year = from_march / 12;
	int64_t months = from_march % 12;
	int64_t leap_days = year / 4 - year / 100 + year / 400;
	int64_t days_from_march = (153 * months + 2) / 5;
	return year * 365 + leap_days + days_from_march - 719468;
}

static int64_t month_start_ms(int64_t month)
{
	return month_first_day(month) * MS_PER_DAY;
}

int64_t month_of(int64_t time_ms)
{
	INVARIANT(time_ms >= 0);
	int64_t days = time_ms / MS_PER_DAY;
	/* A month is never shorter than 28 days nor a year longer than 366. */
	int64_t month = 1970 * 12 + days / 366 * 12;
	month += (days - month_first_day(month)) / 31;
	while (month_first_day(month + 1) <= days)
		month++;
	return month;
}

static int64_t elapsed_ms(const struct tenant *tenant, int64_t now_ms)
{
	return max64(now_ms - tenant->r.metered_ms, 0);
}

static int64_t usage_when_metered(const struct tenant_record *r, enum amount_kind kind)
{
	switch (kind) {
	case AMOUNT_GPU:
		return r->usage_gpu;
	case AMOUNT_CPU:
		return r->usage_cpu;
	default:
		return r->usage_host;
	}
}

/* What an amount held for long enough that its decayed sum is `unit_sum` adds up to. */
static int64_t usage_of(enum amount_kind kind, int64_t amount, int64_t unit_sum)
{
	int64_t rate = kind == AMOUNT_HOST ? amount / BYTES_PER_MIB : amount;
	return muldiv_down(rate, unit_sum, UNIT_RATE * MS_PER_SECOND);
}

int64_t tenant_usage(const struct tenant *tenant, enum amount_kind kind, int64_t now_ms,
                     int64_t half_life_ms)
{
	INVARIANT(kind < FAIR_KINDS);
	if (half_life_ms <= 0)
		return 0;
	int64_t elapsed = elapsed_ms(tenant, now_ms);
	int64_t usage = decay(usage_when_metered(&tenant->r, kind), elapsed, half_life_ms);
	if (tenant->metered.of[kind] == 0)
		return usage;
	int64_t unit_sum = decay_sum(UNIT_RATE, elapsed, half_life_ms);
	return add_saturated(usage, usage_of(kind, tenant->metered.of[kind], unit_sum));
}

int64_t tenant_usage_share(const struct tenant *tenant, enum amount_kind kind, int64_t now_ms,
                           int64_t half_life_ms, int64_t total)
{
	int64_t usage = tenant_usage(tenant, kind, now_ms, half_life_ms);
	if (usage == 0)
		return 0;
	int64_t all = usage_of(kind, total, decay_sum(UNIT_RATE, INT64_MAX, half_life_ms));
	return all > 0 ? muldiv_down(usage, 1000, all) : 0;
}

int64_t tenant_average(const struct tenant *tenant, enum amount_kind kind, int64_t now_ms,
                       int64_t half_life_ms)
{
	int64_t usage = tenant_usage(tenant, kind, now_ms, half_life_ms);

	if (usage == 0)
		return 0;
	int64_t one = usage_of(kind, WHOLE_GPU, decay_sum(UNIT_RATE, INT64_MAX, half_life_ms));
	return one > 0 ? muldiv_down(usage, WHOLE_GPU, one) : 0;
}

static int64_t gpu_ms_between(const struct tenant *tenant, int64_t from_ms, int64_t to_ms)
{
	return muldiv_down(tenant->metered.of[AMOUNT_GPU], max64(to_ms - from_ms, 0), 1);
}

static int64_t cost_between(const struct tenant *tenant, int64_t from_ms, int64_t to_ms)
{
	return muldiv_down(gpu_ms_between(tenant, from_ms, to_ms), tenant->r.cost_per_gpu_hour,
	                   WHOLE_GPU * MS_PER_HOUR);
}

int64_t tenant_gpu_ms(const struct tenant *tenant, int64_t now_ms)
{
	return add_saturated(tenant->r.gpu_ms,
	                     gpu_ms_between(tenant, tenant->r.metered_ms, now_ms));
}

int64_t tenant_cost(const struct tenant *tenant, int64_t now_ms)
{
	return add_saturated(tenant->r.cost, cost_between(tenant, tenant->r.metered_ms, now_ms));
}

int64_t tenant_month_cost(const struct tenant *tenant, int64_t now_ms)
{
	int64_t month = month_of(now_ms);
	int64_t from_ms = max64(tenant->r.metered_ms, month_start_ms(month));
	int64_t before = tenant->r.month == month ? tenant->r.month_cost : 0;
	return add_saturated(before, cost_between(tenant, from_ms, now_ms));
}

/* Whether all is counted up to now: nothing is used in no time. */
static bool is_settled(const struct tenant_record *r, int64_t now_ms, int64_t half_life_ms)
{
	return r->metered_ms == now_ms && half_life_ms > 0 && r->month == month_of(now_ms);
}

static void meter_settle(struct tenant *tenant, int64_t now_ms, const struct config_record *config)
{
	struct tenant_record r = tenant->r;
	now_ms = max64(now_ms, r.metered_ms);
	if (is_settled(&r, now_ms, config->usage_half_life_ms)) {
		tenant->metered = tenant->allocated;
		return;
	}
	r.usage_gpu = tenant_usage(tenant, AMOUNT_GPU, now_ms, config->usage_half_life_ms);
	r.usage_cpu = tenant_usage(tenant, AMOUNT_CPU, now_ms, config->usage_half_life_ms);
	r.usage_host = tenant_usage(tenant, AMOUNT_HOST, now_ms, config->usage_half_life_ms);
	r.gpu_ms = tenant_gpu_ms(tenant, now_ms);
	r.cost = tenant_cost(tenant, now_ms);
	r.month_cost = tenant_month_cost(tenant, now_ms);
	r.month = month_of(now_ms);
	r.metered_ms = now_ms;
	tenant->r = r;
	tenant->metered = tenant->allocated;
}

static bool is_metered(const struct tenant *tenant)
{
	for (int k = 0; k < AMOUNT_KINDS; k++) {
		if (tenant->metered.of[k] != tenant->allocated.of[k])
			return false;
	}
	return true;
}

static int meter_compare_ids(const void *a, const void *b)
{
	const struct tenant *const *left = a, *const *right = b;
	return ((*left)->r.id > (*right)->r.id) - ((*left)->r.id < (*right)->r.id);
}

void tenants_settle(struct tenants *tenants, int64_t now_ms, const struct config_record *config,
                    void (*changed)(void *context, struct tenant *tenant), void *context)
{
	if (tenants->unsettled_count == 0)
		return;
	qsort(tenants->unsettled, tenants->unsettled_count, sizeof(tenants->unsettled[0]),
	      meter_compare_ids);
	for (size_t i = 0; i < tenants->unsettled_count; i++) {
		struct tenant *tenant = tenants->unsettled[i];
		tenant->unsettled = false;
		if (is_metered(tenant))
			continue;
		meter_settle(tenant, now_ms, config);
		changed(context, tenant);
	}
	tenants->unsettled_count = 0;
}

void tenant_settle_now(struct tenants *tenants, struct tenant *tenant, int64_t now_ms,
                       const struct config_record *config)
{
	INVARIANT(tenants_find(tenants, tenant->r.id) == tenant);
	meter_settle(tenant, now_ms, config);
}

void tenant_bill(struct tenants *tenants, struct tenant *tenant, int64_t amount, int64_t now_ms,
                 const struct config_record *config)
{
	tenant_settle_now(tenants, tenant, now_ms, config);
	tenant->r.cost = add_saturated(tenant->r.cost, amount);
	tenant->r.month_cost = add_saturated(tenant->r.month_cost, amount);
	tenant->r.token_cost = add_saturated(tenant->r.token_cost, amount);
}

void tenant_credit(struct tenant *tenant, int64_t amount)
{
	tenant->r.token_credit = add_saturated(tenant->r.token_credit, amount);
}
