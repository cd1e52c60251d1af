/* fairshare.h - what each tenant is entitled to, and who comes next */
#ifndef CORE_TENANT_FAIRSHARE_H
#define CORE_TENANT_FAIRSHARE_H

#include "core/tenant/tenant.h"

/* Divides `total` among the roots, and what each got among its children, for
 * every fair kind: first what a tenant asks for (allocated + waiting, at most
 * its limit) up to its quota; what remains by priority, higher first, then by
 * weight among equals, in whole units (a GPU, a core, a byte), until what is
 * asked for is met; a tenant alone at its priority needs no weight; leftovers
 * of rounding one unit each to the largest remainders, older first among
 * equals, before a lower priority gets anything. Past use lowers the weight. An
 * only child gets all, asked for or not. What is owed by quota is owed even if
 * it adds up to more than there is. Integers alone: the same input gives the
 * same shares, bit for bit. */
void fairshare_divide(struct tenants *tenants, const struct amounts *total,
                      const struct config_record *config, int64_t now_ms);

/* What the tenant may count on: the larger of quota and fair share, at most its
 * limit, and just that (UNLIMITED: none) where the quota is unlimited. */
int64_t fairshare_allocatable(const struct tenant *tenant, enum amount_kind kind);

/* Whether it holds more than its fair share of every fair kind: over in
 * everything, which is what puts it behind others. */
bool fairshare_over(const struct tenant *tenant);
/* Whether it holds more than it may count on, or than its quota (none: 0), of
 * any fair kind, `less` having been taken from it (may be NULL). */
bool fairshare_over_allocatable(const struct tenant *tenant, const struct amounts *less);
bool fairshare_over_quota(const struct tenant *tenant, const struct amounts *less);
/* Whether it holds no more than its fair share, or than its quota, of every fair
 * kind, `less` having been taken and `more` given (either may be NULL). */
bool fairshare_within(const struct tenant *tenant, const struct amounts *less,
                      const struct amounts *more);
bool fairshare_less_over(const struct tenant *taker, const struct tenant *giver);
bool fairshare_within_quota(const struct tenant *tenant, const struct amounts *less,
                            const struct amounts *more);

/* The order in which siblings are served: negative if `a`, whose next job asks
 * for `a_job` (NULL: nothing), goes before `b`. In turn: not over in everything;
 * within quota with the job; higher priority; not using what it has no share of;
 * smaller dominant share with the job; without it; smaller allocatable share;
 * older. Never 0 for two tenants. For the order of victims the jobs are negative
 * amounts (what would be taken), which count for the dominant share alone, and
 * the result is read backwards. */
int fairshare_compare(const struct tenant *a, const struct amounts *a_job, const struct tenant *b,
                      const struct amounts *b_job, const struct amounts *total);

#endif
