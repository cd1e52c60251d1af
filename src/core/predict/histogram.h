/* histogram.h - durations seen, of which the older count less */
#ifndef CORE_PREDICT_HISTOGRAM_H
#define CORE_PREDICT_HISTOGRAM_H

#include <stdint.h>

#include "core/predict/durations.h"

/* What one duration counts when it is new. */
#define HISTOGRAM_ONE (1 << 16)

/* `total` is the sum of the bins. */
#define HISTOGRAM_MAX (1 << 28)
struct histogram {
	uint32_t bins[DURATION_BINS];
	uint32_t total;
};

/* A probability of 1. */
#define PROBABILITY_BITS 24
#define PROBABILITY_ONE (1 << PROBABILITY_BITS)

/* A distribution of durations: the bins' probabilities, which are all above 0
 * and add up to PROBABILITY_ONE, but for rounding. */
struct distribution {
	uint32_t bins[DURATION_BINS];
};

/* Adds a duration at `place`, smeared over the neighboring bins, after all bins
 * were lowered by rate/65536; 0 < rate < 65536. */
void histogram_add(struct histogram *histogram, int32_t place, uint32_t rate);

/* The histogram of all jobs as a distribution; even an empty one gives one. */
void histogram_base(const struct histogram *all, struct distribution *base);
/* The histogram shrunk towards `base`, which counts as much as `weight`/65536
 * durations. */
void histogram_shrunk(const struct histogram *histogram, const struct distribution *base,
                      uint32_t weight, struct distribution *out);
/* Leaves what is longer than `place`, and `share`/65536 of `base` everywhere. */
void distribution_beyond(struct distribution *distribution, int32_t place,
                         const struct distribution *base, uint32_t share);

/* How concentrated it is: the sum of the squared probabilities, in 1/65536. */
uint32_t distribution_concentration(const struct distribution *distribution);

#endif
