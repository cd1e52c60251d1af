/* histogram.h - durations seen, of which the older count less */
#ifndef CORE_PREDICT_HISTOGRAM_H
#define CORE_PREDICT_HISTOGRAM_H

#include <stdint.h>

#include "core/predict/durations.h"

/* A new duration counts more than the last one, rather than the older ones less: so
 * adding one touches a few bins. `one` is what the last one counted; when that gets
 * large all is divided. Bins outside of `from` to `to` are 0. `total` is the sum of
 * the bins and `squares` that of their squares. Zero-initialized is empty. */
struct histogram {
	uint32_t bins[DURATION_BINS];
	uint32_t total, one;
	uint64_t squares;
	uint8_t from, to;
};

/* A probability of 1. */
#define PROBABILITY_BITS 24
#define PROBABILITY_ONE (1 << PROBABILITY_BITS)

/* A distribution of durations: the bins' probabilities, which are all above 0
 * and add up to PROBABILITY_ONE, but for rounding. */
struct distribution {
	uint32_t bins[DURATION_BINS];
};

/* What a duration counts more than the one before it, in 1/65536, where that one
 * keeps `kept` of 65536 of its weight. */
#define GROWTH(kept) ((uint32_t)((UINT64_C(1) << 32) / (kept)))

/* A duration, smeared over the bins around its own: what each gets, in 1/65536. One is
 * enough for all the histograms that it is added to. */
#define KERNEL_BINS 5
struct kernel {
	int32_t place;
	uint32_t parts[KERNEL_BINS];
};
void kernel_make(struct kernel *kernel, int32_t place);
void histogram_add(struct histogram *histogram, const struct kernel *kernel, uint32_t growth);

/* The histogram of all jobs as a distribution; even an empty one gives one. */
void histogram_base(const struct histogram *all, struct distribution *base);
/* How concentrated the durations are: the sum of the squared probabilities, in
 * 1/65536, where `extra` counts beside them. */
uint32_t histogram_concentration(const struct histogram *histogram, uint32_t extra);

/* Leaves what is longer than `place`, and `share`/65536 of `base` everywhere. */
void distribution_beyond(struct distribution *distribution, int32_t place,
                         const struct distribution *base, uint32_t share);

#endif
