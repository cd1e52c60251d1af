/* compute.c - shares of a GPU's compute */
#include "core/cluster/compute.h"

#include "base/hash.h"
#include "core/cluster/reservation.h"

static uint64_t tenants_of(const struct part *part, int32_t times)
{
	return hash_number((uint64_t)part->sharer) * (uint64_t)times;
}

void compute_sum_add(struct compute_sum *sum, const struct part *part, int sign)
{
	if (part->compute == 0)
		return;
	INVARIANT(part->compute > 0 && part->compute <= WHOLE_GPU && !part->whole);
	sum->parts += sign;
	sum->milli += sign * part->compute;
	sum->tenants += tenants_of(part, sign);
	INVARIANT(sum->parts >= 0 && sum->milli >= 0);
}

static void join(struct compute_sum *sum, const struct compute_sum *other, int sign)
{
	sum->parts += sign * other->parts;
	sum->milli += sign * other->milli;
	sum->tenants += (uint64_t)sign * other->tenants;
}

struct compute_view compute_now(const struct gpu *gpu)
{
	return (struct compute_view){ gpu->books.compute, gpu->books.owners };
}

struct compute_view compute_later(const struct gpu *gpu)
{
	const struct gpu_books *books = &gpu->books;
	struct compute_view view = compute_now(gpu);

	join(&view.sum, &books->compute_releasing, -1);
	join(&view.sum, &books->compute_claimed, 1);
	view.owners += books->claims - books->releasing_owners;
	return view;
}

struct compute_view compute_cleared(const struct gpu *gpu)
{
	struct compute_view view = compute_later(gpu);

	join(&view.sum, &gpu->mark_compute, -1);
	view.owners -= gpu->mark_owners;
	return view;
}

struct compute_view compute_without(struct compute_view view, const struct part *part)
{
	compute_sum_add(&view.sum, part, -1);
	view.owners--;
	return view;
}

bool compute_matches(const struct compute_view *view, const struct part *part, bool mixed)
{
	if (part->compute == 0)
		return view->sum.parts == 0;
	return view->owners == view->sum.parts &&
	       (mixed || view->sum.tenants == tenants_of(part, view->sum.parts));
}

static uint64_t digest_of(const struct compute_view *view)
{
	uint64_t shares = (uint64_t)view->sum.parts << 32 | (uint64_t)view->sum.milli;

	return hash_combine(hash_combine(view->sum.tenants, shares), (uint64_t)view->owners);
}

uint64_t compute_digest(const struct gpu *gpu, bool mixed)
{
	struct compute_view now = compute_now(gpu), later = compute_later(gpu);

	INVARIANT(now.owners >= 0);
	return hash_combine(hash_combine(digest_of(&now), digest_of(&later)), mixed) | 1;
}
