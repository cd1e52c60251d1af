/* histogram.c - durations seen, of which the older count less */
#include "core/predict/histogram.h"

#include <string.h>

#include "base/error.h"

#define KERNEL_BINS 5
#define KERNEL_SPREAD 13107 /* of what a bin gets, in 1/65536, goes to either neighbor: 0.2 */
#define BASE_FLOOR (HISTOGRAM_ONE / 50) /* in every bin: nothing is impossible */

/* How much of a duration each of the bins around it gets; the sum is
 * HISTOGRAM_ONE. A quadratic spline, so that durations on either side of a bin's
 * edge look alike, then smoothed once. */
static void kernel_make(int32_t place, uint32_t kernel[KERNEL_BINS])
{
	uint32_t after = (uint32_t)(place % BIN_LOG), before = BIN_LOG - after;
	uint32_t spline[KERNEL_BINS] = { 0, before * before / 2, 0, after * after / 2, 0 };
	uint32_t sum = 0;

	_Static_assert(BIN_LOG * BIN_LOG == HISTOGRAM_ONE, "the spline's weights need no scaling");
	spline[2] = HISTOGRAM_ONE - spline[1] - spline[3];
	for (int i = 0; i < KERNEL_BINS; i++) {
		uint64_t near = (uint64_t)(i > 0 ? spline[i - 1] : 0) +
		                (i + 1 < KERNEL_BINS ? spline[i + 1] : 0);
		kernel[i] = (uint32_t)(((uint64_t)spline[i] * (HISTOGRAM_ONE - 2 * KERNEL_SPREAD) +
		                        near * KERNEL_SPREAD) >>
		                       16);
		sum += kernel[i];
	}
	kernel[2] += HISTOGRAM_ONE - sum;
}

void histogram_add(struct histogram *histogram, int32_t place, uint32_t rate)
{
	uint32_t kernel[KERNEL_BINS];
	int bin = place / BIN_LOG;

	INVARIANT(bin >= 0 && bin < DURATION_BINS && rate > 0 && rate < 65536);
	for (int i = 0; i < DURATION_BINS; i++)
		histogram->bins[i] -=
		    (uint32_t)(((uint64_t)histogram->bins[i] * rate + (1 << 15)) >> 16);
	kernel_make(place, kernel);
	for (int i = 0; i < KERNEL_BINS; i++) {
		int at = bin + i - KERNEL_BINS / 2;
		at = at < 0 ? 0 : at >= DURATION_BINS ? DURATION_BINS - 1 : at;
		histogram->bins[at] += kernel[i];
	}
	histogram->total = 0;
	for (int i = 0; i < DURATION_BINS; i++)
		histogram->total += histogram->bins[i];
}

void histogram_base(const struct histogram *all, struct distribution *base)
{
	uint64_t total = (uint64_t)all->total + DURATION_BINS * BASE_FLOOR;

	for (int i = 0; i < DURATION_BINS; i++)
		base->bins[i] =
		    (uint32_t)(((uint64_t)all->bins[i] + BASE_FLOOR) * PROBABILITY_ONE / total);
}

/* Multiplies by the reciprocal: a division for each bin would take most of the
 * time of a prediction. */
void histogram_shrunk(const struct histogram *histogram, const struct distribution *base,
                      uint32_t weight, struct distribution *out)
{
	uint64_t inverse = (UINT64_C(1) << 40) / ((uint64_t)histogram->total + weight);

	for (int i = 0; i < DURATION_BINS; i++) {
		uint64_t count =
		    ((uint64_t)histogram->bins[i] << 8) + ((uint64_t)weight * base->bins[i] >> 16);
		out->bins[i] = (uint32_t)(count * inverse >> 24) + 1;
	}
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

uint32_t distribution_concentration(const struct distribution *distribution)
{
	uint64_t sum = 0;

	for (int i = 0; i < DURATION_BINS; i++) {
		uint64_t part = distribution->bins[i] >> 8;
		sum += part * part;
	}
	return (uint32_t)(sum >> 16);
}
