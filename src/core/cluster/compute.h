/* compute.h - shares of a GPU's compute */
#ifndef CORE_CLUSTER_COMPUTE_H
#define CORE_CLUSTER_COMPUTE_H

#include <stdbool.h>
#include <stdint.h>

struct gpu;
struct part;

/* A GPU is shared in one of two ways: its owners take turns (none of them has a share of its
 * compute), or each of them has a share, in thousandths, which MPS enforces. The two are never
 * mixed: who takes turns would halve what the others were given. Owners with shares are of one
 * tenant, unless the settings allow to mix tenants: a fault of one may end the others. */

/* Parts with shares, added up. */
struct compute_sum {
	uint64_t tenants; /* hashes of their tenants, added up, modulo 2^64 */
	int32_t parts, milli;
};
void compute_sum_add(struct compute_sum *sum, const struct part *part, int sign);

/* What shares a GPU in one view: those with shares, and how many there are in all. */
struct compute_view {
	struct compute_sum sum;
	int32_t owners;
};
struct compute_view compute_now(const struct gpu *gpu);
/* Once everything that is releasing in time is back and all claims are served. */
struct compute_view compute_later(const struct gpu *gpu);
/* Like compute_later(), once the victims that are marked on the GPU are gone too. */
struct compute_view compute_cleared(const struct gpu *gpu);
/* The view without a claim that it contains. */
struct compute_view compute_without(struct compute_view view, const struct part *part);

/* True if `part`, which is not whole, may share the GPU with those in the view: all have shares as
 * it has, or none does, and they may be mixed. Does not look at how much is left. */
bool compute_matches(const struct compute_view *view, const struct part *part, bool mixed);
/* Another number when a newcomer finds its compute shared otherwise; not 0. */
uint64_t compute_digest(const struct gpu *gpu, bool mixed);
/* Thousandths that are left in the view. */
static inline int32_t compute_left(const struct compute_view *view)
{
	return 1000 - view->sum.milli;
}

#endif
