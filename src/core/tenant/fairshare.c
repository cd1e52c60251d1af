/* fairshare.c - what each tenant is entitled to, and who comes next */
#include "core/tenant/fairshare.h"

#include <stdlib.h>

/* One of the siblings among which an amount of one kind is divided. */
struct share {
	struct tenant *tenant;
	int64_t got;
	int64_t wanted;      /* beyond what it got */
	int64_t usage_share; /* thousandths; -1: not looked up yet */
	int128 weight;       /* in this round, after past use */
	/* What its share was more than whole units, rest / of of a unit; 0: nothing,
	 * or it needs no more. */
	int128 rest, of;
};

/* What is the same for all siblings. */
struct division {
	enum amount_kind kind;
	int64_t unit;  /* what is given is whole units of this, but for the last of it */
	int64_t total; /* of the cluster */
	int64_t now_ms;
	const struct config_record *config;
};

#define THOUSAND 1000
/* Bounds that keep products of weights within 128 bits. */
#define USAGE_INFLUENCE_MAX 1000000
#define USAGE_SHARE_MAX 1000000

static int64_t unit_of(enum amount_kind kind)
{
	return kind == AMOUNT_HOST ? 1 : 1000;
}

/* Compares the fractions a/b and c/d, which may have no common denominator that
 * fits, by their continued fractions. All are at least 0, b and d more. */
static int fraction_compare(int128 a, int128 b, int128 c, int128 d)
{
	for (int sign = 1;; sign = -sign) {
		int128 left = a / b, right = c / d;
		if (left != right)
			return left < right ? -sign : sign;
		int128 left_rest = a % b, right_rest = c % d;
		if (left_rest == 0 || right_rest == 0)
			return sign * ((left_rest > 0) - (right_rest > 0));
		/* The smaller fraction has the larger reciprocal. */
		a = b;
		b = left_rest;
		c = d;
		d = right_rest;
	}
}

static int compare_priority(const void *a, const void *b)
{
	const struct tenant *left = ((const struct share *)a)->tenant;
	const struct tenant *right = ((const struct share *)b)->tenant;
	if (left->r.priority != right->r.priority)
		return left->r.priority > right->r.priority ? -1 : 1;
	return (left->r.id > right->r.id) - (left->r.id < right->r.id);
}

/* Larger rest first, then older; those without a rest last. */
static int compare_rest(const void *a, const void *b)
{
	const struct share *left = a, *right = b;
	int order = 0;
	if (left->of == right->of || left->rest == 0 || right->rest == 0)
		order = (left->rest < right->rest) - (left->rest > right->rest);
	else
		order = -fraction_compare(left->rest, left->of, right->rest, right->of);
	return order != 0 ? order : compare_priority(a, b);
}

static void give(struct share *share, int64_t amount, int64_t *remaining)
{
	INVARIANT(amount >= 0 && amount <= *remaining && amount <= share->wanted);
	share->got += amount;
	share->wanted -= amount;
	*remaining -= amount;
}

/* Its part of what was used, in thousandths; looked up once. */
static int64_t usage_share(struct share *share, const struct division *division)
{
	if (share->usage_share < 0) {
		int64_t used =
		    tenant_usage_share(share->tenant, division->kind, division->now_ms,
		                       division->config->usage_half_life_ms, division->total);
		share->usage_share = min64(used, USAGE_SHARE_MAX);
	}
	return share->usage_share;
}

/* Sets the weights of those that want more: the tenant's part of all their
 * weights, plus the configured influence times how much that is above its part
 * of what was used; at least 0. Scaled to whole numbers. Returns their sum. */
static int128 weigh(struct share *shares, size_t count, const struct division *division)
{
	int64_t influence = division->config->usage_influence;
	influence = min64(max64(influence, 0), USAGE_INFLUENCE_MAX);
	int64_t all = 0;
	for (size_t i = 0; i < count; i++)
		all += shares[i].wanted > 0 ? shares[i].tenant->r.weight : 0;

	int128 sum = 0;
	for (size_t i = 0; i < count; i++) {
		struct share *share = &shares[i];
		share->weight = 0;
		int64_t weight = share->tenant->r.weight;
		if (share->wanted <= 0 || weight == 0)
			continue;
		share->weight = (int128)weight * (THOUSAND + influence) * THOUSAND;
		if (influence > 0)
			share->weight -= (int128)influence * usage_share(share, division) * all;
		if (share->weight < 0)
			share->weight = 0;
		sum += share->weight;
	}
	return sum;
}

/* Gives each that wants more its part of `remaining` by weight, or what it wants
 * if that is less: then something is left for another round, which it returns. */
static bool divide_round(struct share *shares, size_t count, int128 weights, int64_t unit,
                         int64_t *remaining)
{
	int64_t pot = *remaining;
	bool again = false;
	for (size_t i = 0; i < count; i++) {
		struct share *share = &shares[i];
		if (share->wanted <= 0 || share->weight == 0)
			continue;
		int128 product = pot * share->weight;
		int64_t part = (int64_t)(product / weights);
		if (share->wanted <= part) {
			again |= share->wanted < part || product % weights > 0;
			share->rest = 0;
			give(share, share->wanted, remaining);
			continue;
		}
		int64_t whole = part - part % unit;
		int128 rest = product - whole * weights;
		if (rest > 0) {
			share->rest = rest;
			share->of = weights * unit;
		}
		give(share, whole, remaining);
	}
	return again;
}

/* Divides `remaining` among tenants of one priority. */
static void divide_group(struct share *shares, size_t count, const struct division *division,
                         int64_t *remaining)
{
	if (count == 1) {
		give(&shares[0], min64(shares[0].wanted, *remaining), remaining);
		return;
	}
	bool again = true;
	while (again && *remaining > 0) {
		int128 weights = weigh(shares, count, division);
		again =
		    weights > 0 && divide_round(shares, count, weights, division->unit, remaining);
	}
	if (*remaining == 0)
		return;
	qsort(shares, count, sizeof(*shares), compare_rest);
	for (size_t i = 0; i < count && shares[i].rest > 0; i++)
		give(&shares[i], min64(min64(division->unit, shares[i].wanted), *remaining),
		     remaining);
}

/* What a tenant asks for and may have. */
static int64_t requestable(const struct tenant *tenant, enum amount_kind kind)
{
	int128 asked = tenant->allocated.of[kind] + tenant->waiting.of[kind];
	int64_t limit = tenant_limit(tenant, kind);

	return asked < limit ? (int64_t)asked : limit;
}

/* Fills the shares with the siblings and what each is owed, in the order of
 * priority. Returns what remains of `total`. */
static int64_t grant_quotas(struct share *shares, struct tenant *const *siblings, size_t count,
                            enum amount_kind kind, int64_t total)
{
	int64_t remaining = total;
	bool sorted = true;
	for (size_t i = 0; i < count; i++) {
		struct tenant *tenant = siblings[i];
		int64_t quota = tenant_quota(tenant, kind);
		if (quota == UNLIMITED)
			quota = total;
		int64_t asked = requestable(tenant, kind);
		int64_t got = min64(max64(quota, 0), asked);
		shares[i] = (struct share){ .tenant = tenant, .got = got, .usage_share = -1 };
		shares[i].wanted = asked - got;
		remaining -= got;
		sorted = sorted && (i == 0 || siblings[i - 1]->r.priority >= tenant->r.priority);
	}
	if (!sorted)
		qsort(shares, count, sizeof(*shares), compare_priority);
	return remaining;
}

static void divide_kind(struct share *shares, struct tenant *const *siblings, size_t count,
                        const struct division *division, int64_t total)
{
	int64_t remaining = grant_quotas(shares, siblings, count, division->kind, total);
	if (count == 1 && remaining > 0) {
		shares[0].got += remaining;
		remaining = 0;
	}
	for (size_t i = 0, end = 0; i < count && remaining > 0; i = end) {
		int64_t priority = shares[i].tenant->r.priority;
		while (end < count && shares[end].tenant->r.priority == priority)
			end++;
		divide_group(shares + i, end - i, division, &remaining);
	}
	for (size_t i = 0; i < count; i++)
		shares[i].tenant->fair[division->kind] = shares[i].got;
}

/* Divides what their parent has among siblings, and so on down the tree. */
static void divide_level(struct tenants *tenants, struct tenant *const *siblings, size_t count,
                         const int64_t parent_has[FAIR_KINDS], struct division *division,
                         const struct amounts *total)
{
	array_reserve(tenants->shares, tenants->share_capacity, count);
	for (enum amount_kind k = 0; k < FAIR_KINDS; k++) {
		division->kind = k;
		division->unit = unit_of(k);
		division->total = total->of[k];
		divide_kind(tenants->shares, siblings, count, division, parent_has[k]);
	}
	for (size_t i = 0; i < count; i++) {
		const struct tenant *tenant = siblings[i];
		if (tenant->child_count > 0)
			divide_level(tenants, tenant->children, tenant->child_count, tenant->fair,
			             division, total);
	}
}

void fairshare_divide(struct tenants *tenants, const struct amounts *total,
                      const struct config_record *config, int64_t now_ms)
{
	struct division division = { .now_ms = now_ms, .config = config };
	if (tenants->root_count > 0)
		divide_level(tenants, tenants->roots, tenants->root_count, total->of, &division,
		             total);
}

int64_t fairshare_allocatable(const struct tenant *tenant, enum amount_kind kind)
{
	int64_t quota = tenant_quota(tenant, kind);
	int64_t limit = tenant_limit(tenant, kind);
	return quota == UNLIMITED ? limit : min64(max64(quota, tenant->fair[kind]), limit);
}

static int64_t amount_of(const struct amounts *amounts, enum amount_kind kind)
{
	return amounts ? amounts->of[kind] : 0;
}

/* What it is owed; nothing where no quota is set. */
static int64_t owed(const struct tenant *tenant, enum amount_kind kind)
{
	return max64(tenant_quota(tenant, kind), 0);
}

bool fairshare_over(const struct tenant *tenant)
{
	for (enum amount_kind k = 0; k < FAIR_KINDS; k++) {
		if (tenant->allocated.of[k] <= tenant->fair[k])
			return false;
	}
	return true;
}

bool fairshare_over_allocatable(const struct tenant *tenant, const struct amounts *less)
{
	for (enum amount_kind k = 0; k < FAIR_KINDS; k++) {
		if (tenant->allocated.of[k] - amount_of(less, k) > fairshare_allocatable(tenant, k))
			return true;
	}
	return false;
}

bool fairshare_over_quota(const struct tenant *tenant, const struct amounts *less)
{
	return !fairshare_within_quota(tenant, less, NULL);
}

bool fairshare_within(const struct tenant *tenant, const struct amounts *less,
                      const struct amounts *more)
{
	for (enum amount_kind k = 0; k < FAIR_KINDS; k++) {
		int64_t held = tenant->allocated.of[k] - amount_of(less, k) + amount_of(more, k);
		if (held > tenant->fair[k])
			return false;
	}
	return true;
}

bool fairshare_less_over(const struct tenant *taker, const struct tenant *giver)
{
	for (enum amount_kind k = 0; k < FAIR_KINDS; k++) {
		if (taker->allocated.of[k] <= taker->fair[k] || giver->fair[k] == 0)
			continue;
		if (taker->fair[k] == 0 ||
		    ratio_compare(taker->allocated.of[k], taker->fair[k], giver->allocated.of[k],
		                  giver->fair[k]) >= 0)
			return false;
	}
	return true;
}

bool fairshare_within_quota(const struct tenant *tenant, const struct amounts *less,
                            const struct amounts *more)
{
	for (enum amount_kind k = 0; k < FAIR_KINDS; k++) {
		int64_t held = tenant->allocated.of[k] - amount_of(less, k) + amount_of(more, k);
		if (held > owed(tenant, k))
			return false;
	}
	return true;
}

/* A tenant that competes for the next turn, and what it would add. */
struct contender {
	const struct tenant *tenant;
	const struct amounts *job;
	int64_t allocatable[FAIR_KINDS];
};

static struct contender contender(const struct tenant *tenant, const struct amounts *job)
{
	struct contender contender = { .tenant = tenant, .job = job };
	for (enum amount_kind k = 0; k < FAIR_KINDS; k++)
		contender.allocatable[k] = fairshare_allocatable(tenant, k);
	return contender;
}

/* What it would hold with its job; what would be taken does not count. */
static int64_t held_with_job(const struct contender *contender, enum amount_kind kind)
{
	return contender->tenant->allocated.of[kind] + max64(amount_of(contender->job, kind), 0);
}

static bool is_within_quota(const struct contender *contender)
{
	for (enum amount_kind k = 0; k < FAIR_KINDS; k++) {
		if (held_with_job(contender, k) > owed(contender->tenant, k))
			return false;
	}
	return true;
}

static bool uses_without_share(const struct contender *contender)
{
	for (enum amount_kind k = 0; k < FAIR_KINDS; k++) {
		if (contender->allocatable[k] == 0 && held_with_job(contender, k) > 0)
			return true;
	}
	return false;
}

struct ratio {
	int64_t over, under;
};

/* The largest of its parts of what it may count on. What it may not count on at
 * all weighs a thousandfold. */
static struct ratio dominant_share(const struct contender *contender, bool with_job,
                                   const struct amounts *total)
{
	struct ratio dominant = { 0, 1 };
	for (enum amount_kind k = 0; k < FAIR_KINDS; k++) {
		int64_t held = contender->tenant->allocated.of[k];
		if (with_job)
			held += amount_of(contender->job, k);
		int64_t allocatable = contender->allocatable[k];
		if (allocatable == UNLIMITED)
			allocatable = total->of[k];
		if (held <= 0 || total->of[k] == 0)
			continue;
		struct ratio ratio = { held, allocatable };
		if (allocatable == 0)
			ratio = (struct ratio){ muldiv_down(held, THOUSAND, 1), unit_of(k) };
		if (ratio_compare(ratio.over, ratio.under, dominant.over, dominant.under) > 0)
			dominant = ratio;
	}
	return dominant;
}

static int compare_dominant(const struct contender *a, const struct contender *b, bool with_job,
                            const struct amounts *total)
{
	struct ratio left = dominant_share(a, with_job, total);
	struct ratio right = dominant_share(b, with_job, total);
	return ratio_compare(left.over, left.under, right.over, right.under);
}

/* The one that may count on less of something and on more of nothing is first. */
static int compare_allocatable(const struct contender *a, const struct contender *b)
{
	bool less = false, more = false;
	for (enum amount_kind k = 0; k < FAIR_KINDS; k++) {
		less |= a->allocatable[k] < b->allocatable[k];
		more |= a->allocatable[k] > b->allocatable[k];
	}
	return more - less;
}

int fairshare_compare(const struct tenant *a, const struct amounts *a_job, const struct tenant *b,
                      const struct amounts *b_job, const struct amounts *total)
{
	int order = fairshare_over(a) - fairshare_over(b);
	if (order != 0)
		return order;
	struct contender left = contender(a, a_job), right = contender(b, b_job);
	order = is_within_quota(&right) - is_within_quota(&left);
	if (order != 0)
		return order;
	if (a->r.priority != b->r.priority)
		return a->r.priority > b->r.priority ? -1 : 1;
	order = uses_without_share(&left) - uses_without_share(&right);
	if (order == 0)
		order = compare_dominant(&left, &right, true, total);
	if (order == 0)
		order = compare_dominant(&left, &right, false, total);
	if (order == 0)
		order = compare_allocatable(&left, &right);
	return order != 0 ? order : (a->r.id > b->r.id) - (a->r.id < b->r.id);
}
