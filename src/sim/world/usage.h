/* usage.h - how many GPUs each owner had, as time went by */
#ifndef SIM_WORLD_USAGE_H
#define SIM_WORLD_USAGE_H

#include <stdint.h>

#include "sim/world/chart.h"

enum { USAGE_SLICES = 240 };

/* GPU time by owner and slice of the time from `from_ms` to `to_ms`. */
struct usage {
	int64_t from_ms, to_ms;
	size_t owners;
	int64_t *gpu_ms; /* by owner, then by slice */
};
void usage_begin(struct usage *usage, int64_t from_ms, int64_t to_ms, size_t owners);
void usage_free(struct usage *usage);
/* The owner had `gpus` GPUs for that time; time outside of all slices does not count. */
void usage_add(struct usage *usage, size_t owner, int64_t from_ms, int64_t to_ms, int64_t gpus);

/* What a chart of it points to. */
struct usage_lines {
	char title[96];
	double x[USAGE_SLICES], y[CHART_SERIES_MAX][USAGE_SLICES];
};
/* Areas on top of each other, days from left to right, the largest owner lowest. Those
 * beyond the most that a chart shows are one area. The title is for the caller to set. */
struct chart usage_chart(const struct usage *usage, const char *const *names, double gpus,
                         struct usage_lines *lines);

#endif
