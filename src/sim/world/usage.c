/* usage.c - how many GPUs each owner had, as time went by */
#include "sim/world/usage.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/number.h"

#define DAY_MS 86400000.0

void usage_begin(struct usage *usage, int64_t from_ms, int64_t to_ms, size_t owners)
{
	*usage = (struct usage){
		.from_ms = from_ms,
		.to_ms = max64(to_ms, from_ms + USAGE_SLICES),
		.owners = owners,
		.gpu_ms = memory_zero(owners * USAGE_SLICES, sizeof(*usage->gpu_ms)),
	};
}

void usage_free(struct usage *usage)
{
	free(usage->gpu_ms);
	*usage = (struct usage){ 0 };
}

/* When the slice begins; that of USAGE_SLICES: when all end. */
static int64_t begins_ms(const struct usage *usage, int64_t slice)
{
	return usage->from_ms + (usage->to_ms - usage->from_ms) * slice / USAGE_SLICES;
}

void usage_add(struct usage *usage, size_t owner, int64_t from_ms, int64_t to_ms, int64_t gpus)
{
	int64_t *slices = &usage->gpu_ms[owner * USAGE_SLICES];

	from_ms = max64(from_ms, usage->from_ms);
	to_ms = min64(to_ms, usage->to_ms);
	if (from_ms >= to_ms)
		return;
	for (int64_t i =
	         (from_ms - usage->from_ms) * USAGE_SLICES / (usage->to_ms - usage->from_ms);
	     i < USAGE_SLICES && begins_ms(usage, i) < to_ms; i++)
		slices[i] += max64(min64(to_ms, begins_ms(usage, i + 1)) -
		                       max64(from_ms, begins_ms(usage, i)),
		                   0) *
		             gpus;
}

static int64_t total_of(const struct usage *usage, size_t owner)
{
	int64_t sum = 0;

	for (int i = 0; i < USAGE_SLICES; i++)
		sum += usage->gpu_ms[owner * USAGE_SLICES + (size_t)i];
	return sum;
}

/* The owner at this rank by size; ties go to the first in the list. */
static size_t owner_at(const struct usage *usage, size_t place)
{
	for (size_t owner = 0; owner < usage->owners; owner++) {
		size_t before = 0;
		for (size_t other = 0; other < usage->owners; other++) {
			int64_t more = total_of(usage, other) - total_of(usage, owner);
			before += more > 0 || (more == 0 && other < owner);
		}
		if (before == place)
			return owner;
	}
	return 0;
}

/* GPUs that the owner had in the slice. */
static double gpus_in(const struct usage *usage, size_t owner, int slice)
{
	int64_t long_ms = begins_ms(usage, slice + 1) - begins_ms(usage, slice);

	return (double)usage->gpu_ms[owner * USAGE_SLICES + (size_t)slice] / (double)long_ms;
}

struct chart usage_chart(const struct usage *usage, const char *const *names, double gpus,
                         struct usage_lines *lines)
{
	struct chart chart = { .title = lines->title,
		               .x_label = "days",
		               .y_label = "GPUs",
		               .x_to = (double)(usage->to_ms - usage->from_ms) / DAY_MS,
		               .y_to = gpus,
		               .stacked = true };
	double sum[USAGE_SLICES] = { 0 };

	for (size_t place = 0; place < usage->owners; place++) {
		size_t owner = owner_at(usage, place);
		int series = (int)(place < CHART_SERIES_MAX ? place : CHART_SERIES_MAX - 1);
		for (int i = 0; i < USAGE_SLICES; i++) {
			lines->x[i] = (double)(begins_ms(usage, i) - usage->from_ms) / DAY_MS;
			lines->y[series][i] = sum[i] += gpus_in(usage, owner, i);
		}
		chart.series[series] =
		    (struct chart_series){ place < CHART_SERIES_MAX ? names[owner] : "others",
			                   lines->x, lines->y[series], USAGE_SLICES };
		chart.series_count = series + 1;
	}
	return chart;
}
