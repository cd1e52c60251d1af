/* histogram.c - durations seen, of which the older count less */
#include "core/predict/histogram.h"

#include <string.h>

#include "base/error.h"

#define ONE_FIRST (UINT32_C(1) << 15)
#define ONE_BITS 21 /* `one` stays below 2^21, and with the slowest growth a total below 2^31 */
#define ONE_SHIFT 6

#define KERNEL_ONE 65536
#define KERNEL_SPREAD 13107 /* of what a bin gets, in 1/65536, goes to either neighbor: 0.2 */

/* How much of a duration each of the bins around it gets; the sum is KERNEL_ONE. A
 * quadratic spline, so that durations on either side of a bin's edge look alike,
 * then smoothed once. */
void kernel_make(struct kernel *kernel, int32_t place)
{
	uint32_t after = (uint32_t)(place % BIN_LOG), before = BIN_LOG - after;
	uint32_t spline[KERNEL_BINS] = { 0, before * before / 2, 0, after * after / 2, 0 };
	uint32_t sum = 0;

	_Static_assert(BIN_LOG * BIN_LOG == KERNEL_ONE, "the spline's weights need no scaling");
	spline[2] = KERNEL_ONE - spline[1] - spline[3];
	for (int i = 0; i < KERNEL_BINS; i++) {
		uint64_t near = (uint64_t)(i > 0 ? spline[i - 1] : 0) +
		                (i + 1 < KERNEL_BINS ? spline[i + 1] : 0);
		kernel->parts[i] =
		    (uint32_t)(((uint64_t)spline[i] * (KERNEL_ONE - 2 * KERNEL_SPREAD) +
		                near * KERNEL_SPREAD) >>
		               16);
		sum += kernel->parts[i];
	}
	kernel->parts[2] += KERNEL_ONE - sum;
	kernel->place = place;
}

static int bin_within(int at)
{
	return at < 0 ? 0 : at >= DURATION_BINS ? DURATION_BINS - 1 : at;
}

/* Adds to the bins around `bin`; outside of the scale, to the outermost. */
static void bins_add(struct histogram *histogram, const struct kernel *kernel, int bin)
{
	int first = bin - KERNEL_BINS / 2, from = bin_within(first);
	int to = bin_within(first + KERNEL_BINS - 1);
	uint64_t one = histogram->one, squares = 0;
	uint32_t total = 0;

	for (int i = 0; i < KERNEL_BINS; i++) {
		uint32_t *at = &histogram->bins[bin_within(first + i)];
		uint64_t before = *at, count = kernel->parts[i] * one >> 16;
		*at = (uint32_t)(before + count);
		total += (uint32_t)count;
		squares += (2 * before + count) * count;
	}
	histogram->total += total;
	histogram->squares += squares;
	histogram->from = (uint8_t)(from < histogram->from ? from : histogram->from);
	histogram->to = (uint8_t)(to > histogram->to ? to : histogram->to);
}

static void histogram_divide(struct histogram *histogram)
{
	histogram->one >>= ONE_SHIFT;
	histogram->total = 0;
	histogram->squares = 0;
	for (int i = histogram->from; i <= histogram->to; i++) {
		uint64_t count = histogram->bins[i] >>= ONE_SHIFT;
		histogram->total += (uint32_t)count;
		histogram->squares += count * count;
	}
}

void histogram_add(struct histogram *histogram, const struct kernel *kernel, uint32_t growth)
{
	int bin = kernel->place / BIN_LOG;

	INVARIANT(bin >= 0 && bin < DURATION_BINS && growth > 65536);
	if (histogram->one == 0) {
		histogram->one = ONE_FIRST;
		histogram->from = histogram->to = (uint8_t)bin;
	} else {
		histogram->one = (uint32_t)((uint64_t)histogram->one * growth >> 16);
	}
	bins_add(histogram, kernel, bin);
	if (histogram->one >> ONE_BITS)
		histogram_divide(histogram);
}

/* Every bin gets a fiftieth of a duration: nothing is impossible. */
void histogram_base(const struct histogram *all, struct distribution *base)
{
	uint64_t floor = (all->one == 0 ? ONE_FIRST : all->one) / 50;
	uint64_t inverse = (UINT64_C(1) << 56) / ((uint64_t)all->total + DURATION_BINS * floor);

	for (int i = 0; i < DURATION_BINS; i++)
		base->bins[i] = (uint32_t)((all->bins[i] + floor) * inverse >> 32);
}

uint32_t histogram_concentration(const struct histogram *histogram, uint32_t extra)
{
	uint64_t total = ((uint64_t)histogram->total + extra) >> 8;

	return (uint32_t)(histogram->squares / (total * total));
}

void distribution_beyond(struct distribution *distribution, int32_t place,
                         const struct distribution *base, uint32_t share)
{
	int bin = place / BIN_LOG;
	uint64_t total = 1;

	memset(distribution->bins, 0, (size_t)bin * sizeof(*distribution->bins));
	uint64_t left = (uint64_t)distribution->bins[bin] * (uint64_t)(BIN_LOG - place % BIN_LOG);
	distribution->bins[bin] = (uint32_t)(left / BIN_LOG);
	for (int i = bin; i < DURATION_BINS; i++)
		total += distribution->bins[i];
	uint64_t scale = ((uint64_t)(65536 - share) << PROBABILITY_BITS) / total;
	for (int i = 0; i < DURATION_BINS; i++)
		distribution->bins[i] = (uint32_t)((distribution->bins[i] * scale >> 16) +
		                                   ((uint64_t)base->bins[i] * share >> 16)) +
		                        1;
}
